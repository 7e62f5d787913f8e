"""Transforms of Iceberg's sink, of values without and with a schema."""

from typing import Any

import pytest

from s3lake_tests.records.transform.families.debezium_events import (
    COLUMNS,
    DELETE,
    EVENT,
    LANDED,
    ROW,
    TYPES,
    change_event,
    envelope,
)
from s3lake_tests.records.transform.kit import (
    CLOCK,
    Message,
    after,
    chain,
    described,
    field,
    refusal,
    refusal_described,
    run,
    run_described,
    smt,
    struct,
    texts_of,
    value_after,
)

ICEBERG = "org.apache.iceberg.connect.transforms."
UNWRAP = f"{ICEBERG}DebeziumTransform"


@pytest.mark.parametrize("package", [ICEBERG, "io.tabular.iceberg.connect.transforms.", ""])
@pytest.mark.parametrize(("given", "op"), [(EVENT, "I"), ({**EVENT, "op": "u"}, "U"), (DELETE, "D")])
def test_a_row_has_what_became_of_it(package: str, given: dict[str, Any], op: str) -> None:
    cdc = {"op": op, "ts": 7, "offset": 100, "source": "d.t", "target": "d.t"}
    assert value_after(given, smt(f"{package}DebeziumTransform")) == {"id": 1, "_cdc": cdc}


def test_the_table_is_called_by_a_pattern_and_the_key_comes_along() -> None:
    source = {**EVENT["source"], "schema": "s"}
    step = smt(UNWRAP, {"cdc.target.pattern": "lake.{db}_{table}"})
    cdc = after(Message({**EVENT, "source": source}, {"id": 1}), step, key="json").value["_cdc"]
    assert (cdc["source"], cdc["target"], cdc["key"]) == ("s.t", "lake.s_t", {"id": 1})


def test_an_event_without_its_row_is_dropped_and_what_is_none_is_refused() -> None:
    assert run(chain(smt(UNWRAP)), Message({**EVENT, "after": None})).filtered == 1
    assert value_after(None, smt(UNWRAP)) is None
    assert "is not a change event of Debezium" in refusal(Message({"ts_ms": 1}), smt(UNWRAP))
    source = {"db": "d"}
    assert "table in the source of the change event is null" in refusal(
        Message({**EVENT, "source": source}), smt(UNWRAP)
    )


def test_rows_with_a_schema_keep_it() -> None:
    events = [change_event("c", None, ROW), change_event("d", ROW, None), change_event("r", None, ROW)]
    landed = described(envelope(), events, smt(UNWRAP))
    assert landed.name == "srv.s.t.Value"
    assert isinstance(landed.types, dict)
    cdc = landed.types.pop("_cdc")
    assert (landed.types, cdc) == (
        TYPES,
        "struct<op: string, ts: timestamp, offset: int64, source: string, target: string, key: string>!",
    )
    assert [row.pop("_cdc")["op"] for row in landed.rows] == ["I", "D", "I"]
    assert landed.rows == [LANDED] * 3


def test_the_schema_of_the_key_comes_along() -> None:
    key = {"schema": struct(field("id", "int64"), name="K"), "payload": {"id": 1}}
    value = {"schema": envelope(), "payload": change_event("c", None, ROW)}
    done = run(chain(smt(UNWRAP), key="connect_json", value="connect_json"), Message(value, key))
    assert b'"key":{"id":1}}' in (texts_of(done, "value")[0] or b"")


@pytest.mark.parametrize(
    ("schema", "payload", "why"),
    [
        (struct(field("a", "int32")), {"a": 1}, "its schema has no text 'op'"),
        (struct(field("op", "string")), {"op": "c"}, "its schema needs the structs 'after' and 'source'"),
        (envelope(), change_event("d", None, None), "field 'before' of the change event is null"),
        (
            envelope(*COLUMNS, field("_cdc", "string")),
            change_event("c", None, {**ROW, "_cdc": ""}),
            "'_cdc' is in the schema",
        ),
    ],
)
def test_an_event_with_a_schema_that_has_no_row_is_refused(schema: dict[str, Any], payload: Any, why: str) -> None:
    assert why in refusal_described(schema, payload, smt(UNWRAP))


FLAT = {"m_topic": "orders", "m_partition": 3, "m_offset": 100, "m_timestamp": CLOCK, "m_c": "eu"}
NESTED = {"topic": "orders", "partition": 3, "offset": 100, "timestamp": CLOCK, "c": "eu"}


@pytest.mark.parametrize(("nested", "added"), [("false", FLAT), ("true", {"m": NESTED})])
def test_kafka_metadata_of_a_record_is_inserted(nested: str, added: dict[str, Any]) -> None:
    step = smt("KafkaMetadataTransform", {"field_name": "m", "nested": nested, "external_field": "c,eu"})
    assert value_after({"a": 1}, step) == {"a": 1, **added}
    landed = described(struct(field("a", "int32"), name="R"), [{"a": 1}], step)
    assert (landed.name, landed.rows) == ("R", [{"a": 1, **added}])
    assert "m_timestamp" not in after(Message({"a": 1}, timestamp=-1), step).value


def test_timestamps_that_kafka_does_not_have_are_null_with_a_schema() -> None:
    step = smt("KafkaMetadataTransform")
    types = described(struct(field("a", "int32")), [{"a": 1}], step).types
    added = {"topic": "string!", "partition": "int32!", "offset": "int64!", "timestamp": "int64"}
    assert types == {"a": "int32!", **{f"_kafka_metadata_{name}": type for name, type in added.items()}}
    taken = struct(field("_kafka_metadata_topic", "string"))
    assert "is in the schema already" in refusal_described(taken, {"_kafka_metadata_topic": ""}, step)


def test_a_field_is_copied() -> None:
    step = smt("CopyValue", {"source.field": "a", "target.field": "b"})
    assert value_after({"a": 1}, step) == {"a": 1, "b": 1}
    assert value_after({}, step) == {"b": None}
    assert described(struct(field("a", "int32")), [{"a": 1}], step).types == {"a": "int32!", "b": "int32!"}
    assert "field 'a' is not in the schema" in refusal_described(struct(field("c", "int32")), {"c": 1}, step)
    assert run_described({**struct(field("a", "int32")), "optional": True}, [None], step).refused == {}
