"""Keys and values with a schema: of a registry, and dates and times, which transforms treat as Connect's own do."""

from typing import Any

import pytest

from s3lake.land.request import stage_values
from s3lake.records.schema.columns.types import List, Map, Primitive, Struct
from s3lake.records.transform.chain.apply import apply_chain
from s3lake.records.transform.step.record_values import Date, Timestamp, make_marker
from s3lake_tests.kit.oracles import LOGICAL
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.server import datum, framed, serving
from s3lake_tests.records.transform.kit import (
    CLOCK,
    Message,
    after,
    headers_after,
    make_registry_sink,
    refusal,
    smt,
    texts_of,
)

DAY = 18_266  # 2020-01-05
TIMES = {"Date": "int32", "Time": "int32", "Timestamp": "int64"}


def connect_json(kind: str, number: int) -> Message:
    """A value with a schema, whose field `a` is a date or time."""
    field = {"field": "a", "type": TIMES[kind], "name": LOGICAL + kind, "version": 1}
    return Message({"schema": {"type": "struct", "fields": [field]}, "payload": {"a": number}})


def changed(kind: str, number: int, type: str, **options: str) -> Any:
    """What becomes of a field `a`."""
    names = {name.replace("_", "."): option for name, option in options.items()}
    return after(connect_json(kind, number), smt(type, names), value="connect_json").value["a"]


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        ("Date", DAY, "2020-01-05 00:00:00.000"),
        ("Date", -1, "1969-12-31 00:00:00.000"),
        ("Time", 3_600_001, "1970-01-01 01:00:00.001"),
        ("Timestamp", CLOCK, "2020-01-05 11:21:04.123"),
    ],
)
@pytest.mark.parametrize("precision", ["milliseconds", "seconds"])
def test_timestamp_converter_uses_their_units_and_not_the_precision_of_numbers(
    kind: str, number: int, text: str, precision: str
) -> None:
    options = {"target_type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS", "unix_precision": precision}
    assert changed(kind, number, "TimestampConverter$Value", field="a", **options) == text


@pytest.mark.parametrize(
    ("kind", "target", "number"),
    [("Timestamp", "Date", DAY), ("Timestamp", "Time", 40_864_123), ("Timestamp", "unix", 1_578_223_264)],
)
def test_timestamp_converter_gives_another_kind(kind: str, target: str, number: int) -> None:
    options = {"target_type": target, "unix_precision": "seconds"}
    assert changed(kind, CLOCK, "TimestampConverter$Value", field="a", **options) == number


def test_a_time_that_one_step_converts_is_a_time_for_the_next_step() -> None:
    to_date = smt("TimestampConverter$Value", {"field": "a", "target.type": "Date"})
    to_text = smt("TimestampConverter$Value", {"field": "b", "target.type": "string", "format": "yyyy-MM-dd"})
    renamed = smt("ReplaceField$Value", {"renames": "a:b"})
    assert after(Message({"a": CLOCK}), to_date, renamed, to_text).value == {"b": "2020-01-05"}


@pytest.mark.parametrize(
    ("kind", "number", "type", "cast"),
    [
        ("Date", DAY, "string", "2020-01-05"),
        ("Time", 1, "string", "00:00:00.001Z"),
        ("Timestamp", CLOCK, "string", "2020-01-05T11:21:04.123Z"),
        ("Timestamp", DAY * 86_400_000, "string", "2020-01-05"),
        ("Date", DAY, "int64", DAY),
    ],
)
def test_cast_prints_them_and_keeps_their_number(kind: str, number: int, type: str, cast: Any) -> None:
    assert changed(kind, number, "Cast$Value", spec=f"a:{type}") == cast
    assert changed(kind, number, "InsertField$Value", offset_field="o") == number


def test_mask_field_empties_them_and_replaces_none() -> None:
    assert changed("Date", DAY, "MaskField$Value", fields="a") == 0
    replaced = smt("MaskField$Value", {"fields": "a", "replacement": "5"})
    assert "takes no replacement" in refusal(connect_json("Date", DAY), replaced, value="connect_json")


@pytest.mark.parametrize(
    ("options", "masked"),
    [({}, '""'), ({"replacement": "hidden"}, '"hidden"'), ({"replacement": "7"}, '"7"')],
)
def test_mask_field_makes_a_uuid_of_avro_a_text_as_in_connect(options: dict[str, str], masked: str) -> None:
    uuid = {"type": "string", "logicalType": "uuid"}
    fields = [{"name": "a", "type": ["null", uuid]}, {"name": "kept", "type": uuid}]
    schema = {"type": "record", "name": "R", "fields": fields}
    kept = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    with serving() as registry:
        number = registry.add(schema)
        chain = stage_values.build_chain(
            make_registry_sink(registry.url, smt("MaskField$Value", {"fields": "a,absent", **options}))
        )
        values = [framed(number, datum(schema, {"a": each, "kept": kept})) for each in (kept, None)]
        done = apply_chain(chain, batch(*values, keys=[b"x"] * 2), "t", 0)
    assert texts_of(done, "value") == [f'{{"a":{text},"kept":"{kept}"}}'.encode() for text in (masked, "null")]
    assert done.refused == {}


def test_headers_of_lenses_use_their_units() -> None:
    header = smt(
        "io.lenses.connect.smt.header.TimestampConverter",
        {"header.name": "h", "field": "_value.a", "target.type": "string", "format.to.pattern": "yyyy-MM-dd"},
    )
    assert headers_after(connect_json("Date", DAY), header, value="connect_json") == [("h", b"2020-01-05")]


def test_dates_of_avro_are_known_too() -> None:
    date = {"type": "int", "logicalType": "date"}
    convert = {
        "type": "TimestampConverter$Value",
        "options": {"field": "d", "target.type": "string", "format": "yyyy-MM-dd"},
    }
    with serving() as registry:
        dated = registry.add({"type": "record", "name": "R", "fields": [{"name": "d", "type": ["null", date]}]})
        plain = registry.add({"type": "record", "name": "P", "fields": [{"name": "d", "type": "long"}]})
        chain = stage_values.build_chain(make_registry_sink(registry.url, convert))
        values = (framed(plain, b"\0"), b"broken", framed(dated, b"\2\xb4\x9d\2"), framed(dated, b"\0"), None)
        done = apply_chain(chain, batch(*values, keys=[b"x"] * 5), "t", 0)
    assert texts_of(done, "value") == [b'{"d":"1970-01-01"}', b'{"d":"2020-01-05"}', b'{"d":null}', None]


def test_dates_are_found_wherever_a_type_has_them() -> None:
    inner = Struct({"at": Primitive.TIMESTAMP, "n": Primitive.INT64})
    mark = make_marker(Struct({"days": List(Primitive.DATE), "by": Map(inner), "n": Primitive.INT32}))
    assert mark is not None
    marked = mark({"days": [1, None], "by": {"x": {"at": 5, "n": 5}, "y": None}, "n": 5, "more": 5})
    assert marked == {"days": [1, None], "by": {"x": {"at": 5, "n": 5}, "y": None}, "n": 5, "more": 5}
    assert (type(marked["days"][0]), type(marked["by"]["x"]["at"])) == (Date, Timestamp)
    assert {type(marked["n"]), type(marked["more"]), type(marked["by"]["x"]["n"])} == {int}


# A Schema Registry


def test_a_value_that_is_changed_keeps_its_converter() -> None:
    rename = {"type": "org.apache.kafka.connect.transforms.ReplaceField$Value", "options": {"renames": "a:b"}}
    with serving() as registry:
        number = registry.add({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
        configured = make_registry_sink(registry.url, rename)
        chain = stage_values.build_chain(configured)
        done = apply_chain(chain, batch(b"broken", framed(number, b"\2"), None, keys=[b"x"] * 3), "t", 0)
    assert texts_of(done, "value") == [b'{"b":1}', None]
    assert (done.rows.to_pylist(), list(done.refused)) == ([1, 2], [0])
    assert (configured.after_transforms.converter.key, configured.after_transforms.converter.value) == (
        "json_schema",
        "avro",
    )
    assert configured.after_transforms.converter.registry == configured.converter.registry


def test_a_value_that_no_step_reads_keeps_its_schema() -> None:
    header = {
        "type": "org.apache.kafka.connect.transforms.InsertHeader",
        "options": {"header": "h", "value.literal": "v"},
    }
    configured = make_registry_sink("http://nowhere", header)
    chain = stage_values.build_chain(configured)
    assert chain.wrapped == {}
    assert configured.after_transforms.converter == configured.converter


def test_sql_is_refused() -> None:
    with pytest.raises(Exception, match="SQL of keys or values that are not text in Kafka is not supported yet"):
        make_registry_sink("http://nowhere", sql={"select": "*"})
