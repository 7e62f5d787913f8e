"""Keys and headers next to the data."""

import json
from typing import Any

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.encode.avro_file import encode_datums
from s3lake.records.encode.column_bytes import ENCODED
from s3lake.records.schema.columns.limits import explain_unsupported
from s3lake.records.schema.columns.types import Primitive, Struct
from s3lake_tests.records.convert.batches import batch

_NULL_STRUCT = b'{"schema":{"type":"struct","optional":true,"fields":[{"field":"a","type":"int32"}]},"payload":null}'


def conversion(
    keys: str | None = None,
    headers: str | None = None,
    *,
    key: str = "string",
    format: str = "json",
    apart: bool = False,
) -> Conversion:
    return Conversion(key, "json", format, "write", keys=keys, headers=headers, apart=apart)


def avro_schema(stream: Any) -> object:
    return json.loads(encode_datums(stream).schema.metadata[ENCODED])


def test_only_the_data_stream_is_written_when_there_are_no_sidecars() -> None:
    (part,) = convert_batch(conversion(), batch(b"1"), {}).parts
    assert list(part.streams) == ["data"]
    assert conversion().needs == frozenset()


@pytest.mark.parametrize(
    ("format", "key", "given", "written"),
    [
        ("json", "string", b'press "k"', b'"press \\"k\\""'),
        ("json", "json", b'{"a":\n1}', b'{"a": 1}'),
        ("json", "bytes", b"\xff", b'"/w=="'),
        ("json", "connect_json", b'{"schema":{"type":"int64"},"payload":5}', b"5"),
        ("json", "string", None, b"null"),
        ("bytes", "json", b'{"a":\n1}', b'{"a":\n1}'),
        ("bytes", "bytes", b"\xff", b"\xff"),
        ("avro", "string", b"k", {"key": "k"}),
        ("parquet", "bytes", b"\xff", {"key": b"\xff"}),
        ("parquet", "json", b'{"a":1}', {"key": '{"a":1}'}),
        ("avro", "string", None, {"key": None}),
        ("avro", "connect_json", _NULL_STRUCT, {"key": None}),
        ("parquet", "connect_json", _NULL_STRUCT, {"key": None}),
    ],
)
def test_keys_are_written_as_the_format_of_the_sidecar_has_them(
    format: str, key: str, given: bytes | None, written: object
) -> None:
    by = conversion(format, key=key)
    assert by.needs == {"key"}
    (part,) = convert_batch(by, batch(b"1", keys=[given]), {}).parts
    assert part.streams["keys"].to_pylist() == [written]


@pytest.mark.parametrize(
    ("schema", "payload", "avro", "optional"),
    [
        ({"type": "string"}, "k", "string", False),
        ({"type": "int64", "optional": True}, 7, ["null", "long"], True),
        ({"type": "int32", "default": 5}, 7, "int", False),
        (
            {"type": "struct", "name": "com.x.Id", "fields": [{"field": "id", "type": "int64"}]},
            {"id": 5},
            {
                "type": "record",
                "name": "Id",
                "namespace": "com.x",
                "fields": [{"name": "id", "type": "long"}],
            },
            False,
        ),
    ],
)
def test_a_key_with_a_schema_has_its_type_and_is_in_no_record(
    schema: dict[str, Any], payload: object, avro: object, optional: bool
) -> None:
    key = json.dumps({"schema": schema, "payload": payload}).encode()
    (part,) = convert_batch(conversion("avro", key="connect_json"), batch(b"1", keys=[key]), {}).parts
    assert part.streams["keys"].to_pylist() == [{"key": payload}]
    assert avro_schema(part.streams["keys"]) == avro
    (part,) = convert_batch(conversion("parquet", key="connect_json"), batch(b"1", keys=[key]), {}).parts
    (field,) = part.streams["keys"].schema
    assert (field.nullable, part.streams["keys"].to_pylist()) == (optional, [{"key": payload}])


@pytest.mark.parametrize(
    ("key", "written"), [("string", ["null", "string"]), ("bytes", ["null", "bytes"]), ("integer", ["null", "int"])]
)
def test_avro_has_keys_as_connects_own_converters_give_them(key: str, written: object) -> None:
    (part,) = convert_batch(conversion("avro", key=key), batch(b"1", keys=[b"\0\0\0k"]), {}).parts
    assert avro_schema(part.streams["keys"]) == written


def test_keys_of_several_schemas_go_into_files_of_their_own() -> None:
    typed, plain = b'{"schema":{"type":"string"},"payload":"k"}', b'{"a": 1}'
    records = batch(b"1", b"2", b"3", b"4", keys=[typed, plain, typed, None])
    for format in ("json", "text"):
        parts = convert_batch(conversion("parquet", key="connect_json", format=format), records, {}).parts
        rows = [part.rows.to_pylist() for part in parts]
        assert rows == [[0, 2], [1, 3]]
        keys = [[row["key"] for row in part.streams["keys"].to_pylist()] for part in parts]
        assert keys == [["k", "k"], ['{"a": 1}', None]]
    records = batch(b'{"n":1}', b'{"n":2}', b'{"n":3}', keys=[typed, plain, typed])
    table = convert_batch(conversion("parquet", key="connect_json", format="parquet"), records, {}).parts
    assert [part.rows.to_pylist() for part in table] == [[0, 2], [1]]


def test_a_key_whose_type_no_table_holds_is_a_record_error() -> None:
    schema = {"type": "struct", "fields": [{"field": "a-b", "type": "string"}]}
    key = json.dumps({"schema": schema, "payload": {"a-b": "x"}}).encode()
    converted = convert_batch(conversion("avro", key="connect_json"), batch(b"1", b"2", keys=[key, b'{"b":1}']), {})
    (part,) = converted.parts
    assert converted.refused == {
        0: "key: " + str(explain_unsupported({"key": Struct({"a-b": Primitive.STRING})}, "avro"))
    }
    assert (part.rows.to_pylist(), part.streams["data"].to_pylist()) == ([1], [b"2"])


def test_headers_are_connects_array_of_records() -> None:
    (part,) = convert_batch(conversion(headers="avro"), batch(b"1", headers=[[("a", b"1")]]), {}).parts
    assert avro_schema(part.streams["headers"]) == {
        "type": "array",
        "items": {
            "type": "record",
            "name": "ConnectDefault",
            "namespace": "io.confluent.connect.avro",
            "fields": [{"name": name, "type": "string"} for name in ("key", "value")],
        },
    }


def test_a_null_key_has_no_bytes() -> None:
    converted = convert_batch(conversion("bytes", key="bytes"), batch(b"1", b"2", keys=[None, b""]), {})
    assert list(converted.refused) == [0]
    assert "set sidecars.keys to json or avro" in converted.refused[0]
    (part,) = converted.parts
    assert {name: stream.to_pylist() for name, stream in part.streams.items()} == {"data": [b"2"], "keys": [b""]}


def test_headers_are_an_array_of_names_and_texts() -> None:
    found = [[("a", b"1"), ("a", "größe".encode())], None]
    (part,) = convert_batch(conversion(headers="json"), batch(b"1", b"2", headers=found), {}).parts
    assert part.streams["headers"].to_pylist() == [
        '{"headers":[{"key":"a","value":"1"},{"key":"a","value":"größe"}]}'.encode(),
        b'{"headers":[]}',
    ]
    (part,) = convert_batch(conversion(headers="avro"), batch(b"1", b"2", headers=found), {}).parts
    assert part.streams["headers"].to_pylist() == [
        {"headers": [{"key": "a", "value": "1"}, {"key": "a", "value": "größe"}]},
        {"headers": []},
    ]


def test_a_header_that_is_no_text_is_a_record_error() -> None:
    found = [[("a", b"1")], [("b", b"1"), ("c", b"\xff"), ("d", b"\xfe")], None]
    converted = convert_batch(conversion(headers="parquet"), batch(b"1", b"2", b"3", headers=found), {})
    assert converted.refused == {1: "header 'c' is not UTF-8: byte 0 is 0xff"}


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_streams_have_the_rows_of_the_data_in_its_order(format: str) -> None:
    records = batch(b'{"a":1}', b"{", b'{"a":"x"}', b'{"a":2}', keys=[b"k0", b"k1", b"k2", b"k3"], headers=[None] * 4)
    converted = convert_batch(conversion("json", "json", format=format), records, {"a": Primitive.INT64})
    (part,) = converted.parts
    kept = [row for row in range(4) if row not in converted.refused]
    assert part.rows.to_pylist() == kept
    assert part.streams["keys"].to_pylist() == [b'"k%d"' % row for row in kept]
    assert {len(stream) for stream in part.streams.values()} == {len(kept)}


def test_tombstones_that_land_apart_need_no_columns() -> None:
    by = conversion("json", key="string", format="parquet", apart=True)
    (part,) = convert_batch(by, batch(None, None, keys=[b"a", b"b"]), {}).parts
    assert (list(part.streams), part.streams["keys"].to_pylist()) == (["keys"], [b'"a"', b'"b"'])


def test_tombstones_that_land_apart_are_a_part_of_their_own() -> None:
    by = conversion("json", key="string", format="parquet", apart=True)
    converted = convert_batch(by, batch(None, b'{"a":1}', b"7", None, b'{"a":2}', keys=[b"k"] * 5), {})
    tombstones, values = converted.parts
    assert list(converted.refused) == [2]
    assert (tombstones.rows.to_pylist(), list(tombstones.streams)) == ([0, 3], ["keys"])
    assert values.rows.to_pylist() == [1, 4]
    assert values.streams["data"].to_pylist() == [{"a": 1}, {"a": 2}]
    assert len(values.streams["keys"]) == 2
