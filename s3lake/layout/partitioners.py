"""The elements of `partition_by`, after which directories are named (Lenses' words and results).

An element is a field of the value (`a.b.c` or `_value.a`), `_key`, `_key.a`, `_header.h`, `_topic`, `_partition` or
`_date.<pattern>`. A name in backquotes is one name, also with dots: `` `a.b` ``.
Source: the Lenses document, PARTITIONBY, and compatibility.md, Object keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from s3lake.layout.pieces import Date, Extension, Field, Header, Key, Number, Padding, Piece, Text, Topic
from s3lake.text.dates.java import compile_key_date

__all__ = ["Element", "lenses_pieces", "parse_element", "parse_field_path"]

Source = Literal["value", "key", "header", "topic", "partition", "date"]
_STEP = re.compile(r"`([^`]+)`|([^.`]+)")


@dataclass(frozen=True)
class Element:
    """One element of `partition_by`.

    Attributes:
        text: as it is configured.
        source: of its value.
        path: field names, outermost first; for a header its name and then fields; for a date its pattern.
        name: the text before `=` in the directory.
    """

    text: str
    source: Source
    path: tuple[str, ...]
    name: str


def parse_field_path(path: str) -> tuple[str, ...]:
    """The names of a dotted path; one in backquotes may hold dots.

    Raises:
        ValueError: one is empty, or a backquote is not closed.
    """
    steps: list[str] = []
    position = 0
    while True:
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError("a field name is empty or a backquote is not closed")
        steps.append(step[1] or step[2])
        position = step.end()
        if position == len(path):
            return tuple(steps)
        if path[position] != ".":
            raise ValueError("a dot is missing between two names")
        position += 1


def parse_element(text: str) -> Element:
    """Parse one element.

    Raises:
        ValueError: it is invalid; the message says what is allowed.
    """
    head, _, rest = text.partition(".")
    if not text.isprintable():
        raise ValueError(f"partition_by {text!r}: a control character cannot be in a key")
    if head == "_date":
        return _date(text, rest)
    if "/" in text or "\\" in text:
        raise ValueError(f"partition_by {text!r}: a field name is empty or contains a slash")
    try:
        path = parse_field_path(text)
    except ValueError as error:
        raise ValueError(f"partition_by {text!r}: {error}") from None
    path, name = path[1:], ".".join(path[1:])
    match head:
        case "_topic" | "_partition":
            if path:
                raise ValueError(f"partition_by {text!r}: {head} takes no path")
            return Element(text, "topic" if head == "_topic" else "partition", (), head[1:])
        case "_key":
            return Element(text, "key", path, name or "key")
        case "_header" | "_headers":
            if not path:
                raise ValueError(f"partition_by {text!r}: name the header, for example _header.region")
            return Element(text, "header", path, name)
        case "_value":
            if not path:
                raise ValueError("partition_by '_value': name a field, for example _value.type")
            return Element(text, "value", path, name)
        case "_offset" | "_timestamp":
            raise ValueError(
                f"partition_by {text!r}: {head} is not an element; use _key, _value, _header.<name>, _topic, "
                "_partition, _date.<pattern> or a field"
            )
        case _:
            path = parse_field_path(text)
            return Element(text, "value", path, ".".join(path))


def _date(text: str, pattern: str) -> Element:
    if not pattern:
        raise ValueError("partition_by '_date': a pattern is needed, for example _date.yyyy-MM-dd")
    if {".", ".."} & set(compile_key_date(pattern)(0).split("/")):
        raise ValueError(f"partition_by {text!r}: a path step cannot be in a key")
    return Element(text, "date", (pattern,), "date")


def lenses_pieces(
    partition_by: Sequence[str], padding: Padding, *, include_keys: bool, connector_names: bool, suffix: str
) -> tuple[Piece, ...]:
    """Return the pieces of the key below the prefix for Lenses' options.

    Default: `topic/partition/OFFSET[suffix].ext`; with partition_by `topic/[name=]value/…/topic(PARTITION_OFFSET)`.
    Observed names have the last offset, then the timestamps, and no topic directory under partition_by.
    """
    partition = Number("partition", padding.partition, padding.type, padding.char)
    offset = Number("last_offset" if connector_names else "offset", padding.offset, padding.type, padding.char)
    pieces: list[Piece] = []
    if partition_by and not connector_names:
        pieces += [Topic(), Text("/")]
    for element in map(parse_element, partition_by or ("_topic", "_partition")):
        name = [Text(f"{element.name}=")] if include_keys else []
        pieces += [*name, _piece(element, partition), Text("/")]
    if partition_by:
        pieces += [Topic(), Text("("), partition, Text("_"), offset, Text(")")]
    elif connector_names:
        pieces += [offset, Text("_"), Number("min_timestamp"), Text("_"), Number("max_timestamp")]
    else:
        pieces += [offset]
    return (*pieces, Text(suffix), Extension())


def _piece(element: Element, partition: Number) -> Piece:
    match element.source:
        case "topic":
            return Topic()
        case "partition":
            return partition
        case "date":
            return Date(element.path[0])
        case "value":
            return Field(element.path)
        case "key":
            return Key(element.path, required=True)
        case "header":
            return Header(element.path[0], element.path[1:])
