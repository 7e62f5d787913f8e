"""Keys and headers beside the data."""

import pyarrow as pa
import pytest

from s3lake.convert.headers import TEXT_LIST
from s3lake.convert.values import Conversion
from s3lake.schema.types import Primitive
from s3lake_tests.convert.records import batch


def conversion(
    keys: str | None = None,
    headers: str | None = None,
    *,
    key: str = "string",
    format: str = "json",
    apart: bool = False,
) -> Conversion:
    return Conversion(key, "json", format, "write", keys=keys, headers=headers, apart=apart)


def test_without_sidecars_there_is_only_data() -> None:
    (part,) = conversion()(batch(b"1"), {}).parts
    assert list(part.streams) == ["data"]
    assert conversion().needs == frozenset()


@pytest.mark.parametrize(
    ("format", "key", "given", "written"),
    [
        ("json", "string", b'say "k"', b'"say \\"k\\""'),
        ("json", "json", b'{"a":\n1}', b'{"a": 1}'),
        ("json", "bytes", b"\xff", b'"/w=="'),
        ("json", "string", None, b"null"),
        ("bytes", "json", b'{"a":\n1}', b'{"a":\n1}'),
        ("bytes", "bytes", b"\xff", b"\xff"),
        ("avro", "string", b"k", {"key": "k"}),
        ("parquet", "bytes", b"\xff", {"key": b"\xff"}),
        ("parquet", "json", b'{"a":1}', {"key": '{"a":1}'}),
        ("avro", "string", None, {"key": None}),
    ],
)
def test_keys(format: str, key: str, given: bytes | None, written: object) -> None:
    by = conversion(format, key=key)
    assert by.needs == {"key"}
    (part,) = by(batch(b"1", keys=[given]), {}).parts
    assert part.streams["keys"].to_pylist() == [written]


def test_a_null_key_has_no_bytes() -> None:
    converted = conversion("bytes", key="bytes")(batch(b"1", b"2", keys=[None, b""]), {})
    assert list(converted.refused) == [0]
    assert "set sidecars.keys to json or avro" in converted.refused[0]
    (part,) = converted.parts
    assert {name: stream.to_pylist() for name, stream in part.streams.items()} == {"data": [b"2"], "keys": [b""]}


def test_headers_are_an_array_of_names_and_texts() -> None:
    found = [[("a", b"1"), ("a", "größe".encode())], None]
    (part,) = conversion(headers="json")(batch(b"1", b"2", headers=found), {}).parts
    assert part.streams["headers"].to_pylist() == [
        '{"headers":[{"key":"a","value":"1"},{"key":"a","value":"größe"}]}'.encode(),
        b'{"headers":[]}',
    ]
    (part,) = conversion(headers="avro")(batch(b"1", b"2", headers=found), {}).parts
    assert part.streams["headers"].schema == pa.schema([("headers", TEXT_LIST)])
    assert part.streams["headers"].to_pylist() == [
        {"headers": [{"key": "a", "value": "1"}, {"key": "a", "value": "größe"}]},
        {"headers": []},
    ]


def test_a_header_that_is_no_text_is_a_record_error() -> None:
    found = [[("a", b"1")], [("b", b"1"), ("c", b"\xff"), ("d", b"\xfe")], None]
    converted = conversion(headers="parquet")(batch(b"1", b"2", b"3", headers=found), {})
    assert converted.refused == {1: "header 'c' is no UTF-8: byte 0 is 0xff"}


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_streams_have_the_rows_of_the_data_in_its_order(format: str) -> None:
    records = batch(b'{"a":1}', b"{", b'{"a":"x"}', b'{"a":2}', keys=[b"k0", b"k1", b"k2", b"k3"], headers=[None] * 4)
    converted = conversion("json", "json", format=format)(records, {"a": Primitive.INT64})
    (part,) = converted.parts
    kept = [row for row in range(4) if row not in converted.refused]
    assert part.rows.to_pylist() == kept
    assert part.streams["keys"].to_pylist() == [b'"k%d"' % row for row in kept]
    assert {len(stream) for stream in part.streams.values()} == {len(kept)}


def test_tombstones_that_land_apart_need_no_columns() -> None:
    by = conversion("json", key="string", format="parquet", apart=True)
    (part,) = by(batch(None, None, keys=[b"a", b"b"]), {}).parts
    assert (list(part.streams), part.streams["keys"].to_pylist()) == (["keys"], [b'"a"', b'"b"'])


def test_tombstones_that_land_apart_leave_the_other_rows_where_they_are() -> None:
    by = conversion("json", key="string", format="parquet", apart=True)
    converted = by(batch(None, b'{"a":1}', b"7", None, b'{"a":2}', keys=[b"k"] * 5), {})
    (part,) = converted.parts
    assert list(converted.refused) == [2]
    assert part.rows.to_pylist() == [0, 1, 3, 4]
    assert part.streams["data"].to_pylist() == [{"a": None}, {"a": 1}, {"a": None}, {"a": 2}]
    assert len(part.streams["keys"]) == 4
