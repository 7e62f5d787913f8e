"""Chains over batches whose records have several schemas, or none."""

from typing import Any

from s3lake.config.model.converter import Registry
from s3lake.records.transform.chain.apply import apply_chain
from s3lake.records.transform.chain.chain import Chain
from s3lake_tests.records.schema.registry.server import framed, serving
from s3lake_tests.records.transform.kit import (
    CLOCK,
    TOPIC,
    Message,
    batch_of,
    chain,
    field,
    run,
    smt,
    struct,
    texts_of,
    when,
)

A = struct(field("a", "int32"), name="A")
B = struct(field("b", "string"), name="B")
INSERT = smt("InsertField$Value", {"offset.field": "o"})


def wrapped(schema: dict[str, Any] | None, payload: Any, **more: Any) -> Message:
    return Message({"schema": schema, "payload": payload}, **more)


def test_records_of_several_schemas_and_of_none_keep_their_order() -> None:
    messages = [wrapped(A, {"a": 0}), wrapped(B, {"b": "x"}), Message({"c": 2}), wrapped(A, {"a": 3}), Message(None)]
    done = run(chain(INSERT, value="connect_json"), *messages)
    assert done.rows.to_pylist() == [0, 1, 2, 3, 4]
    assert texts_of(done, "value") == [
        b'{"a":0,"o":100}',
        b'{"b":"x","o":101}',
        b'{"c":2,"o":102}',
        b'{"a":3,"o":103}',
        None,
    ]
    schemas = done.columns["value"].schemas
    assert schemas is not None
    assert schemas.codes.tolist() == [0, 1, -1, 0, -1]


def test_a_predicate_selects_records_and_the_others_keep_their_schema() -> None:
    only_tagged = smt(INSERT.type, INSERT.options, predicate=when("HasHeaderKey", name="h"))
    messages = [wrapped(A, {"a": 0}, headers=(("h", b""),)), wrapped(A, {"a": 1})]
    done = run(chain(only_tagged, value="connect_json"), *messages)
    schemas = done.columns["value"].schemas
    assert schemas is not None
    types = [str(schemas.distinct[code].type) for code in schemas.codes.tolist()]
    assert types == ["struct<a: int32, o: int64>", "struct<a: int32>"]


def test_filter_drops_the_records_that_its_predicate_selects() -> None:
    drop = smt("Filter", {}, predicate=when("HasHeaderKey", name="h"))
    messages = [wrapped(A, {"a": 0}, headers=(("h", b""),)), wrapped(A, {"a": 1})]
    done = run(chain(drop, INSERT, value="connect_json"), *messages)
    assert (done.rows.to_pylist(), done.filtered, done.refused) == ([1], 1, {})


def test_null_with_a_schema_is_a_tombstone_for_predicates() -> None:
    drop = smt("Filter", {}, predicate=when("RecordIsTombstone"))
    done = run(chain(drop, INSERT, value="connect_json"), wrapped({**A, "optional": True}, None), wrapped(A, {"a": 1}))
    assert (done.rows.to_pylist(), done.filtered) == ([1], 1)


def test_null_with_a_schema_is_a_tombstone_also_if_no_step_reads_the_value() -> None:
    drop = smt("Filter", {}, predicate=when("RecordIsTombstone"))
    done = run(chain(drop, value="connect_json"), wrapped({**A, "optional": True}, None), wrapped(A, {"a": 1}))
    assert (done.rows.to_pylist(), done.filtered) == ([1], 1)


def test_routers_and_headers_of_typed_records_are_those_of_all_others() -> None:
    steps = (
        INSERT,
        smt("RegexRouter", {"regex": "(.*)", "replacement": "$1-x"}),
        smt("InsertField$Value", {"topic.field": "t"}),
        smt("InsertHeader", {"header": "h", "value.literal": "v"}),
        smt(
            "io.lenses.connect.smt.header.TimestampConverter",
            {"header.name": "d", "field": "_value.at", "target.type": "string", "format.to.pattern": "yyyy-MM-dd"},
        ),
    )
    schema = struct(field("at", "int64", "Timestamp"))
    done = run(chain(*steps, value="connect_json"), wrapped(schema, {"at": CLOCK}, headers=(("old", b"1"),)))
    (row,) = done.batch.to_pylist()
    assert row["topic"] == f"{TOPIC}-x"
    assert [(one["key"], one["value"]) for one in row["headers"]] == [("old", b"1"), ("h", b"v"), ("d", b"2020-01-05")]
    assert texts_of(done, "value") == [b'{"at":%d,"o":100,"t":"%s-x"}' % (CLOCK, TOPIC.encode())]


def test_a_key_without_a_schema_is_changed_next_to_a_value_with_one() -> None:
    extract = smt("ExtractField$Key", {"field": "id"})
    done = run(chain(extract, INSERT, key="json", value="connect_json"), wrapped(A, {"a": 1}, key={"id": 7}))
    assert (texts_of(done, "key"), texts_of(done, "value")) == ([b"7"], [b'{"a":1,"o":100}'])


def test_a_key_that_cannot_be_decoded_refuses_its_record_alone() -> None:
    extract = smt("ExtractField$Key", {"field": "id"})
    messages = [wrapped(A, {"a": 1}, key=b"{"), wrapped(A, {"a": 2}, key={"id": 7})]
    done = run(chain(extract, INSERT, key="json", value="connect_json"), *messages)
    assert (done.rows.to_pylist(), list(done.refused)) == ([1], [0])
    assert done.refused[0].startswith("the key: not JSON")


def test_a_batch_without_a_readable_record_is_empty() -> None:
    done = run(chain(INSERT, value="connect_json"), wrapped(A, {"a": "x"}))
    assert (done.batch.num_rows, list(done.refused)) == (0, [0])


def test_a_chain_before_sql_gives_json_without_schemas() -> None:
    links = chain(INSERT, value="connect_json")
    plain = type(links)(links.transforms, links.key, links.value, keeps_schemas=False)
    done = apply_chain(plain, batch_of([wrapped(A, {"a": 1})]), TOPIC, CLOCK)
    assert (done.columns, done.batch.column("value").to_pylist()) == ({}, [b'{"a":1,"o":100}'])
    assert plain.value_converter == "json"


def test_a_key_with_a_schema_is_changed_with_it_next_to_a_value_without_one() -> None:
    insert = smt("InsertField$Key", {"partition.field": "p"})
    keyed = [Message({"v": at}, key={"schema": A, "payload": {"a": at}}) for at in range(2)]
    done = run(chain(insert, key="connect_json", value="json"), *keyed)
    schemas = done.columns["key"].schemas
    assert schemas is not None
    assert [str(one.type) for one in schemas.distinct] == ["struct<a: int32, p: int32>"]
    assert texts_of(done, "key") == [b'{"a":0,"p":3}', b'{"a":1,"p":3}']
    assert done.batch.column("value").to_pylist() == [b'{"v":0}', b'{"v":1}']


def test_key_and_value_with_schemas_of_their_own_are_changed_each_by_its_steps() -> None:
    steps = smt("ReplaceField$Key", {"renames": "a:id"}), smt("Cast$Value", {"spec": "b:int64"})
    numbered = struct(field("b", "string"), name="B")
    messages = [
        Message({"schema": numbered, "payload": {"b": "7"}}, key={"schema": A, "payload": {"a": 1}}),
        Message({"schema": numbered, "payload": {"b": "x"}}, key={"schema": A, "payload": {"a": 2}}),
    ]
    done = run(chain(*steps, key="connect_json", value="connect_json"), *messages)
    assert (texts_of(done, "key"), texts_of(done, "value")) == ([b'{"id":1}'], [b'{"b":7}'])
    assert done.refused == {1: "transform Cast$Value: field 'b' is 'x' (a text), which int64 cannot hold"}


def test_a_value_of_avro_that_no_selected_step_changes_keeps_the_bytes_and_the_schema_of_its_producer() -> None:
    tagged = smt("ReplaceField$Value", {"exclude": "a"}, predicate=when("HasHeaderKey", name="h"))
    with serving() as registry:
        fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]
        number = registry.add({"type": "record", "name": "R", "fields": fields, "connect.name": "shop.R"})
        connection = Registry.model_validate({"url": registry.url}).connection
        links = Chain((tagged.model_dump(),), "string", "avro", connection)
        value = framed(number, b"\2\4")
        done = run(links, Message(value), Message(value, headers=(("h", b""),)))
    schemas = done.columns["value"].schemas
    assert schemas is not None
    files = [schemas.distinct[code].file for code in schemas.codes.tolist()]
    assert [file is not None and b"shop.R" in file for file in files] == [True, False]
    assert done.batch.column("value").to_pylist()[0] == value
    assert texts_of(done, "value") == [b'{"a":1,"b":2}', b'{"b":2}']
