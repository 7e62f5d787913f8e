"""A value of every type that a column can have, and cells as the producer's JSON writes them."""

import base64
import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

SAMPLES: dict[str, Any] = {
    "bool": True,
    "int32": 7,
    "int64": 2**40,
    "float": 0.5,
    "double": 1e300,
    "string": "é",
    "binary": "AAEC",
    "date": "2026-11-20",
    "time": "08:15:00.123",
    "time_us": "08:15:00.123456",
    "timestamp": "2026-11-20T08:15:00.123Z",
    "timestamp_us": "2026-11-20T08:15:00.123456Z",
    "timestamp_ns": "2026-11-20T08:15:00.123456789Z",
    "list<timestamp_ns>": ["2026-11-20T08:15:00.123456789Z"],
    "uuid": "3f0b8a52-8f1c-4c2e-9d43-0c5d1a2b3c4d",
    "decimal(10,2)": "12.34",
    "list<int64>": [1, 2],
    "list<date>": ["2026-11-20"],
    "list<list<string>>": [["a"], []],
    "map<string, int64>": {"a": 1, "b-c": 2},
    "map<string, struct<x: int64>>": {"a": {"x": 1}},
    "struct<a: int64, b: string>": {"a": 1, "b": "x"},
    "struct<a: struct<b: list<decimal(5,1)>>>": {"a": {"b": ["1.5"]}},
    "list<struct<a: int64, m: map<string, double>>>": [{"a": 1, "m": {"k": 0.25}}],
}
NESTED = ("list", "map", "struct")
NANOS = 10**9


def show(value: Any, kind: pa.DataType) -> Any:
    """A cell of Arrow's as the producer's JSON writes it."""
    if not value.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {field.name: show(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {pair["key"].as_py(): show(pair["value"], kind.item_type) for pair in value.values}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [show(one, kind.value_type) for one in value.values]
    if pa.types.is_timestamp(kind):
        return show_timestamp(value.cast(pa.timestamp("ns", kind.tz)).value)
    if pa.types.is_time(kind):
        return trim(value.cast(pa.time64("us")).as_py().isoformat())
    found = value.as_py()
    if isinstance(found, bytes):
        return base64.b64encode(found).decode()
    return str(found) if isinstance(found, (Decimal, datetime.date, uuid.UUID)) else found


def show_timestamp(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, NANOS)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return trim(f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09}") + "Z"


def trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def table_cells(table: pa.Table) -> dict[str, list[Any]]:
    """Cells by column, nulls too."""
    shown = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        cells = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        if isinstance(cells, pa.ExtensionArray):
            cells = pa.array([None if one is None else str(one) for one in cells.to_pylist()], pa.string())
        shown[name] = [show(cell, cells.type) for cell in cells]
    return shown


def show_sample(value: Any) -> Any:
    match value:
        case str() if value.endswith("Z") or value.count(":") == 2:
            return trim(value.rstrip("Z")) + "Z" * value.endswith("Z")
        case list():
            return list(map(show_sample, value))
        case dict():
            return {name: show_sample(inner) for name, inner in value.items()}
    return value
