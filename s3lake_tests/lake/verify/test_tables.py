"""Parquet: a row is the value over the file's own schema, in one canonical form."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from s3lake.index.commit.documents import Read
from s3lake.records.schema.columns.arrow_types import from_arrow
from s3lake.records.schema.columns.types import to_document
from s3lake_tests.lake.verify.world import VerifiedTopic, difference_types, parquet, texts

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("amount", pa.float64()),
        ("name", pa.string()),
        ("ok", pa.bool_()),
        ("place", pa.struct([("city", pa.string()), ("at", pa.struct([("lat", pa.float64())]))])),
        ("tags", pa.list_(pa.string())),
        ("items", pa.list_(pa.struct([("sku", pa.string()), ("price", pa.float64())]))),
    ]
)
EMPTY = dict.fromkeys(SCHEMA.names)


def landed(
    values: Sequence[Any], rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SCHEMA, **sink: Any
) -> VerifiedTopic:
    world = VerifiedTopic(format={"type": "parquet"}, **sink)
    for value in values:
        world.record(value if isinstance(value, bytes | None) else json.dumps(value).encode())
    world.landed_as(parquet(rows, schema), records=len(rows))
    return world


def is_clean(value: Any, row: Mapping[str, Any], **more: Any) -> bool:
    report = landed([value], [{**EMPTY, **row}], **more).verify()
    assert (report.missing, report.duplicated) in ((0, 0), (1, 1))
    return report.clean


FULL = {
    "id": 7,
    "amount": 1.5,
    "name": "Łódź",
    "ok": True,
    "place": {"city": "Lyon", "at": {"lat": 45.7}},
    "tags": ["a", None, ""],
    "items": [{"sku": "lamp", "price": 2.0}, {"sku": None, "price": None}, None],
}


def test_a_full_row_is_clean() -> None:
    assert is_clean(FULL, FULL)


@pytest.mark.parametrize(
    ("value", "row"),
    [
        pytest.param({}, {}, id="missing fields are null"),
        pytest.param({"id": None, "place": None}, {}, id="so are nulls"),
        pytest.param({"unknown": {}, "none": [], "never": None}, {}, id="what the schema lacks is dropped"),
        pytest.param({"amount": 3}, {"amount": 3.0}, id="an integer in a column of doubles"),
        pytest.param(b'{"amount":-0}', {"amount": -0.0}, id="minus nothing"),
        pytest.param(b'{"amount":-0.0}', {"amount": 0.0}, id="nothing"),
        pytest.param({"amount": 2**70}, {"amount": float(2**70)}, id="beyond 64 bits"),
        pytest.param(b'{"amount":1e2}', {"amount": 100.0}, id="another spelling"),
        pytest.param(b'{"amount":0.1000000000000000055}', {"amount": 0.1}, id="the nearest double"),
        pytest.param({"place": {}}, {"place": {"city": None, "at": None}}, id="an empty object is not null"),
        pytest.param(
            {"place": {"at": {"lat": 1}, "x": [{}]}}, {"place": {"city": None, "at": {"lat": 1.0}}}, id="structs"
        ),
        pytest.param({"items": [{"price": 1}]}, {"items": [{"sku": None, "price": 1.0}]}, id="lists of structs"),
        pytest.param({"tags": []}, {"tags": []}, id="an empty list"),
        pytest.param(b' {"id" :\r\n 1 }\n', {"id": 1}, id="space between tokens"),
        pytest.param(rb'{"name":"\u0141\u00f3d\u017a\n\ud83d\ude00"}', {"name": "Łódź\n😀"}, id="escapes"),
    ],
)
def test_values_are_compared_over_the_schema(value: Any, row: dict[str, Any]) -> None:
    assert is_clean(value, row)


def test_an_integer_that_was_rounded_to_a_float_is_a_difference() -> None:
    world = landed([{"a": 2**24 + 1}], [{"a": 2.0**24}], pa.schema([("a", pa.float32())]), columns={"a": "float"})

    assert not world.verify().clean


@pytest.mark.parametrize(
    ("value", "row"),
    [
        pytest.param({"id": 1}, {"id": 2}, id="a number"),
        pytest.param({"amount": 0.1}, {"amount": 0.1 + 2**-55}, id="the last bit of a double"),
        pytest.param({"amount": None}, {"amount": float("nan")}, id="no number"),
        pytest.param({"amount": 10**400}, {"amount": float("inf")}, id="beyond a double"),
        pytest.param({"id": 1}, {}, id="a value lost"),
        pytest.param({"id": 1, "more": 2}, {"id": 1}, id="a column lost"),
        pytest.param(
            {"place": {"at": {"lat": 1, "x": 9}}}, {"place": {"city": None, "at": {"lat": 1.0}}}, id="a field lost"
        ),
        pytest.param({}, {"name": ""}, id="a value made up"),
        pytest.param({"amount": 2**53 + 1}, {"amount": float(2**53)}, id="an integer that was rounded to a double"),
        pytest.param({"amount": 1795478431311000001}, {"amount": 1795478431311000001.0}, id="an identifier rounded"),
        pytest.param({"amount": 2**64 + 1}, {"amount": float(2**64)}, id="an integer beyond 64 bits that was rounded"),
        pytest.param({"items": [{"price": 2**53 + 1}]}, {"items": [{"price": 2.0**53}]}, id="rounded in a list"),
        pytest.param({"id": True}, {"id": 1}, id="a truth is not a number"),
        pytest.param({"id": 1.0}, {"id": 1}, id="a fraction in a column of integers"),
        pytest.param({"name": 1}, {"name": "1"}, id="a number is not a string"),
        pytest.param({"name": 0.5}, {"name": "0.5"}, id="nor is a fraction"),
        pytest.param({"place": {}}, {"place": None}, id="an empty object is not null"),
        pytest.param({"tags": []}, {"tags": None}, id="an empty list is not null"),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, id="the order of a list"),
        pytest.param({"place": ["Lyon", None]}, {"place": {"city": "Lyon", "at": None}}, id="a list is not a struct"),
        pytest.param({"tags": "a"}, {"tags": ["a"]}, id="a string is not a list"),
        pytest.param([1], {"id": 1}, id="no object"),
        pytest.param(b'{"id":1', {"id": 1}, id="no JSON"),
        pytest.param(rb'{"name":"\ud800"}', {"name": "?"}, id="half a character"),
    ],
)
def test_a_difference_in_any_field_is_found(value: Any, row: dict[str, Any]) -> None:
    assert not is_clean(value, row)


def test_a_column_of_another_type_is_found() -> None:
    world = VerifiedTopic(format={"type": "parquet"}, converter={"value": "string"})
    world.log.add([b"a"])
    world.commit(
        "c1", [world.file("c1", parquet([{"value": b"a"}], pa.schema([("value", pa.binary())])), 0, 0, records=1)]
    )
    report = world.verify()
    assert (report.missing, report.duplicated) == (1, 1)


def test_commits_may_have_columns_of_their_own() -> None:
    world = VerifiedTopic(format={"type": "parquet"})
    world.log.add([b'{"a":1,"b":null}', b'{"a":2,"b":3}'])
    narrow, wide = pa.schema([("a", pa.int64())]), pa.schema([("b", pa.float64()), ("a", pa.int64())])
    world.commit("c1", [world.file("c1", parquet([{"a": 1}], narrow), 0, 0, records=1)])
    world.commit("c2", [world.file("c2", parquet([{"a": 2, "b": 3.0}], wide), 1, 1, records=1)])
    for commit, schema in (("c1", narrow), ("c2", wide)):
        world.change(commit, columns=to_document(from_arrow(schema)))
    assert world.verify().clean


def test_a_commit_keeps_the_format_that_it_was_written_in() -> None:
    world = landed([{"id": 1}], [{**EMPTY, "id": 1}])
    world.sink = VerifiedTopic().sink
    assert world.verify().clean


def test_a_file_that_is_not_parquet_is_found() -> None:
    world = landed([{"id": 1}], [{**EMPTY, "id": 1}])
    (file,) = world.manifests["c1"].files
    world.overwrite(file, b"PAR1 or not")
    report = world.verify()
    assert {"object", "missing", "count"} <= difference_types(report)
    assert f"{file.key} is not a Parquet file" in " ".join(texts(report, "object"))


def test_a_broken_page_is_found() -> None:
    values = [{"name": f"name {n}"} for n in range(2000)]
    world = landed(values, [{**EMPTY, **value} for value in values])
    (file,) = world.manifests["c1"].files
    body = bytearray(world.store.objects[file.key][0])
    body[200:220] = b"\xaa" * 20
    world.overwrite(file, bytes(body))
    assert not world.verify().clean


def test_a_commit_of_dead_letters_and_nulls_alone_needs_no_schema() -> None:
    world = VerifiedTopic(format={"type": "parquet"})
    world.log.add([None, None])
    world.commit("c1", [], {0: Read(0, 2, read=2, landed=0, skipped=2)})
    assert world.verify().clean
    world.log.records[0][1] = (0, b'{"id":1}')
    assert world.verify().missing == 1
