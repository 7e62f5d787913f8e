"""Object keys: which group a record belongs to, and the key of each file of a group.

Most layouts are known before a file's first byte, so that uploads stream; those that name what only a closed file knows
are `deferred`. Source: the four documents, and compatibility.md, Object keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from s3lake.layout.composition import MAX_KEY_BYTES, Composition, Placing, Span
from s3lake.layout.elements import Fields, Reading, columns, field_times
from s3lake.layout.pieces import Number, NumberName, Source, Time, Unplaceable

__all__ = ["MAX_KEY_BYTES", "Fields", "KeyRule", "Span"]

_TOMBSTONES = "\x1e"  # begins their groups


@dataclass(frozen=True)
class KeyRule:
    """A sink's layout for one topic, as plain values: Spark's closures carry it to the workers.

    Attributes:
        root: empty, or the prefix ending in a slash.
        sink: the sink's name, for the directory of its dead letters.
        renamed: mark of a commit whose plain names may have been used before, for example `~1f2e3d4c5b6a`.
        data: how keys are made.
        tombstones: how keys of records without a value are made, where they have their own.
        kept: what no key may begin with: where the indexes of this bucket lie.
        offset: how offsets of dead-letter objects are padded.
    """

    root: str
    sink: str
    topic: str
    renamed: str
    data: Composition
    tombstones: Composition | None
    reading: Reading
    kept: tuple[str, ...]
    offset: Number

    @property
    def numbers(self) -> frozenset[NumberName]:
        """Numbers in keys that only a file says."""
        return frozenset[NumberName]().union(*(composition.numbers for composition in self._compositions))

    @property
    def deferred(self) -> bool:
        """Whether a key says something that is known only when its file is closed."""
        return bool(self.numbers - {"offset"})

    @property
    def replaces(self) -> bool:
        """Whether keys say no offset, so that only the last record of a group stays."""
        return not self.data.numbers & {"offset", "last_offset"}

    @property
    def has_tombstones(self) -> bool:
        """Whether records without a value have keys of their own."""
        return self.tombstones is not None

    def needs(self, source: Source) -> bool:
        """Whether keys are made from this part of a record."""
        return any(element.source == source for composition in self._compositions for element in composition.elements)

    @property
    def clock(self) -> Time | None:
        """The field of the value whose time keys print; None where they print none."""
        return next((one for one in self.data.elements if isinstance(one, Time) and one.clock == "field"), None)

    def times(self, fields: Fields) -> list[int | None]:
        """The time of `clock` of each record, epoch milliseconds; None where it has none, and so no group."""
        clock = self.clock
        assert clock is not None, "asked for only where there is a clock"
        return field_times(clock, fields)

    def fixed_group(self, partition: int) -> str | None:
        """The group of every record of a topic-partition, or None where it depends on the record."""
        if self.data.elements:
            return None
        group = _placed(Placing(self.data, partition, self.kept), "", ())
        return group if isinstance(group, str) else None  # `groups` says why there is none

    def may_be(self, group: str, partition: int) -> bool:
        """Whether records of a topic-partition can have this group."""
        composition, plain = self._made_by(group)
        return composition.may_be(plain, partition)

    def groups(self, partition: int, fields: Fields, records: int) -> list[str | Unplaceable]:
        """The group of each of `records` records, or why it has none."""
        return self._groups(self.data, "", partition, fields, records)

    def tombstone_groups(self, partition: int, fields: Fields, records: int) -> list[str | Unplaceable]:
        """The same of records without a value, where they have keys of their own."""
        assert self.tombstones is not None, "asked for only where `has_tombstones`"
        return self._groups(self.tombstones, _TOMBSTONES, partition, fields, records)

    def key(self, group: str, span: Span) -> str:
        """The key of a file of `group`."""
        composition, plain = self._made_by(group)
        return composition.key(plain, span, ending=composition.extension)

    def sidecar_key(self, group: str, span: Span, ending: str) -> str:
        """The key of a sidecar of that file: the same stem, and its own ending, as `.keys.json`."""
        composition, plain = self._made_by(group)
        return composition.key(plain, span, ending=ending)

    def example(self) -> str:
        """A key as this rule makes them, with names in the places of what a record says."""
        names = [f"<{type(one).__name__.lower()}>" for one in self.data.elements]
        return self.key(self.data.group(0, names), Span(0, 0, 0, 0, 0))

    def dead_letters_key(self, partition: int, offset: int) -> str:
        """The key of a dead-letter object that begins with `offset`."""
        name = self.offset.format(offset)
        return f"{self.root}_dead_letters/{self.sink}/{self.topic}/{partition}/{name}{self.renamed}.json"

    @property
    def _compositions(self) -> tuple[Composition, ...]:
        return (self.data,) if self.tombstones is None else (self.data, self.tombstones)

    def _made_by(self, group: str) -> tuple[Composition, str]:
        if self.tombstones is not None and group.startswith(_TOMBSTONES):
            return self.tombstones, group.removeprefix(_TOMBSTONES)
        return self.data, group

    def _groups(
        self, composition: Composition, begin: str, partition: int, fields: Fields, records: int
    ) -> list[str | Unplaceable]:
        place, elements = Placing(composition, partition, self.kept), composition.elements
        if not elements:
            return [_placed(place, begin, ())] * records
        known: dict[tuple[str | Unplaceable, ...], str | Unplaceable] = {}
        found = []
        for texts in zip(*columns(elements, fields, self.reading), strict=True):
            group = known.get(texts)
            if group is None:
                group = known[texts] = _placed(place, begin, texts)
            found.append(group)
        return found


def _placed(place: Placing, begin: str, texts: tuple[str | Unplaceable, ...]) -> str | Unplaceable:
    for text in texts:
        if isinstance(text, Unplaceable):
            return text
    try:
        return begin + place(texts)  # type: ignore[arg-type]
    except Unplaceable as error:
        return error
