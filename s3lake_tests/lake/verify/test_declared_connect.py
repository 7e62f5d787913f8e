"""Declared columns of values without a schema, which `connect_json` reads next to values that bring one."""

import json
from typing import Any

import pytest

from s3lake_tests.lake.verify.staged_records import require_agreement
from s3lake_tests.lake.verify.world import VerifiedTopic

VALUES: dict[str, list[Any]] = {
    "bool": [True],
    "int32": [-7],
    "int64": [2**53 + 1],
    "float": [0.1, 2, 3.0, -0.0, 1e38],
    "double": [0.5, 7, -0.0, 1e300, 2**53],
    "decimal(10,2)": [0, 12.34, "12.30", "-7"],
    "decimal(38,0)": [10**37, "9"],
    "string": ["", "a", '"a"', "1"],
    "binary": ["", "AQ=="],
    "date": [0, "2026-11-20", -1],
    "time": [1, "12:30:00"],
    "time_us": [1, "12:30:00.000001"],
    "timestamp": [0, "2026-11-20T05:00:00Z"],
    "timestamp_us": [1, "2026-11-20T05:00:00.000001Z"],
    "uuid": ["0f0e0d0c-0b0a-0908-0706-050403020100"],
    "list<decimal(10,2)>": [[0, None, "1.5"], []],
    "list<double>": [[0.5, 1], []],
    "map<string, decimal(10,2)>": [{"b": 1, "a": "0.25"}, {}],
    "map<string, uuid>": [{"x": "0f0e0d0c-0b0a-0908-0706-050403020100"}],
    "struct<c: decimal(10,2), d: float>": [{"c": 1.5, "d": 0.1}, {"d": None}],
}
"""Type of a column -> values that JSON without a schema has for it."""
ENVELOPE = {"style": "record", "fields": ["value", "metadata"]}
CASES = [(form, type, envelope) for form in ("avro", "parquet") for type in VALUES for envelope in ({}, ENVELOPE)]
CASES += [("csv", type, {}) for type in VALUES if "<" not in type]


@pytest.mark.parametrize(("form", "type", "envelope"), CASES)
def test_a_value_without_a_schema_equals_its_row_in_declared_columns(
    form: str, type: str, envelope: dict[str, Any]
) -> None:
    settings = {"envelope": envelope} if envelope else {}
    sink = {"format": {"type": form}, "converter": {"value": "connect_json"}, "columns": {"a": type}, **settings}
    for value in VALUES[type]:
        require_agreement(VerifiedTopic(**sink), [(None, json.dumps({"a": value}).encode(), [])], 0)


@pytest.mark.parametrize("form", ["avro", "parquet", "csv"])
def test_a_value_that_brings_its_schema_equals_its_row_next_to_one_without(form: str) -> None:
    schema = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    described = {"schema": {"type": "struct", "fields": [{**schema, "field": "a"}]}, "payload": {"a": 12.34}}
    world = VerifiedTopic(format={"type": form}, converter={"value": "connect_json"}, columns={"a": "decimal(38,2)"})
    require_agreement(world, [(None, json.dumps(value).encode(), []) for value in (described, {"a": 0})], 1)
