"""Logical types of Avro schemas: a valid one defines what a value means, any other is as if it were not there.

Avro's specification, "Logical Types": "Language implementations must ignore unknown logical types when reading, and
should use the underlying Avro type. If a logical type is invalid, for example a decimal with scale greater than its
precision, then implementations should ignore the logical type and use the underlying Avro type."
"""

from __future__ import annotations

import math
from typing import Any

_UNDERLYING = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "decimal": ("bytes", "fixed"),
    "big-decimal": ("bytes",),
    "uuid": ("string", "fixed"),
    "duration": ("fixed",),
}
"""The logical types of Avro 1.12, and their underlying types."""
_SIZES = {"uuid": 16, "duration": 12}
_PARTS = ("items", "values")


def is_valid(schema: dict[str, Any]) -> bool:
    """Return whether Avro defines the logical type of a schema, and the underlying type can hold it."""
    logical, of = schema.get("logicalType"), schema.get("type")
    if not isinstance(logical, str) or of not in _UNDERLYING.get(logical, ()):
        return False
    if logical == "decimal":
        return _is_decimal(schema)
    return of != "fixed" or schema.get("size") == _SIZES[logical]


def _is_decimal(schema: dict[str, Any]) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
        return False
    if schema["type"] == "bytes":
        return True
    size = schema.get("size")
    # How many digits may be anything in n bytes with a sign, by the specification's formula.
    return type(size) is int and size > 0 and precision <= math.floor(math.log10(2) * (8 * size - 1))


def strip_invalid(schema: Any) -> Any:
    """Return a schema without the logical types that are not valid; its other parts stay.

    Unknown ones are valid to keep: readers ignore them. An invalid one of Avro's own makes some readers refuse a file.
    """
    if isinstance(schema, list):
        return [strip_invalid(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    stripped = schema | {part: strip_invalid(schema[part]) for part in _PARTS if part in schema}
    if isinstance(schema.get("fields"), list):
        stripped["fields"] = [
            field | {"type": strip_invalid(field["type"])} if isinstance(field, dict) and "type" in field else field
            for field in schema["fields"]
        ]
    logical = schema.get("logicalType")
    if "logicalType" in schema and not is_valid(schema) and (not isinstance(logical, str) or logical in _UNDERLYING):
        del stripped["logicalType"]
    return stripped
