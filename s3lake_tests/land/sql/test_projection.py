"""SQL of a sink on real Spark, over given records."""

import io
import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest

from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError
from s3lake.land.preview import preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake_tests.conftest import slow_after

pytestmark = pytest.mark.usefixtures("spark")

VALUES = [
    {"id": 0, "Secret": "ssn-0", "o": {"secret": "ssn-1", "a": 1}, "xs": [{"secret": "ssn-2", "b": 1}, None]},
    {"id": 1, "o": None, "a b": "x", "xs": [{"c": 2, "secret": "ssn-3"}]},
    {"id": 2, "secrets": {"secret": "ssn-4"}},
]
SELECT = "* EXCEPT (secret, o.secret, xs.secret, secrets.secret)"


def outcome(values: list[bytes], settings: dict[str, Any] | None = None, **sql: str) -> tuple[bytes, dict[int, str]]:
    """What lands of these values by the SQL, and why the others do not, by offset."""
    base = {"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", "errors": {"tolerance": "all"}}
    records = [KafkaRecord("t", 0, number, 0, b"k%d" % number, value, ()) for number, value in enumerate(values)]
    outcome = preview(Sink.model_validate({**base, **(settings or {}), "sql": sql}), "t", records)
    data = b"".join(part.body for part in outcome.objects if part.file.stream == "data")
    return data, {refusal.offset: refusal.message for refusal in outcome.refusals}


def landed(select: str, **settings: Any) -> bytes:
    body, refused = outcome([json.dumps(value).encode() for value in VALUES], settings, select=select)
    assert refused == {}
    return body


def lines(select: str) -> list[Any]:
    return [json.loads(line) for line in landed(select).splitlines()]


@pytest.mark.parametrize(
    "form",
    slow_after(2, "another format", ["json", "parquet", "json_array", "text", "bytes", "csv", "avro"]),
)
def test_an_excluded_field_is_landed_in_no_format(form: str) -> None:
    codec = {"codec": "none"} if form in ("avro", "parquet") else {}
    select = {"csv": "* EXCEPT (secret, o, xs, secrets)", "avro": SELECT.replace("(", "(`a b`, ")}.get(form, SELECT)
    body = landed(select, format={"type": form, **codec})
    assert b"ssn" not in body
    assert body


def test_everything_else_is_landed() -> None:
    assert lines(SELECT) == [
        {"id": 0, "o": {"a": 1}, "xs": [{"b": 1}, None]},
        {"id": 1, "o": None, "a b": "x", "xs": [{"c": 2}]},
        {"id": 2, "secrets": {}},
    ]


@pytest.mark.slow("a case more of a projection")
def test_a_replaced_field_lands_in_its_place_also_with_the_star_of_an_object() -> None:
    replaced = lines("* EXCEPT (xs, secrets, o) REPLACE ('***' AS secret, upper(_key) AS `a b`, id * 2 AS twice)")
    assert replaced[:2] == [
        {"id": 0, "secret": "***", "a b": "K0", "twice": 0},
        {"id": 1, "secret": "***", "a b": "K1", "twice": 2},
    ]
    assert lines("id, o.* EXCEPT (secret)") == [{"id": 0, "a": 1}, {"id": 1}, {"id": 2}]


@pytest.mark.slow("a case more of a projection")
def test_tables_have_the_types_that_sql_casts_to_and_no_column_of_what_is_left_out() -> None:
    value = b'{"amount": "12.34", "at": "2026-01-05T08:00:00Z", "other": 1}'
    select = "cast(amount AS decimal(10,2)) AS amount, to_timestamp(at) AS at"
    body, _ = outcome([value], {"format": {"type": "parquet"}}, select=select)
    moment = datetime(2026, 1, 5, 8, tzinfo=timezone.utc)
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [{"amount": Decimal("12.34"), "at": moment}]


MIXED = [
    b'{"id": 1, "Id" :10000000000000000000000, "_key":"own", "n": 5}',
    b'{"id":"2","n":[ 1.50, 2 ],"o":{"a":1e2}}',
    b'{"id": 3.10, "n" : {"x":null}}',
    b'{"n":4}',
    b"[7]",
]


def test_records_that_sql_only_filters_land_byte_by_byte() -> None:
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


def test_sql_fails_on_a_record_and_not_on_the_others() -> None:
    body, refused = outcome([b'{"id":2}', b'{"id":0}'], select="id, 10 / id AS x")
    assert (body, list(refused)) == (b'{"id":2,"x":5.0}\n', [1])
    assert "DIVIDE_BY_ZERO" in refused[1]


def test_a_field_that_is_null_may_be_a_list_in_other_records() -> None:
    select = "size(xs) AS n, transform(xs, x -> x * 2) AS twice, upper(s) AS s"
    body, refused = outcome([b"{}", b'{"xs":[1,2],"s":"a"}', b'{"xs":null}'], select=select)
    assert (body.splitlines()[1], refused) == (b'{"n":2,"twice":[2,4],"s":"A"}', {})


def test_sql_that_is_wrong_for_every_record_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"sql: Spark refuses it: .*WRONG_NUM_ARGS"):
        outcome([b'{"id":1}'], select="luhn_check(id, id) AS x")


@pytest.mark.parametrize(
    ("field", "number"),
    [("${env:PATH}", "1"), ("${spark.app.name}", "1"), ("_corrupt_record", "1"), ("n", f"0.{'1' * 1200}")],
)
def test_an_object_is_computed_with_whatever_it_holds(field: str, number: str) -> None:
    body, refused = outcome(
        [b'{"o":{"%s":%s}}' % (field.encode(), number.encode()), b'{"o":{}}'],
        select="size(map_keys(from_json(to_json(o), 'map<string,string>'))) AS n",
    )
    assert (body, refused) == (b'{"n":1}\n{"n":0}\n', {})
