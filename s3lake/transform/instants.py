"""Dates and times on their way through a chain: numbers that still know what their record's schema called them.

A step sees a number, and what changes dates sees which: `18000` days are no milliseconds. In JSON they are the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from s3lake.schema.types import Primitive, Type, fold

DAY_MS = 86_400_000


class Instant(int):
    """A point in time; each kind is counted in its own unit."""

    __slots__ = ()
    unit_ms: ClassVar[int] = 1

    @property
    def epoch_ms(self) -> int:
        """Milliseconds since 1970."""
        return self * self.unit_ms


class Timestamp(Instant):
    """Milliseconds since 1970."""

    __slots__ = ()


class Time(Instant):
    """Milliseconds of a day, which is the first of 1970."""

    __slots__ = ()


class Date(Instant):
    """Days since 1970."""

    __slots__ = ()
    unit_ms = DAY_MS


_KINDS: dict[Type, type[Instant]] = {
    Primitive.TIMESTAMP: Timestamp,
    Primitive.TIME: Time,
    Primitive.DATE: Date,
}

Marking = Callable[[Any], Any]
"""Makes instants of the numbers in a value decoded from JSON, which may lack members that its schema has."""


def marking(type: Type) -> Marking | None:
    """What makes numbers of values of that type instants; None where it has no dates and times."""
    return fold(type, _leaf, _list, _struct, _map)


def _leaf(leaf: Type) -> Marking | None:
    kind = _KINDS.get(leaf)
    return kind and (lambda value: kind(value) if type(value) is int else value)


def _list(mark: Marking | None) -> Marking | None:
    return mark and (lambda value: list(map(mark, value)) if isinstance(value, list) else value)


def _map(mark: Marking | None) -> Marking | None:
    # One whose keys are no texts is a list.
    return mark and (lambda value: {key: mark(one) for key, one in value.items()} if isinstance(value, dict) else value)


def _struct(marks: dict[str, Marking | None]) -> Marking | None:
    some = {name: mark for name, mark in marks.items() if mark is not None}

    def of(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return value | {name: mark(value[name]) for name, mark in some.items() if name in value}

    return of if some else None
