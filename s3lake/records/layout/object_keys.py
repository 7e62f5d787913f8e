"""Object keys in two steps: the elements of a record give a group, a closed file gives its numbers.

A group is the key with open gaps. Two records are in one group if their keys differ only in the file's numbers and the
mark of the commit. Most keys are known before a file's first byte, so that uploads stream; keys with numbers of the
closed file are `deferred`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from s3lake.records.layout.elements import Reading, RecordColumns, element_texts, format_wallclock, read_field_times
from s3lake.records.layout.pieces import (
    LARGEST,
    RESERVED_STEPS,
    WRITE_ANOTHER,
    DateElement,
    Element,
    Extension,
    FieldElement,
    FixedText,
    HeaderElement,
    Hour,
    KeyElement,
    NoObjectKeyError,
    Number,
    NumberName,
    Piece,
    RoutedTopicElement,
    SchemaNameElement,
    Source,
    TimeElement,
    Topic,
    get_template_name,
)
from s3lake.text.dates import joda
from s3lake.text.masking import MASK, is_secret

MAX_KEY_BYTES = 1024
_MARK_BYTES = 13  # of any commit, for example `~1f2e3d4c5b6a`
_GAP = "\x1f"  # no text of a key can hold it
_INDEXES = ".indexes"
"""The default prefix of indexes, also in other configurations."""
_TOMBSTONES = "\x1e"  # the beginning of their groups
_ELEMENTS = (FieldElement, KeyElement, HeaderElement, SchemaNameElement, DateElement, TimeElement, RoutedTopicElement)


@dataclass(frozen=True)
class FileNumbers:
    """The contents of a file: offsets, record timestamps in epoch milliseconds, and the number of records."""

    first: int
    last: int
    min_timestamp: int
    max_timestamp: int
    records: int


Gap = Number | Extension


@dataclass(frozen=True)
class KeyTemplate:
    """A layout of keys for one topic.

    Attributes:
        parts: the pieces before, between and after the gaps: texts, the topic-partition, elements.
        gaps: numbers of the file, and the extension.
        mark: the mark of the commit, before the extension.
        sidecars: the endings of keys of sidecars, instead of the extension.
    """

    parts: tuple[tuple[FixedText | Number | Element, ...], ...]
    gaps: tuple[Gap, ...]
    mark: str
    extension: str
    sidecars: tuple[str, ...]

    @classmethod
    def from_pieces(
        cls,
        pieces: Sequence[Piece],
        topic: str,
        *,
        extension: str,
        sidecars: tuple[str, ...] = (),
        routed: bool = False,
        mark: str = "",
        wallclock_ms: int | None = 0,
        hour_ms: int = 0,
    ) -> KeyTemplate:
        """Build the template of the whole key's `pieces` for a topic and an hour.

        Args:
            routed: True if transforms rename topics; the name is then read from each record.
            wallclock_ms: the micro-batch's time; None for any time.
            hour_ms: the start of the tile's hour.
        """
        last = pieces[-2]
        if not extension and isinstance(last, FixedText) and isinstance(pieces[-1], Extension):
            # The extension is written in the template: the text after the last dot of the file name.
            stem, dot, rest = last.text.rpartition(".")
            if dot and "/" not in rest:
                pieces, extension = (*pieces[:-2], FixedText(stem), Extension()), dot + rest
        parts: list[list[FixedText | Number | Element]] = [[]]
        gaps: list[Gap] = []
        name: FixedText | RoutedTopicElement = RoutedTopicElement() if routed else FixedText(topic)
        for piece in pieces:
            match piece:
                case Topic():
                    parts[-1].append(name)
                case Extension():
                    gaps.append(piece)
                    parts.append([])
                case Number(name="partition"):
                    parts[-1].append(piece)
                case Number():
                    gaps.append(piece)
                    parts.append([])
                case Hour(pattern):
                    parts[-1].append(FixedText(joda.compile_formatter(pattern)(hour_ms)))
                case TimeElement(clock="wallclock") if wallclock_ms is not None:
                    parts[-1].append(FixedText(format_wallclock(piece, wallclock_ms)))
                case _:
                    parts[-1].append(piece)
        return cls(tuple(map(tuple, parts)), tuple(gaps), mark, extension, sidecars)

    @property
    def elements(self) -> list[Element]:
        """The pieces that differ between records, in the order of the key."""
        return [piece for piece in chain.from_iterable(self.parts) if isinstance(piece, _ELEMENTS)]

    @property
    def numbers(self) -> frozenset[NumberName]:
        """The numbers that depend on the whole file."""
        return frozenset(gap.name for gap in self.gaps if isinstance(gap, Number))

    def group(self, partition: int, texts: Sequence[str] = ()) -> str:
        """Return the group of records whose elements are `texts`."""
        return self.pattern(partition, [_GAP] * len(self.gaps)) % tuple(texts)

    def can_contain(self, group: str, partition: int) -> bool:
        """Return whether a record can be in this group."""
        texts = self.group(partition, ["\0"] * len(self.elements)).split("\0")
        return re.fullmatch(".*?".join(map(re.escape, texts)), group, re.DOTALL) is not None

    def pattern(self, partition: int, gaps: Sequence[str]) -> str:
        """Return a key with these texts in its gaps and `%s` for each element."""
        parts = ["".join(_write_piece(piece, partition) for piece in part) for part in self.parts]
        return parts[0] + "".join(gap.replace("%", "%%") + part for gap, part in zip(gaps, parts[1:], strict=True))

    def key(self, group: str, span: FileNumbers, *, ending: str) -> str:
        """Return the key of a file of `group`; `ending` replaces the extension."""
        numbers: dict[str, int] = {
            "offset": span.first,
            "last_offset": span.last,
            "min_timestamp": span.min_timestamp,
            "max_timestamp": span.max_timestamp,
            "records": span.records,
        }
        texts = [gap.format(numbers[gap.name]) if isinstance(gap, Number) else self.mark + ending for gap in self.gaps]
        first, *rest = group.split(_GAP)
        return first + "".join(gap + part for gap, part in zip(texts, rest, strict=True))

    @property
    def reserve(self) -> int:
        """Bytes by which a key can be longer than its group: the longest numbers, a mark, a sidecar's ending."""
        numbers = sum(len(gap.format(LARGEST[gap.name])) for gap in self.gaps if isinstance(gap, Number))
        ending = max(len(ending.encode()) for ending in (self.extension, *self.sidecars))
        return numbers + ending + _MARK_BYTES - len(self.gaps)


class GroupBuilder:
    """Builds the groups of records of one topic-partition, and checks that their keys are valid in a bucket.

    Args:
        template: the template of the keys.
        begin: the beginning of each group.
        partition: the topic-partition.
        reserved: the prefixes of indexes, which no key may have.
    """

    def __init__(self, template: KeyTemplate, begin: str, partition: int, reserved: tuple[str, ...]) -> None:
        self._begin = begin
        self._group = template.pattern(partition, [_GAP] * len(template.gaps))
        self._key = template.pattern(
            partition, ["0" if isinstance(gap, Number) else template.extension for gap in template.gaps]
        )
        self._most = MAX_KEY_BYTES - template.reserve
        self._reserved = reserved
        self._secret = [is_secret(_get_field_name(element)) for element in template.elements]
        self._begins_with_slash = self._key.startswith("/")  # of the template itself, as Aiven's prefix may
        self._own = frozenset(step.replace("%%", "%") for step in self._key.split("/") if "%s" not in step)

    def __call__(self, texts: tuple[str | NoObjectKeyError, ...]) -> str | NoObjectKeyError:
        """Return the group, or the reason of a text that is not valid, or why no object can have the key."""
        for text in texts:
            if isinstance(text, NoObjectKeyError):
                return text
        group, key = self._group % texts, self._key % texts
        if not key:
            return NoObjectKeyError(f"its object key would be empty: {WRITE_ANOTHER}")
        problem = self._find_problem(group, key)
        if problem is None:
            return self._begin + group
        pairs = zip(texts, self._secret, strict=True)
        shown = self._group % tuple(MASK if secret else text for text, secret in pairs)
        key_shown = repr(shown.replace(_GAP, "…")[:80])
        return NoObjectKeyError(f"its object key would {problem}: {key_shown}: {WRITE_ANOTHER}")

    def _find_problem(self, group: str, key: str) -> str | None:
        """Return why no object can have this key, or None if it is valid.

        The key is too long, or some client would resolve it to another key.
        """
        if (len(group) if group.isascii() else len(group.encode())) > self._most:
            return f"exceed {MAX_KEY_BYTES} bytes"
        if "//" in key or (key[0] == "/" and not self._begins_with_slash) or key[-1] == "/":
            return "hold an empty step, which clients leave out"
        steps = key.split("/")
        if not RESERVED_STEPS.isdisjoint(steps):
            return "hold a step that has another meaning"
        if key.startswith(self._reserved):
            index = next(prefix for prefix in self._reserved if key.startswith(prefix))
            return f"lie in the index {index!r}"
        if _INDEXES in key and any(step.startswith(_INDEXES) and step not in self._own for step in steps):
            return "hold a step that is an index's by default"
        return None


def _get_field_name(element: Element) -> str:
    """Return the path of a field, or the name and path of a header; empty for other elements."""
    path = getattr(element, "path", ())
    return ".".join((*((element.name,) if isinstance(element, HeaderElement) else ()), *path))


def _write_piece(piece: FixedText | Number | Element, partition: int) -> str:
    match piece:
        case FixedText(text):
            return text.replace("%", "%%")
        case Number():
            return piece.format(partition).replace("%", "%%")
        case _:
            return "%s"


@dataclass(frozen=True)
class KeyLayout:
    """A sink's layout for one topic, as plain values: Spark's closures bring it to the workers.

    Attributes:
        root: empty, or the prefix ending in a slash.
        sink: the sink's name, for the directory of its dead letters.
        renamed: the mark of a commit whose plain keys may be used already, for example `~1f2e3d4c5b6a`.
        data: the template of keys.
        tombstones: the template of keys of records without a value, if they have their own.
        reserved: prefixes that no key may have: the prefixes of the indexes in this bucket.
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

    @property
    def time_path(self) -> tuple[str, ...]:
        """The field of values whose time keys contain; empty if they contain none."""
        elements = (element for template in self._templates for element in template.elements)
        return next((one.path for one in elements if isinstance(one, TimeElement) and one.clock == "field"), ())

    def needs(self, source: Source) -> bool:
        """Return whether keys contain this part of a record."""
        return any(element.source == source for template in self._templates for element in template.elements)

    def times(self, fields: RecordColumns) -> list[int | None] | None:
        """Return the time in a field of the value that keys contain, of each record, in epoch milliseconds.

        It is None if a record has none, and so no group. Return None if keys contain no such time.
        """
        for element in self.data.elements:
            if isinstance(element, TimeElement) and element.clock == "field":
                return read_field_times(element, fields)
        return None

    def fixed_group(self, partition: int) -> str | None:
        """Return the group of every record of a topic-partition, or None if it depends on the record."""
        if self.data.elements:
            return None
        group = GroupBuilder(self.data, "", partition, self.reserved)(())
        return group if isinstance(group, str) else None  # `groups` returns the reason

    def can_contain(self, group: str, partition: int) -> bool:
        """Return whether records of a topic-partition can be in this group."""
        template, plain = self._find_template(group)
        return template.can_contain(plain, partition)

    def groups(
        self, partition: int, fields: RecordColumns, records: int, *, tombstones: bool = False
    ) -> list[str | NoObjectKeyError]:
        """Return the group of each of `records` records, or the reason why it has none.

        Args:
            tombstones: the records have no value, and `has_tombstones`.
        """
        template, begin = (self.tombstones, _TOMBSTONES) if tombstones else (self.data, "")
        assert template is not None, "called only if `has_tombstones`"
        build_group, elements = GroupBuilder(template, begin, partition, self.reserved), template.elements
        if not elements:
            return [build_group(())] * records
        group_of: dict[tuple[str | NoObjectKeyError, ...], str | NoObjectKeyError] = {}
        groups = []
        for texts in zip(*element_texts(elements, fields, self.reading), strict=True):
            group = group_of.get(texts)
            if group is None:
                group = group_of[texts] = build_group(texts)
            groups.append(group)
        return groups

    def key(self, group: str, span: FileNumbers, ending: str | None = None) -> str:
        """Return the key of a file of `group`, or with an ending such as `.keys.json` of its sidecar."""
        template, plain = self._find_template(group)
        return template.key(plain, span, ending=template.extension if ending is None else ending)

    def example(self) -> str:
        """Return an example of a key, with names in angle brackets for the elements of a record."""
        names = [f"<{get_template_name(element)}>" for element in self.data.elements]
        return self.key(self.data.group(0, names), FileNumbers(0, 0, 0, 0, 0))

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
