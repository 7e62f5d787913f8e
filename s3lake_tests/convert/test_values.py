"""Conversion: bytes to what an encoder writes, nulls by the sink's rule, refusals by row."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.convert.columns import Columns
from s3lake.convert.values import Conversion, Converted
from s3lake.sink import Sink


def conversion(value: str = "json", format: str = "json", nulls: str = "skip") -> Conversion:
    return Conversion(value, format, nulls)


def convert(by: Conversion, *values: bytes | None, columns: Columns | None = None) -> Converted:
    return by(pa.array(values, pa.binary()), columns or {})


def lines(by: Conversion, *values: bytes | None) -> list[bytes]:
    converted = convert(by, *values)
    assert converted.refused == {}
    return converted.payload.to_pylist()  # type: ignore[no-any-return]


# Text formats


def test_json_keeps_the_producers_bytes() -> None:
    values = [b'{"a" :1.0,"b":"\\u0041"}', b"[1, 2]", b'"x"', b"1e2"]
    assert lines(conversion(), *values) == values


def test_a_raw_newline_becomes_a_space() -> None:
    assert lines(conversion(), b'{\r\n"a":\n1}') == [b'{  "a": 1}']
    assert lines(conversion("string", "text"), b"two\nlines") == [b"two lines"]


def test_a_string_is_a_json_string() -> None:
    assert lines(conversion("string"), b'say "hi"\n', "größe".encode(), b"") == [
        b'"say \\"hi\\"\\n"',
        '"größe"'.encode(),
        b'""',
    ]


def test_bytes_are_a_json_string_in_base64() -> None:
    assert lines(conversion("bytes"), b"\x00\xff", b"") == [b'"AP8="', b'""']


@pytest.mark.parametrize("value", ["json", "string", "bytes"])
def test_text_is_the_value_itself(value: str) -> None:
    assert lines(conversion(value, "text"), b'{"a": 1}') == [b'{"a": 1}']


def test_bytes_as_text_need_no_utf8() -> None:
    assert lines(conversion("bytes", "text"), b"\xff\xfe") == [b"\xff\xfe"]


# Refusals


@pytest.mark.parametrize("format", ["json", "text", "parquet"])
def test_json_is_judged_whatever_the_format(format: str) -> None:
    converted = convert(conversion("json", format), b'{"a":1}', b"{", b'{"a":2}', b"\xff", b"")
    assert set(converted.refused) == {1, 3, 4}
    assert converted.kept.to_pylist() == [0, 2]
    assert len(converted.payload) == 2


@pytest.mark.parametrize("format", ["json", "text", "parquet"])
def test_a_string_has_to_be_utf8(format: str) -> None:
    converted = convert(conversion("string", format), b"x", b"\xff")
    assert converted.refused == {1: "no UTF-8: byte 0 is 0xff"}


def test_where_nothing_is_left_there_is_no_payload() -> None:
    converted = convert(conversion(), b"{", None)
    assert converted.payload is None
    assert converted.kept.to_pylist() == []


def test_where_all_is_kept_nothing_is_copied() -> None:
    values = pa.array([b"1", b"2"], pa.binary())
    converted = conversion()(values, {})
    assert converted.kept is None
    assert converted.payload is values


def test_a_top_level_number_is_no_row_of_a_table() -> None:
    converted = convert(conversion(format="parquet"), b'{"a":1}', b"7", b"[1]", None, b"{")
    assert sorted(converted.refused) == [1, 2, 4]
    assert converted.payload.to_pylist() == [{"a": 1}]


def test_conflicts_are_told_by_the_row_of_the_batch() -> None:
    converted = convert(conversion(format="parquet"), None, b"{", b'{"a":"x"}', b'{"a":1}', columns={"a": "int64"})
    assert converted.refused[2] == "field 'a' is string, the sink's files have int64"
    assert (converted.kept.to_pylist(), converted.skipped) == ([3], 1)


# Nulls


@pytest.mark.parametrize("format", ["json", "text", "parquet"])
@pytest.mark.parametrize("value", ["json", "string", "bytes"])
def test_nulls_are_skipped_and_counted(value: str, format: str) -> None:
    converted = convert(conversion(value, format), None, b'{"a":1}', None)
    assert (converted.skipped, converted.refused, converted.kept.to_pylist()) == (2, {}, [1])


@pytest.mark.parametrize("format", ["json", "text", "parquet"])
@pytest.mark.parametrize("value", ["json", "string", "bytes"])
def test_nulls_can_be_refused(value: str, format: str) -> None:
    converted = convert(conversion(value, format, "fail"), None, b'{"a":1}')
    assert (converted.skipped, converted.refused) == (0, {0: "the value is null (nulls: fail)"})
    assert converted.kept.to_pylist() == [1]


@pytest.mark.parametrize(
    ("value", "format", "expected"),
    [
        ("json", "json", [b"null", b'{"a":1}']),
        ("string", "json", [b"null", b'"{\\"a\\":1}"']),
        ("bytes", "json", [b"null", b'"eyJhIjoxfQ=="']),
        ("json", "text", [b"", b'{"a":1}']),
        ("string", "text", [b"", b'{"a":1}']),
        ("bytes", "text", [b"", b'{"a":1}']),
        ("json", "parquet", [{"a": None}, {"a": 1}]),
        ("string", "parquet", [{"value": None}, {"value": '{"a":1}'}]),
        ("bytes", "parquet", [{"value": None}, {"value": b'{"a":1}'}]),
    ],
)
def test_nulls_can_be_written(value: str, format: str, expected: list[Any]) -> None:
    converted = convert(conversion(value, format, "write"), None, b'{"a":1}')
    assert converted.payload.to_pylist() == expected
    assert (converted.skipped, converted.refused, converted.kept) == (0, {}, None)


# Columns


def test_columns_grow_only_for_json_in_parquet() -> None:
    assert conversion("json", "parquet").has_columns
    assert not conversion("string", "parquet").has_columns
    assert not conversion("json", "json").has_columns


@pytest.mark.parametrize(
    ("value", "format", "columns"),
    [
        ("string", "parquet", {"value": "string"}),
        ("bytes", "parquet", {"value": "binary"}),
        ("json", "json", None),
        ("json", "text", None),
    ],
)
def test_bare_values_have_one_column(value: str, format: str, columns: Columns | None) -> None:
    assert conversion(value, format).fixed_columns == columns


def test_a_batch_shows_its_new_columns() -> None:
    converted = convert(conversion(format="parquet"), b'{"a":1,"b":"x"}', columns={"a": "double"})
    assert converted.columns == {"a": "double", "b": "string"}


def test_it_is_what_the_sink_says_and_travels_to_the_workers() -> None:
    sink = Sink(
        name="s",
        topics=("t",),
        bucket="lake",
        start="2026-11-20T00",
        nulls="fail",
        format={"type": "parquet"},  # type: ignore[arg-type]
    )
    made = Conversion.of(sink)
    assert made == conversion("json", "parquet", "fail")
    assert pickle.loads(pickle.dumps(made)) == made


# Rows never shift

_good = st.integers().map(lambda number: json.dumps({"n": number}).encode())
_bad = st.sampled_from([b"", b"{", b"\xff", b'{"n":1}{"n":2}', b"\n", b"[1,", b'{"n":"x\ny"}'])
_others = st.sampled_from([b"7", b"[1]", b'"x"', b'{"n":"text"}', b'{"n":null}', b'{"m":{"n":[1]}}', b"{}"])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.none() | _good | _bad | _others, max_size=12),
    st.sampled_from(["json", "text", "parquet"]),
    st.sampled_from(["skip", "fail", "write"]),
)
def test_each_kept_row_is_its_own_value(values: list[bytes | None], format: str, nulls: str) -> None:
    converted = convert(conversion("json", format, nulls), *values, columns={"n": "int64"})
    kept = list(range(len(values))) if converted.kept is None else converted.kept.to_pylist()
    payload = [] if converted.payload is None else converted.payload.to_pylist()
    assert len(payload) == len(kept)
    assert len(kept) + len(converted.refused) + converted.skipped == len(values)
    assert not set(kept) & set(converted.refused)
    for row, found in zip(kept, payload, strict=True):
        value = values[row]
        if value is None:
            assert found in (b"null", b"", dict.fromkeys(converted.columns))
        elif format == "parquet":
            assert found == {**dict.fromkeys(converted.columns), **json.loads(value)}
        else:
            assert found == value
