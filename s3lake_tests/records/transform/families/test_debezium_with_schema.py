"""Change events with a schema become rows with the schema of their table."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from s3lake.land.request import stage_values
from s3lake.records.transform.chain.apply import apply_chain
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.protobuf.shop_messages import message_class
from s3lake_tests.records.schema.registry.server import datum, framed, serving
from s3lake_tests.records.transform.families.debezium_events import (
    DELETE,
    EVENT,
    LANDED,
    OF_SOURCE,
    ROW,
    TYPE,
    TYPES,
    change_event,
    envelope,
    unwrap,
)
from s3lake_tests.records.transform.kit import (
    Message,
    chain,
    described,
    field,
    make_registry_sink,
    refusal_described,
    run,
    run_described,
    smt,
    struct,
    texts_of,
)

PROTO = """
syntax = "proto3";
package shop.orders;
message Value { int64 id = 1; optional string note = 2; }
message Source { string table = 1; }
message Envelope { Value before = 1; Value after = 2; Source source = 3; string op = 4; }
"""
JSON_SCHEMA = {
    "type": "object",
    "title": "shop.orders.Envelope",
    "definitions": {
        "row": {
            "type": "object",
            "title": "shop.orders.Value",
            "properties": {"id": {"type": "integer"}, "note": {"oneOf": [{"type": "null"}, {"type": "string"}]}},
        }
    },
    "properties": {
        "before": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]},
        "after": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]},
        "source": {"type": "object", "properties": {"table": {"type": "string"}}},
        "op": {"type": "string"},
    },
}
PLAIN_EVENTS: list[dict[str, Any]] = [
    {"after": {"id": 1, "note": "x"}, "source": {"table": "t"}, "op": "c"},
    {"before": {"id": 1, "note": None}, "source": {"table": "t"}, "op": "d"},
    {"source": {"table": "t"}, "op": "t"},
]


def of_protobuf(event: dict[str, Any]) -> bytes:
    """The third message of the schema."""
    return b"\2\4" + bytes(message_class("shop.orders.Envelope", PROTO)(**event).SerializeToString())


def test_a_row_has_the_types_and_the_name_of_its_table() -> None:
    landed = described(envelope(), [change_event("c", None, ROW), change_event("u", ROW, ROW)], unwrap())
    assert (landed.name, landed.types) == ("srv.s.t.Value", TYPES)
    assert landed.rows == [LANDED, LANDED]


def test_inserts_and_rewritten_deletes_have_one_schema() -> None:
    events = [change_event("c", None, ROW), change_event("d", ROW, None)]
    landed = described(envelope(), events, unwrap(delete_handling_mode="rewrite", add_fields="op,source.ts_ms"))
    added = {"__deleted": "string", "__op": "string", "__source_ts_ms": "int64"}
    assert landed.types == TYPES | added
    assert landed.rows == [
        {**LANDED, "__deleted": "false", "__op": "c", "__source_ts_ms": 5},
        {**LANDED, "__deleted": "true", "__op": "d", "__source_ts_ms": 5},
    ]


@pytest.mark.parametrize(("mode", "has_schema"), [("tombstone", True), ("delete-to-tombstone", False)])
def test_a_delete_becomes_null_with_the_schema_of_a_row_or_without(mode: str, has_schema: bool) -> None:
    done = run_described(envelope(), [change_event("d", ROW, None)], unwrap(delete_tombstone_handling_mode=mode))
    schemas = done.columns["value"].schemas
    assert texts_of(done, "value") == [None]
    assert (schemas is not None and schemas.distinct[0].name == "srv.s.t.Value") is has_schema


@pytest.mark.parametrize("name", ["srv.s.t.Value", "srv.s.t.envelope", "Envelope"])
def test_a_schema_with_another_name_is_no_event(name: str) -> None:
    assert described(envelope(name=name), [change_event("c", None, ROW)], unwrap()).name == name


@pytest.mark.parametrize("dropped", [True, False])
def test_null_with_a_schema_is_a_tombstone(dropped: bool) -> None:
    options = {"drop_tombstones": str(dropped).lower(), "add_headers": "op,db"}
    done = run_described({**envelope(), "optional": True}, [None], unwrap(**options))
    assert done.filtered == dropped
    if not dropped:
        (headers,) = done.batch.column("headers").to_pylist()
        assert headers == [{"key": "__op", "value": b"d"}]


def test_events_of_several_tables_tombstones_and_values_without_a_schema_are_mixed() -> None:
    other = envelope(field("name", "string"))
    values: list[Any] = [
        {"schema": envelope(), "payload": change_event("c", None, ROW)},
        {"schema": other, "payload": change_event("c", None, {"name": "x"})},
        {"schema": None, "payload": EVENT},
        {"schema": envelope(), "payload": change_event("t", None, None)},
        None,
        {
            "schema": struct(field("ts_ms", "int64"), name="io.debezium.connector.common.Heartbeat"),
            "payload": {"ts_ms": 1},
        },
        {"schema": envelope(), "payload": change_event("d", ROW, None)},
    ]
    links = chain(unwrap(delete_handling_mode="rewrite"), value="connect_json")
    done = run(links, *(Message(value) for value in values))
    assert (done.refused, done.filtered, done.rows.to_pylist()) == ({}, 2, [0, 1, 2, 5, 6])
    assert texts_of(done, "value") == [
        b'{"id":1,"price":2.00,"at":5,"state":"x","__deleted":"false"}',
        b'{"name":"x","__deleted":"false"}',
        b'{"id":1,"__deleted":"false"}',
        b'{"ts_ms":1}',
        b'{"id":1,"price":2.00,"at":5,"state":"x","__deleted":"true"}',
    ]


def test_a_tombstone_leaves_the_schema_of_its_key() -> None:
    key = {"schema": struct(field("id", "int64"), name="K"), "payload": {"id": 1}}
    step = unwrap(drop_tombstones="false", drop_fields_header_name="h", drop_fields_from_key="true")
    done = run(chain(step, key="connect_json", value="connect_json"), Message(None, key))
    schemas = done.columns["key"].schemas
    assert schemas is not None
    assert (schemas.distinct[0].name, texts_of(done, "key")) == ("K", [b'{"id":1}'])


def test_a_value_without_a_schema_takes_the_schema_of_its_key_only_where_the_key_changes() -> None:
    key = {"schema": struct(field("id", "int64"), field("a", "string"), name="K"), "payload": {"id": 1, "a": "x"}}
    step = unwrap(drop_fields_header_name="h", drop_fields_from_key="true")
    messages = [Message({"schema": None, "payload": EVENT}, key, headers) for headers in ((("h", b'["a"]'),), ())]
    done = run(chain(step, key="connect_json", value="connect_json"), *messages)
    schemas = done.columns["key"].schemas
    assert schemas is not None
    assert (texts_of(done, "key"), schemas.codes.tolist()) == ([b'{"id":1}', b'{"id":1,"a":"x"}'], [-1, 0])


def test_a_row_of_protobuf_is_changed_by_the_next_transform() -> None:
    steps: tuple[dict[str, object], ...] = (
        {"type": TYPE},
        {"type": "InsertField$Value", "options": {"offset.field": "o"}},
    )
    with serving() as registry:
        number = registry.add(PROTO, "PROTOBUF")
        links = dataclasses.replace(
            stage_values.build_chain(make_registry_sink(registry.url, *steps)), value="protobuf"
        )
        done = apply_chain(links, batch(framed(number, of_protobuf(PLAIN_EVENTS[0])), keys=[b"x"]), "t", 0)
    assert (done.refused, texts_of(done, "value")) == ({}, [b'{"id":1,"note":"x","o":100}'])


def test_only_columns_that_may_be_null_are_left_out_unless_all_are_asked_for() -> None:
    value = {"schema": envelope(), "payload": change_event("c", None, ROW)}
    message = Message(value, headers=(("h", b'["id","price","absent"]'),))
    for compatible, left in (("true", b'{"id":1,"at":5,"state":"x"}'), ("false", b'{"at":5,"state":"x"}')):
        step = unwrap(drop_fields_header_name="h", drop_fields_keep_schema_compatible=compatible)
        assert texts_of(run(chain(step, value="connect_json"), message), "value") == [left]


@pytest.mark.parametrize(("fills", "shown"), [("false", b"null"), ("true", b"5")])
def test_events_of_a_registry_are_known_by_the_name_of_their_record(fills: str, shown: bytes) -> None:
    row = {"type": "record", "name": "Value", "fields": [{"name": "a", "type": ["int", "null"], "default": 5}]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "table", "type": "string"}]}
    types: dict[str, Any] = {"before": ["null", row], "after": ["null", "Value"], "source": source, "op": "string"}
    fields = [{"name": name, "type": type} for name, type in types.items()]
    schema = {"type": "record", "name": "Envelope", "namespace": "s", "fields": fields}
    events = [
        {"before": None, "after": {"a": None}, "source": {"table": "t"}, "op": "c"},
        {"before": {"a": 1}, "after": None, "source": {"table": "t"}, "op": "d"},
    ]
    options = {"delete.handling.mode": "rewrite", "add.fields": "table", "replace.null.with.default": fills}
    with serving() as registry:
        number = registry.add(schema)
        values = [framed(number, datum(schema, one)) for one in events]
        links = stage_values.build_chain(make_registry_sink(registry.url, {"type": TYPE, "options": options}))
        done = apply_chain(links, batch(*values, None, keys=[b"x"] * 3), "t", 0)
    assert (done.refused, done.filtered) == ({}, 1)
    assert texts_of(done, "value") == [
        b'{"a":%b,"__deleted":"false","__table":"t"}' % shown,
        b'{"a":1,"__deleted":"true","__table":"t"}',
    ]
    schemas = done.columns["value"].schemas
    assert schemas is not None
    assert [one.name for one in schemas.distinct] == ["s.Value"]


@pytest.mark.parametrize(
    ("converter", "schema", "kind", "encode"),
    [
        ("protobuf", PROTO, "PROTOBUF", of_protobuf),
        ("json_schema", JSON_SCHEMA, "JSON", lambda event: json.dumps(event).encode()),
    ],
)
def test_events_of_protobuf_and_json_schema_become_rows_of_a_table(
    converter: str, schema: Any, kind: str, encode: Callable[[dict[str, Any]], bytes]
) -> None:
    options = {"delete.handling.mode": "rewrite", "add.fields": "op,table"}
    with serving() as registry:
        number = registry.add(schema, kind)
        configured = make_registry_sink(registry.url, {"type": TYPE, "options": options}, format={"type": "parquet"})
        links = dataclasses.replace(stage_values.build_chain(configured), value=converter)
        values = [framed(number, encode(event)) for event in PLAIN_EVENTS]
        done = apply_chain(links, batch(*values, None, keys=[b"x"] * 4), "t", 0)
    assert (done.refused, done.filtered) == ({}, 2)
    schemas = done.columns["value"].schemas
    assert schemas is not None
    (one,) = schemas.distinct
    assert str(one.type) == "struct<id: int64, note: string, __deleted: string, __op: string, __table: string>"
    assert texts_of(done, "value") == [
        b'{"id":1,"note":"x","__deleted":"false","__op":"c","__table":"t"}',
        b'{"id":1,"note":null,"__deleted":"true","__op":"d","__table":"t"}',
    ]


@pytest.mark.parametrize(
    ("schema", "payload", "options", "why"),
    [
        (struct(field("op", "string"), name="x.Envelope"), {"op": "c"}, {}, "has no field 'after'"),
        (envelope(), change_event("c", None, ROW), {"route_by_field": "nope"}, "the row has no column 'nope'"),
        (envelope(), change_event("c", None, ROW), {"route_by_field": "id"}, "column 'id' is int64 by its schema"),
        (
            envelope(),
            change_event("c", None, {**ROW, "state": ".."}),
            {"route_by_field": "state"},
            "the topic would be called",
        ),
        (
            envelope(),
            change_event("c", None, ROW),
            {"add_fields": "op:id", "add_fields_prefix": ""},
            "the row has a column 'id', and a field of that name would be added",
        ),
    ],
)
def test_an_event_that_cannot_be_unwrapped_is_refused(
    schema: dict[str, Any], payload: Any, options: dict[str, str], why: str
) -> None:
    assert why in refusal_described(schema, payload, unwrap(**options))


def test_an_event_whose_rows_are_texts_is_refused() -> None:
    schema = struct(
        *(field(name, "string", optional=True) for name in ("before", "after")),
        {**OF_SOURCE, "field": "source"},
        field("op", "string"),
        name="m.Envelope",
    )
    payload = {**change_event("c", None, '{"_id": 1}')}
    del payload["ts_ms"]
    assert "the row of the change event is string by its schema" in refusal_described(schema, payload, unwrap())


def test_headers_become_fields_of_text() -> None:
    to_value = smt("HeaderToValue", {"headers": "h,i", "fields": "a,o.b", "operation": "move"})
    schema = struct(field("id", "int64"), {**struct(field("c", "string"), name="O"), "field": "o"}, name="R")
    value = {"schema": schema, "payload": {"id": 1, "o": {"c": "x"}}}
    messages = [Message(value, headers=headers) for headers in ((("h", b"1"), ("j", b"2")), (), (("i", b"3"),))]
    done = run(chain(to_value, value="connect_json"), *messages)
    assert texts_of(done, "value") == [
        b'{"id":1,"o":{"c":"x"},"a":"1"}',
        b'{"id":1,"o":{"c":"x"}}',
        b'{"id":1,"o":{"c":"x","b":"3"}}',
    ]
    assert done.batch.column("headers").to_pylist() == [[{"key": "j", "value": b"2"}], None, None]
    taken = dataclasses.replace(messages[0], value={"schema": struct(field("a", "int64")), "payload": {"a": 1}})
    reason = run(chain(to_value, value="connect_json"), taken).refused[0]
    assert "field 'a' is int64 by its schema, and a header is a text" in reason
    text = dataclasses.replace(messages[0], value={"schema": struct(field("a", "string")), "payload": {"a": "x"}})
    assert texts_of(run(chain(to_value, value="connect_json"), text), "value") == [b'{"a":"1"}']


def test_deletes_without_a_row_before_them_are_dropped() -> None:
    assert (
        run_described(envelope(), [change_event("d", None, None)], unwrap(delete_handling_mode="rewrite")).filtered == 1
    )
    assert DELETE["before"] == {"id": 1}
