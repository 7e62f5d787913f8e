"""Values and schemas as Connect's converter wrote them, in a form that can be compared."""

from typing import Any

import pyarrow as pa
from msgspec import structs

from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.convert.read.json import json_with_schema
from s3lake.records.convert.read.keys_and_values import Column
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.connect_schema import Schema
from s3lake.records.transform.step.group_values import to_values


def read_connect_value(text: bytes | None) -> tuple[Schema | None, Any]:
    """Read what Connect's converter wrote, by the reader that Connect's converter is compared with elsewhere."""
    if text is None:
        return None, None
    column, refused = json_with_schema.read(pa.array([text], pa.binary()), ConverterRequest(tabular=True, texts=False))
    assert refused == {}, (refused, text)
    return describe_column(column)


def describe_column(column: Column) -> tuple[Schema | None, Any]:
    schema = column.schema
    if schema is None:
        return None, column.data.to_pylist()[0]
    (value,) = to_values(column.array, schema.type)
    return _plain(schema), _sort_pairs(value)


def _sort_pairs(value: Any) -> Any:
    """Return a value with the entries of maps in one order: Java's have another one each time."""
    match value:
        case dict():
            return {name: _sort_pairs(inner) for name, inner in value.items()}
        case list():
            items = [_sort_pairs(inner) for inner in value]
            is_map = all(isinstance(one, dict) and one.keys() == {"key", "value"} for one in items)
            return sorted(items, key=repr) if is_map else items
    return value


def _plain(schema: Schema) -> Schema:
    """Return a schema without names that a reader gives to structs without one."""
    assert schema.detail is not None
    return Schema(schema.name, schema.type, detail=_strip(schema.detail))


def _strip(detail: Detail) -> Detail:
    name = None if detail.name is None or detail.name.startswith("io.confluent.connect.avro.") else detail.name
    return structs.replace(detail, name=name, inner=tuple(map(_strip, detail.inner)))
