"""From pieces to keys in two steps: a record gives a group, a closed file its numbers.

A group is the key with its gaps left open: two records share one exactly if their keys differ in numbers and the
commit's mark alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from s3lake.layout.elements import wallclock_text
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
    Number,
    NumberName,
    Piece,
    Routed,
    Schema,
    Text,
    Time,
    Topic,
    Unplaceable,
)
from s3lake.text.dates import joda
from s3lake.text.masking import MASK, is_secret

MAX_KEY_BYTES = 1024
_MARK_BYTES = 13  # of any commit, for example `~1f2e3d4c5b6a`
_GAP = "\x1f"  # no text of a key can hold it
_INDEXES = ".indexes"
"""Where the index of a sink lies that says nothing of it: also of one in another configuration."""
_ELEMENTS = (Field, Key, Header, Schema, Date, Time, Routed)


@dataclass(frozen=True)
class Span:
    """What a file holds: offsets, record timestamps in epoch milliseconds, and how many records."""

    first: int
    last: int
    min_timestamp: int
    max_timestamp: int
    records: int


Gap = Number | Extension


@dataclass(frozen=True)
class Composition:
    """One way to make a key, for one topic.

    Attributes:
        parts: before, between and after the gaps: texts, the topic-partition, and elements of the record.
        gaps: what only the file says.
        mark: of the commit, before the extension.
        sidecars: what keys of sidecars end with instead of the extension.
    """

    parts: tuple[tuple[Text | Number | Element, ...], ...]
    gaps: tuple[Gap, ...]
    mark: str
    extension: str
    sidecars: tuple[str, ...]

    @classmethod
    def of(
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
    ) -> Composition:
        """The composition of `pieces`: topic and hour filled in.

        Args:
            pieces: of the whole key.
            topic: the topic's name.
            extension: of data objects.
            sidecars: what keys of sidecars end with.
            routed: whether transforms rename topics; the name is then read off each record.
            mark: of the commit.
            wallclock_ms: the micro-batch's time.
            hour_ms: when the tile's hour begins.
        """
        last = pieces[-2]
        if not extension and isinstance(last, Text) and isinstance(pieces[-1], Extension):
            # The extension was written into the template: what stands after the last dot of the file name.
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
                    parts[-1].append(Text(joda.formatter(pattern)(hour_ms)))
                case Time(clock="wallclock"):
                    parts[-1].append(Text(wallclock_text(piece, wallclock_ms)))
                case _:
                    parts[-1].append(piece)
        return cls(tuple(map(tuple, parts)), tuple(gaps), mark, extension, sidecars)

    @property
    def elements(self) -> list[Element]:
        """What differs between records, in the order of the key."""
        return [piece for piece in chain.from_iterable(self.parts) if isinstance(piece, _ELEMENTS)]

    @property
    def numbers(self) -> frozenset[NumberName]:
        """Numbers that only the file says."""
        return frozenset(gap.name for gap in self.gaps if isinstance(gap, Number))

    def group(self, partition: int, texts: Sequence[str] = ()) -> str:
        """The group of records whose elements are `texts`."""
        return self.pattern(partition, [_GAP] * len(self.gaps)) % tuple(texts)

    def may_be(self, group: str, partition: int) -> bool:
        """Whether this is the group of some record."""
        texts = self.group(partition, ["\0"] * len(self.elements)).split("\0")
        return re.fullmatch(".+?".join(map(re.escape, texts)), group, re.DOTALL) is not None

    def pattern(self, partition: int, gaps: Sequence[str]) -> str:
        """A key with these texts in its gaps and `%s` for each element."""
        parts = ["".join(_spelled(piece, partition) for piece in part) for part in self.parts]
        return parts[0] + "".join(gap.replace("%", "%%") + part for gap, part in zip(gaps, parts[1:], strict=True))

    def key(self, group: str, span: Span, *, ending: str) -> str:
        """The key of a file of `group`; `ending` stands for the extension."""
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
        """Bytes that a key may have beyond its group's: the longest numbers, a mark, a sidecar's ending."""
        numbers = sum(len(gap.format(LARGEST[gap.name])) for gap in self.gaps if isinstance(gap, Number))
        ending = max(len(one.encode()) for one in (self.extension, *self.sidecars))
        return numbers + ending + _MARK_BYTES - len(self.gaps)


class Placing:
    """From the elements of a record of one topic-partition to its group, where its keys can stand in a bucket."""

    def __init__(self, composition: Composition, partition: int, kept: tuple[str, ...]) -> None:
        """`kept` are the beginnings of keys that no record may lead to: where indexes lie."""
        self._group = composition.pattern(partition, [_GAP] * len(composition.gaps))
        self._key = composition.pattern(
            partition, ["0" if isinstance(gap, Number) else composition.extension for gap in composition.gaps]
        )
        self._most = MAX_KEY_BYTES - composition.reserve
        self._kept = kept
        self._secret = [is_secret(_name(element)) for element in composition.elements]
        self._begins_with_slash = self._key.startswith("/")  # of the template itself, as Aiven's prefix may
        self._own = frozenset(step.replace("%%", "%") for step in self._key.split("/") if "%s" not in step)

    def __call__(self, texts: tuple[str, ...]) -> str:
        """The group.

        Raises:
            Unplaceable: a key would be too long, or mean another place to some client.
        """
        group, key = self._group % texts, self._key % texts
        if not key:
            raise Unplaceable("its object key would be empty")
        problem = self._problem(group, key)
        if problem is not None:
            secret = zip(texts, self._secret, strict=True)
            shown = self._group % tuple(MASK if hidden else text for text, hidden in secret)
            raise Unplaceable(f"its object key would {problem}: {shown.replace(_GAP, '…')[:80]!r}")
        return group

    def _problem(self, group: str, key: str) -> str | None:
        """Why no object can have this key; None if one can."""
        if (len(group) if group.isascii() else len(group.encode())) > self._most:
            return f"exceed {MAX_KEY_BYTES} bytes"
        if "//" in key or (key[0] == "/" and not self._begins_with_slash) or key[-1] == "/":
            return "hold an empty step, which clients leave out"
        steps = key.split("/")
        if not RESERVED_STEPS.isdisjoint(steps):
            return "hold a step that has another meaning"
        if key.startswith(self._kept):
            index = next(one for one in self._kept if key.startswith(one))
            return f"lie in the index {index!r}"
        if _INDEXES in key and any(step.startswith(_INDEXES) and step not in self._own for step in steps):
            return "hold a step that is an index's by default"
        return None


def _name(element: Element) -> str:
    """The path of a field, or the name of a header; empty for what has neither."""
    path = getattr(element, "path", ())
    return ".".join((*((element.name,) if isinstance(element, Header) else ()), *path))


def _spelled(piece: Text | Number | Element, partition: int) -> str:
    match piece:
        case Text(text):
            return text.replace("%", "%%")
        case Number():
            return piece.format(partition).replace("%", "%%")
        case _:
            return "%s"
