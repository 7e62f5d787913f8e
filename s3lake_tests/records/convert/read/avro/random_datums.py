"""Random Avro schemas with values of each, and batches of their messages."""

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.server import SchemaRegistry
from s3lake_tests.records.schema.registry.server import framed as message

Kind = tuple[Any, st.SearchStrategy[Any]]


def numbered_record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": f"com.acme.R{next(_numbers)}",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


_numbers = iter(range(10**9))


def batch_of(registry: SchemaRegistry, schema: Any, datums: list[bytes]) -> pa.RecordBatch:
    number = registry.add(schema)
    return batch(*(message(number, data) for data in datums))


LEAVES: list[Kind] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("bytes", st.binary(max_size=5)),
    ("string", st.text(max_size=5)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")),
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "int", "logicalType": "date"}, st.integers(-719_162, 2_932_896)),
    ({"type": "int", "logicalType": "time-millis"}, st.integers(-2, 86_400_001)),
    ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(10**13), 10**13)),
    ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(2**63), 2**63 - 1)),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str) | st.text("0-x", max_size=36)),
    ({"type": "fixed", "logicalType": "uuid", "name": "U", "size": 16}, st.binary(min_size=16, max_size=16)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, st.binary(max_size=3)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 3}, st.binary(max_size=20)),
    (
        {"type": "fixed", "logicalType": "decimal", "precision": 38, "scale": 0, "name": "D", "size": 16},
        st.binary(min_size=16, max_size=16),
    ),
]


def _wider(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    held = inner.filter(lambda one: one[0] != "null")
    return st.one_of(
        inner.map(lambda one: ({"type": "array", "items": one[0]}, st.lists(one[1], max_size=6))),
        inner.map(
            lambda one: (
                {"type": "map", "values": one[0]},
                st.dictionaries(st.text("xyz", max_size=3), one[1], max_size=3),
            )
        ),
        held.filter(lambda one: not isinstance(one[0], list)).map(lambda one: (["null", one[0]], st.none() | one[1])),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(_record_of),
        inner.filter(lambda one: isinstance(one[0], str) and one[0] != "null").map(
            lambda one: ([one[0], "null", numbered_record(w="int")], st.none() | one[1] | st.just({"w": 5}))
        ),
    )


def _record_of(fields: dict[str, Kind]) -> Kind:
    schema = numbered_record(**{name: kind for name, (kind, _) in fields.items()})
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})


def rename_types(schema: Any) -> Any:
    """Give new names: a part that is there twice would be defined twice."""
    if isinstance(schema, list):
        return [rename_types(one) for one in schema]
    if isinstance(schema, dict):
        named = schema.get("type") in ("record", "enum", "fixed")
        names = {"name": f"R{next(_numbers)}"} if named else {}
        return {name: rename_types(one) for name, one in schema.items()} | names
    return schema


KINDS = st.recursive(st.sampled_from(LEAVES), _wider, max_leaves=6)
