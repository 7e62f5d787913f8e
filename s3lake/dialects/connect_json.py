"""A connector's configuration as JSON: bare, or as it is posted to Connect's REST API, `{"name", "config"}`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from s3lake.dialects.document import position_of
from s3lake.dialects.places import Place, Report, Setting
from s3lake.errors import ConfigurationError

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
_BESIDE = {
    "tasks": "is what Connect's REST API answers; s3lake has no tasks",
    "type": "is what Connect's REST API answers",
    "initial_state": "has no meaning: Dagster starts and stops the sensors",
}


@dataclass(frozen=True)
class _Member:
    """A member of an object; the value of an object is the tuple of its members."""

    key: str
    at: int
    value: Any
    value_at: int
    value_end: int


def read(text: str, report: Report) -> list[Setting]:
    """The settings in `text`, in its order; a `name` beside `config` is one of them.

    Raises:
        ConfigurationError: it is no JSON object.
    """
    try:
        found = _members(text, report.file)
    except RecursionError:
        raise ConfigurationError(f"{report.file}:1:1: nested too deeply") from None
    inner = next((one.value for one in found if one.key == "config"), None)
    if not isinstance(inner, tuple):
        return [one for member in found for one in _settings(text, member, report)]
    settings: list[Setting] = []
    for member in found:
        if member.key == "config":
            settings += [one for inside in inner for one in _settings(text, inside, report)]
        elif member.key == "name":
            settings += _name(text, member, inner, report)
        elif member.key in _BESIDE:
            report.notice(_place(text, member, report.file), _BESIDE[member.key])
        else:
            message = f"stands beside config; allowed here: name, config, {', '.join(_BESIDE)}"
            report.error(_place(text, member, report.file), message)
    return settings


def names(text: str) -> set[str] | None:
    """The keys of a JSON object and of its `config`; None where the text is no JSON object."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    config = data.get("config")
    return {*data, *(config if isinstance(config, dict) else ())}


def _name(text: str, member: _Member, inner: tuple[_Member, ...], report: Report) -> list[Setting]:
    twin = next((one for one in inner if one.key == "name"), None)
    if twin is None:
        return _settings(text, member, report)
    if twin.value != member.value:
        message = f"{member.value!r} is not the name in config, {twin.value!r}; take one out"
        report.error(_place(text, member, report.file), message)
    return []


def _settings(text: str, member: _Member, report: Report) -> list[Setting]:
    place = _place(text, member, report.file)
    match member.value:
        case None:
            report.notice(place, "null is as if it were not there")
            return []
        case list() | tuple():
            kind = "an object" if isinstance(member.value, tuple) else "a list"
            report.error(place, f"{kind} is not allowed; a connector's values are text, numbers, true or false")
            report.unknown.add(member.key)
            return [Setting(member.key, "", place)]
        case str():
            value, spots = _stripped(member.value, _spots(text, member))
        case _:
            value, spots = text[member.value_at : member.value_end], []
    return [Setting(member.key, value, place, spots)]


def _stripped(value: str, spots: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    start = len(value) - len(value.lstrip())
    plain = value.strip()
    return plain, spots[start : start + len(plain)]


def _spots(text: str, member: _Member) -> list[tuple[int, int]]:
    line, column = position_of(text[: member.value_at + 1])
    inside = text[member.value_at + 1 : member.value_end - 1]  # no raw newline stands in a JSON string
    return [(line, column + found.start()) for found in _ESCAPE.finditer(inside)]


def _place(text: str, member: _Member, file: str) -> Place:
    return Place(file, *position_of(text[: member.at]), member.key)


def _members(text: str, file: str) -> tuple[_Member, ...]:
    """The members of the object that the text is."""
    found, end = _object(text, _after_space(text, 0), file)
    rest = _after_space(text, end)
    if rest < len(text):
        raise _error(file, text, rest, "not JSON: something stands after the object")
    return found


def _object(text: str, start: int, file: str) -> tuple[tuple[_Member, ...], int]:
    """The members of the object at `start`, and where it ends."""
    found: list[_Member] = []
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
        value_at = _after_space(text, position + 1)
        value, position = _value(text, value_at, file)
        found.append(_Member(key, at, value, value_at, position))
        position = _after_space(text, position)
        if text.startswith(",", position):
            position = _after_space(text, position + 1)
            if text.startswith("}", position):
                raise _error(file, text, position, "not JSON: a comma before } is not allowed")
        elif not text.startswith("}", position):
            raise _error(file, text, position, "not JSON: a comma is needed between members, or } at the end")
    return tuple(found), position + 1


def _value(text: str, position: int, file: str) -> tuple[Any, int]:
    if text.startswith("{", position):
        return _object(text, position, file)
    return _decoded(text, position, file)


def _decoded(text: str, position: int, file: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        told = "a value is needed: text in double quotes, a number, true, false or null"
        if text.startswith('"', position):
            told = "a text is not closed, or holds a character that needs a backslash"
        raise _error(file, text, max(position, error.pos), f"not JSON: {told}") from None
    except RecursionError:
        raise _error(file, text, position, "nested too deeply") from None


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    assert found is not None
    return found.end()


def _error(file: str, text: str, position: int, message: str) -> ConfigurationError:
    line, column = position_of(text[:position])
    return ConfigurationError(f"{file}:{line}:{column}: {message}")
