"""Templates of keys: `{topic}/{field:type}/{time:yyyy/MM}/{partition:05}-{offset:020}`. docs/layouts.md is its manual.

Text stands as it is, `{{` and `}}` are braces. A number takes a length: with a zero before it the number is filled up
with zeros on the left, without one as `layout.padding` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.dates import joda
from s3lake.layout import partitioners
from s3lake.layout.composition import MAX_KEY_BYTES, longest
from s3lake.layout.pieces import (
    NUMBERS,
    Extension,
    Field,
    Header,
    Hour,
    Key,
    Number,
    NumberName,
    Piece,
    Schema,
    Text,
    Time,
    Topic,
)

if TYPE_CHECKING:
    from s3lake.sink import Padding, Sink
    from s3lake.sink import Time as Clock

_ALLOWED = (
    "{topic}, {partition}, {offset}, {last_offset}, {min_timestamp}, {max_timestamp}, {records}, {field:a.b}, {key}, "
    "{key:a.b}, {header:x}, {hour:yyyy-MM-dd}, {time:yyyy-MM-dd}, {schema}, {extension}"
)
_NAMES = (*NUMBERS, "topic", "field", "key", "header", "hour", "time", "schema", "extension")
_EXAMPLES = {"field": "user.id", "header": "region", "hour": "yyyy-MM-dd", "time": "yyyy-MM-dd"}
_OPENING = re.compile(r"\{([^{}:]*)")
_WIDTH = re.compile(r"(0?)([1-9]\d?)", re.ASCII)
_LONGEST_NUMBER = 64


def parse(text: str, time: Clock, padding: Padding) -> tuple[Piece, ...]:
    """The pieces of a template; the extension is appended where it is not among them.

    Args:
        text: the template.
        time: which time `{time:…}` is.
        padding: how a length without a zero is filled.

    Raises:
        ValueError: it is none; the message names the place and what is allowed.
    """
    pieces = list(_joined(_read(text, time, padding)))
    if not any(isinstance(piece, Extension) for piece in pieces):
        pieces.append(Extension())
    _extension_fits(text, pieces)
    _literals(text, pieces)
    return tuple(pieces)


def _read(text: str, time: Clock, padding: Padding) -> Iterator[Piece]:
    position = 0
    while position < len(text):
        if text[position : position + 2] in ("{{", "}}"):
            yield Text(text[position])
            position += 2
        elif text[position] == "}":
            raise _wrong(text, position, "'}' closes nothing: write '}}' for a brace")
        elif text[position] == "{":
            piece, position = _braced(text, position, time, padding)
            yield piece
        else:
            yield Text(text[position])
            position += 1


def _braced(text: str, start: int, time: Clock, padding: Padding) -> tuple[Piece, int]:
    opening = _OPENING.match(text, start)
    assert opening is not None
    name = opening[1]
    if text[opening.end() :].startswith(":"):
        argument, end = _argument(text, start, opening.end() + 1, quotes=name in ("hour", "time"))
    elif text[opening.end() :].startswith("}"):
        argument, end = None, opening.end() + 1
    else:
        raise _wrong(text, start, "'{' is not closed: write '}' after the name, or '{{' for a brace")
    if name not in _NAMES:
        near = get_close_matches(name, _NAMES, 1)
        meant = f"did you mean {{{near[0]}}}? " if near else ""
        raise _wrong(text, start, f"{text[start:end]} is unknown; {meant}There are {_ALLOWED}")
    try:
        return _piece(name, argument, time, padding), end
    except ValueError as error:
        raise _wrong(text, start, f"{text[start:end]}: {error}") from None


def _argument(text: str, start: int, begin: int, *, quotes: bool) -> tuple[str, int]:
    """The text from `begin` to the closing brace, and where it ends; braces in a time's quotes are text."""
    quoted = False
    for position in range(begin, len(text)):
        char = text[position]
        if quotes and char == "'":
            quoted = not quoted
        elif char == "}" and not quoted:
            return text[begin:position], position + 1
        elif char == "{" and not quoted:
            raise _wrong(text, position, "'{' stands inside braces: close the first with '}'")
    missing = "a quote of the time pattern is not closed" if quoted else "'{' is not closed: write '}'"
    raise _wrong(text, start, missing)


def _piece(name: str, argument: str | None, time: Clock, padding: Padding) -> Piece:
    if name in ("topic", "schema", "extension") and argument is not None:
        raise ValueError(f"takes nothing after a colon: write {{{name}}}")
    if name in _EXAMPLES and not argument:
        raise ValueError(f"needs an argument, for example {{{name}:{_EXAMPLES[name]}}}")
    if argument == "":
        raise ValueError(f"nothing stands after the colon: write {{{name}}}, or what belongs there")
    match name:
        case "topic":
            return Topic()
        case "schema":
            return Schema()
        case "extension":
            return Extension()
        case "field":
            return Field(partitioners.steps(argument or ""))
        case "key":
            return Key(partitioners.steps(argument) if argument else ())
        case "header":
            return Header(argument or "")
        case "hour":
            return _hour(argument or "")
        case "time":
            return _time(argument or "", time)
        case _:
            return _number(name, argument, padding)  # type: ignore[arg-type]


def _number(name: NumberName, argument: str | None, padding: Padding) -> Number:
    if argument is None:
        return Number(name)
    width = _WIDTH.fullmatch(argument)
    if width is None or int(width[2]) > _LONGEST_NUMBER:
        raise ValueError(
            f"{argument!r} is no length: write 1 to {_LONGEST_NUMBER}, with a zero before it to fill up with zeros, "
            f"for example {{{name}:010}}"
        )
    if width[1]:
        return Number(name, int(width[2]))
    return Number(name, int(width[2]), padding.type, padding.char)


def _hour(pattern: str) -> Hour:
    of = joda.formatter(pattern)
    if of(0) != of(hours.HOUR_MS - 1):
        raise ValueError("an hour has no minutes and no seconds: take m, s and S out")
    return Hour(pattern)


def _time(pattern: str, time: Clock) -> Time:
    joda.parse(pattern)
    return Time(
        pattern,
        time.source,
        partitioners.steps(time.field) if time.source == "field" else (),
        time.timezone,
        time.locale,
        round(time.duration * 1000) if time.duration is not None else None,
    )


def _joined(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The same with each run of texts as one."""
    run = ""
    for piece in pieces:
        if isinstance(piece, Text):
            run += piece.text
            continue
        if run:
            yield Text(run)
            run = ""
        yield piece
    if run:
        yield Text(run)


def _extension_fits(text: str, pieces: list[Piece]) -> None:
    places = [position for position, piece in enumerate(pieces) if isinstance(piece, Extension)]
    if len(places) > 1:
        raise _wrong(text, text.rindex("{extension}"), "{extension} stands there twice: take one out")
    after = "".join(piece.text for piece in pieces[places[0] :] if isinstance(piece, Text))
    if "/" in after:
        raise _wrong(text, text.index("{extension}"), "{extension} belongs into the file name, after the last '/'")


def _literals(text: str, pieces: list[Piece]) -> None:
    sample = "".join(map(_sample, pieces))
    for position, char in enumerate(text):
        if not char.isprintable():
            raise _wrong(text, position, f"{char!r} is a control character, which cannot stand in a key")
    directories, _, name = sample.rpartition("/")
    if "//" in sample or not name:
        why = "a name is missing between two '/'" if "//" in sample else "the file name is missing after the last '/'"
        raise _wrong(text, text.find("//") if "//" in text else len(text) - 1, why)
    for step in (*directories.split("/"), name):
        if step in (".", "..", "_dead_letters"):
            raise _wrong(text, max(0, text.find(step)), f"{step!r} cannot stand alone between two '/': rename it")
    if any("~" in piece.text for piece in _file_name(pieces) if isinstance(piece, Text)):
        raise _wrong(text, text.rindex("~"), "'~' marks a replacing commit's files: take it out of the file name")


def _file_name(pieces: list[Piece]) -> list[Piece]:
    name: list[Piece] = []
    for piece in reversed(pieces):
        if isinstance(piece, Text) and "/" in piece.text:
            return [*name, Text(piece.text.rpartition("/")[2])]
        name.append(piece)
    return name


def _sample(piece: Piece) -> str:
    match piece:
        case Text(text):
            return text
        case Hour(pattern):
            return joda.formatter(pattern)(0)
        case Time():
            return joda.formatter(piece.pattern, piece.zone, piece.locale, piece.bucket_ms)(0)
        case Extension():
            return ""
        case _:
            return "x"


def _wrong(text: str, position: int, why: str) -> ValueError:
    return ValueError(f"template {text!r}, character {position + 1}: {why}")


def check(sink: Sink) -> None:
    """The rules of a template that need the whole sink.

    Raises:
        ValueError: one is broken.
    """
    layout = sink.layout
    offsets = []
    for name, text in (("template", layout.template), ("tombstones", layout.tombstones)):
        if text is not None:
            pieces = parse(text, layout.time, layout.padding)
            if text.startswith("/") and sink.root:
                raise _wrong(text, 0, "a name is missing between the prefix and '/': take it out")
            for rule in (_converters, _apart, _numbers_apart, _outside, _short):
                rule(name, pieces, sink)
            if name == "tombstones":
                _without_value(pieces)
            offsets.append(has_offset(pieces))
    if len(set(offsets)) > 1:
        raise ValueError("template and tombstones have either both an offset or none: add {offset} to the other")


def has_offset(pieces: tuple[Piece, ...]) -> bool:
    """Whether the key says which records a file begins or ends with."""
    return any(isinstance(piece, Number) and piece.name in ("offset", "last_offset") for piece in pieces)


def _converters(name: str, pieces: tuple[Piece, ...], sink: Sink) -> None:
    objects = ("json", "connect_json", "json_schema", "avro")
    for piece in pieces:
        if isinstance(piece, Field | Time) and piece.source == "value" and sink.converter.value not in objects:
            what = "{field:…}" if isinstance(piece, Field) else "{time:…} of layout.time.source field"
            raise ValueError(
                f"{name}: {what} needs a field of the value, which converter.value {sink.converter.value} does not "
                "give: set converter.value to json or connect_json"
            )
        if isinstance(piece, Key) and piece.path and sink.converter.key not in objects:
            raise ValueError(
                f"{name}: {{key:{'.'.join(piece.path)}}} needs a field of the key, which converter.key "
                f"{sink.converter.key} does not give: set converter.key to json or connect_json, or write {{key}}"
            )


def _apart(name: str, pieces: tuple[Piece, ...], sink: Sink) -> None:
    """Files of different topics, topic-partitions and offsets get different keys, or may replace each other."""
    if not sink.exactly_once:
        return
    lacking = []
    if not any(isinstance(piece, Topic) for piece in pieces) and (
        len(sink.topics) > 1 or sink.topics_regex is not None
    ):
        lacking.append("{topic}")
    if not any(isinstance(piece, Number) and piece.name == "partition" for piece in pieces):
        lacking.append("{partition}")
    if not has_offset(pieces):
        lacking.append("{offset}")
    if lacking:
        raise ValueError(
            f"{name} lacks {' and '.join(lacking)}: a later file would get the key of an earlier one and replace it; "
            f"add {'them' if len(lacking) > 1 else 'it'}, or allow that with exactly_once: false"
        )


def _numbers_apart(name: str, pieces: tuple[Piece, ...], sink: Sink) -> None:
    before: Piece | None = None
    between = ""
    for piece in pieces:
        same = _same_for_all(piece, sink)
        if same is not None:
            between += same
            continue
        digits_only = not between or (between.isascii() and between.isdigit())
        if before is not None and digits_only and (isinstance(before, Number) or isinstance(piece, Number)):
            raise ValueError(
                f"{name}: {_spelled(before)} and {_spelled(piece)} stand together, so that two offsets can get one "
                "key: write something that is no digit between them, for example '-'"
            )
        before, between = piece, ""


def _same_for_all(piece: Piece, sink: Sink) -> str | None:
    match piece:
        case Text(text):
            return text
        case Extension():
            return sink.extension
        case Topic() if len(sink.topics) == 1:
            return sink.topics[0]
    return None


def _outside(name: str, pieces: tuple[Piece, ...], sink: Sink) -> None:
    """The template's text cannot lead into what s3lake keeps for itself."""
    first = pieces[0].text if isinstance(pieces[0], Text) else ""
    head = sink.root + first
    index = sink.index.prefix.rstrip("/") + "/"
    if head.startswith(index):
        raise ValueError(
            f"{name}: {head!r} lies in the index {index!r}: choose another beginning, or another index.prefix"
        )


def _short(name: str, pieces: tuple[Piece, ...], sink: Sink) -> None:
    size = longest(pieces, sink)
    if size > MAX_KEY_BYTES:
        raise ValueError(
            f"{name}: keys would have {size} bytes before any value stands in them, and S3 takes {MAX_KEY_BYTES}: "
            "shorten it, or the lengths of its numbers"
        )


def _without_value(pieces: tuple[Piece, ...]) -> None:
    if any(isinstance(piece, Field | Time) and piece.source == "value" for piece in pieces):
        raise ValueError("tombstones: a record without a value has no field: take {field:…} and times of a field out")


_SPELLED: tuple[tuple[type, Callable[..., str]], ...] = (
    (Number, lambda piece: piece.name),
    (Field, lambda piece: f"field:{'.'.join(piece.path)}"),
    (Key, lambda _: "key"),
    (Header, lambda piece: f"header:{piece.name}"),
    (Hour, lambda piece: f"hour:{piece.pattern}"),
    (Time, lambda piece: f"time:{piece.pattern}"),
    (Schema, lambda _: "schema"),
    (Topic, lambda _: "topic"),
)


def _spelled(piece: Piece) -> str:
    return next(f"{{{spell(piece)}}}" for kind, spell in _SPELLED if isinstance(piece, kind))
