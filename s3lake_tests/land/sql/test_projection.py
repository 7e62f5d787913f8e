"""SQL of a sink on real Spark, over given records."""

import io
import json
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from s3lake.errors import ConfigurationError
from s3lake.land.given import Record
from s3lake.land.preview import preview
from s3lake.sink import Sink
from s3lake_tests.conftest import slow_after

pytestmark = pytest.mark.usefixtures("spark")

VALUES = [
    {"id": 0, "Secret": "ssn-0", "o": {"secret": "ssn-1", "a": 1}, "xs": [{"secret": "ssn-2", "b": 1}, None]},
    {"id": 1, "o": None, "a b": "x", "xs": [{"c": 2, "secret": "ssn-3"}]},
    {"id": 2, "secrets": {"secret": "ssn-4"}},
]
SELECT = "* EXCEPT (secret, o.secret, xs.secret, secrets.secret)"


def landed(select: str, **settings: Any) -> bytes:
    sink = Sink(name="s", topics=("t",), bucket="lake", start="2026-11-20T00", sql={"select": select}, **settings)
    records = [Record("t", 0, n, 0, b"k%d" % n, json.dumps(one).encode(), ()) for n, one in enumerate(VALUES)]
    found = preview(sink, "t", records)
    assert found.refusals == ()
    return b"".join(one.body for one in found.objects)


def lines(select: str, **settings: Any) -> list[Any]:
    return [json.loads(line) for line in landed(select, **settings).splitlines()]


@pytest.mark.parametrize(
    "form",
    slow_after(2, "another format", ["json", "parquet", "json_array", "text", "bytes", "csv", "avro"]),
)
def test_what_is_left_out_is_landed_in_no_format(form: str) -> None:
    codec = {"codec": "none"} if form in ("avro", "parquet") else {}
    select = {"csv": "* EXCEPT (secret, o, xs, secrets)", "avro": SELECT.replace("(", "(`a b`, ")}.get(form, SELECT)
    body = landed(select, format={"type": form, **codec})
    assert b"ssn" not in body
    assert body


@pytest.mark.slow("a case more of a projection")
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_what_is_left_out_is_landed_in_no_envelope(form: str) -> None:
    codec = {"codec": "none"} if form == "parquet" else {}
    body = landed(SELECT, envelope={}, format={"type": form, **codec})
    assert b"ssn" not in body
    assert b"k1" in body


def test_everything_else_is_landed() -> None:
    assert lines(SELECT) == [
        {"id": 0, "o": {"a": 1}, "xs": [{"b": 1}, None]},
        {"id": 1, "o": None, "a b": "x", "xs": [{"c": 2}]},
        {"id": 2, "secrets": {}},
    ]


@pytest.mark.slow("a case more of a projection")
def test_tables_have_no_column_of_what_is_left_out() -> None:
    table = pq.read_table(io.BytesIO(landed("* EXCEPT (secret, xs.secret, o)", format={"type": "parquet"})))
    assert [str(field.type) for field in table.schema if field.name == "xs"] == [
        "list<element: struct<b: int64, c: int64>>"
    ]
    assert sorted(table.schema.names) == ["a b", "id", "secrets", "xs"]
    rows = list(
        fastavro.reader(io.BytesIO(landed("* EXCEPT (`a b`, o, xs, secret, secrets)", format={"type": "avro"})))
    )
    assert rows == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.slow("a case more of a projection")
def test_what_replaces_a_field_is_landed_in_its_place() -> None:
    found = lines("* EXCEPT (xs, secrets, o) REPLACE ('***' AS secret, upper(_key) AS `a b`, id * 2 AS twice)")
    assert found[:2] == [
        {"id": 0, "secret": "***", "a b": "K0", "twice": 0},
        {"id": 1, "secret": "***", "a b": "K1", "twice": 2},
    ]


@pytest.mark.slow("a case more of a projection")
def test_all_but_everything_is_an_empty_object() -> None:
    assert lines("* EXCEPT (id, secret, o, xs, `a b`, secrets)") == [{}, {}, {}]


@pytest.mark.slow("a case more of a projection")
def test_the_fields_of_an_object_can_be_landed_without_some() -> None:
    assert lines("id, o.* EXCEPT (secret)") == [{"id": 0, "a": 1}, {"id": 1}, {"id": 2}]


MIXED = [
    b'{"id": 1, "Id" :10000000000000000000000, "_key":"own", "n": 5}',
    b'{"id":"2","n":[ 1.50, 2 ],"o":{"a":1e2}}',
    b'{"id": 3.10, "n" : {"x":null}}',
    b'{"n":4}',
    b"[7]",
]


def outcome(values: list[bytes], **sql: str) -> tuple[bytes, dict[int, str]]:
    settings = {"topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", "errors": {"tolerance": "all"}}
    sink = Sink.model_validate({"name": "s", **settings, "sql": sql})
    found = preview(sink, "t", [Record("t", 0, n, 0, b"k%d" % n, one, ()) for n, one in enumerate(values)])
    data = b"".join(one.body for one in found.objects if one.file.kind == "data")
    return data, {refusal.offset: refusal.message for refusal in found.refusals}


def test_what_sql_does_not_compute_lands_byte_by_byte() -> None:
    body, refused = outcome(MIXED, where="id IS NULL OR id >= 1")
    assert (body.splitlines(), refused) == (MIXED, {})


def test_a_record_s_result_does_not_depend_on_its_neighbours() -> None:
    select = "upper(cast(id AS STRING)) AS u, n + 1 AS n, coalesce(n, 0) AS c, _key, o"
    body, refused = outcome(MIXED, select=select)
    alone = [outcome([value], select=select) for value in MIXED]
    assert [one for one, _ in alone if one] == [
        line.replace(b'"k%d"' % number, b'"k0"') + b"\n"
        for number, line in zip((0, 3, 4), body.splitlines(), strict=True)
    ]
    assert list(refused) == [number for number, (_, why) in enumerate(alone) if why] == [1, 2]
    assert body.splitlines()[0] == b'{"u":"1","n":6,"c":5,"_key":"k0","o":null}'
    assert all("DATATYPE_MISMATCH" in why for why in refused.values())


def test_a_field_that_is_null_may_be_a_list_in_other_records() -> None:
    select = "size(xs) AS n, transform(xs, x -> x * 2) AS twice, upper(s) AS s"
    body, refused = outcome([b"{}", b'{"xs":[1,2],"s":"a"}', b'{"xs":null}'], select=select)
    assert (body.splitlines()[1], refused) == (b'{"n":2,"twice":[2,4],"s":"A"}', {})


def test_sql_that_is_wrong_for_every_record_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"sql: Spark refuses it: .*WRONG_NUM_ARGS"):
        outcome([b'{"id":1}'], select="luhn_check(id, id) AS x")
