"""Templates of keys: `{topic}/{field:type}/{time:yyyy/MM}/{partition:05}-{offset:020}`. docs/layouts.md is its manual.

Text is kept, `{{` and `}}` are braces. A number takes a length: with a zero before it the number is filled up
with zeros on the left, without one as `layout.padding` sets it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from s3lake import hours
from s3lake.records.layout import partition_elements
from s3lake.records.layout.pieces import (
    NUMBERS,
    RESERVED_STEPS,
    Extension,
    FieldElement,
    FixedText,
    HeaderElement,
    Hour,
    KeyElement,
    Number,
    NumberName,
    Piece,
    SchemaNameElement,
    TimeElement,
    Topic,
)
from s3lake.text.dates import joda
from s3lake.text.option_values import did_you_mean

_ALLOWED = (
    "{topic}, {partition}, {offset}, {last_offset}, {min_timestamp}, {max_timestamp}, {records}, {field:a.b}, {key}, "
    "{key:a.b}, {header:x}, {hour:yyyy-MM-dd}, {time:yyyy-MM-dd}, {schema}, {extension}"
)
_NAMES = (*NUMBERS, "topic", "field", "key", "header", "hour", "time", "schema", "extension")
_EXAMPLES = {"field": "user.id", "header": "region", "hour": "yyyy-MM-dd", "time": "yyyy-MM-dd"}
# Braces in the quotes of a time's pattern are text.
_TOKEN = re.compile(
    r"\{\{|\}\}|[^{}]+|\{(?P<name>[^{}:]*)(:(?P<argument>(?<=\{time:|\{hour:)(?:[^{}']|'[^']*')*|[^{}]*))?\}"
)
_WIDTH = re.compile(r"(0?)([1-9]\d?)", re.ASCII)
_LONGEST_NUMBER = 64


def parse_template(text: str, time: TimeElement, padding: Number) -> tuple[Piece, ...]:
    """Parse a template to pieces; the extension is appended if it is not among them.

    Args:
        text: the template.
        time: the piece of `{time:…}`, without its pattern.
        padding: a number as one is padded whose length has no zero.

    Raises:
        ValueError: it is invalid; the message names the character and what is allowed.
    """
    pieces: list[Piece] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None and text[position] == "}":
            raise template_error(text, position, "'}' closes nothing: write '}}' for a brace")
        if token is None:
            raise template_error(text, position, "'{' is not closed: write '}' after the name, or '{{' for a brace")
        if token["name"] is not None:
            pieces.append(_parse_braces(text, token, time, padding))
        else:
            plain = token[0][0] if token[0] in ("{{", "}}") else token[0]
            before = pieces.pop().text if pieces and isinstance(pieces[-1], FixedText) else ""  # type: ignore[union-attr]
            pieces.append(FixedText(before + plain))
        position = token.end()
    if Extension() not in pieces:
        pieces.append(Extension())
    _check_extension(text, pieces)
    _check_text(text, pieces)
    return tuple(pieces)


def _parse_braces(text: str, token: re.Match[str], time: TimeElement, padding: Number) -> Piece:
    name = token["name"]
    if name not in _NAMES:
        hint = did_you_mean(name, _NAMES, "{{{}}}")
        raise template_error(text, token.start(), f"{token[0]} is unknown; {hint}there are {_ALLOWED}")
    try:
        return _parse_piece(name, token["argument"], time, padding)
    except ValueError as error:
        raise template_error(text, token.start(), f"{token[0]}: {error}") from None


def _parse_piece(name: str, argument: str | None, time: TimeElement, padding: Number) -> Piece:
    if name in ("topic", "schema", "extension") and argument is not None:
        raise ValueError(f"takes nothing after a colon: write {{{name}}}")
    if name in _EXAMPLES and not argument:
        raise ValueError(f"needs an argument, for example {{{name}:{_EXAMPLES[name]}}}")
    if argument == "":
        raise ValueError(f"nothing is after the colon: write {{{name}}}, or its argument")
    match name:
        case "topic":
            return Topic()
        case "schema":
            return SchemaNameElement()
        case "extension":
            return Extension()
        case "field":
            return FieldElement(partition_elements.parse_field_path(argument or ""))
        case "key":
            return KeyElement(partition_elements.parse_field_path(argument) if argument else ())
        case "header":
            return HeaderElement(argument or "")
        case "hour":
            return _parse_hour(argument or "")
        case "time":
            joda.compile_formatter(argument or "", time.zone, time.locale)
            return replace(time, pattern=argument or "")
    return _parse_number(name, argument, padding)  # type: ignore[arg-type]


def _parse_number(name: NumberName, argument: str | None, padding: Number) -> Number:
    if argument is None:
        return Number(name)
    width = _WIDTH.fullmatch(argument)
    if width is None or int(width[2]) > _LONGEST_NUMBER:
        raise ValueError(
            f"{argument!r} is not a length: write 1 to {_LONGEST_NUMBER}, with a zero before it to fill up with zeros, "
            f"for example {{{name}:010}}"
        )
    return Number(name, int(width[2])) if width[1] else replace(padding, name=name, length=int(width[2]))


def _parse_hour(pattern: str) -> Hour:
    print_hour = joda.compile_formatter(pattern)
    if print_hour(0) != print_hour(hours.HOUR_MS - 1):
        raise ValueError("an hour has no minutes and no seconds: take m, s and S out")
    return Hour(pattern)


def _check_extension(text: str, pieces: list[Piece]) -> None:
    if pieces.count(Extension()) > 1:
        raise template_error(text, text.rindex("{extension}"), "{extension} is there twice: take one out")
    after = "".join(piece.text for piece in pieces[pieces.index(Extension()) :] if isinstance(piece, FixedText))
    if "/" in after:
        raise template_error(
            text, text.index("{extension}"), "{extension} belongs into the file name, after the last '/'"
        )


def _check_text(text: str, pieces: list[Piece]) -> None:
    sample = "".join(map(_make_sample, pieces))
    for position, char in enumerate(text):
        if not char.isprintable():
            raise template_error(text, position, f"{char!r} is a control character, which cannot be in a key")
    directories, _, name = sample.rpartition("/")
    if "//" in sample or not name:
        why = "a name is missing between two '/'" if "//" in sample else "the file name is missing after the last '/'"
        raise template_error(text, text.find("//") if "//" in text else len(text) - 1, why)
    for step in (*directories.split("/"), name):
        if step in RESERVED_STEPS:
            raise template_error(text, max(0, text.find(step)), f"{step!r} cannot be alone between two '/': rename it")
    if any("~" in piece.text for piece in _find_file_name(pieces) if isinstance(piece, FixedText)):
        raise template_error(text, text.rindex("~"), "'~' marks files of a replacing commit: take it out of the name")


def _find_file_name(pieces: list[Piece]) -> list[Piece]:
    name: list[Piece] = []
    for piece in reversed(pieces):
        if isinstance(piece, FixedText) and "/" in piece.text:
            return [*name, FixedText(piece.text.rpartition("/")[2])]
        name.append(piece)
    return name


def _make_sample(piece: Piece) -> str:
    match piece:
        case FixedText(text):
            return text
        case Hour(pattern):
            return joda.compile_formatter(pattern)(0)
        case TimeElement():
            return joda.compile_formatter(
                piece.pattern, piece.zone, piece.locale, piece.bucket_ms, toward_zero=piece.toward_zero
            )(0)
        case Extension():
            return ""
        case _:
            return "x"


def template_error(text: str, position: int, why: str) -> ValueError:
    """Return the error of a character of a template."""
    return ValueError(f"template {text!r}, character {position + 1}: {why}")
