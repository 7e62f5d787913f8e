"""Patterns of Iggy's `filter_fields`: which fields, by name and by value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from s3lake.text import expressions
from s3lake.text.masking import strip_values
from s3lake.transform.options import OptionError
from s3lake.transform.record import Refusal

_KEYS = ("exact", "starts_with", "ends_with", "contains", "regex")
_VALUES = ("equals", "contains", "regex", "greater_than", "less_than", "between")
_KINDS: dict[str, Callable[[Any], bool]] = {
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "is_string": lambda value: isinstance(value, str),
    "is_number": lambda value: is_number(value),
    "is_boolean": lambda value: isinstance(value, bool),
    "is_object": lambda value: isinstance(value, dict),
    "is_array": lambda value: isinstance(value, list),
}


@dataclass(frozen=True)
class Pattern:
    """A pattern: an absent part matches everything; `regex` finds its expression anywhere."""

    key: tuple[str, Any] | None
    value: tuple[str, Any] | None

    @classmethod
    def of(cls, setting: Any, place: str) -> Pattern:
        """Read one entry of `patterns`.

        Raises:
            OptionError: it cannot be right.
        """
        if not isinstance(setting, Mapping):
            raise OptionError(
                f"{place}: {setting!r} is not allowed; write {{key_pattern: …, value_pattern: …}}", "patterns"
            )
        if unknown := [name for name in setting if name not in ("key_pattern", "value_pattern")]:
            allowed = "key_pattern, value_pattern"
            raise OptionError(f"{place}: {unknown[0]!r} is no name; allowed here: {allowed}", "patterns")
        key, value = setting.get("key_pattern"), setting.get("value_pattern")
        return cls(
            None if key is None else _test(key, _KEYS, (), f"{place}.key_pattern"),
            None if value is None else _test(value, _VALUES, tuple(_KINDS), f"{place}.value_pattern"),
        )

    def matches(self, name: str, value: Any) -> bool:
        """Whether it picks a field."""
        return (self.key is None or _holds(*self.key, name)) and (self.value is None or _holds(*self.value, value))


def _test(setting: Any, tests: tuple[str, ...], type_names: tuple[str, ...], place: str) -> tuple[str, Any]:
    allowed = ", ".join((*(f"{one}: …" for one in tests), *type_names))
    if isinstance(setting, str) and setting in type_names:
        return setting, None
    if not isinstance(setting, Mapping) or len(setting) != 1:
        raise OptionError(f"{place}: {setting!r} is not allowed; use one of: {allowed}", "patterns")
    ((name, operand),) = setting.items()
    if name not in tests:
        raise OptionError(f"{place}: {name!r} is not allowed; use one of: {allowed}", "patterns")
    if name == "between":
        if not isinstance(operand, (list, tuple)) or len(operand) != 2:
            raise OptionError(f"{place}: between needs two numbers, [low, high]; not {operand!r}", "patterns")
        return name, tuple(_number(one, f"{place}: between") for one in operand)
    if name in ("greater_than", "less_than"):
        return name, _number(operand, f"{place}: {name}")
    if name == "equals":
        return name, operand
    if not isinstance(operand, str):
        raise OptionError(f"{place}: {name} needs a text, not {operand!r}", "patterns")
    if name == "regex":
        try:
            # Rust's \z is Python's \Z, and its groups need no P.
            text = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", operand).replace(r"\z", r"\Z")
            return name, expressions.compile_pattern(text)
        except re.error as error:
            raise OptionError(f"{place}: {operand!r} is not a regular expression: {error}", "patterns") from None
    return name, operand


def _number(value: Any, what: str) -> Decimal:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = Decimal(str(value))
        if number.is_finite():
            return number
    raise OptionError(f"{what} needs a number, not {value!r}", "patterns")


def _holds(test: str, operand: Any, value: Any) -> bool:
    if test in _KINDS:
        return _KINDS[test](value)
    match test:
        case "exact":
            return bool(value == operand)
        case "equals":
            return equal(value, operand)
        case "greater_than":
            return is_number(value) and value > operand
        case "less_than":
            return is_number(value) and value < operand
        case "between":
            return is_number(value) and operand[0] <= value <= operand[1]
    if not isinstance(value, str):
        return False
    match test:
        case "starts_with":
            return value.startswith(operand)
        case "ends_with":
            return value.endswith(operand)
        case "regex":
            try:
                return operand.search(value) is not None
            except expressions.PatternTimeoutError as error:
                raise Refusal(strip_values(str(error))) from None
    return operand in value


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same: numbers by their value, and true is no number."""
    if is_number(left) and is_number(right):
        return Decimal(str(left)) == Decimal(str(right))
    if isinstance(left, dict) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and bool(left == right)
