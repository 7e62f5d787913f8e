"""Which of Avro's logical types are times: those that Confluent's AvroData knows, and others where they are asked for.

Debezium says in the name of Connect's schema what a number is, and names no logical type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3lake.schema.types import Primitive

_CONNECT = {
    ("int", "date"): Primitive.DATE,
    ("int", "time-millis"): Primitive.TIME,
    ("long", "timestamp-millis"): Primitive.TIMESTAMP,
    ("long", "local-timestamp-millis"): Primitive.TIMESTAMP,
}
"""AvroData leaves micros and nanos the `long` that they are."""
_EXACT = _CONNECT | {
    ("long", "time-micros"): Primitive.TIME_US,
    ("long", "timestamp-micros"): Primitive.TIMESTAMP_US,
    ("long", "local-timestamp-micros"): Primitive.TIMESTAMP_US,
    ("long", "timestamp-nanos"): Primitive.TIMESTAMP_NS,
    ("long", "local-timestamp-nanos"): Primitive.TIMESTAMP_NS,
}
_DEBEZIUM: dict[tuple[Any, Any], str] = {
    ("int", "io.debezium.time.Date"): "date",
    ("int", "io.debezium.time.Time"): "time-millis",
    ("long", "io.debezium.time.MicroTime"): "time-micros",
    ("long", "io.debezium.time.Timestamp"): "timestamp-millis",
    ("long", "io.debezium.time.MicroTimestamp"): "timestamp-micros",
    ("long", "io.debezium.time.NanoTimestamp"): "timestamp-nanos",
}


def logical_type(schema: Mapping[str, Any], *, exact: bool) -> Any:
    """What a schema says that its values are, or Debezium says of it."""
    named = (schema.get("type"), schema.get("connect.name"))
    return schema.get("logicalType") or (_DEBEZIUM.get(named) if exact and all(map(_is_text, named)) else None)


def time_of(physical: Any, logical: Any, *, exact: bool) -> Primitive | None:
    """The column of a time, None for what is none."""
    return (_EXACT if exact else _CONNECT).get((physical, logical)) if _is_text(logical) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
