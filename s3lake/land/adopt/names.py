"""What connectors call their objects: the topic-partition and the offset in a key.

Made from the sink that the connector's dialect becomes (`naming_of`); see reference/lenses.md 1.1 to 1.3, and
confluent_aiven_iggy.md 1.1 and 3.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from s3lake.layout.pieces import Extension, Number, Piece, Text, Topic

if TYPE_CHECKING:
    from s3lake.sink import Sink

_MARK = r"(?:~[0-9a-f]{8,})?"  # of a replacing commit of ours


@dataclass(frozen=True)
class Names:
    """The names of one topic's objects.

    Attributes:
        prefix: what all of them begin with.
        pattern: of a whole key, with the groups `partition` and `offset`; `stamps` where the name has timestamps, and
            `sidecar` where it holds only keys or headers.
        char: what numbers are padded with.
        last: the offset is the file's last record's, else its first one's.
        alone: every record of a topic-partition goes into the same run of files, one file after the other.
        lines: text without a known extension is one record a line.
    """

    prefix: str
    pattern: re.Pattern[str]
    char: str = "0"
    last: bool = False
    alone: bool = True
    lines: bool = False

    def numbers(self, key: str) -> tuple[int, int, re.Match[str]] | None:
        """Topic-partition and offset in `key`; None where it is no such name."""
        match = self.pattern.fullmatch(key)
        if match is None:
            return None
        return self._number(match["partition"]), self._number(match["offset"]), match

    def _number(self, text: str) -> int:
        return int(text if self.char.isdigit() else text.strip(self.char))


class Naming(Protocol):
    """How a connector was set to name its objects."""

    def names(self, topic: str) -> Names | None:
        """The names of a topic's objects; None where they do not tell offsets."""
        ...


@dataclass(frozen=True)
class LensesNames:
    """The Lenses connector's, as it really names them: LAST offset. Objects that s3lake wrote are known by metadata.

    Attributes:
        root: KCQL's prefix as keys begin with it: empty, or ending in a slash.
        partition_by: names are …/topic(PARTITION_OFFSET) instead of topic/PARTITION/OFFSET.
        include_keys: `partition.include.keys`, which matters to the default layout.
        suffix: `key.suffix`.
        padding: of numbers.
        char: what they are padded with.
        observed: s3lake wrote here with `layout.connector_names`, so its offsets are last ones too.
    """

    root: str = ""
    partition_by: bool = False
    include_keys: bool = False
    suffix: str = ""
    padding: Literal["left", "right", "none"] = "left"
    char: str = "0"
    observed: bool = False

    def names(self, topic: str) -> Names | None:
        if self.padding == "right" and self.char.isdigit():
            return None  # 1 and 10 are one text
        pad = f"{re.escape(self.char)}*"
        number = {"left": rf"{pad}\d+", "right": rf"\d+{pad}", "none": r"\d+"}[self.padding]
        partition, offset = rf"(?P<partition>{number})", rf"(?P<offset>{number})"
        topic_is, partition_is = ("topic=", "partition=") if self.include_keys else ("", "")
        if self.partition_by:  # not what is being uploaded: its temporary name ends like the final one
            prefix = self.root
            stem = rf"(?!\.temp-upload/)(?:.*/)?{re.escape(topic)}\({partition}_{offset}\)"
        else:
            prefix = f"{self.root}{topic_is}{topic}/"
            stem = rf"{partition_is}{partition}/{offset}(?P<stamps>_-?\d+_-?\d+)?"
        ending = rf"{re.escape(self.suffix)}{_MARK}\.[^/]+"
        pattern = re.compile(re.escape(prefix) + stem + ending, re.DOTALL)
        return Names(prefix, pattern, self.char, last=True, alone=not self.partition_by)


@dataclass(frozen=True)
class TemplateNames:
    """Those of a template, which is what the layouts of the other connectors become here: FIRST offset.

    An offset that several files share, as Aiven's `start_offset` does, is that of all of them together.

    Attributes:
        root: as for Lenses.
        pieces: of `layout.template`.
        last: the Lenses connector named the objects, so their offset is the last record's.
        alone: no records have names of their own elsewhere, as tombstones can.
        lines: text without a known extension is one record a line.
    """

    root: str
    pieces: tuple[Piece, ...]
    last: bool = False
    alone: bool = True
    lines: bool = False

    def names(self, topic: str) -> Names | None:
        pattern, groups = "", set[str]()
        chars = {piece.char for piece in self.pieces if isinstance(piece, Number) and piece.length}
        if len(chars) > 1 or any(
            isinstance(one, Number) and one.how == "right" and one.char.isdigit() for one in self.pieces
        ):
            return None
        for piece in self.pieces:
            pattern += _spelled(piece, topic, groups)
        if not {"partition", "offset"} <= groups:
            return None
        alone = self.alone and not any(getattr(piece, "source", None) for piece in self.pieces)
        last = self.last or any(isinstance(piece, Number) and piece.name == "last_offset" for piece in self.pieces)
        # The Lenses connector puts a slash after a prefix even where no directory follows.
        root = re.escape(self.root) + ("/?" if self.last else "")
        return Names(
            self.root + _beginning(self.pieces, topic) if not self.last else self.root,
            re.compile(root + pattern, re.DOTALL),
            chars.pop() if chars else "0",
            last=last,
            alone=alone,
            lines=self.lines,
        )


def _spelled(piece: Piece, topic: str, groups: set[str]) -> str:
    """A piece as a regular expression; what comes twice is a group once."""
    match piece:
        case Text():
            return re.escape(piece.text)
        case Topic():
            return re.escape(topic)
        case Extension():
            return rf"{_MARK}(?P<sidecar>\.(?:keys|headers))?(?:\.[^/]*)?"
        case Number():
            pad = f"{re.escape(piece.char)}*" if piece.length else ""
            digits = {"left": rf"{pad}\d+", "right": rf"\d+{pad}", "none": r"\d+"}[piece.how]
            name = "offset" if piece.name == "last_offset" else piece.name
            if name not in ("partition", "offset") or name in groups:
                return f"-?{digits}"
            groups.add(name)
            return f"(?P<{name}>{digits})"
        case _:
            return ".+"


def _beginning(pieces: tuple[Piece, ...], topic: str) -> str:
    text = ""
    for piece in pieces:
        match piece:
            case Text():
                text += piece.text
            case Topic():
                text += topic
            case _:
                break
    return text


def naming_of(sink: Sink, *, lenses: bool) -> Naming:
    """How a connector that was set up like `sink` names its objects.

    Args:
        sink: as the connector's dialect reads it.
        lenses: it is the Lenses connector.
    """
    layout = sink.layout
    if layout.template is None:
        return LensesNames(
            sink.root,
            bool(layout.partition_by),
            bool(layout.include_keys),
            layout.suffix,
            layout.padding.type,
            layout.padding.char,
            layout.connector_names,
        )
    lines = sink.format.type in ("json", "text") or (sink.format.type == "csv" and not sink.format.header)
    return TemplateNames(sink.root, layout.pieces, lenses, layout.tombstones is None, lines)
