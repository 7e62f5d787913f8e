"""The way of the data inside one task, without Spark: batches as it gives them, outcomes as the driver gets them."""

import io
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.model import Sink
from s3lake.errors import StoreDeniedError
from s3lake.index.commit.documents import Read, Recorded
from s3lake.land.micro_batch.micro_batch_staging import MicroBatchStaging
from s3lake.land.request.read_request import ReadRequest
from s3lake.land.task.outcomes import Done, Failed, Grown, Outcome, Refused, unite_columns, unite_recorded
from s3lake.land.task.pipeline import Work, run
from s3lake.records.schema.columns.types import from_document, to_document
from s3lake_tests.land.task.task_runs import (
    HOUR_MS,
    TaskBucket,
    TaskRecord,
    build_task,
    number_records,
    run_batches,
    run_task,
    to_record_batch,
)


@pytest.fixture
def bucket() -> TaskBucket:
    return TaskBucket()


def counted(done: Done) -> dict[int, Read]:
    """What was read, without the records' timestamps."""
    return {one: msgspec.structs.replace(read, oldest_ms=0, newest_ms=0) for one, read in done.reads.items()}


# One task


def test_the_oldest_and_the_newest_timestamp_are_reported(bucket: TaskBucket) -> None:
    stamps = (HOUR_MS + 5, HOUR_MS - 7, HOUR_MS + 9, -1)  # the last one has none
    done = run_task(
        build_task(bucket),
        [TaskRecord(b"{}", ms=ms) for ms in stamps[:2]],
        [TaskRecord(b"{}", ms=ms) for ms in stamps[2:]],
    )
    (read,) = done.reads.values()
    assert (read.oldest_ms, read.newest_ms) == (HOUR_MS - 7, HOUR_MS + 9)


def test_records_land_in_files_of_their_topic_partition(bucket: TaskBucket) -> None:
    done = run_task(build_task(bucket), number_records(1, 2), number_records(3))
    assert bucket.visible(done) == {"t/0/000000000000.json": b'{"n": 1}\n{"n": 2}\n{"n": 3}\n'}
    assert counted(done) == {0: Read(0, 3, read=3, landed=3)}


def test_a_task_that_reads_nothing_reports_that_it_read_nothing(bucket: TaskBucket) -> None:
    assert run_batches(build_task(bucket)) == [Done([], {}, {})]
    assert bucket.store.uploads == {}


def test_two_topic_partitions_in_one_batch_are_kept_apart(bucket: TaskBucket) -> None:
    records = [
        TaskRecord(b"1", partition=1, offset=7),
        TaskRecord(b"2", partition=0, offset=40),
        TaskRecord(b"3", partition=1, offset=9),
    ]
    done = run_task(build_task(bucket), records)
    assert bucket.visible(done) == {"t/0/000000000040.json": b"2\n", "t/1/000000000007.json": b"1\n3\n"}
    assert counted(done) == {1: Read(7, 10, read=2, landed=2), 0: Read(40, 41, read=1, landed=1)}


def test_files_of_a_topic_partition_are_uploaded_when_the_next_one_begins(bucket: TaskBucket) -> None:
    of = build_task(bucket)
    uploaded: list[set[str]] = []

    def read() -> Iterator[pa.RecordBatch]:
        for partition, offset in ((0, 0), (0, 1), (1, 0), (1, 1)):
            yield to_record_batch(of, [TaskRecord(b"1", partition=partition, offset=offset)])
            uploaded.append({upload.key for upload in bucket.store.uploads.values()})

    (done,) = run(of, read())
    first, second = "t/0/000000000000.json", "t/1/000000000000.json"
    assert uploaded == [set(), set(), {first}, {first}]
    assert bucket.visible(done) == {first: b"1\n1\n", second: b"1\n1\n"}


def test_a_topic_partition_that_comes_again_has_each_record_in_one_file(bucket: TaskBucket) -> None:
    batches = [[TaskRecord(b"%d" % offset, partition=offset % 2, offset=offset)] for offset in range(3)]
    done = run_task(build_task(bucket), *batches)
    assert bucket.visible(done) == {
        "t/0/000000000000.json": b"0\n",
        "t/1/000000000001.json": b"1\n",
        "t/0/000000000002.json": b"2\n",
    }
    assert counted(done) == {0: Read(0, 3, read=2, landed=2), 1: Read(1, 2, read=1, landed=1)}


def test_an_error_of_the_store_keeps_its_type(bucket: TaskBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> str:
        raise StoreDeniedError("no such bucket: lake")

    monkeypatch.setattr(bucket.store, "create_upload", refuse)
    assert run_task(build_task(bucket), number_records(1)) == Failed("StoreDeniedError", "no such bucket: lake")


def test_any_other_error_drops_the_uploads_and_goes_on_its_way(bucket: TaskBucket) -> None:
    of = build_task(bucket, flush={"count": 1})

    def read() -> Iterator[pa.RecordBatch]:
        yield to_record_batch(of, number_records(1))
        assert bucket.store.uploads
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(run(of, read()))
    assert bucket.store.uploads == {}


# Late records


def test_records_of_an_earlier_hour_are_late(bucket: TaskBucket) -> None:
    records = [
        TaskRecord(b"1", ms=HOUR_MS - 1),
        TaskRecord(b"2", ms=HOUR_MS),
        TaskRecord(b"3", ms=HOUR_MS + 9 * 3_600_000),
        TaskRecord(b"4", ms=-1),
    ]
    assert run_task(build_task(bucket), records).reads[0].late == 2


# Records that are refused

TOLERANT = {"errors": {"tolerance": "all"}}


def test_the_first_bad_record_stops_a_task_that_tolerates_none(bucket: TaskBucket) -> None:
    of = build_task(bucket, flush={"count": 1})
    refused = run_task(
        of, number_records(1, 2), [*number_records(3), TaskRecord(b"{"), TaskRecord(b"")], number_records(6)
    )
    assert refused == Refused(0, 3, "convert", "Input data was truncated")
    assert bucket.store.uploads == {}
    assert bucket.store.objects == {}


def test_a_task_that_tolerates_no_bad_record_stops_reading(bucket: TaskBucket) -> None:
    of = build_task(bucket)
    batches = iter(
        [
            to_record_batch(of, [TaskRecord(b"{")]),
            to_record_batch(of, number_records(1)),
            to_record_batch(of, number_records(2)),
        ]
    )
    assert len(list(run(of, batches))) == 1
    assert len(list(batches)) == 2


def test_with_tolerance_bad_records_become_dead_letters_in_the_same_commit(bucket: TaskBucket) -> None:
    bad = TaskRecord(b"{", key=b"\xff", headers=[("region", b"eu"), ("none", None)], ms=HOUR_MS - 5)
    done = run_task(build_task(bucket, **TOLERANT), [*number_records(1), bad, *number_records(3)], [TaskRecord(b"")])
    written = bucket.visible(done)
    assert written["t/0/000000000000.json"] == b'{"n": 1}\n{"n": 3}\n'
    dead_letters = [json.loads(line) for line in written["_dead_letters/s/t/0/000000000001.json"].splitlines()]
    assert dead_letters[0] == {
        "topic": "t",
        "partition": 0,
        "offset": 1,
        "timestamp": HOUR_MS - 5,
        "key": {"base64": "/w=="},
        "value": "{",
        "headers": [{"name": "region", "value": "eu"}, {"name": "none", "value": None}],
        "stage": "convert",
        "error": "RecordError",
        "message": "Input data was truncated",
    }
    assert (dead_letters[1]["offset"], dead_letters[1]["value"]) == (3, "")
    assert dead_letters[1]["message"].startswith("empty value: expected JSON, or null for no value")
    assert counted(done) == {0: Read(0, 4, read=4, landed=2, dead=2, late=1)}
    assert sorted((file.stream, file.records) for file in done.files) == [("data", 2), ("dead_letters", 2)]


def test_each_topic_partition_has_its_own_dead_letters(bucket: TaskBucket) -> None:
    done = run_task(build_task(bucket, **TOLERANT), [TaskRecord(b"{", partition=1), TaskRecord(b"{", partition=0)])
    assert sorted(bucket.visible(done)) == [
        "_dead_letters/s/t/0/000000000001.json",
        "_dead_letters/s/t/1/000000000000.json",
    ]


def test_neither_key_nor_headers_are_read_if_no_bad_record_is_tolerated(bucket: TaskBucket) -> None:
    assert build_task(bucket).record_columns == ("partition", "offset", "timestamp", "value")
    assert build_task(bucket, **TOLERANT).record_columns == (
        "partition",
        "offset",
        "timestamp",
        "value",
        "key",
        "headers",
    )


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        ("none", []),
        (
            "reason",
            ["sink s: record refused in topic t, partition 0, offset 0, stage convert: Input data was truncated"],
        ),
        (
            "place",
            [
                f"sink s: record refused in topic t, partition 0, offset 0, timestamp {HOUR_MS}, stage convert: "
                "Input data was truncated"
            ],
        ),
    ],
)
@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_refused_record_is_logged_as_far_as_the_sink_allows(
    bucket: TaskBucket, caplog: pytest.LogCaptureFixture, tolerance: str, log: str, lines: list[str]
) -> None:
    with caplog.at_level(logging.WARNING):
        run_task(build_task(bucket, errors={"tolerance": tolerance, "log": log}), [TaskRecord(b'{"hunter2": ')])
    assert [record.getMessage() for record in caplog.records] == lines


# Output partitions


def by(bucket: TaskBucket, *elements: str, **changes: Any) -> Work:
    return build_task(bucket, layout={"partition_by": elements}, **changes)


def test_records_are_partitioned_by_a_field(bucket: TaskBucket) -> None:
    values = [b'{"type":"a","n":1}', b'{"type":"b","n":2}', b'{"type":"a","n":3}', b'{"n":4}', b'{"type":null}', b"5"]
    done = run_task(by(bucket, "type"), [TaskRecord(value) for value in values])
    assert bucket.visible(done) == {
        "t/type=a/t(0_000000000000).json": b'{"type":"a","n":1}\n{"type":"a","n":3}\n',
        "t/type=b/t(0_000000000001).json": b'{"type":"b","n":2}\n',
        "t/type=[missing]/t(0_000000000003).json": b'{"n":4}\n{"type":null}\n5\n',
    }


def test_records_are_partitioned_by_their_key_and_a_header(bucket: TaskBucket) -> None:
    of = by(bucket, "_key", "_header.region")
    assert of.record_columns == ("partition", "offset", "timestamp", "value", "key", "headers")
    records = [TaskRecord(b"1", b"k1", [("region", b"eu")]), TaskRecord(b"2", b"k2", [("region", b"us")])]
    assert set(bucket.visible(run_task(of, records))) == {
        "t/key=k1/region=eu/t(0_000000000000).json",
        "t/key=k2/region=us/t(0_000000000001).json",
    }


@pytest.mark.parametrize(
    ("schema", "counts"),
    [({}, {"empty:e": 1}), ({"on_new_field": "drop"}, {"e": 1, "s[].x": 1})],
    ids=["an empty field", "a field that a contract drops"],
)
def test_fields_of_a_record_that_has_no_place_are_not_counted(
    bucket: TaskBucket, schema: dict[str, Any], counts: dict[str, int]
) -> None:
    columns = {"n": "int64", "s": {"list": {"struct": {"i": "int64"}}}}
    if not schema:
        columns["s"] = {"list": {"struct": {"i": "int64", "x": "bool"}}}
    of = by(bucket, "_key", format={"type": "parquet"}, schema=schema, **TOLERANT)
    of = of.with_contract(from_document(columns)).with_columns(from_document(columns))
    value = b'{"n":1,"e":{},"s":[{"i":1,"x":true}]}'
    done = run_task(of, [TaskRecord(value, b"k"), TaskRecord(value, None), TaskRecord(b'{"n":2}', b"k")])
    assert counted(done) == {0: Read(0, 3, read=3, landed=2, dead=1, fields_left_out=counts)}


def test_a_span_counts_by_the_field_whose_time_keys_print(bucket: TaskBucket) -> None:
    layout = {"template": "{time:yyyy}/{partition}-{offset}", "time": {"source": "field", "field": "at"}}
    of = build_task(bucket, layout=layout, flush={"span": "10s"}, format={"type": "json"})
    times = [0, 9_000, 11_000, "1970-01-01T00:00:30Z"]
    done = run_task(of, [TaskRecord(b'{"at":%s}' % json.dumps(time).encode()) for time in times])
    assert [file.records for file in done.files] == [2, 1, 1]


@pytest.mark.parametrize("time", ["1" + "0" * 23, '"9999999999999999999"', str(-(2**63)), "null"])
def test_a_span_does_not_count_a_time_that_is_no_date(bucket: TaskBucket, time: str) -> None:
    layout = {"template": "{time:yyyy}/{partition}-{offset}", "time": {"source": "field", "field": "at"}}
    of = build_task(bucket, layout=layout, flush={"span": "10s"}, format={"type": "json"}, **TOLERANT)
    done = run_task(of, [TaskRecord(b'{"at":%s}' % one.encode()) for one in (time, "0")])
    assert counted(done) == {0: Read(0, 2, read=2, landed=1, dead=1)}


def test_a_record_without_a_place_stops_an_intolerant_task(bucket: TaskBucket) -> None:
    refused = run_task(by(bucket, "_key"), [TaskRecord(b"1", b"k"), TaskRecord(b"2", None)])
    assert refused == Refused(
        0, 1, "layout", "the record has no key: have the producer write it, or lay out by another element"
    )
    assert bucket.store.uploads == {}


def test_a_record_without_a_place_is_a_dead_letter_of_a_tolerant_one(bucket: TaskBucket) -> None:
    records = [
        TaskRecord(b"{", b"k"),
        TaskRecord(b"1", b".."),
        TaskRecord(b"2", b"k"),
        TaskRecord(b"3", b"a" * 1100),
        TaskRecord(b"4", b"k"),
    ]
    done = run_task(by(bucket, "_key", **TOLERANT), records)
    written = bucket.visible(done)
    assert written["t/key=k/t(0_000000000002).json"] == b"2\n4\n"
    dead_letters = [json.loads(line) for line in written["_dead_letters/s/t/0/000000000000.json"].splitlines()]
    assert [(one["offset"], one["stage"]) for one in dead_letters] == [(0, "convert"), (1, "layout"), (3, "layout")]
    assert counted(done) == {0: Read(0, 5, read=5, landed=2, dead=3)}


def test_a_number_that_nothing_can_hold_is_a_record_error_not_a_crash(bucket: TaskBucket) -> None:
    refused = run_task(by(bucket, "a"), [TaskRecord(b'{"a":1e999}')])
    assert isinstance(refused, Refused)
    assert (refused.stage, refused.offset) == ("layout", 0)


# Columns

PARQUET = {"format": {"type": "parquet"}}


def test_new_columns_are_reported_and_nothing_is_staged(bucket: TaskBucket) -> None:
    of = build_task(bucket, {"n": "int64"}, flush={"count": 1}, **PARQUET)
    grown = run_task(of, number_records(1), [TaskRecord(b'{"n":1.5,"a":"x"}')], [TaskRecord(b'{"b":{"c":[1]}}')])
    assert grown == Grown(0, 0, {"n": "double", "a": "string", "b": {"struct": {"c": {"list": "int64"}}}})
    assert bucket.store.uploads == {}


def test_new_columns_of_a_topic_partition_drop_the_files_of_the_one_before(bucket: TaskBucket) -> None:
    of = build_task(bucket, {"n": "int64"}, **PARQUET)
    outcomes = run_batches(
        of,
        number_records(1),
        [TaskRecord(b'{"n":2}', partition=1, offset=0)],
        [TaskRecord(b'{"a":"x"}', partition=2, offset=0)],
    )
    assert [outcome.columns for outcome in outcomes if isinstance(outcome, Grown)] == [
        {"n": "int64"},
        {"n": "int64"},
        {"n": "int64", "a": "string"},
    ]
    assert bucket.store.uploads == {}


def test_a_task_is_done_with_the_columns_that_it_reported(bucket: TaskBucket) -> None:
    of = build_task(bucket, **PARQUET)
    batches = [number_records(1), [TaskRecord(b'{"n":1.5,"a":"x"}')], [TaskRecord(b'{"b":true}')]]
    grown = run_task(of, *batches)
    done = run_task(of.with_columns(unite_columns({}, [grown], 100)), *batches)
    (body,) = bucket.visible(done).values()
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [
        {"n": 1.0, "a": None, "b": None},
        {"n": 1.5, "a": "x", "b": None},
        {"n": None, "a": None, "b": True},
    ]


def test_looking_stages_nothing_and_refuses_nothing(bucket: TaskBucket) -> None:
    of = replace(build_task(bucket, {"n": "int64"}, **PARQUET), look_only=True)
    assert run_task(of, [TaskRecord(b"{"), TaskRecord(b"{}")], number_records(1)) == Grown(0, 0, {"n": "int64"})
    assert bucket.store.uploads == {}
    assert run_batches(of) == []


def test_a_conflict_with_the_sinks_columns_is_a_record_error(bucket: TaskBucket) -> None:
    refused = run_task(build_task(bucket, {"n": "int64"}, **PARQUET), [*number_records(1), TaskRecord(b'{"n":"x"}')])
    remedy = "have the producer keep to one type, or use format json, which has no columns"
    assert refused == Refused(0, 1, "convert", f"field 'n' is string, the sink's files have int64: {remedy}")


def test_conflicts_become_dead_letters_and_rows_do_not_shift(bucket: TaskBucket) -> None:
    records = [
        *number_records(0),
        TaskRecord(b'{"n":"x"}'),
        *number_records(2),
        TaskRecord(b"7"),
        TaskRecord(None),
        *number_records(5),
    ]
    done = run_task(build_task(bucket, {"n": "int64"}, **PARQUET, **TOLERANT), records)
    data = next(file for file in done.files if file.stream == "data")
    assert pq.read_table(io.BytesIO(bucket.visible(done)[data.key]))["n"].to_pylist() == [0, 2, 5]
    assert counted(done) == {0: Read(0, 6, read=6, landed=3, skipped=1, dead=2)}


def test_while_columns_grow_dead_letters_wait_for_the_next_try(bucket: TaskBucket) -> None:
    grown = run_task(
        build_task(bucket, {}, **PARQUET, **TOLERANT), [TaskRecord(b"{")], number_records(1), [TaskRecord(b"{")]
    )
    assert grown == Grown(0, 0, {"n": "int64"})
    assert bucket.store.uploads == {}


def test_the_earlier_record_decides_if_tasks_disagree() -> None:
    later, earlier = Grown(1, 0, {"a": "string", "c": "bool"}), Grown(0, 7, {"a": "int64", "b": "bool"})
    assert to_document(unite_columns({}, [later, earlier], 100)) == {"a": "int64", "b": "bool"}
    assert to_document(unite_columns(from_document({"a": "double"}), [later, earlier], 100)) == {
        "a": "double",
        "b": "bool",
    }


def test_columns_do_not_depend_on_which_topic_partitions_a_task_reads_together(bucket: TaskBucket) -> None:
    of = build_task(bucket, format={"type": "parquet"}, errors={"tolerance": "all"})
    values = [b'{"a": 1}', b'{"b": "x"}', b'{"b": 1, "c": 1}']
    ranges = [[TaskRecord(value, partition=partition)] for partition, value in enumerate(values)]
    alone = [outcome for one in ranges for outcome in run_batches(of, one)]
    together = [*run_batches(of, ranges[0], ranges[2]), *run_batches(of, ranges[1])]
    assert to_document(unite_columns({}, alone, 100)) == {"a": "int64", "b": "string"}
    assert unite_columns({}, together, 100) == unite_columns({}, alone, 100)


def test_a_task_that_disagrees_and_those_behind_it_wait_until_they_read_again() -> None:
    """The record that had `b` may be the one that is refused because of `a`."""
    tasks = [Grown(0, 0, {"a": "int64"}), Grown(1, 0, {"a": "bool", "b": "bool"}), Grown(2, 0, {"c": "bool"})]
    assert to_document(unite_columns({}, tasks, 100)) == {"a": "int64"}


def test_a_task_with_more_columns_than_allowed_and_those_behind_it_wait_until_they_read_again() -> None:
    tasks = [Grown(0, 0, {"a": "bool"}), Grown(1, 0, {"b": "bool", "c": "bool"}), Grown(2, 0, {"d": "bool"})]
    assert to_document(unite_columns({}, tasks, 2)) == {"a": "bool"}


# Several tasks, several tries


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize(("first", "second"), [('{"n": 1}', '{"n": 1, "new": "a"}'), ('{"n": 1}', '{"n": 1.5}')])
def test_a_manifest_describes_its_objects_when_columns_grow(
    bucket: TaskBucket, exactly_once: bool, first: str, second: str
) -> None:
    """The task that knew all its columns stages again under the same names, for files cut elsewhere."""
    changes = {"format": {"type": "parquet"}, "exactly_once": exactly_once, "flush": {"size": 2000}}
    records = [TaskRecord(first.replace("1", str(number * 977)).encode()) for number in range(3000)]
    tasks = [records, [TaskRecord(second.encode(), partition=1)]]

    def run_tasks(request: ReadRequest) -> list[Outcome]:
        return [outcome for records in tasks for outcome in run_batches(request.work, records)]

    known = [Recorded({"n": "int64"})]

    def record(results: Sequence[Outcome]) -> Recorded:
        known.append(unite_recorded(known[-1], results, 100))
        return known[-1]

    sink = Sink(**{"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", **changes})
    of = build_task(bucket, {"n": "int64"}, **changes)
    staged = MicroBatchStaging(sink, "t", run_tasks).stage(of, {0: (0, 3000), 1: (0, 1)}, known[0], record)

    files = staged.files
    visible = bucket.visible(Done(list(files), {}, {}))
    assert set(visible) == {file.key for file in files}
    assert {file.key: (file.bytes, file.records) for file in files} == {
        key: (len(body), pq.read_metadata(io.BytesIO(body)).num_rows) for key, body in visible.items()
    }
    assert sum(file.records for file in files) == 3001
    assert bucket.store.uploads == {}


_values = st.none() | st.sampled_from(
    [b'{"k":"a"}', b'{"k":"b"}', b"{}", b"7", b"{", b"", b"\xff", b'{"k":{}}', b'{"k":".."}']
)


@given(
    st.lists(st.lists(_values, min_size=1, max_size=6), max_size=4),
    st.sampled_from([(), ("k",)]),
    st.sampled_from(["skip", "fail", "write"]),
    st.integers(1, 4),
)
def test_every_record_lands_is_skipped_or_becomes_a_dead_letter(
    batches: list[list[bytes | None]], elements: tuple[str, ...], nulls: str, count: int
) -> None:
    bucket = TaskBucket()
    of = by(bucket, *elements, nulls=nulls, flush={"count": count}, **TOLERANT)
    done = run_task(of, *([TaskRecord(value) for value in values] for values in batches))
    written = bucket.visible(done)
    total = sum(map(len, batches))
    read = done.reads.get(0, Read(0, 0))
    assert (read.end, read.read) == (total, total)
    assert read.landed + read.skipped + read.dead == total
    data = [file for file in done.files if file.stream == "data"]
    assert sum(file.records for file in data) == read.landed == sum(written[file.key].count(b"\n") for file in data)
    assert all(file.records <= count for file in data)
    assert sum(file.records for file in done.files if file.stream == "dead_letters") == read.dead
    assert bucket.store.uploads == {}
