"""The output of a task: waiting rows, dead letters and files, until it is finished or discarded."""

import pyarrow as pa

from s3lake.config.model import Sink
from s3lake.index.store.memory import MemoryStore
from s3lake.land.request import stage_values
from s3lake.land.task.placed_rows import PlacedRows
from s3lake.land.task.refused_records import RefusedRecords
from s3lake.land.task.staging import Staging, StagingRows
from s3lake.land.task.task_output import TaskOutput
from s3lake.records.layout.object_keys import RecordColumns

MB = 10**6
SINK = Sink.model_validate(
    {
        "name": "s",
        "topics": ("t",),
        "bucket": "lake",
        "start": "2026-11-20T00",
        "layout": {"template": "{topic}/{time:HH}/{partition}-{offset}"},
    }
)
KEYS = stage_values.build_key_layout(SINK, "t")
A, B = map(str, KEYS.groups(0, RecordColumns(values=(), timestamps=[0, 3_600_000]), 2))
"""Two output partitions, by the hour."""


def make_output(store: MemoryStore, most_waiting: int = MB) -> TaskOutput:
    staging = Staging(store, KEYS, stage_values.build_file_rule(SINK), "c1")
    return TaskOutput(staging, RefusedRecords(staging, None, None, MB), most_waiting)


def place(groups: str | list[str], *offsets: int) -> PlacedRows:
    lines = pa.array([b"line"] * len(offsets), pa.binary())
    numbers = pa.array(offsets, pa.int64())
    return PlacedRows(StagingRows(numbers, numbers, {"data": lines}), groups)


def refuse(output: TaskOutput, offset: int) -> None:
    record = {
        "offset": pa.array([offset], pa.int64()),
        "timestamp": pa.array([0], pa.timestamp("us", "UTC")),
        "key": pa.array([None], pa.binary()),
        "value": pa.array([b"{"], pa.binary()),
        "headers": pa.array([[]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    }
    output.add_dead_letters("t", 0, pa.record_batch(record), "convert", {0: "no JSON"})


def test_rows_of_several_batches_and_one_group_are_in_one_file() -> None:
    output = make_output(MemoryStore())
    output.add(0, place([A, B], 0, 1))
    output.add(0, place([A, B], 2, 3))
    files = output.finish()
    assert sorted((file.first_offset, file.last_offset, file.records) for file in files) == [(0, 2, 2), (1, 3, 2)]


def test_waiting_rows_are_sorted_at_their_limit_and_go_on_with_the_same_file() -> None:
    output = make_output(MemoryStore(), most_waiting=1)
    output.add(0, place([B, A], 0, 1))
    output.add(0, place([B, A], 2, 3))
    files = output.finish()
    assert sorted((file.first_offset, file.last_offset) for file in files) == [(0, 2), (1, 3)]


def test_the_files_of_one_topic_partition_are_closed_with_its_waiting_rows() -> None:
    store = MemoryStore()
    output = make_output(store)
    for partition in (0, 1):
        output.add(partition, place([A, B], 0, 1))
        output.add(partition, place(A, 2))
    output.close_files(0)
    assert len(store.uploads) == 2
    files = output.finish()
    assert sorted((file.partition, file.records) for file in files) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_rows_without_any_row_begin_no_file() -> None:
    output = make_output(MemoryStore())
    output.add(0, place(A))
    output.add(0, place([]))
    assert output.finish() == []


def test_dead_letters_are_a_file_with_their_reasons() -> None:
    output = make_output(MemoryStore())
    refuse(output, 4)
    refuse(output, 7)
    (file,) = output.finish()
    assert (file.stream, file.records, file.first_offset, file.last_offset) == ("dead_letters", 2, 4, 7)
    assert [(reason.stage, reason.reason, reason.count) for reason in output.refusal_reasons] == [
        ("convert", "no JSON", 2)
    ]


def test_a_discarded_output_leaves_no_upload() -> None:
    store = MemoryStore()
    output = make_output(store, most_waiting=1)
    output.add(0, place([A], 0))
    output.add(0, place(B, 1))
    assert not output.is_discarded
    output.discard()
    assert output.is_discarded
    assert list(store.list_uploads("")) == []
