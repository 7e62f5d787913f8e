"""Topic-partition and offset in the keys of a connector's objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from s3lake.records.layout.pieces import Extension, FixedText, Number, Piece, Topic

if TYPE_CHECKING:
    from s3lake.config.model import Sink

_MARK = r"(?:~[0-9a-f]{8,})?"  # of a replacing commit of ours


@dataclass(frozen=True)
class NamePattern:
    """The names of one topic's objects.

    Attributes:
        prefix: the beginning of each key.
        pattern: the pattern of a whole key, with the groups `partition` and `offset`.
        char: the padding of numbers.
    """

    prefix: str
    pattern: re.Pattern[str]
    char: str = "0"

    def parse(self, key: str) -> tuple[int, int] | None:
        """Return topic-partition and offset. Return None if the key is not such a name."""
        match = self.pattern.fullmatch(key)
        return (self._parse_number(match["partition"]), self._parse_number(match["offset"])) if match else None

    def _parse_number(self, text: str) -> int:
        return int(text if self.char.isdigit() else text.strip(self.char))


def build_name_pattern(sink: Sink, topic: str, *, lenses: bool) -> NamePattern | None:
    """Return the pattern of the keys of a connector that is set up as `sink`. Return None if keys tell no offset.

    Args:
        sink: the sink that the connector's configuration becomes.
        topic: the topic.
        lenses: True if it is the Lenses connector.
    """
    layout = sink.layout
    if layout.template is None:
        return _build_lenses_pattern(sink, topic)
    pieces = layout.pieces
    groups = set[str]()
    pattern = "".join(_build_regex(piece, topic, groups) for piece in pieces)
    if not {"partition", "offset"} <= groups:
        return None
    if lenses:  # it puts a slash after a prefix even if no directory follows
        return NamePattern(sink.root, re.compile(f"{re.escape(sink.root)}/?{pattern}", re.DOTALL), layout.padding.char)
    beginning = takewhile(lambda piece: isinstance(piece, FixedText | Topic), pieces)
    prefix = "".join(piece.text if isinstance(piece, FixedText) else topic for piece in beginning)
    return NamePattern(sink.root + prefix, re.compile(re.escape(sink.root) + pattern, re.DOTALL), layout.padding.char)


def _build_lenses_pattern(sink: Sink, topic: str) -> NamePattern:
    """Return the pattern of `topic/PARTITION/OFFSET`, or with values of records `…/topic(PARTITION_OFFSET)`."""
    layout, char = sink.layout, sink.layout.padding.char
    number = _number_regex(layout.padding.type, char)
    partition, offset = f"(?P<partition>{number})", f"(?P<offset>{number})"
    if layout.partition_by:  # not an object that is being uploaded: its temporary name ends like the final one
        prefix = sink.root
        stem = rf"(?!\.temp-upload/)(?:.*/)?{re.escape(topic)}\({partition}_{offset}\)"
    else:
        topic_key, partition_key = ("topic=", "partition=") if layout.include_keys else ("", "")
        prefix = f"{sink.root}{topic_key}{topic}/"
        stem = rf"{partition_key}{partition}/{offset}(?:_-?\d+_-?\d+)?"
    ending = rf"{re.escape(layout.suffix)}{_MARK}\.[^/]+"
    return NamePattern(prefix, re.compile(re.escape(prefix) + stem + ending, re.DOTALL), char)


def _build_regex(piece: Piece, topic: str, groups: set[str]) -> str:
    """Return a piece as a regular expression. Adds `partition` and `offset` to `groups`: each is a group once."""
    match piece:
        case FixedText():
            return re.escape(piece.text)
        case Topic():
            return re.escape(topic)
        case Extension():
            return rf"{_MARK}(?:\.[^/]*)?"
        case Number():
            digits = _number_regex(piece.how, piece.char if piece.length else "")
            name = "offset" if piece.name == "last_offset" else piece.name
            if name not in ("partition", "offset") or name in groups:
                return f"-?{digits}"
            groups.add(name)
            return f"(?P<{name}>{digits})"
        case _:
            return ".+"


def _number_regex(padding: str, char: str) -> str:
    pad = f"{re.escape(char)}*" if char else ""
    return {"left": rf"{pad}\d+", "right": rf"\d+{pad}", "none": r"\d+"}[padding]
