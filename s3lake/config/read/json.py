"""A connector's file that is JSON, as members with their places."""

from __future__ import annotations

import json
import re
from typing import Any

from s3lake.config.read.members import Member, Value
from s3lake.config.read.yaml import position_of
from s3lake.config.report import Place
from s3lake.errors import ConfigurationError

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_int=float)
"""Numbers stay texts as they are written: Python refuses to make an integer of more than 4,300 digits."""
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)


def members(text: str, file: str) -> tuple[Member, ...]:
    """The members of the object that `text` is, in its order.

    Raises:
        ConfigurationError: it is no JSON object.
    """
    try:
        return _root(text, file)
    except RecursionError:
        raise ConfigurationError(f"{file}:1:1: nested too deeply") from None


def names(text: str) -> set[str] | None:
    """The keys of a JSON object and of its `config`; None where the text is no JSON object."""
    try:
        data = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    config = data.get("config")
    return {*data, *(config if isinstance(config, dict) else ())}


def _spots(text: str, start: int, end: int) -> list[tuple[int, int]]:
    line, column = position_of(text[: start + 1])
    inside = text[start + 1 : end - 1]  # no raw newline stands in a JSON string
    return [(line, column + match.start()) for match in _ESCAPE.finditer(inside)]


def _stripped(value: str, spots: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    start = len(value) - len(value.lstrip())
    plain = value.strip()
    return plain, spots[start : start + len(plain)]


def _root(text: str, file: str) -> tuple[Member, ...]:
    pairs, end = _object(text, _after_space(text, 0), file)
    rest = _after_space(text, end)
    if rest < len(text):
        raise _error(file, text, rest, "not JSON: something stands after the object")
    return pairs


def _object(text: str, start: int, file: str) -> tuple[tuple[Member, ...], int]:
    """The members of the object at `start`, and where it ends."""
    pairs: list[Member] = []
    if not text.startswith("{", start):
        raise _error(file, text, start, "not JSON: an object begins with {")
    position = _after_space(text, start + 1)
    while not text.startswith("}", position):
        if not text.startswith('"', position):
            raise _error(file, text, position, "not JSON: a key in double quotes is needed, or }")
        at = position
        key, position = _decoded(text, position, file)
        position = _after_space(text, position)
        if not text.startswith(":", position):
            raise _error(file, text, position, "not JSON: a colon is needed after a key")
        place = Place(file, *position_of(text[:at]), key)
        member, position = _member(text, _after_space(text, position + 1), place)
        pairs.append(member)
        position = _after_comma(text, position, "}", "members", file)
    return tuple(pairs), position + 1


def _list(text: str, start: int, place: Place) -> tuple[list[Member], int]:
    values: list[Member] = []
    position = _after_space(text, start + 1)
    while not text.startswith("]", position):
        inside = Place(place.file, *position_of(text[:position]), place.key)
        member, position = _member(text, position, inside)
        values.append(member)
        position = _after_comma(text, position, "]", "values", place.file)
    return values, position + 1


def _after_comma(text: str, position: int, closing: str, what: str, file: str) -> int:
    position = _after_space(text, position)
    if text.startswith(",", position):
        position = _after_space(text, position + 1)
        if text.startswith(closing, position):
            raise _error(file, text, position, f"not JSON: a comma before {closing} is not allowed")
    elif not text.startswith(closing, position):
        raise _error(file, text, position, f"not JSON: a comma is needed between {what}, or {closing} at the end")
    return position


def _member(text: str, start: int, place: Place) -> tuple[Member, int]:
    """The value at `start` as the member at `place`, and where it ends."""
    value: Value
    spots: list[tuple[int, int]] = []
    if text.startswith("{", start):
        value, end = _object(text, start, place.file)
    elif text.startswith("[", start):
        value, end = _list(text, start, place)
    else:
        decoded, end = _decoded(text, start, place.file)
        value = None if decoded is None else text[start:end]
        if isinstance(decoded, str):
            value, spots = _stripped(decoded, _spots(text, start, end))
    return Member(place.key, place, value, spots), end


def _decoded(text: str, position: int, file: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        message = "a value is needed: text in double quotes, a number, true, false or null"
        if text.startswith('"', position):
            message = "a text is not closed, or holds a character that needs a backslash"
        raise _error(file, text, max(position, error.pos), f"not JSON: {message}") from None
    except RecursionError:
        raise _error(file, text, position, "nested too deeply") from None


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _error(file: str, text: str, position: int, message: str) -> ConfigurationError:
    line, column = position_of(text[:position])
    return ConfigurationError(f"{file}:{line}:{column}: {message}")
