"""Fields of a decoded value: Kafka Connect's field paths, Lenses' and Iggy's dotted names.

Values are never changed in place: a record whose value is still the same object keeps the producer's bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from s3lake.transform.record import Refusal, shown

ABSENT: Any = object()
"""Stands for a field that is not there; null is None."""


def steps(text: str, *, nested: bool) -> tuple[str, ...]:
    """Names of a path, outermost first (Connect's `field.syntax.version`: V2 is nested).

    In V2 a dot ends a name. A name that holds dots stands between backticks; a backtick within it that is followed by a
    dot is escaped with a backslash.

    Raises:
        ValueError: a backtick is not closed.
    """
    if not nested:
        return (text,)
    found: list[str] = []
    rest: str | None = text
    while rest is not None:
        if rest.startswith("`"):
            name, rest = _quoted(rest, text)
        else:
            name, dot, after = rest.partition(".")
            rest = after if dot else None
        found.append(name)
    return tuple(found)


def _quoted(rest: str, text: str) -> tuple[str, str | None]:
    name, position = "", 1
    while (end := rest.find("`", position)) >= 0:
        last = end == len(rest) - 1
        escaped = rest[end - 1] == "\\"
        if not last and rest[end + 1] != ".":
            name += rest[position : end + 1]  # within the name
        elif escaped and not last:
            name += rest[position : end - 1] + "`"
        elif not escaped:
            return name + rest[position:end], None if last else rest[end + 2 :]
        position = end + 1
    raise ValueError(f"{text!r}: a backtick is not closed; put a backslash before one that belongs to the name")


def value_at(value: Any, path: Sequence[str]) -> Any:
    """The field at `path`, None where a step is missing or null.

    Raises:
        Refusal: a step on the way is no object.
    """
    step_value = value
    for depth, name in enumerate(path):
        if not isinstance(step_value, dict):
            where = ".".join(path[:depth])
            raise Refusal(f"field {where!r} is {shown(step_value, where)}, an object is needed for {'.'.join(path)!r}")
        step_value = step_value.get(name)
        if step_value is None:
            return None
    return step_value


def dotted(value: dict[str, Any], key: str) -> tuple[str, ...]:
    """Where a dotted key points in `value`: a field of that very name, else a path whose parent is there.

    Where there is no such parent the key is a name with dots in it, as it is for Iggy.
    """
    if key in value or "." not in key:
        return (key,)
    path = key.split(".")
    parent: Any = value
    for name in path[:-1]:
        parent = parent.get(name, ABSENT)
        if not isinstance(parent, dict):
            return (key,)
    return tuple(path)


def found(value: dict[str, Any], path: Sequence[str]) -> Any:
    """The field at a path whose parents are objects, ABSENT where it is missing."""
    for name in path[:-1]:
        value = value[name]
    return value.get(path[-1], ABSENT)


def put(value: dict[str, Any], path: Sequence[str], new: Any) -> dict[str, Any]:
    """A copy of `value` with the field at `path`."""
    first, *rest = path
    return {**value, first: put(value[first], rest, new) if rest else new}


def without(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """A copy of `value` that lacks the field at `path`."""
    first, *rest = path
    if rest:
        return {**value, first: without(value[first], rest)}
    return {name: one for name, one in value.items() if name != first}
