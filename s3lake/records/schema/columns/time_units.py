"""What a number is by its schema, if it is a time: the names that Connect and Debezium give, and the unit of a field.

Sources: Kafka's org.apache.kafka.connect.data.Date, Time and Timestamp; Debezium's io.debezium.time.* (its page
"Temporal values"). Debezium's zoned times are texts, and stay texts.
"""

from __future__ import annotations

from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import TICKS, Primitive, Struct, Type, item_of

CONNECT = {
    ("int32", "org.apache.kafka.connect.data.Date"): Primitive.DATE,
    ("int32", "org.apache.kafka.connect.data.Time"): Primitive.TIME,
    ("int64", "org.apache.kafka.connect.data.Timestamp"): Primitive.TIMESTAMP,
}
"""Connect's own logical types, which are columns of times in every case."""

DEBEZIUM = {
    ("int32", "io.debezium.time.Date"): Primitive.DATE,
    ("int32", "io.debezium.time.Time"): Primitive.TIME,
    ("int64", "io.debezium.time.MicroTime"): Primitive.TIME_US,
    ("int64", "io.debezium.time.Timestamp"): Primitive.TIMESTAMP,
    ("int64", "io.debezium.time.MicroTimestamp"): Primitive.TIMESTAMP_US,
    ("int64", "io.debezium.time.NanoTimestamp"): Primitive.TIMESTAMP_NS,
}
"""Debezium's, which are numbers for Connect, and columns of times with `times: exact`."""

OF_DAY = {time: 86_400 * TICKS[time] for time in (Primitive.TIME, Primitive.TIME_US)}
"""Of times of day, how many ticks a day has."""

_TIMES = frozenset({Primitive.DATE, *TICKS})


def find_time(type: Type, detail: Detail | None, path: tuple[str, ...]) -> Primitive | None:
    """Return the type of times that the field at a path of a value has by its schema. Return None if it has none."""
    for step in path:
        inner: tuple[Detail, ...] = () if detail is None else detail.inner
        if isinstance(type, Struct):
            if step not in type.fields:
                return None
            at = list(type.fields).index(step)
            type, detail = type.fields[step], inner[at] if at < len(inner) else None
        else:
            type, detail = item_of(type), inner[0] if inner else None
    if isinstance(type, Primitive) and type in _TIMES:
        return type
    return None if detail is None or detail.time is None else Primitive(detail.time)
