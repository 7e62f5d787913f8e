"""Lists and objects that hold nothing, in records without a schema: if no column holds them, they are counted."""

import json
from typing import Any

import pyarrow as pa
import pytest

from s3lake.records.convert.read.json.object_columns import read_objects
from s3lake.records.schema.columns.grammar import parse_type
from s3lake.records.schema.columns.types import Columns
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.convert.read.landed_rows import read_landed_rows

EMPTY: dict[str, Any] = {
    "an object": {},
    "a list": [],
    "a list of objects": [{}, {}],
    "a list of lists": [[]],
    "a list of nulls": [None],
    "an object of nulls": {"b": None},
    "an object of objects": {"b": {"c": {}}},
    "an object of lists": {"b": [], "c": [[], None]},
}
INSIDE: dict[str, tuple[dict[str, Any], str]] = {
    "an object": ({"s": {"x": 1, "e": {}}}, "empty:s.e"),
    "a list": ({"l": [{"x": 1}, {"x": 2, "e": []}, {"e": [{}]}]}, "empty:l[].e"),
    "an object in a list": ({"l": [{"in": {"y": 1, "e": [None]}}]}, "empty:l[].in.e"),
    "a name with a dot": ({"s": {"x": 1, "a.b": {}}}, 'empty:s."a.b"'),
}


def encode(*values: Any) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


def read(values: list[bytes], recorded: Columns, declared: Columns | None = None) -> list[set[str]]:
    """Return for each row the paths that are counted."""
    rows = read_objects(pa.array(values, pa.binary()), recorded, declared)
    assert rows.refused == {}
    return [{field.counted_path for field in rows.unplaced.get(row, ())} for row in range(len(values))]


def land(made: VerifiedTopic, *values: Any, key: Any = None) -> dict[str, int]:
    """Land values in one commit that `verify` finds right. Return the fields that were left out."""
    stage_records(made, [(None if key is None else json.dumps(key).encode(), one, []) for one in encode(*values)])
    (manifest,) = made.manifests.values()
    assert manifest.counts.landed == len(values)
    report = made.verify()
    assert report.clean, (report.differences, report.checked)
    return manifest.counts.fields_left_out


def make_topic(format: str, **sink: Any) -> VerifiedTopic:
    return VerifiedTopic(format={"type": format}, errors={"tolerance": "all"}, **sink)


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_value_without_a_column_is_counted(kind: str, format: str) -> None:
    made = make_topic(format)
    values = [{"id": 1, "a": EMPTY[kind]}, {"id": 2}, {"id": 3, "a": None}, {"id": 4, "a": EMPTY[kind]}]
    assert land(made, *values) == {"empty:a": 2}


OTHER_KINDS: dict[str, Any] = {
    "a number": 5,
    "a text": "x",
    "a list of numbers": [5],
    "a list of lists": [[5]],
    "a list of objects": [{"x": 5}],
    "an object": {"x": 5},
}


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("other", OTHER_KINDS)
def test_an_empty_value_is_counted_where_its_column_is_of_another_kind(other: str, format: str) -> None:
    """In the order of the records, and in the other."""
    full = OTHER_KINDS[other]
    values = [{"id": 1, "a": {}}, {"id": 2, "a": full}, {"id": 3, "a": []}]
    odd = [value for value in ({}, []) if not isinstance(value, type(full))]
    expected = [{"id": 1, "a": {}}, {"id": 2, "a": full}, {"id": 3, "a": []}]
    for row in expected:
        if row["a"] in odd:
            del row["a"]
    for given in (values, values[::-1]):
        made = make_topic(format)
        assert land(made, *given) == {"empty:a": len(odd)}
        assert sorted(read_landed_rows(made), key=lambda row: row["id"]) == expected


def test_an_empty_item_of_another_kind_is_null_in_its_list() -> None:
    made = make_topic("parquet")
    assert land(made, {"l": [{}]}, {"l": [1, [], 2, None]}, {"l": [[None]]}) == {"empty:l[]": 3}
    assert read_landed_rows(made) == [{"l": [None]}, {"l": [1, None, 2, None]}, {"l": [None]}]


def test_digits_stay_as_they_were_written_next_to_an_empty_value_of_another_kind() -> None:
    made = make_topic("parquet", columns={"d": "decimal(38,18)"})
    values = [b'{"a":5}', b' {"d":1.123456789012345678, "a" : [ ], "e":1e2, "t":"\\u00e9"}']
    stage_records(made, [(None, value, []) for value in values])
    assert [row.get("t") for row in read_landed_rows(made)] == [None, "é"]
    assert str(read_landed_rows(made)[1]["d"]) == "1.123456789012345678"
    assert made.verify().clean


@pytest.mark.parametrize("kind", EMPTY)
def test_verify_finds_a_field_that_is_lost_though_empty_ones_have_a_column_of_another_kind(kind: str) -> None:
    made = make_topic("parquet")
    assert land(made, {"id": 1, "a": "x"}, {"id": 2, "a": EMPTY[kind]}) == {"empty:a": 1}
    made.log.records[0][1] = (made.log.records[0][1][0], b'{"id":2,"a":[{"b":5}]}')
    report = made.verify()
    assert (report.missing, report.duplicated) == (1, 1)


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("type", ["int64", "date", "list<date>", "struct<x: int64>"])
def test_an_empty_value_of_another_kind_is_refused_if_its_column_is_declared(type: str, kind: str) -> None:
    empty = EMPTY[kind]
    fits = isinstance(empty, list) == type.startswith("list") and type[:4] in ("list", "stru")
    for value in () if fits else encode({"a": empty}):
        assert list(read_objects(pa.array([value], pa.binary()), {}, {"a": parse_type(type)}).refused) == [0]


def test_an_empty_value_is_counted_where_a_schema_gave_its_column_a_type_that_json_lacks() -> None:
    recorded = {"id": parse_type("int64"), "a": parse_type("date"), "m": parse_type("map<string, date>")}
    values = encode({"id": 1, "a": {}}, {"id": 2, "m": {"k": [], "l": 5}}, {"id": 3, "m": []}, {"id": 4, "m": {}})
    assert read(values, recorded) == [{"empty:a"}, {"empty:m[]"}, {"empty:m"}, set()]


@pytest.mark.parametrize("kind", EMPTY)
def test_csv_refuses_an_empty_value_with_the_reason(kind: str) -> None:
    made = make_topic("csv")
    stage_records(made, [(None, value, []) for value in encode({"id": 1, "a": EMPTY[kind]}, {"id": 2, "a": None})])
    (manifest,) = made.manifests.values()
    assert (manifest.counts.landed, manifest.counts.dead, manifest.counts.fields_left_out) == (1, 1, {})
    (file,) = (one for one in manifest.files if one.stream == "dead_letters")
    assert b"field 'a' is " in made.store.objects[file.key][0]
    assert b"which a row of CSV cannot hold: use another format" in made.store.objects[file.key][0]


@pytest.mark.parametrize("kind", EMPTY)
def test_csv_refuses_an_empty_value_though_its_column_has_numbers(kind: str) -> None:
    for values in ([{"a": EMPTY[kind]}, {"a": 5}], [{"a": 5}, {"a": EMPTY[kind]}]):
        made = make_topic("csv")
        stage_records(made, [(None, value, []) for value in encode(*values)])
        (manifest,) = made.manifests.values()
        assert (manifest.counts.landed, manifest.counts.dead, manifest.counts.fields_left_out) == (1, 1, {})


@pytest.mark.parametrize("place", INSIDE)
def test_an_empty_value_within_others_is_counted_by_its_path(place: str) -> None:
    value, path = INSIDE[place]
    assert land(make_topic("parquet"), value) == {path: 1}


@pytest.mark.parametrize("format", ["json", "text"])
def test_files_of_text_hold_empty_values_so_none_is_counted(format: str) -> None:
    assert land(make_topic(format), {"id": 1, "a": {}, "b": []}) == {}


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_an_empty_value_with_a_column_is_not_counted(format: str) -> None:
    made = make_topic(format)
    values = [{"a": {}, "b": []}, {"a": {"x": 1}, "b": [1]}, {"a": {"x": None}, "b": [None]}, {"b": []}]
    assert land(made, *values) == {}
    assert [row.get("a") for row in read_landed_rows(made)] == [{}, {"x": 1}, {}, None]
    assert [row.get("b") for row in read_landed_rows(made)] == [[], [1], [None], []]


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_fields_of_keys_and_values_in_an_envelope_are_counted_apart(format: str) -> None:
    made = make_topic(format, converter={"key": "json"}, envelope={"fields": ["key", "value"]})
    left_out = land(made, {"id": 1, "a": {}}, {"id": 2, "s": {"x": 1, "e": []}}, key={"k": 1, "a": [], "key": {}})
    assert left_out == {"empty:a": 1, "empty:s.e": 1, "key:empty:a": 2, "key:empty:key": 2}


def test_fields_of_lists_that_are_whole_values_are_counted() -> None:
    made = make_topic("parquet", envelope={"style": "flat", "fields": ["value", "offset"]})
    assert land(made, [{"x": 1, "e": {}}, {"e": {}}], [{"x": 2}]) == {"empty:[].e": 1}


@pytest.mark.parametrize("empty", [{}, []])
def test_an_empty_key_or_value_is_refused_where_its_column_is_of_another_kind(empty: Any) -> None:
    made = make_topic("parquet", converter={"key": "json"}, envelope={"fields": ["key", "value"]})
    records = [(5, "x"), (5, empty), (empty, "x")]
    stage_records(made, [(*encode(key, value), []) for key, value in records])
    (manifest,) = made.manifests.values()
    assert (manifest.counts.landed, manifest.counts.dead, manifest.counts.fields_left_out) == (1, 2, {})
    (file,) = (one for one in manifest.files if one.stream == "dead_letters")
    for part, type in (("value", "string"), ("key", "int64")):
        assert f"the {part} holds nothing, and its column is {type}".encode() in made.store.objects[file.key][0]


def test_fields_of_keys_that_are_rows_are_counted_as_fields_of_keys() -> None:
    made = make_topic("parquet", converter={"key": "json"}, envelope={"style": "flat", "fields": ["key"], "bare": True})
    assert land(made, {}, key={"k": 1, "a": {}}) == {"key:empty:a": 1}


def test_an_empty_value_is_counted_after_a_transform() -> None:
    step = {"type": "ReplaceField$Value", "options": {"exclude": "b"}}
    made = make_topic("parquet", transforms=[step])
    assert land(made, {"id": 1, "a": {}, "b": {}}) == {"empty:a": 1}


def test_connect_json_without_a_schema_is_counted() -> None:
    made = make_topic("parquet", converter={"value": "connect_json"})
    assert land(made, {"schema": None, "payload": {"id": 1, "a": {}}}) == {"empty:a": 1}


def test_a_refused_record_is_not_counted() -> None:
    made = make_topic("parquet")
    stage_records(made, [(None, value, []) for value in encode({"id": 1}, {"id": "x", "a": {}}, {"id": 2, "a": {}})])
    (manifest,) = made.manifests.values()
    assert (manifest.counts.landed, manifest.counts.dead, manifest.counts.fields_left_out) == (2, 1, {"empty:a": 1})
    assert made.verify().clean


def test_a_field_that_a_contract_drops_is_counted_once() -> None:
    made = make_topic("parquet", schema={"on_new_field": "drop"})
    stage_records(made, [(None, value, []) for value in encode({"id": 1, "a": {}})], {"id": parse_type("int64")})
    (manifest,) = made.manifests.values()
    assert manifest.counts.fields_left_out == {"a": 1}
    assert made.verify().clean


@pytest.mark.parametrize("rule", ["dead_letter", "drop"])
def test_a_contract_treats_an_empty_field_alike_with_and_without_departing_neighbours(rule: str) -> None:
    counts = []
    for neighbour in ({"id": 2}, {"id": 2, "new": 1}):
        made = make_topic("parquet", schema={"on_new_field": rule})
        values = encode({"id": 1, "a": {}}, neighbour)
        stage_records(made, [(None, value, []) for value in values], {"id": parse_type("int64")})
        (manifest,) = made.manifests.values()
        counts.append((manifest.counts.fields_left_out.get("a", 0), manifest.counts.dead - (len(neighbour) - 1)))
    if rule == "dead_letter":
        assert counts == [(0, 1), (0, 1)]
    else:
        assert [left_out for left_out, _ in counts] == [1, 1]


@pytest.mark.parametrize(
    ("value", "column"),
    [({}, "int64"), ([], "string"), ([{}], "list<int64>"), ({"k": []}, "map<string, int64>"), ([], "struct<x: int64>")],
)
@pytest.mark.parametrize(
    ("rule", "counts"), [("evolve", (2, 0)), ("drop", (2, 0)), ("dead_letter", (1, 1))], ids=["evolve", "drop", "dead"]
)
def test_an_empty_value_of_another_kind_departs_from_a_contract(
    value: Any, column: str, rule: str, counts: tuple[int, int]
) -> None:
    made = make_topic("parquet", schema={"on_type_change": rule, "on_new_field": "drop"})
    recorded = {"id": parse_type("int64"), "a": parse_type(column)}
    stage_records(made, [(None, one, []) for one in encode({"id": 1, "a": value}, {"id": 2})], recorded)
    (manifest,) = made.manifests.values()
    assert (manifest.counts.landed, manifest.counts.dead) == counts
    path = "a[]" if "k" in value or column == "list<int64>" else "a"
    expected = {"evolve": {f"empty:{path}": 1}, "drop": {"a": 1}, "dead_letter": {}}
    assert manifest.counts.fields_left_out == expected[rule]
    assert made.verify().clean


@pytest.mark.parametrize("kind", EMPTY)
def test_verify_finds_a_field_that_is_lost_though_another_record_has_it_empty(kind: str) -> None:
    made = make_topic("parquet")
    assert land(made, {"id": 1, "a": EMPTY[kind]}, {"id": 2, "a": EMPTY[kind]}) == {"empty:a": 2}
    value = b'{"id":2,"a":[5]}' if isinstance(EMPTY[kind], list) else b'{"id":2,"a":{"x":5}}'
    made.log.records[0][1] = (made.log.records[0][1][0], value)
    report = made.verify()
    assert (report.missing, report.duplicated) == (1, 1)


def test_fields_of_structs_in_a_declared_map_are_counted_if_the_declaration_lacks_them() -> None:
    made = make_topic("parquet", columns={"m": "map<string, struct<x: int64>>"})
    values = [{"id": 1, "m": {"k": {"x": 1}}}, {"id": 2, "m": {"k": {"x": 1, "y": 2}, "l": {"e": {}}}}, {"m": {}}]
    assert land(made, *values) == {"m[].y": 1, "empty:m[].e": 1}


def test_each_row_has_its_own_fields() -> None:
    recorded = {"id": parse_type("int64"), "s": parse_type("struct<x: int64>")}
    values = encode({"id": 1}, {"id": 2, "a": {}, "s": {"e": []}}, {"id": 3, "n": None}, {"b": [[]]}, {"a": None})
    assert read(values, recorded) == [set(), {"empty:a", "empty:s.e"}, set(), {"empty:b"}, set()]


def test_a_field_that_was_always_null_is_counted_when_it_becomes_empty() -> None:
    recorded = {"id": parse_type("int64"), "l": parse_type("list<int64>")}
    for _ in range(2):
        assert read(encode({"id": 1, "l": [1], "late": None}), recorded) == [set()]
    for value in EMPTY.values():
        assert read(encode({"id": 1, "late": None}, {"id": 2, "late": value}), recorded) == [set(), {"empty:late"}]


def test_rows_that_are_read_one_by_one_are_counted() -> None:
    declared = {"d": parse_type("decimal(38,0)"), "at": parse_type("list<timestamp>")}
    values = [b'{"d":1.5e10,"a":[]}', b'{"d":12345678901234567890123456789012345678,"at":[]}', b'{"d":null,"a":[]}']
    assert read(values, {}, declared) == [{"empty:a"}, set(), {"empty:a"}]


def test_more_rows_than_are_looked_at_first_are_counted_each() -> None:
    values = encode(*({"id": number, "a": {}} if number % 3 else {"id": number} for number in range(1000)))
    assert sum(map(len, read(values, {}))) == 666
