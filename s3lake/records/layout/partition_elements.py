"""The elements of `partition_by`, after which directories are named (Lenses' words and results).

An element is a field of the value (`a.b.c` or `_value.a`), `_key`, `_key.a`, `_header.h`, `_topic`, `_partition` or
`_date.<pattern>`. A name in backquotes is one name, also with dots: `` `a.b` ``.
Source: PARTITIONBY in Lenses' documentation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from s3lake.records.layout.pieces import (
    DateElement,
    Extension,
    FieldElement,
    FixedText,
    HeaderElement,
    KeyElement,
    Number,
    Piece,
    Topic,
)
from s3lake.text.dates.java import compile_key_date

_STEP = re.compile(r"`([^`]+)`|([^.`]+)")


def parse_field_path(path: str) -> tuple[str, ...]:
    """Return the names of a dotted path; one in backquotes may hold dots.

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


def parse_element(text: str) -> tuple[str, Piece]:
    """Parse one element to the text before `=` in its directory, and the piece after it.

    `_partition` is a number without padding.

    Raises:
        ValueError: it is invalid; the message names what is allowed.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise ValueError(f"partition_by {text!r}: {error}") from None


def _parse(text: str) -> tuple[str, Piece]:
    if not text.isprintable():
        raise ValueError("a control character cannot be in a key")
    head, _, pattern = text.partition(".")
    if head == "_date":
        if not pattern:
            raise ValueError("a pattern is needed, for example _date.yyyy-MM-dd")
        if {".", ".."} & set(compile_key_date(pattern)(0).split("/")):
            raise ValueError("a path step cannot be in a key")
        return "date", DateElement(pattern)
    if "/" in text or "\\" in text:
        raise ValueError("a field name is empty or contains a slash")
    steps = parse_field_path(text)
    path, name = steps[1:], ".".join(steps[1:])
    match head:
        case "_topic" | "_partition":
            if path:
                raise ValueError(f"{head} takes no path")
            return head[1:], Topic() if head == "_topic" else Number("partition")
        case "_key":
            return name or "key", KeyElement(path, required=True)
        case "_header" | "_headers":
            if not path:
                raise ValueError("name the header, for example _header.region")
            return name, HeaderElement(path[0], path[1:])
        case "_value":
            if not path:
                raise ValueError("name a field, for example _value.type")
            return name, FieldElement(path)
        case "_offset" | "_timestamp":
            raise ValueError(
                f"{head} is not an element; use _key, _value, _header.<name>, _topic, _partition, _date.<pattern> or a "
                "field"
            )
    return ".".join(steps), FieldElement(steps)


def build_lenses_pieces(
    partition_by: Sequence[str],
    partition: Number,
    offset: Number,
    *,
    include_keys: bool,
    connector_names: bool,
    suffix: str,
) -> tuple[Piece, ...]:
    """Return the pieces of the key below the prefix for Lenses' options, with these numbers.

    Default: `topic/partition/OFFSET[suffix].ext`; with partition_by `topic/[name=]value/…/topic(PARTITION_OFFSET)`.
    Names of the connector have timestamps after the (last) offset, and no topic directory under partition_by.
    """
    pieces: list[Piece] = []
    if partition_by and not connector_names:
        pieces += [Topic(), FixedText("/")]
    for name, piece in map(parse_element, partition_by or ("_topic", "_partition")):
        pieces += [FixedText(f"{name}=")] if include_keys else []
        pieces += [partition if isinstance(piece, Number) else piece, FixedText("/")]
    if partition_by:
        pieces += [Topic(), FixedText("("), partition, FixedText("_"), offset, FixedText(")")]
    elif connector_names:
        pieces += [offset, FixedText("_"), Number("min_timestamp"), FixedText("_"), Number("max_timestamp")]
    else:
        pieces += [offset]
    return (*pieces, FixedText(suffix), Extension())
