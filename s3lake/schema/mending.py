"""What becomes of values that were decoded, by what becomes of those inside of them; None where they stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

Mend = Callable[[Any], Any]
"""Makes a value that was read what it shall be; it may change it in its place."""

IsOdd = Callable[[Any], bool]
"""Whether a value, mended, holds a number that JSON does not have."""


def of_items(mend: Mend | None) -> Mend | None:
    """What a list becomes."""
    return mend and partial(_items, mend)


def of_values(mend: Mend | None) -> Mend | None:
    """What a map becomes."""
    return mend and partial(_values, mend)


def of_members(mends: Mapping[str, Mend | None]) -> Mend | None:
    """What a record becomes."""
    some = [(name, mend) for name, mend in mends.items() if mend]
    return partial(_members, some) if some else None


def unless_null(mend: Mend | None) -> Mend | None:
    """What becomes of what may be null."""
    return mend and partial(_unless_null, mend)


def same(value: Any) -> Any:
    """A value that stays."""
    return value


def odd_items(is_odd: IsOdd | None) -> IsOdd | None:
    """Of a list."""
    return is_odd and partial(_any_item, is_odd)


def odd_values(is_odd: IsOdd | None) -> IsOdd | None:
    """Of a map."""
    return is_odd and partial(_any_value, is_odd)


def odd_members(tests: Mapping[str, IsOdd | None]) -> IsOdd | None:
    """Of a record."""
    some = [(name, is_odd) for name, is_odd in tests.items() if is_odd]
    return partial(_any_member, some) if some else None


def odd_unless_null(is_odd: IsOdd | None) -> IsOdd | None:
    """Of what may be null."""
    return is_odd and partial(_is_odd, is_odd)


def _items(mend: Mend, items: Iterable[Any]) -> list[Any]:
    return list(map(mend, items))


def _values(mend: Mend, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: mend(value) for name, value in values.items()}


def _members(mends: Iterable[tuple[str, Mend]], record: dict[str, Any]) -> dict[str, Any]:
    for name, mend in mends:
        record[name] = mend(record[name])
    return record


def _unless_null(mend: Mend, value: Any) -> Any:
    return None if value is None else mend(value)


def _any_item(is_odd: IsOdd, items: Iterable[Any]) -> bool:
    return any(map(is_odd, items))


def _any_value(is_odd: IsOdd, values: Mapping[str, Any]) -> bool:
    return any(map(is_odd, values.values()))


def _any_member(tests: Iterable[tuple[str, IsOdd]], record: Mapping[str, Any]) -> bool:
    return any(_is_odd(is_odd, record[name]) for name, is_odd in tests)


def _is_odd(is_odd: IsOdd, value: Any) -> bool:
    return value is not None and is_odd(value)
