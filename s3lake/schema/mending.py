"""What becomes of values that were decoded, by what becomes of those inside of them; None where they stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Mend = Callable[[Any], Any]
"""Makes a value that was read what it shall be; it may change it in its place."""

IsOdd = Callable[[Any], bool]
"""Whether a value, mended, holds a number that JSON does not have."""


def of_items(mend: Mend | None) -> Mend | None:
    """What a list becomes."""
    return mend and (lambda items: list(map(mend, items)))


def of_values(mend: Mend | None) -> Mend | None:
    """What a map becomes."""
    return mend and (lambda values: {name: mend(value) for name, value in values.items()})


def of_members(mends: Mapping[str, Mend | None]) -> Mend | None:
    """What a record becomes."""
    some = [(name, mend) for name, mend in mends.items() if mend]

    def mend_members(record: dict[str, Any]) -> dict[str, Any]:
        for name, mend in some:
            record[name] = mend(record[name])
        return record

    return mend_members if some else None


def unless_null(mend: Mend | None) -> Mend | None:
    """What becomes of what may be null."""
    return mend and (lambda value: None if value is None else mend(value))


def same(value: Any) -> Any:
    """A value that stays."""
    return value


def odd_items(is_odd: IsOdd | None) -> IsOdd | None:
    """Of a list."""
    return is_odd and (lambda items: any(map(is_odd, items)))


def odd_values(is_odd: IsOdd | None) -> IsOdd | None:
    """Of a map."""
    return is_odd and (lambda values: any(map(is_odd, values.values())))


def odd_members(tests: Mapping[str, IsOdd | None]) -> IsOdd | None:
    """Of a record."""
    some = [(name, is_odd) for name, test in tests.items() if (is_odd := odd_unless_null(test))]
    return (lambda record: any(is_odd(record[name]) for name, is_odd in some)) if some else None


def odd_unless_null(is_odd: IsOdd | None) -> IsOdd | None:
    """Of what may be null."""
    return is_odd and (lambda value: value is not None and is_odd(value))
