"""From pieces to keys in two steps: the elements of a record give a group, a closed file gives its numbers.

A group is the key with open gaps. Two records are in one group if their keys differ only in the file's numbers and the
mark of the commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from s3lake.layout.elements import format_wallclock
from s3lake.layout.pieces import (
    LARGEST,
    RESERVED_STEPS,
    Date,
    Element,
    Extension,
    Field,
    Header,
    Hour,
    Key,
    NoObjectKeyError,
    Number,
    NumberName,
    Piece,
    Routed,
    Schema,
    Text,
    Time,
    Topic,
)
from s3lake.text.dates import joda
from s3lake.text.masking import MASK, is_secret

MAX_KEY_BYTES = 1024
_MARK_BYTES = 13  # of any commit, for example `~1f2e3d4c5b6a`
_GAP = "\x1f"  # no text of a key can hold it
_INDEXES = ".indexes"
"""The default prefix of indexes, also those of other configurations."""
_ELEMENTS = (Field, Key, Header, Schema, Date, Time, Routed)


@dataclass(frozen=True)
class Span:
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
        parts: before, between and after the gaps: texts, the topic-partition, and elements of the record.
        gaps: numbers of the file, and the extension.
        mark: of the commit, before the extension.
        sidecars: the endings of keys of sidecars, instead of the extension.
    """

    parts: tuple[tuple[Text | Number | Element, ...], ...]
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
        wallclock_ms: int = 0,
        hour_ms: int = 0,
    ) -> KeyTemplate:
        """Build the template of `pieces` for a topic and an hour.

        Args:
            pieces: of the whole key.
            topic: the topic's name.
            extension: of data objects.
            sidecars: the endings of keys of sidecars.
            routed: True if transforms rename topics; the name is then read from each record.
            mark: of the commit.
            wallclock_ms: the micro-batch's time.
            hour_ms: the start of the tile's hour.
        """
        last = pieces[-2]
        if not extension and isinstance(last, Text) and isinstance(pieces[-1], Extension):
            # The extension is written in the template: the text after the last dot of the file name.
            stem, dot, rest = last.text.rpartition(".")
            if dot and "/" not in rest:
                pieces, extension = (*pieces[:-2], Text(stem), Extension()), dot + rest
        parts: list[list[Text | Number | Element]] = [[]]
        gaps: list[Gap] = []
        name: Text | Routed = Routed() if routed else Text(topic)
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
                    parts[-1].append(Text(joda.compile_formatter(pattern)(hour_ms)))
                case Time(clock="wallclock"):
                    parts[-1].append(Text(format_wallclock(piece, wallclock_ms)))
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
        return re.fullmatch(".+?".join(map(re.escape, texts)), group, re.DOTALL) is not None

    def pattern(self, partition: int, gaps: Sequence[str]) -> str:
        """Return a key with these texts in its gaps and `%s` for each element."""
        parts = ["".join(_spell(piece, partition) for piece in part) for part in self.parts]
        return parts[0] + "".join(gap.replace("%", "%%") + part for gap, part in zip(gaps, parts[1:], strict=True))

    def key(self, group: str, span: Span, *, ending: str) -> str:
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
    """Builds the group of a record of one topic-partition, and checks that its keys are valid in a bucket."""

    def __init__(self, composition: KeyTemplate, partition: int, reserved: tuple[str, ...]) -> None:
        """Initialize; `reserved` are the prefixes of indexes, which no key may have."""
        self._group = composition.pattern(partition, [_GAP] * len(composition.gaps))
        self._key = composition.pattern(
            partition, ["0" if isinstance(gap, Number) else composition.extension for gap in composition.gaps]
        )
        self._most = MAX_KEY_BYTES - composition.reserve
        self._reserved = reserved
        self._secret = [is_secret(_name(element)) for element in composition.elements]
        self._begins_with_slash = self._key.startswith("/")  # of the template itself, as Aiven's prefix may
        self._own = frozenset(step.replace("%%", "%") for step in self._key.split("/") if "%s" not in step)

    def __call__(self, texts: tuple[str, ...]) -> str:
        """Return the group.

        Raises:
            NoObjectKeyError: a key would be too long, or some client would resolve it to another key.
        """
        group, key = self._group % texts, self._key % texts
        if not key:
            raise NoObjectKeyError("its object key would be empty")
        problem = self._problem(group, key)
        if problem is not None:
            pairs = zip(texts, self._secret, strict=True)
            shown = self._group % tuple(MASK if secret else text for text, secret in pairs)
            raise NoObjectKeyError(f"its object key would {problem}: {shown.replace(_GAP, '…')[:80]!r}")
        return group

    def _problem(self, group: str, key: str) -> str | None:
        """Return why no object can have this key, or None if it is valid."""
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


def _name(element: Element) -> str:
    """Return the path of a field, or the name and path of a header; empty for other elements."""
    path = getattr(element, "path", ())
    return ".".join((*((element.name,) if isinstance(element, Header) else ()), *path))


def _spell(piece: Text | Number | Element, partition: int) -> str:
    match piece:
        case Text(text):
            return text.replace("%", "%%")
        case Number():
            return piece.format(partition).replace("%", "%%")
        case _:
            return "%s"
