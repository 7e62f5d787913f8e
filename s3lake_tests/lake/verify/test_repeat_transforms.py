"""Transforms are run again and compared; what cannot be run again is counted, and the report is clean."""

import json
from typing import Any

import pytest

from s3lake_tests.lake.verify.staged_records import CLOCK_MS, Record, require_agreement, stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic, texts

RECORDS: list[Record] = [
    (b'{"k":1}', b'{"id":1,"secret":"x","to":{"zip":"a"},"at":1700000000000}', [("h", b"1")]),
    (b"k", b'{"id":"2","secret":"y"}', []),
    (None, None, []),
    (b"k", b"no JSON", []),
]
PAYLOAD: dict[str, Any] = {"id": 7, "price": 12.5, "ratio": 0.1, "blob": "AP8="}
CHAINS: dict[str, list[dict[str, Any]]] = {
    "headers": [{"type": "InsertHeader", "options": {"header": "from", "value.literal": "here"}}],
    "a field": [{"type": "InsertField$Value", "options": {"offset.field": "o", "timestamp.field": "t"}}],
    "renamed": [{"type": "ReplaceField$Value", "options": {"exclude": "secret", "renames": "id:number"}}],
    "cast": [{"type": "Cast$Value", "options": {"spec": "id:string"}}],
    "masked": [
        {"type": "MaskField$Value", "options": {"fields": "secret"}},
        {"type": "Flatten$Value", "options": {"delimiter": "_"}},
    ],
    "filtered": [
        {"type": "Filter", "predicate": {"type": "HasHeaderKey", "options": {"name": "h"}}, "negate": False},
    ],
    "wallclock": [
        {
            "type": "io.lenses.connect.smt.header.InsertRollingWallclock",
            "options": {"header.name": "w", "rolling.window.type": "minutes", "rolling.window.size": "15"},
        }
    ],
    "computed": [
        {
            "type": "iggy.add_fields",
            "options": {
                "fields": [
                    {"key": "at", "value": {"computed": "date_time"}},
                    {"key": "u", "value": {"computed": "uuid_v7"}},
                ]
            },
        }
    ],
}
FORMATS: dict[str, dict[str, Any]] = {
    "json": {"format": {"type": "json"}},
    "parquet": {"format": {"type": "parquet"}},
    "envelope": {"format": {"type": "json"}, "envelope": {"fields": ["key", "value", "headers", "metadata"]}},
}


def transformed(chain: str, sink: dict[str, Any] = FORMATS["json"]) -> VerifiedTopic:
    return VerifiedTopic(**sink, transforms=CHAINS[chain], errors={"tolerance": "all"}, flush={"count": 3})


@pytest.mark.parametrize("sink", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("chain", CHAINS)
def test_transformed_records_are_compared_and_a_changed_one_is_found(chain: str, sink: dict[str, Any]) -> None:
    require_agreement(transformed(chain, sink), RECORDS, 1)


ORDER = {
    "type": "struct",
    "name": "Order",
    "fields": [
        {"field": "id", "type": "int32"},
        {
            "field": "price",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
        {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "optional": True},
        {"field": "ratio", "type": "float"},
        {"field": "blob", "type": "bytes"},
        {"field": "by", "type": "map", "keys": {"type": "string"}, "values": {"type": "double"}},
        {"field": "to", "type": "struct", "fields": [{"field": "zip", "type": "string", "optional": True}]},
        {"field": "days", "type": "array", "items": {"type": "int32", "name": "org.apache.kafka.connect.data.Date"}},
    ],
}
TYPED_RECORDS: list[Record] = [
    (b"k", json.dumps({"schema": ORDER, "payload": payload}).encode(), [("h", b"1")])
    for payload in (
        {**PAYLOAD, "at": 1_700_000_000_000, "by": {"a": 0.1, "b": 5}, "to": {"zip": None}, "days": [1, -1]},
        {**PAYLOAD, "at": None, "by": {}, "to": {"zip": "1"}, "days": []},
    )
] + [(b"k", b'{"plain":{"x":1}}', []), (None, None, [])]
TYPED_CHAINS: dict[str, list[dict[str, Any]]] = {
    "inserted": [{"type": "InsertField$Value", "options": {"offset.field": "o", "timestamp.field": "t"}}],
    "cast and flattened": [
        {"type": "Cast$Value", "options": {"spec": "ratio:string,id:int64"}},
        {"type": "HoistField$Value", "options": {"field": "in"}},
    ],
    "keyed": [
        {
            "type": "ValueToKey",
            "options": {"fields": "id,price,at"},
            "predicate": {"type": "RecordIsTombstone"},
            "negate": True,
        },
        {"type": "ReplaceField$Value", "options": {"exclude": "blob"}},
    ],
    "of Iggy": [{"type": "iggy.delete_fields", "options": {"fields": ["by", "to.zip"]}}],
    "looked at": [
        {
            "type": "io.lenses.connect.smt.header.TimestampConverter",
            "options": {"header.name": "d", "field": "at", "target.type": "unix"},
        }
    ],
}


@pytest.mark.parametrize("format", ["parquet", "avro", "json", "csv", "text", "bytes"])
@pytest.mark.parametrize("chain", TYPED_CHAINS)
def test_records_with_a_schema_are_compared_with_their_types(chain: str, format: str) -> None:
    world = VerifiedTopic(
        format={"type": format},
        converter={"value": "connect_json"},
        transforms=TYPED_CHAINS[chain],
        errors={"tolerance": "all"},
        flush={"count": 1 if format == "bytes" else 3},
    )
    require_agreement(world, TYPED_RECORDS, 1)


@pytest.mark.parametrize("key", ["string", "json"])
@pytest.mark.parametrize("format", ["parquet", "avro", "json"])
@pytest.mark.parametrize("chain", ["inserted", "keyed"])
def test_keys_and_values_of_envelopes_are_compared_with_their_types(chain: str, format: str, key: str) -> None:
    world = VerifiedTopic(
        format={"type": format},
        converter={"key": key, "value": "connect_json"},
        transforms=TYPED_CHAINS[chain],
        envelope={"fields": ["key", "value", "metadata"]},
        errors={"tolerance": "all"},
        flush={"count": 3},
    )
    records = [(b'{"k":1}' if key == "json" else b"k", value, headers) for _, value, headers in TYPED_RECORDS[:2]]
    require_agreement(world, [*records, (b'{"k":2}', None, [])], 1)


def test_records_of_a_merged_commit_are_transformed_with_the_time_of_each_micro_batch() -> None:
    world = transformed("computed")
    stage_records(world, RECORDS[:2])
    world.change("c1", clocks=((0, 1, CLOCK_MS - 1), (0, 2, CLOCK_MS)))
    assert not world.verify().clean  # the first record was landed with the other time
    world.change("c1", clocks=((0, 1, CLOCK_MS), (0, 2, CLOCK_MS)))
    assert world.verify().clean


def test_a_record_that_the_transforms_refuse_must_be_a_dead_letter() -> None:
    world = transformed("cast")
    stage_records(world, RECORDS[:2])
    world.log.records[0][1] = (world.log.records[0][1][0], b"no JSON")
    report = world.verify()
    assert "offset 1 is not a dead letter, and the transforms refuse it" in texts(report, "missing")[0]


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ({"transforms": CHAINS["cast"]}, "the sink has other transforms"),
        ({"transforms": CHAINS["masked"], "converter": {"value": "string"}}, "the sink has other transforms"),
    ],
)
def test_a_commit_of_other_transforms_is_counted_and_clean(sink: dict[str, Any], reason: str) -> None:
    world = transformed("renamed")
    stage_records(world, RECORDS)
    world.sink = VerifiedTopic(**sink, errors={"tolerance": "all"}).sink
    report = world.verify()
    assert (report.clean, report.compared, report.not_compared) == (True, 0, 4)
    assert report.counted_reasons[0].startswith(reason)
    world.overwrite(world.manifests["c1"].files[0], b'{"more":1}\n{"lines":2}\n{"than":3}\n{"before":4}\n')
    assert not world.verify().clean


def test_a_commit_of_sql_has_as_many_rows_and_records_of_kafka_as_its_counts() -> None:
    world = VerifiedTopic(sql={"select": "id"})
    for value in (b'{"id":1,"b":2}', b'{"id":2}'):
        world.record(value)
    world.landed_as(b'{"id":1}\n{"id":2}\n')
    report = world.verify()
    assert (report.clean, report.not_compared, report.counted_reasons) == (True, 2, ("SQL is not run again",))
    file = world.manifests["c1"].files[0]
    world.overwrite(file, b'{"id":1}\n')
    assert f"{file.key} has 1 record, the manifest states 2" in texts(world.verify(), "count")
    world.overwrite(file, b'{"id":1}\n{"id":2}\n')
    del world.log.records[0][1]
    assert "commit c1 states read 2, by Kafka's records it is 1" in texts(world.verify(), "count")


def test_a_commit_into_which_dead_letters_were_replayed_is_counted() -> None:
    world = transformed("computed")
    stage_records(world, RECORDS)
    world.change("c1", clocks=())
    report = world.verify()
    assert (report.clean, report.not_compared) == (True, 4)
    assert report.counted_reasons[0].startswith("dead letters were replayed into it")


def test_the_digest_of_transforms_does_not_depend_on_the_order_of_options() -> None:
    chain = CHAINS["a field"][0]
    options = dict(reversed(list(chain["options"].items())))
    one, other = (VerifiedTopic(transforms=[{**chain, "options": given}]).sink for given in (chain["options"], options))
    assert one.transforms_digest == other.transforms_digest != VerifiedTopic().sink.transforms_digest == ""
