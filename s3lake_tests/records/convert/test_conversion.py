"""Conversion: bytes to what an encoder writes, nulls by the sink's rule, refusals by row."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.model import Sink
from s3lake.land.request import stage_values
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.schema.columns.types import Primitive, from_document, to_document
from s3lake_tests.records.convert.batches import batch


def conversion(value: str = "json", format: str = "json", nulls: str = "skip") -> Conversion:
    return Conversion("string", value, format, nulls)


def convert(by: Conversion, *values: bytes | None, columns: dict[str, Any] | None = None) -> ConvertedBatch:
    return convert_batch(by, batch(*values), from_document(columns or {}))


def data(converted: ConvertedBatch) -> Any:
    (part,) = converted.parts
    return part.streams["data"]


def kept(converted: ConvertedBatch) -> list[int] | None:
    (part,) = converted.parts
    return None if part.rows is None else part.rows.to_pylist()


def lines(by: Conversion, *values: bytes | None) -> list[bytes]:
    converted = convert(by, *values)
    assert converted.refused == {}
    return data(converted).to_pylist()  # type: ignore[no-any-return]


def test_json_keeps_the_producers_bytes() -> None:
    values = [b'{"a" :1.0,"b":"\\u0041"}', b"[1, 2]", b'"x"', b"1e2"]
    assert lines(conversion(), *values) == values


@pytest.mark.parametrize("format", ["json", "text", "parquet"])
def test_a_string_has_to_be_utf8(format: str) -> None:
    converted = convert(conversion("string", format), b"x", b"\xff")
    assert converted.refused == {1: "not UTF-8: byte 0 is 0xff"}


def test_values_are_not_copied_when_all_records_are_kept() -> None:
    records = batch(b"1", b"2")
    converted = convert_batch(conversion(), records, {})
    assert kept(converted) is None
    assert data(converted).buffers()[2].address == records.column("value").buffers()[2].address


def test_conflicts_are_reported_by_the_row_of_the_batch() -> None:
    converted = convert(conversion(format="parquet"), None, b"{", b'{"a":"x"}', b'{"a":1}', columns={"a": "int64"})
    assert converted.refused[2].startswith(
        "field 'a' is string, the sink's files have int64: have the producer keep to "
    )
    assert (kept(converted), converted.skipped) == ([3], 1)


@pytest.mark.parametrize(
    ("value", "format", "null", "written"),
    [
        ("json", "json", b"null", b'{"a":1}'),
        ("string", "json", b"null", b'"{\\"a\\":1}"'),
        ("bytes", "json", b"null", b'"eyJhIjoxfQ=="'),
        ("json", "text", b"", b'{"a":1}'),
        ("string", "text", b"", b'{"a":1}'),
        ("bytes", "text", b"", b'{"a":1}'),
        ("json", "parquet", {"a": None}, {"a": 1}),
        ("string", "parquet", {"value": None}, {"value": '{"a":1}'}),
        ("bytes", "parquet", {"value": None}, {"value": b'{"a":1}'}),
    ],
)
def test_nulls_are_skipped_and_counted_or_refused_or_written(value: str, format: str, null: Any, written: Any) -> None:
    found = convert(conversion(value, format, "skip"), None, b'{"a":1}', None)
    assert (found.skipped, found.refused, kept(found), data(found).to_pylist()) == (2, {}, [1], [written])
    found = convert(conversion(value, format, "fail"), None, b'{"a":1}')
    assert (found.skipped, found.refused, kept(found)) == (0, {0: "the value is null (nulls: fail)"}, [1])
    found = convert(conversion(value, format, "write"), None, b'{"a":1}')
    assert (found.skipped, found.refused, kept(found), data(found).to_pylist()) == (0, {}, None, [null, written])


def test_columns_grow_only_for_json_in_parquet() -> None:
    assert conversion("json", "parquet").has_columns
    assert not conversion("string", "parquet").has_columns
    assert not conversion("json", "json").has_columns


# Beyond 64 bits an integer is a double, which `read/json/test_exact_integers.py` tests.
_good = st.integers(-(2**63), 2**63 - 1).map(lambda number: json.dumps({"n": number}).encode())
_bad = st.sampled_from([b"", b"{", b"\xff", b'{"n":1}{"n":2}', b"\n", b"[1,", b'{"n":"x\ny"}'])
_others = st.sampled_from([b"7", b"[1]", b'"x"', b'{"n":"text"}', b'{"n":null}', b'{"m":{"n":[1]}}', b"{}"])


@given(
    st.lists(st.none() | _good | _bad | _others, max_size=12),
    st.sampled_from(["json", "text", "parquet"]),
    st.sampled_from(["skip", "fail", "write"]),
)
def test_each_kept_row_is_its_own_value(values: list[bytes | None], format: str, nulls: str) -> None:
    converted = convert(conversion("json", format, nulls), *values, columns={"n": "int64"})
    rows = [row for part in converted.parts for row in part.rows or range(len(values))]
    payload = [found for part in converted.parts for found in part.streams["data"].to_pylist()]
    assert len(payload) == len(rows)
    assert len(rows) + len(converted.refused) + converted.skipped == len(values)
    assert not set(rows) & set(converted.refused)
    for row, found in zip(map(int, rows), payload, strict=True):
        value = values[row]
        if value is None:
            assert found in (b"null", b"", dict.fromkeys(converted.columns))
        elif format == "parquet":
            assert found == {**dict.fromkeys(converted.columns), **json.loads(value)}
        else:
            assert found == value


def test_bytes_are_the_value_whatever_it_is() -> None:
    assert lines(conversion("bytes", "bytes", "write"), b"\xff\n", None, b"") == [b"\xff\n", b"", b""]
    assert lines(conversion("json", "bytes"), b'{\n"a":1}') == [b'{\n"a":1}']
    assert list(convert(conversion("json", "bytes"), b"{").refused) == [0]


@pytest.mark.parametrize(("value", "kind"), [("string", "string"), ("bytes", "binary")])
@pytest.mark.parametrize("format", ["csv", "avro", "parquet"])
def test_bare_values_are_one_column_of_a_table(format: str, value: str, kind: str) -> None:
    by = conversion(value, format)
    assert (by.has_columns, by.fixed_columns) == (False, {"value": Primitive(kind)})
    assert [list(row) for row in data(convert(by, b"x")).to_pylist()] == [["value"]]


@pytest.mark.parametrize(
    ("value", "type"), [(b'{"b":[1]}', "list<int64>"), (b'{"b":[]}', "list<unknown>"), (b'{"b":{}}', "struct<>")]
)
def test_a_nested_value_is_refused_in_csv_and_becomes_no_column(value: bytes, type: str) -> None:
    converted = convert(conversion("json", "csv"), b'{"a":1}', value, b'{"a":2}')
    assert converted.refused == {1: f"field 'b' is {type}, which a row of CSV cannot hold: use another format"}
    assert (data(converted).to_pylist(), to_document(converted.columns)) == ([{"a": 1}, {"a": 2}], {"a": "int64"})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (b'{"a-b":1}', "a-b"),
        (b'{"a":1,"o":{"1st":1}}', "o.1st"),
        (b'{"l":[{"gr\xc3\xb6\xc3\x9fe":1}]}', "l.größe"),
        (b'{"":1}', "''"),
    ],
)
def test_a_name_that_avro_forbids_is_a_record_error_in_avro(value: bytes, path: str) -> None:
    converted = convert(conversion("json", "avro"), b'{"a":1}', value)
    assert path in converted.refused[1]
    assert "has a name that Avro forbids: letters, digits and '_', no digit first: rename it" in converted.refused[1]
    assert to_document(converted.columns) == {"a": "int64"}
    assert convert(conversion("json", "parquet"), value).refused == {}


def test_recorded_columns_of_another_format_are_left_out_and_stay_recorded() -> None:
    recorded = {"a-b": "int64", "l": {"list": "int64"}, "a": "int64"}
    for format, names in (("avro", ["l", "a"]), ("csv", ["a-b", "a"])):
        converted = convert(conversion("json", format), b'{"a":1}', columns=recorded)
        assert (data(converted).schema.names, to_document(converted.columns)) == (names, recorded)


def test_a_conversion_has_the_settings_of_the_sink_and_travels_to_the_workers() -> None:
    sink = Sink(
        name="s",
        topics=("t",),
        bucket="lake",
        start="2026-11-20T00",
        nulls="fail",
        format={"type": "parquet"},  # type: ignore[arg-type]
        columns={"at": "timestamp", "price": "decimal(10,2)"},
        envelope={"style": "record"},  # type: ignore[arg-type]
        sidecars={"keys": "json"},  # type: ignore[arg-type]
    )
    made = stage_values.build_conversion(sink, "t")
    assert to_document(made.declared) == {"at": "timestamp", "price": "decimal(10,2)"}
    assert (made.nulls, made.needs) == ("fail", {"key", "headers"})
    assert pickle.loads(pickle.dumps(made)) == made
