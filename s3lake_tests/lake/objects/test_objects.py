"""An object's bytes, made by an independent writer, become rows again."""

from datetime import datetime, timezone
from decimal import Decimal
from io import BytesIO
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.errors import ConfigurationError, DataLossError, UnreadableError
from s3lake.index.commit.documents import EnvelopeForm, FileForm, Manifest
from s3lake.lake.objects import ObjectShape, read_batches, spark_columns
from s3lake.records.schema.columns.types import from_document
from s3lake_tests.kit.codecs import TEXT_CODECS, compress
from s3lake_tests.lake.verify.world import avro, optional

LINES = ["", "\n", "\n"]


def rows(
    body: bytes, form: str, *, recorded: dict[str, Any] | None = None, key: str = "k", **message: Any
) -> list[Any]:
    """The rows of an object whose commit recorded this shape."""
    shape = shape_of(form, message.pop("value", "json"), message.pop("columns", recorded), **message)
    schema = spark_columns.build_read_schema(shape, from_document(recorded or {}))
    found = list(read_batches(shape, body, key, schema))
    streamed = list(read_batches(shape, BytesIO(body), key, schema))
    assert pa.Table.from_batches(streamed, schema) == pa.Table.from_batches(found, schema)
    assert all(batch.schema == schema for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def shape_of(form: str, value: str, recorded: dict[str, Any] | None = None, **message: Any) -> ObjectShape:
    written = msgspec.convert({"format": form, "value": value, **message}, FileForm)
    return ObjectShape.from_manifest(Manifest("c", "t", "2026-01-01T00", {}, form=written, columns=recorded))


def values(found: list[Any]) -> list[Any]:
    return [row["value"] for row in found]


@pytest.mark.parametrize("codec", TEXT_CODECS)
def test_a_line_is_a_row_in_every_codec(codec: str) -> None:
    body = compress(codec, b'{"n"') + compress(codec, b':1}\n"two"\n')
    assert values(rows(body, "json", codec=codec, framing=LINES)) == ['{"n":1}', '"two"']


def test_a_truncated_file_is_an_error() -> None:
    with pytest.raises(DataLossError, match=r"k does not end with b'\\n\]'"):
        rows(b"[\n1,\n2", "json_array", framing=["[\n", ",\n", "\n]"])


def test_an_avro_file_is_not_read_whole_before_its_first_rows() -> None:
    shape, schema = shape_of("avro", "json"), pa.schema([("n", pa.int64())])
    stream = BytesIO(avro([{"n": number} for number in range(60_000)], [optional("n", "long")]))
    first = next(read_batches(shape, stream, "k", schema))
    assert (first.num_rows, stream.tell() < len(stream.getvalue()) // 2) == (10_000, True)


@pytest.mark.parametrize(
    ("form", "body", "message"),
    [
        ("json", b"1\n", {"codec": "gzip"}),
        ("json_array", b"[,]", {"framing": ["[", ",", "]"]}),
        ("text", b"1\n2", {}),
        ("parquet", b"PAR1 or not", {}),
        ("avro", b"Obj\x02", {}),
        ("csv", b"a,b\n1\n", {}),
        ("json", b'{"value":1}\n', {"envelope": {"style": "flat", "fields": ["value", "offset"]}}),
        (
            "json",
            b'"no base64"\n',
            {"value": "bytes", "envelope": {"style": "flat", "fields": ["value"], "bare": True}},
        ),
    ],
)
def test_a_file_that_is_not_of_its_shape_is_unreadable(form: str, body: bytes, message: dict[str, Any]) -> None:
    with pytest.raises(UnreadableError, match=r"^k"):
        rows(body, form, recorded={"a": "int64", "b": "int64"}, **message)


def test_only_requested_columns_of_parquet_are_read() -> None:
    out = BytesIO()
    table = pa.table({"a": range(1000), "b": [f"text {n}" for n in range(1000)]})
    pq.write_table(table, out, compression="none", use_dictionary=False)
    body = bytearray(out.getvalue())
    page = body.index(b"text 500")
    body[page - 3000 : page] = b"\xff" * 3000
    shape, some = shape_of("parquet", "json"), pa.schema([("a", pa.int64())])
    assert sum(batch.num_rows for batch in read_batches(shape, bytes(body), "k", some)) == 1000
    with pytest.raises(UnreadableError):
        list(read_batches(shape, bytes(body), "k", table.schema))


def test_a_field_of_an_envelope_can_be_read_alone() -> None:
    shape = shape_of("json", "json", framing=LINES, envelope=envelope("flat", "key", "value", "offset"))
    (batch,) = read_batches(
        shape, b'{"key":"k","value":{"n":1},"offset":7}\n', "k", pa.schema([("offset", pa.int64())])
    )
    assert batch.to_pylist() == [{"offset": 7}]


COLUMNS = {
    "id": "int64",
    "small": "int32",
    "single": "float",
    "name": "string",
    "ok": "bool",
    "raw": "binary",
    "at": "timestamp",
    "day": "date",
    "clock": "time",
    "who": "uuid",
    "exact": "decimal(20,2)",
    "tags": {"list": "string"},
    "counts": {"map": "int64"},
    "place": {"struct": {"at": "timestamp"}},
}
AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, timezone.utc)
WHO = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
FULL = {
    "id": 2**62,
    "small": -1,
    "single": 0.5,
    "name": "Łódź",
    "ok": True,
    "raw": b"\xff",
    "at": AT,
    "day": AT.date(),
    "clock": "03:04:05.678",
    "who": WHO,
    "exact": Decimal("-12345678901234567.50"),
    "tags": ["a", None],
    "counts": [("a", 1), ("b", None)],
    "place": {"at": AT},
}
EMPTY = dict.fromkeys(COLUMNS)


def test_parquet_gives_the_recorded_columns() -> None:
    import uuid

    schema = pa.schema(
        [
            ("place", pa.struct([("at", pa.timestamp("ms", "UTC"))])),
            ("id", pa.int32()),
            ("at", pa.timestamp("ms", "UTC")),
            ("clock", pa.time32("ms")),
            ("who", pa.uuid()),
            ("exact", pa.decimal128(20, 2)),
            ("counts", pa.map_(pa.string(), pa.int32())),
            ("dropped", pa.string()),
        ]
    )
    row = {name: FULL[name] for name in ("place", "at", "exact", "counts")}
    table = pa.Table.from_pylist([{**row, "id": 7, "clock": AT.time(), "who": uuid.UUID(WHO).bytes}, {}], schema)
    out = BytesIO()
    pq.write_table(table, out)
    expected = {**EMPTY, **row, "id": 7, "clock": "03:04:05.678", "who": WHO}
    assert rows(out.getvalue(), "parquet", recorded=COLUMNS) == [expected, EMPTY]


@pytest.mark.parametrize(("held", "recorded"), [("string", "int64"), ("long", "string"), ("double", "int64")])
def test_columns_of_incompatible_types_are_an_error(held: str, recorded: str) -> None:
    value = {"string": "x", "long": 1, "double": 1.5}[held]
    with pytest.raises(ConfigurationError, match=r"k: column 'n' is .*, the sink's columns have"):
        rows(avro([{"n": value}], [optional("n", held)]), "avro", recorded={"n": recorded})


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 1795478431311000001, 2**63 - 1])
def test_an_integer_that_no_double_holds_is_an_error_and_never_another_number(number: int) -> None:
    refused = r"k: column 'n' holds integers, the sink's columns have .*, and that cannot hold all of them exactly"
    out = BytesIO()
    pq.write_table(pa.table({"n": [1, number]}), out)
    nested = avro([{"n": {"m": [number]}}], [optional("n", _STRUCT_OF_LISTS)])
    with pytest.raises(ConfigurationError, match=refused):
        rows(out.getvalue(), "parquet", recorded={"n": "double"})
    with pytest.raises(ConfigurationError, match=refused):
        rows(nested, "avro", recorded={"n": {"struct": {"m": {"list": "double"}}}})
    with pytest.raises(ConfigurationError, match=refused):
        rows(f"n,s\n{number},x\n".encode(), "csv", recorded={"n": "double", "s": "string"}, header=True)


def test_a_type_with_its_records_namespace_may_be_named_again_in_full_and_in_short() -> None:
    to = {
        "type": "record",
        "name": "a.b.To",
        "fields": [{"name": "zip", "type": "string"}, {"name": "n", "type": "int"}],
    }
    holder = {"type": "record", "name": "a.b.Holder", "fields": [{"name": "to", "type": "To"}]}
    fields = [{"name": name, "type": type} for name, type in (("to", to), ("full", "a.b.To"), ("in", holder))]
    value = {"zip": "z", "n": 1}
    row = {"to": value, "full": value, "in": {"to": value}}
    columns = {"to": {"struct": {"zip": "string", "n": "int32"}}}
    recorded = {**columns, "full": columns["to"], "in": {"struct": columns}}
    assert rows(avro([row], fields), "avro", recorded=recorded) == [row]


_STRUCT_OF_LISTS = {
    "type": "record",
    "name": "inner",
    "fields": [optional("m", {"type": "array", "items": ["null", "long"]})],
}


def test_an_integer_that_a_double_holds_is_one() -> None:
    numbers = [2**53, -(2**53), 5]
    assert rows(avro([{"n": n} for n in numbers], [optional("n", "long")]), "avro", recorded={"n": "double"}) == [
        {"n": float(n)} for n in numbers
    ]
    text = b"9007199254740994,x\n1e+18,x\n0.1,x\n123456789.5,x\n"
    found = rows(text, "csv", recorded={"n": "double", "s": "string"}, header=False)
    assert [row["n"] for row in found] == [9007199254740994.0, 1e18, 0.1, 123456789.5]


FLAT = {name: kind for name, kind in COLUMNS.items() if isinstance(kind, str)}
CSV = (
    f'4611686018427387904,-1,0.5,"Łódź",true,"/w==",2026-01-02T03:04:05.678Z,2026-01-02,03:04:05.678,{WHO},'
    '-12345678901234567.50\n,,,"",,,,,,,\n,,,"a ""b"",\nc",,"",,,,,\n'
)


@pytest.mark.parametrize("header", [True, False])
def test_csv_is_parsed_into_the_recorded_types(header: bool) -> None:
    body = ((",".join(FLAT) + "\n" if header else "") + CSV).encode()
    empty = dict.fromkeys(FLAT)
    full = {name: FULL[name] for name in FLAT}
    texts = [{**empty, "name": ""}, {**empty, "name": 'a "b",\nc', "raw": b""}]
    assert rows(body, "csv", recorded=FLAT, header=header) == [full, *texts]


def test_csv_of_one_column_distinguishes_null_from_an_empty_text() -> None:
    found = rows(b'"value"\n""\n\n"x"\n', "csv", value="string", framing=LINES)
    assert values(found) == ["", None, "x"]


def test_csv_with_a_separator_of_its_own() -> None:
    body = b'a,b\r\n1,"x\r\ny"\r\n2,'
    found = rows(body, "csv", recorded={"a": "int64", "b": "string"}, framing=["", "\r\n", ""])
    assert found == [{"a": 1, "b": "x\r\ny"}, {"a": 2, "b": None}]


def test_csv_has_a_number_for_a_time_whose_year_has_no_text() -> None:
    found = rows(b"at\n1500\n1970-01-01T00:00:02Z\n", "csv", recorded={"at": "timestamp"})
    assert [row["at"].timestamp() for row in found] == [1.5, 2.0]


def envelope(style: str, *fields: str, **more: Any) -> dict[str, Any]:
    return {"style": style, "fields": list(fields), **more}


ALL = ("key", "value", "headers", "metadata")


def pairs(*headers: tuple[str, bytes | None]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in headers]


def test_an_enveloped_record_is_split_into_its_parts() -> None:
    line = (
        b'{"key":"/w==","value":{"n": 1.0},"headers":{"a":["1",{"base64":"/w=="}],"b-c":null},'
        b'"metadata":{"topic":"t","partition":3,"offset":7,"timestamp":1500},"keyIsArray":true,'
        b'"headersOrder":["a","b-c","a"]}\n'
        b'{"key":null,"value":null,"headers":{},'
        b'"metadata":{"topic":"t","partition":3,"offset":8,"timestamp":1501}}\n'
    )
    message: dict[str, Any] = {"framing": LINES, "envelope": envelope("record", *ALL)}
    first, second = read_with_key(line, "json", "bytes", **message)
    assert first == {
        "key": b"\xff",
        "value": '{"n": 1.0}',
        "headers": pairs(("a", b"1"), ("b-c", None), ("a", b"\xff")),
        "metadata": {"timestamp": 1500, "topic": "t", "partition": 3, "offset": 7},
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, [])


def read_with_key(body: bytes, form: str, key: str, value: str = "json", **message: Any) -> list[Any]:
    shape = shape_of(form, value, key=key, **message)
    return [
        row
        for batch in read_batches(shape, body, "k", spark_columns.build_read_schema(shape))
        for row in batch.to_pylist()
    ]


def test_a_value_that_nothing_encodes_may_hold_commas() -> None:
    fields = envelope("flat", "offset", "value", "key", value_encoding="none")
    found = read_with_key(b'7,{"a":1,"b":2},aw==\n8,,\n', "csv", "json", framing=LINES, envelope=fields)
    assert found == [{"offset": 7, "value": '{"a":1,"b":2}', "key": b"k"}, {"offset": 8, "value": None, "key": None}]


def test_a_bare_field_is_its_column() -> None:
    fields = envelope("flat", "key", bare=True)
    assert read_with_key(b'"/w=="\nnull\n', "json", "bytes", framing=LINES, envelope=fields) == [
        {"key": b"\xff"},
        {"key": None},
    ]


def test_an_iggy_line_is_a_value() -> None:
    line = b'{"offset":1,"payload":{}}'
    fields = envelope("iggy", "metadata", "value")
    assert read_with_key(line + b"\n", "json", "string", framing=LINES, envelope=fields) == [{"value": line.decode()}]


def test_every_schema_is_one_that_spark_has() -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    for style, fields in (("", ()), ("record", ALL), ("flat", ("offset", "timestamp", "headers", "key", "value"))):
        shape = ObjectShape("avro", envelope=EnvelopeForm(style, tuple(fields)) if style else None)
        recorded = COLUMNS if not style else {"key": "uuid", "value": {"struct": COLUMNS}}
        assert from_arrow_schema(spark_columns.build_read_schema(shape, from_document(recorded))).fieldNames() == list(
            fields or COLUMNS
        )


def test_shapes_that_are_equal_are_one_however_their_sidecars_are_compressed() -> None:
    sidecars = {"keys": "bytes", "headers": None, "codecs": [("bytes", "gzip")]}
    shapes = {shape_of("json", "json", sidecars=sidecars), shape_of("json", "json", sidecars=sidecars)}
    assert [shape.sidecar("keys").codec for shape in shapes] == ["gzip"]
