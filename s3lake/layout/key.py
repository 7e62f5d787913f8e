"""Object keys: the group of each record, and the key of each file of a group.

Most keys are known before a file's first byte, so that uploads stream; keys with numbers of the closed file are
`deferred`. Source: the four documents, and compatibility.md, Object keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from s3lake.layout.composition import MAX_KEY_BYTES, GroupBuilder, KeyTemplate, Span
from s3lake.layout.elements import Reading, RecordColumns, element_texts, read_field_times
from s3lake.layout.pieces import NoObjectKeyError, Number, NumberName, Source, Time

__all__ = ["MAX_KEY_BYTES", "KeyLayout", "RecordColumns", "Span"]

_Text = str | NoObjectKeyError
_TOMBSTONES = "\x1e"  # the beginning of their groups


@dataclass(frozen=True)
class KeyLayout:
    """A sink's layout for one topic, as plain values: Spark's closures bring it to the workers.

    Attributes:
        root: empty, or the prefix ending in a slash.
        sink: the sink's name, for the directory of its dead letters.
        renamed: the mark of a commit whose plain keys may be used already, for example `~1f2e3d4c5b6a`.
        data: the template of keys.
        tombstones: the template of keys of records without a value, if they have their own.
        reserved: prefixes that no key may have: those of the indexes in this bucket.
        offset: the padding of offsets in keys of dead letters.
    """

    root: str
    sink: str
    topic: str
    renamed: str
    data: KeyTemplate
    tombstones: KeyTemplate | None
    reading: Reading
    reserved: tuple[str, ...]
    offset: Number

    @property
    def numbers(self) -> frozenset[NumberName]:
        """The numbers in keys that depend on the whole file."""
        return frozenset[NumberName]().union(*(template.numbers for template in self._templates))

    @property
    def deferred(self) -> bool:
        """True if a part of the key is known only when its file is closed."""
        return bool(self.numbers - {"offset"})

    @property
    def replaces(self) -> bool:
        """True if keys contain no offset, so that only the last record of a group remains."""
        return not self.data.numbers & {"offset", "last_offset"}

    @property
    def has_tombstones(self) -> bool:
        """True if records without a value have keys of their own."""
        return self.tombstones is not None

    def needs(self, source: Source) -> bool:
        """Return whether keys contain this part of a record."""
        return any(element.source == source for template in self._templates for element in template.elements)

    @property
    def clock(self) -> Time | None:
        """The field of the value whose time keys contain; None if they contain none."""
        return next(
            (element for element in self.data.elements if isinstance(element, Time) and element.clock == "field"), None
        )

    def times(self, fields: RecordColumns) -> list[int | None]:
        """Return the time of `clock` of each record, epoch milliseconds; None if it has none, and so no group."""
        clock = self.clock
        assert clock is not None, "called only if there is a clock"
        return read_field_times(clock, fields)

    def fixed_group(self, partition: int) -> str | None:
        """Return the group of every record of a topic-partition, or None if it depends on the record."""
        if self.data.elements:
            return None
        group = _build_group(GroupBuilder(self.data, partition, self.reserved), "", ())
        return group if isinstance(group, str) else None  # `groups` returns the reason

    def can_contain(self, group: str, partition: int) -> bool:
        """Return whether records of a topic-partition can be in this group."""
        template, plain = self._find_template(group)
        return template.can_contain(plain, partition)

    def groups(self, partition: int, fields: RecordColumns, records: int) -> list[str | NoObjectKeyError]:
        """Return the group of each of `records` records, or the reason why it has none."""
        return self._groups(self.data, "", partition, fields, records)

    def tombstone_groups(self, partition: int, fields: RecordColumns, records: int) -> list[str | NoObjectKeyError]:
        """Return the groups of records without a value, if they have keys of their own."""
        assert self.tombstones is not None, "called only if `has_tombstones`"
        return self._groups(self.tombstones, _TOMBSTONES, partition, fields, records)

    def key(self, group: str, span: Span) -> str:
        """Return the key of a file of `group`."""
        template, plain = self._find_template(group)
        return template.key(plain, span, ending=template.extension)

    def sidecar_key(self, group: str, span: Span, ending: str) -> str:
        """Return the key of a sidecar of a file of `group`: the same stem, with an ending such as `.keys.json`."""
        template, plain = self._find_template(group)
        return template.key(plain, span, ending=ending)

    def example(self) -> str:
        """Return an example of a key, with names in angle brackets for the elements of a record."""
        names = [f"<{type(element).__name__.lower()}>" for element in self.data.elements]
        return self.key(self.data.group(0, names), Span(0, 0, 0, 0, 0))

    def dead_letters_key(self, partition: int, offset: int) -> str:
        """Return the key of a dead-letter object that begins with `offset`."""
        name = self.offset.format(offset)
        return f"{self.root}_dead_letters/{self.sink}/{self.topic}/{partition}/{name}{self.renamed}.json"

    @property
    def _templates(self) -> tuple[KeyTemplate, ...]:
        return (self.data,) if self.tombstones is None else (self.data, self.tombstones)

    def _find_template(self, group: str) -> tuple[KeyTemplate, str]:
        if self.tombstones is not None and group.startswith(_TOMBSTONES):
            return self.tombstones, group.removeprefix(_TOMBSTONES)
        return self.data, group

    def _groups(
        self, template: KeyTemplate, begin: str, partition: int, fields: RecordColumns, records: int
    ) -> list[str | NoObjectKeyError]:
        builder, elements = GroupBuilder(template, partition, self.reserved), template.elements
        if not elements:
            return [_build_group(builder, begin, ())] * records
        known: dict[tuple[str | NoObjectKeyError, ...], str | NoObjectKeyError] = {}
        groups = []
        for texts in zip(*element_texts(elements, fields, self.reading), strict=True):
            group = known.get(texts)
            if group is None:
                group = known[texts] = _build_group(builder, begin, texts)
            groups.append(group)
        return groups


def _build_group(
    builder: GroupBuilder, begin: str, texts: tuple[str | NoObjectKeyError, ...]
) -> str | NoObjectKeyError:
    for text in texts:
        if isinstance(text, NoObjectKeyError):
            return text
    try:
        return begin + builder(texts)  # type: ignore[arg-type]
    except NoObjectKeyError as error:
        return error
