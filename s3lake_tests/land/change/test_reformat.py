"""Reformatting: the same records in the form that the sink has now, made of what was landed."""

import io
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.config.model import Sink
from s3lake.land.change import reformat as reformatting
from s3lake.land.request.in_process_tasks import KafkaRecord, to_record_batch
from s3lake.land.task.staging import StagingRows
from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.change.parts import Parts, holding, planned_changes, run_change

ROWS = [b'{"user":"%d","n":%d}' % (number % 3, number) for number in range(7)]
RECORD = {"style": "record"}
IGGY = {"style": "iggy", "stream": "s", "fields": ["metadata", "headers", "value"]}
WHO = UUID("0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9")


def landed(**sink: Any) -> Parts:
    return Parts(flush={"count": 3}, **sink).land(*ROWS[:4], b"no JSON", *ROWS[4:])


def changed(world: Parts, **sink: Any) -> Parts:
    """The same, once the sink is configured otherwise."""
    base = {"name": "events", "topics": ("verified",), "bucket": "lake", "start": HOUR}
    world.sink = Sink.model_validate({**base, "errors": {"tolerance": "all"}, **sink})
    return world


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"format": {"type": "json"}}, {"format": {"type": "parquet"}}),
        ({"format": {"type": "json"}}, {"format": {"type": "json", "codec": "gzip"}}),
        ({"format": {"type": "json"}}, {"format": {"type": "csv"}}),
        ({"format": {"type": "json"}}, {"layout": {"partition_by": ["user"]}}),
        ({"format": {"type": "json_array", "codec": "zstd"}}, {"format": {"type": "avro"}}),
        ({"format": {"type": "parquet"}}, {"format": {"type": "parquet", "codec": "gzip"}}),
        ({"format": {"type": "parquet"}}, {"format": {"type": "avro"}}),
        ({"format": {"type": "avro"}}, {"format": {"type": "parquet"}, "layout": {"partition_by": ["user"]}}),
        ({"format": {"type": "parquet"}}, {"format": {"type": "csv"}}),
        ({"format": {"type": "json"}, "envelope": RECORD}, {"format": {"type": "parquet"}, "envelope": RECORD}),
        ({"format": {"type": "json"}, "envelope": RECORD}, {"format": {"type": "parquet"}}),
    ],
    ids=short_id,
)
def test_verify_finds_the_same_records_in_another_form(was: dict[str, Any], now: dict[str, Any]) -> None:
    world = changed(landed(**was), **now)
    (planned,) = planned_changes("reformat", holding(world))
    assert planned.blocker == ""
    assert run_change("reformat", holding(world)) == planned
    report = world.verify_clean()
    assert (report.landed, report.dead_letters) == (7, 1)
    (manifest,) = holding(world).manifests(HOUR) or []
    assert (manifest.form.format, manifest.reason) == (world.sink.format.type, "reformat")
    assert planned_changes("reformat", holding(world)) == []


def test_a_commit_of_dead_letters_alone_is_written_again_once() -> None:
    world = changed(Parts(flush={"count": 3}).land(b"no JSON"), format={"type": "parquet"})
    assert run_change("reformat", holding(world)).blocker == ""
    world.verify_clean()
    assert planned_changes("reformat", holding(world)) == []


def test_other_transforms_are_not_another_form() -> None:
    world = landed()
    world.change("c0", form=msgspec.structs.replace(world.manifests["c0"].form, transforms="earlier"))
    world.write_index()
    assert planned_changes("reformat", holding(world)) == []


def test_an_empty_text_in_a_key_is_not_another_layout() -> None:
    world = Parts(layout={"template": "v{field:user}/{topic}/{partition}-{offset}"})
    world.land(b'{"user":""}', b'{"user":"ann"}')
    assert planned_changes("reformat", holding(world)) == []


def test_the_uuids_of_avro_are_those_of_parquet() -> None:
    sink = {"columns": {"who": "uuid", "others": "list<uuid>"}}
    world = Parts(flush={"count": 3}, format={"type": "avro"}, **sink)
    world.land(json.dumps({"who": str(WHO), "others": [str(WHO)]}).encode(), b"{}")
    run_change("reformat", holding(changed(world, format={"type": "parquet"}, **sink)))
    (body,) = [body for key, body in world.bodies().items() if key.endswith(".parquet")]
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [{"who": WHO, "others": [WHO]}, {"who": None, "others": None}]
    world.verify_clean()


def test_offsets_of_files_stay_within_the_known_ranges_when_rows_have_no_offsets() -> None:
    world = changed(landed(), layout={"partition_by": ["user"]})
    (before,) = holding(world).manifests(HOUR) or []
    run_change("reformat", holding(world))
    world.log.expire(4)
    world.verify_clean()
    (after,) = holding(world).manifests(HOUR) or []
    spans = [(file.first_offset, file.last_offset) for file in before.files if file.stream == "data"]
    for file in after.files:
        assert file.stream != "data" or any(a <= file.first_offset <= file.last_offset <= b for a, b in spans)


def connect(value: object, type: str = "int32", field: str = "a") -> bytes:
    """A value of Connect's JSON converter with its schema."""
    fields = [{"field": field, "type": type, "optional": True}]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": {field: value}}).encode()


BETWEEN: dict[str, Any] = {"converter": {"value": "connect_json"}, "format": {"type": "parquet"}}


def offsets(world: Parts) -> list[tuple[int, int, int]]:
    """First offset, last offset and records of each data file of the hour."""
    files = [file for one in holding(world).manifests(HOUR) or [] for file in one.files if file.stream == "data"]
    return sorted((file.first_offset, file.last_offset, file.records) for file in files)


def test_rows_with_offsets_keep_them_when_another_file_has_records_between_them() -> None:
    sink = {**BETWEEN, "envelope": RECORD, "nulls": "write"}
    world = Parts(**sink).land(connect(1), None, connect(2))
    assert offsets(world) == [(0, 2, 2), (1, 1, 1)]
    now = changed(world, **{**sink, "format": {"type": "avro"}, "flush": {"count": 1}})
    assert run_change("reformat", holding(now)).blocker == ""
    assert offsets(now) == [(0, 0, 1), (1, 1, 1), (2, 2, 1)]
    now.verify_clean()


def test_files_whose_offset_ranges_overlap_have_names_of_their_own_when_rows_have_no_offsets() -> None:
    world = Parts(**BETWEEN)
    world.land(*(connect(n) if n % 2 == 0 else connect("x", "string", "b") for n in range(8)))
    now = changed(world, **{**BETWEEN, "format": {"type": "avro"}, "flush": {"count": 2}})
    assert run_change("reformat", holding(now)).blocker == ""
    assert [records for _, _, records in offsets(now)] == [2, 2, 2, 2]
    now.verify_clean()


def test_the_hour_stays_when_its_files_have_columns_that_cannot_be_one_table() -> None:
    sink = {**BETWEEN, "envelope": RECORD}
    world = Parts(**sink).land(connect(1), connect("x", "string"))
    now = changed(world, **{**sink, "format": {"type": "avro"}})
    before = now.bodies()
    assert (
        "column 'value' is struct<a: string>, the sink's columns have struct<a: int32>"
        in run_change("reformat", holding(now)).blocker
    )
    assert (now.bodies(), now.store.uploads) == (before, {})


def test_the_hour_stays_when_two_new_files_would_have_one_key() -> None:
    world = Parts(layout={"partition_by": ["a"]})
    world.land(b'{"a":1,"b":1}', b'{"a":2,"b":2}', b'{"a":2,"b":1}', b'{"a":1,"b":2}')
    now = changed(world, layout={"partition_by": ["b"]}, flush={"count": 1})
    before = now.bodies()
    assert "two files would have the key" in run_change("reformat", holding(now)).blocker
    assert (now.bodies(), now.store.uploads) == (before, {})


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ({"format": {"type": "parquet"}}, {"format": {"type": "json"}}, "fields of the value"),
        ({"format": {"type": "json"}}, {"envelope": RECORD}, "it does not hold the headers and key and offset"),
        ({"envelope": IGGY}, {"envelope": IGGY, "format": {"type": "json", "codec": "gzip"}}, "the value as it was"),
        ({"sidecars": {"keys": "json"}}, {"format": {"type": "json", "codec": "gzip"}}, "row by row"),
        ({}, {"columns": {"n": "decimal(3,2)"}, "format": {"type": "parquet"}}, ""),
    ],
    ids=["from columns", "a new envelope", "an envelope of iggy", "sidecars", "a narrow column"],
)
def test_an_impossible_reformat_has_its_reason_and_leaves_the_hour(
    was: dict[str, Any], now: dict[str, Any], why: str
) -> None:
    world = changed(landed(**was), **now)
    before = world.bodies()
    outcome = run_change("reformat", holding(world))
    assert why in outcome.blocker or why == ""
    assert (world.bodies() == before) == bool(outcome.blocker)
    assert world.store.uploads == {}


def test_records_that_were_skipped_are_not_missed_where_they_would_be_written_now() -> None:
    world = Parts(converter={"value": "string"}, nulls="skip").land(None, b"a")
    now = changed(world, format={"type": "avro"}, converter={"value": "string"}, nulls="write")
    assert run_change("reformat", holding(now)).blocker == ""
    assert now.verified().differences == ()
    assert planned_changes("reformat", holding(now)) == []


@pytest.mark.parametrize("now", [{"type": "json"}, {"type": "csv"}], ids=short_id)
def test_null_and_an_empty_text_that_are_one_in_the_old_form_stay_so(now: dict[str, Any]) -> None:
    text: dict[str, Any] = {"converter": {"value": "string"}, "nulls": "write"}
    world = Parts(format={"type": "text"}, **text).land(None, b"")
    before = changed(world, format=now, **text).bodies()
    assert "records without a value are empty in format text" in run_change("reformat", holding(world)).blocker
    assert (world.bodies(), world.verified().clean) == (before, True)


def test_records_that_the_present_configuration_refuses_keep_the_hour_as_it_is() -> None:
    world = Parts().land(b'{"n":1}', b"[1]")
    before = changed(world, format={"type": "parquet"}).bodies()
    assert "the present configuration refuses 1 record of" in run_change("reformat", holding(world)).blocker
    assert (world.bodies(), world.store.uploads) == (before, {})


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"format": {"type": "parquet"}}, {"format": {"type": "avro"}}),
        ({"format": {"type": "parquet"}}, {"format": {"type": "parquet", "codec": "gzip"}, "flush": {"count": 2}}),
        ({"format": {"type": "avro"}}, {"format": {"type": "parquet"}, "layout": {"partition_by": ["user"]}}),
        ({"format": {"type": "json"}}, {"format": {"type": "json", "codec": "gzip"}, "flush": {"count": 2}}),
        (
            {"format": {"type": "json"}, "envelope": RECORD},
            {"format": {"type": "json", "codec": "gzip"}, "envelope": RECORD},
        ),
    ],
    ids=short_id,
)
def test_a_file_that_would_not_hold_its_sources_records_is_not_made_visible(
    was: dict[str, Any], now: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = changed(landed(**was), **now)
    before = world.bodies()

    def swap(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.take([*range(1, len(rows)), 0])

    def swap_values(some: Sequence[KafkaRecord]) -> pa.RecordBatch:
        rows = to_record_batch(some)
        return rows.set_column(rows.schema.names.index("value"), "value", swap(rows)["value"])

    with monkeypatch.context() as patched:
        patched.setattr(
            reformatting,
            "StagingRows",
            lambda offsets, waits, data: StagingRows(offsets, waits, {"data": swap(data["data"])}),
        )
        patched.setattr(reformatting, "to_record_batch", swap_values)
        assert "would not hold the records of" in run_change("reformat", holding(world)).blocker
    assert (world.bodies(), world.store.uploads) == (before, {})
    run_change("reformat", holding(world))
    world.verify_clean()
    assert world.bodies() != before


def test_columns_that_only_later_records_have_are_those_of_every_file() -> None:
    sink = {"envelope": RECORD, "nulls": "write"}
    world = Parts(flush={"count": 1}, **sink).land_records([(None, None, []), (None, b'{"n":1}', [])])
    run_change("reformat", holding(changed(world, format={"type": "parquet"}, **sink)))
    tables = [pq.read_table(io.BytesIO(body)) for key, body in world.bodies().items() if key.endswith("parquet")]
    assert [table["value"].to_pylist() for table in tables] == [[None], [{"n": 1}]]
    world.verify_clean()


BY_TIME = {
    "template": "{topic}/{time:yyyy-MM-dd'T'HH}/{partition}-{offset}",
    "time": {"source": "field", "field": "at"},
}


def landed_with_schema(type: str, name: str | None, value: Any, **sink: Any) -> Parts:
    """A record of Connect's JSON with one field, `at`."""
    field = {"type": type, "field": "at", "optional": True, **({"name": name} if name else {})}
    schema = {"type": "struct", "optional": False, "fields": [field]}
    return Parts(**sink).land(json.dumps({"schema": schema, "payload": {"at": value}}).encode())


@pytest.mark.parametrize(("was", "now"), [("parquet", "avro"), ("avro", "parquet")])
@pytest.mark.parametrize(
    ("type", "name", "value"),
    [
        ("int32", "io.debezium.time.Date", 19_737),
        ("int64", "io.debezium.time.Timestamp", 1_705_314_600_000),
        ("int64", "io.debezium.time.MicroTimestamp", 1_705_314_600_000_000),
        ("int64", "io.debezium.time.NanoTimestamp", 1_705_314_600_000_000_000),
        ("int64", None, 1_705_314_600_000),
    ],
)
def test_a_time_that_landed_as_a_number_of_some_unit_names_no_directory(
    type: str, name: str | None, value: int, was: str, now: str
) -> None:
    sink = {"converter": {"value": "connect_json"}}
    world = landed_with_schema(type, name, value, format={"type": was}, **sink)
    before = world.bodies()
    outcome = run_change("reformat", holding(changed(world, format={"type": now}, layout=BY_TIME, **sink)))
    assert "column at holds numbers, and only the schemas of the records defined if" in outcome.blocker
    assert world.bodies() == before


@pytest.mark.parametrize(
    ("type", "name", "value", "hour"),
    [
        ("int32", "org.apache.kafka.connect.data.Date", 19_737, "2024-01-15T00"),
        ("int64", "org.apache.kafka.connect.data.Timestamp", 1_705_314_600_000, "2024-01-15T10"),
        ("string", "io.debezium.time.ZonedTimestamp", "2024-01-15T10:30:00Z", "2024-01-15T10"),
        ("double", None, 1_705_314_600_000.0, "2024-01-15T10"),
    ],
)
def test_a_time_that_landed_as_a_time_names_the_directory(type: str, name: str | None, value: Any, hour: str) -> None:
    sink = {"converter": {"value": "connect_json"}}
    world = landed_with_schema(type, name, value, format={"type": "parquet"}, **sink)
    run_change("reformat", holding(changed(world, format={"type": "avro"}, layout=BY_TIME, **sink)))
    (key,) = world.bodies()
    assert key.startswith(f"verified/{hour}/0-0")
    world.verify_clean()


def test_a_number_of_records_without_a_schema_is_milliseconds() -> None:
    world = Parts(format={"type": "parquet"}).land(b'{"at":1705314600000}')
    run_change("reformat", holding(changed(world, format={"type": "avro"}, layout=BY_TIME)))
    (key,) = world.bodies()
    assert key.startswith("verified/2024-01-15T10/0-0")


@pytest.mark.parametrize(
    ("type", "name", "value", "text"),
    [
        ("int64", "org.apache.kafka.connect.data.Timestamp", 1_705_314_600_000, "1705314600000"),
        ("int32", "org.apache.kafka.connect.data.Date", 19_737, "19737"),
        ("boolean", None, True, "true"),
        ("double", None, 1.0, "1.0"),
        ("int64", None, None, "[missing]"),
    ],
)
def test_a_directory_has_the_text_that_it_would_have_landed_with(
    type: str, name: str | None, value: Any, text: str
) -> None:
    sink = {"converter": {"value": "connect_json"}, "layout": {"partition_by": ["at"]}}
    as_landed = landed_with_schema(type, name, value, format={"type": "avro"}, **sink)
    world = landed_with_schema(type, name, value, format={"type": "parquet"}, converter=sink["converter"])
    run_change("reformat", holding(changed(world, format={"type": "avro"}, **sink)))
    for one in (as_landed, world):
        (key,) = one.bodies()
        assert key.startswith(f"verified/at={text}/")


def test_fields_of_a_value_in_an_envelope_name_directories() -> None:
    world = Parts(format={"type": "parquet"}, envelope=RECORD, nulls="write").land(*ROWS[:2], None)
    now: dict[str, Any] = {"envelope": RECORD, "nulls": "write", "layout": {"partition_by": ["user"]}}
    run_change("reformat", holding(changed(world, format={"type": "avro"}, **now)))
    assert sorted({key.split("/")[1] for key in world.bodies()}) == ["user=0", "user=1", "user=[missing]"]
    world.verify_clean()


def test_a_list_in_an_envelope_has_no_fields_for_a_layout() -> None:
    world = Parts(format={"type": "parquet"}, envelope=RECORD).land(b"[1]")
    now = changed(world, format={"type": "avro"}, layout={"partition_by": ["user"]}, envelope=RECORD)
    assert "which is not a column of fields in its files" in run_change("reformat", holding(now)).blocker
