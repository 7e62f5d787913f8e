"""One record in a chain of transforms, what a transform is, and paths to fields.

Values are never changed in place: if a record's value is still the same object, it keeps the producer's bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from s3lake.records.transform.step.record_values import NOT_READ, Header, Side, TransformError, describe

if TYPE_CHECKING:
    from s3lake.records.transform.step.schema_group import Changed, Group


MISSING: Any = object()
"""A field that an object does not have; null is None."""

_TOPIC_BYTES = 249
_QUOTED = re.compile(r"`(.*?)(?<!\\)`(\.|\Z)", re.DOTALL)


class Record:
    """A record whose parts transforms replace; the records of a batch use one object in turn.

    Attributes:
        origin: the name of its topic; routers change `topic`.
        timestamp: epoch ms, None if Kafka has none.
        wallclock_ms: time of the micro-batch.
        key, value: decoded; None for null, NOT_READ if no transform reads it. Dates and times of a schema are instants.
        headers: all of them if a transform reads headers, else the ones that transforms added.
    """

    __slots__ = ("headers", "key", "offset", "origin", "partition", "timestamp", "topic", "value", "wallclock_ms")

    def __init__(self, topic: str, wallclock_ms: int) -> None:
        self.origin = self.topic = topic
        self.wallclock_ms = wallclock_ms
        self.partition = self.offset = 0
        self.timestamp: int | None = None
        self.key: Any = NOT_READ
        self.value: Any = NOT_READ
        self.headers: list[Header] = []


@dataclass(frozen=True)
class Step:
    """A transform, or a predicate, with its options read.

    Attributes:
        apply: changes the record; True drops it, or is a predicate's answer. A TransformError makes it a dead letter.
        reads: the parts of a record that it reads: key, value, headers, tombstone (whether there is a value).
        writes: the parts that it may change: key, value, headers, topic.
        constant: returns the headers that it adds to every record of a micro-batch of that time, if it does only this.
        json_only: True if it leaves all values that are not JSON as they are.
        schema_only: True if it leaves all that has no schema as it is.
        field: the one field that it reads of a key or value, if it writes neither and reads no other.
        typed: does the same to records whose key or value, whichever it reads, has a schema. None if it writes neither.
        decided_by: the side whose schema decides that, if it reads both.
        without_schema: what the user should know of values without a schema.
        makes_nulls: whether it makes null of values, which a sink may leave out.
        predicate: selects the records that it is applied to; with `negate` all others.
    """

    apply: Callable[[Record], bool | None]
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    constant: Callable[[int], list[Header]] | None = None
    json_only: bool = False
    schema_only: bool = False
    field: str | None = None
    typed: Callable[[Group], Changed] | None = None
    decided_by: Side | None = None
    without_schema: str = ""
    makes_nulls: bool = False
    predicate: Step | None = None
    negate: bool = False


def later(module: str, function: str, *first: Any, **named: Any) -> Callable[..., Any]:
    """Return what calls a function of `<family>_with_schema.py`, which is imported then: it brings Arrow along."""

    def call(*rest: Any) -> Any:
        family = import_module(f"s3lake.records.transform.families.{module}_with_schema")
        return getattr(family, function)(*first, *rest, **named)

    return call


Typed = Callable[..., Any]
"""What `later` returns: a function of `<family>_with_schema.py` with its first arguments."""


def change_side(side: Side, change: Callable[[Any], Any], *, nulls: bool = False, typed: Typed | None = None) -> Step:
    """Return the step that replaces a key or value by what `change` returns; null is left alone unless `nulls`."""

    def apply(record: Record) -> None:
        old = getattr(record, side)
        if old is not None or nulls:
            setattr(record, side, change(old))

    return Step(apply, frozenset({side}), frozenset({side}), typed=typed)


def change_object(
    side: Side, change: Callable[[dict[str, Any]], Any], *, nulls: bool = False, typed: Typed | None = None
) -> Step:
    """Return the step that replaces an object by what `change` returns; it refuses other values."""
    return change_side(side, lambda old: change(require_object(old, side)), nulls=nulls, typed=typed)


def change_headers(change: Callable[[list[Header]], list[Header]]) -> Step:
    """Return the step that replaces all headers."""

    def apply(record: Record) -> None:
        record.headers = change(record.headers)

    return Step(apply, frozenset({"headers"}), frozenset({"headers"}))


def add_headers(
    list_headers: Callable[[Record], list[Header]], reads: frozenset[str] = frozenset(), field: str | None = None
) -> Step:
    """Return the step that adds headers, of one field of a key or value if it names one."""

    def apply(record: Record) -> None:
        record.headers.extend(list_headers(record))

    return Step(apply, reads, frozenset({"headers"}), field=field)


def add_constant(constant: Callable[[int], list[Header]]) -> Step:
    """Return the step that adds the same headers to every record of a micro-batch, given its time."""
    constant = lru_cache(maxsize=1)(constant)

    def apply(record: Record) -> None:
        record.headers.extend(constant(record.wallclock_ms))

    return Step(apply, writes=frozenset({"headers"}), constant=constant)


def apply_if(step: Step, predicate: Step, negate: bool) -> Step:
    """Return the step that is applied to the records that its predicate selects, or with `negate` to all others."""

    def apply(record: Record) -> bool | None:
        return step.apply(record) if predicate.apply(record) is not negate else None

    return replace(
        step, apply=apply, reads=step.reads | predicate.reads, constant=None, predicate=predicate, negate=negate
    )


def require_object(value: Any, side: str) -> dict[str, Any]:
    """Return a key or value that is an object. Raise a TransformError if it is not."""
    if not isinstance(value, dict):
        raise TransformError(f"the {side} is {describe(value)}, a JSON object is needed")
    return value


def require_topic(topic: str) -> str:
    """Return a topic's new name if an object key can contain it. Raise a TransformError if it cannot."""
    if not topic.isprintable() or len(topic.encode()) > _TOPIC_BYTES or {"", ".", ".."} & set(topic.split("/")):
        raise TransformError(
            f"the topic would be called {topic[:80]!r}: it needs 1 to {_TOPIC_BYTES} bytes without control "
            "characters, and no empty step, '.' or '..' between slashes"
        )
    return topic


def parse_path(text: str, *, nested: bool) -> tuple[str, ...]:
    r"""Parse a path of Kafka Connect, outermost name first (`field.syntax.version`: V2 is nested).

    In V2 a dot ends a name. A name with dots is put between backticks; a backtick within it that is followed by a dot
    is escaped with a backslash.

    >>> parse_path("a.`b.c`.d", nested=True)
    ('a', 'b.c', 'd')

    Raises:
        ValueError: a backtick is not closed.
    """
    if not nested:
        return (text,)
    names: list[str] = []
    rest, dot = text, "."
    while dot:
        if not rest.startswith("`"):
            name, dot, rest = rest.partition(".")
        elif quoted := _QUOTED.match(rest):
            name, dot, rest = quoted[1].replace("\\`.", "`."), quoted[2], rest[quoted.end() :]
        else:
            raise ValueError(f"{text!r}: a backtick is not closed; put a backslash before one that belongs to the name")
        names.append(name)
    return tuple(names)


def get_field(value: Any, path: Sequence[str]) -> Any:
    """Return the field at a path. Return None if it, or an object on the way, is missing or null.

    Raises:
        TransformError: a value on the way is not an object.
    """
    for depth, name in enumerate(path):
        if not isinstance(value, dict):
            parent = ".".join(path[:depth])
            raise TransformError(
                f"field {parent!r} is {describe(value, parent)}, an object is needed for {'.'.join(path)!r}"
            )
        value = value.get(name)
        if value is None:
            return None
    return value


def resolve_key(value: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return the path that a key of Iggy's means in an object.

    The key is the name of a field if the object has it, else a path if the object has the path's parent, else a name
    with dots.
    """
    if key in value or "." not in key:
        return (key,)
    path = tuple(key.split("."))
    parent: Any = value
    for name in path[:-1]:
        parent = parent.get(name)
        if not isinstance(parent, dict):
            return (key,)
    return path


def find_field(value: dict[str, Any], path: Sequence[str]) -> Any:
    """Return the field at a resolved path, MISSING if the object does not have it."""
    for name in path[:-1]:
        value = value[name]
    return value.get(path[-1], MISSING)


def set_field(value: dict[str, Any], path: Sequence[str], new: Any) -> dict[str, Any]:
    """Return a copy of an object with `new` at a resolved path."""
    first, *rest = path
    return {**value, first: set_field(value[first], rest, new) if rest else new}


def remove_field(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy of an object without the field at a resolved path."""
    first, *rest = path
    if rest:
        return {**value, first: remove_field(value[first], rest)}
    return {name: inner for name, inner in value.items() if name != first}
