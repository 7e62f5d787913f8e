"""Rules of values: a JSON Schema of any draft, which refers to nothing beside itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import jsonschema_rs

_SHOWN = 300


def validator(rules: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """What says of a decoded value whether it fits.

    Raises:
        ValueError: they are no JSON Schema, or refer to another document.
    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(rules), retriever=_elsewhere)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(f"no JSON Schema: {error.message}{_at(error.instance_path)}"[:_SHOWN]) from None


def broken(validator: jsonschema_rs.Validator, value: Any) -> str | None:
    """Why a decoded value does not fit; None where it does. What the value itself is stands in no message."""
    if validator.is_valid(value):
        return None
    error = next(iter(validator.iter_errors(value)))
    rule = "/".join(map(str, error.schema_path))
    return f"rules: {rule} does not hold{_at(error.instance_path)}"[:_SHOWN]


def _at(path: list[str | int]) -> str:
    return f" at {'.'.join(map(str, path))}" if path else ""


def _elsewhere(address: str) -> NoReturn:
    raise ValueError(f"{address} is another document: write it into $defs")
