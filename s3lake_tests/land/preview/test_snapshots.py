"""Snapshots of previews: the rows of every format, dead letters, and diffs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError
from s3lake.land.preview.snapshots import build_snapshot, compare_snapshots, format_snapshot
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake_tests.kit.connect_messages import connect_message, struct

LOGICAL = "org.apache.kafka.connect.data."
TEN_MS = 1_795_342_500_000
KEY = "orders/date=2026-11-22/hour=10/0-000000000000.json"
VALUE = b'{"id": 1, "at": "x"}'


def sink(**changes: object) -> Sink:
    fields = {"name": "events", "topics": ("orders",), "bucket": "lake", "start": "2026-11-22T00"}
    return Sink.model_validate({**fields, **changes})


def record(value: bytes, offset: int = 0, key: bytes | None = None) -> KafkaRecord:
    return KafkaRecord("orders", 0, offset, TEN_MS, key, value, ())


def snapshot(*records: KafkaRecord, **changes: object) -> dict[str, Any]:
    entry: dict[str, Any] = build_snapshot([sink(**changes)], records)["events"]
    return entry


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ({"type": "json", "codec": "gzip"}, [{"id": 1, "at": "x"}]),
        ({"type": "json_array"}, [{"id": 1, "at": "x"}]),
        ({"type": "csv"}, ["id,at", '1,"x"']),
        ({"type": "avro"}, [{"id": 1, "at": "x"}]),
        ({"type": "parquet", "codec": "zstd"}, [{"id": 1, "at": "x"}]),
    ],
)
def test_a_snapshot_has_the_rows_of_every_format(written: dict[str, str], rows: list[object]) -> None:
    assert list(snapshot(record(VALUE), format=written)["objects"].values()) == [rows]


_READ_AND_COUNT = """
import io, os
import pyarrow as pa
import pyarrow.parquet as pq
from s3lake.config.model import Sink
from s3lake.lake.objects import open_columns
from s3lake.lake.objects.shape import ObjectShape
from s3lake.land.preview.snapshots import read_shown_rows
written = io.BytesIO()
pq.write_table(pa.table({name: [1, 2] for name in "abcdef"}), written)
sink = Sink(name="events", topics=("orders",), bucket="lake", start="2026-11-22T00", format={"type": "parquet"})
before = len(os.listdir("/proc/self/task"))
print(len(read_shown_rows(sink, "orders/0.parquet", written.getvalue())))
print(sum(len(batch) for batch in open_columns(ObjectShape("parquet"), written.getvalue(), "key").batches))
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads of a process are counted in /proc")
def test_reading_parquet_starts_no_thread_which_could_abort_the_process_at_its_end() -> None:
    run = subprocess.run([sys.executable, "-c", _READ_AND_COUNT], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["2", "2", "0"]


def test_instants_decimals_and_bytes_are_text() -> None:
    columns = {"at": "timestamp", "price": "decimal(10,2)", "raw": "binary"}
    value = b'{"at": "2026-11-22T10:15:00Z", "price": "1.50", "raw": "AP8="}'
    (rows,) = snapshot(record(value), format={"type": "parquet"}, columns=columns)["objects"].values()
    assert rows == [{"at": "2026-11-22T10:15:00+00:00", "price": "1.50", "raw": {"base64": "AP8="}}]


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("ms", [-62_135_596_800_001, 253_402_300_800_000, 9_223_372_036_825_200, 2**63 - 1])
def test_a_time_that_python_does_not_have_is_a_number(format: str, ms: int) -> None:
    at, day = {"type": "int64", "name": f"{LOGICAL}Timestamp"}, {"type": "int32", "name": f"{LOGICAL}Date"}
    fields = [
        {**at, "field": "at"},
        {**day, "field": "day"},
        {"field": "all", "type": "array", "items": at},
        {"field": "by", "type": "map", "keys": {"type": "string"}, "values": at},
        {"field": "raw", "type": "bytes"},
    ]
    value = {"at": ms, "day": 1, "all": [0, ms], "by": {"k": ms}, "raw": "AP8="}
    message = connect_message(struct(*fields), value)
    found = snapshot(record(message), format={"type": format}, converter={"value": "connect_json"})
    (((row,),),) = (found["objects"].values(),)
    assert row == {
        "at": ms,
        "day": "1970-01-02",
        "all": ["1970-01-01T00:00:00+00:00", ms],
        "by": [["k", ms]],
        "raw": {"base64": "AP8="},
    }


def test_a_snapshot_has_the_rows_of_sidecars() -> None:
    found = snapshot(record(VALUE, key=b"k"), sidecars={"keys": "json"})
    assert found["objects"] == {KEY: [{"id": 1, "at": "x"}], KEY.replace(".json", ".keys.json"): ["k"]}


def test_a_snapshot_has_refused_records_and_if_they_fail_the_sink() -> None:
    tolerant = snapshot(record(VALUE), record(b"{", 1), errors={"tolerance": "all"})
    assert [(dead_letter["offset"], dead_letter["stage"]) for dead_letter in tolerant["dead_letters"]] == [
        (1, "convert")
    ]
    assert (list(tolerant["objects"]), tolerant["failed"]) == ([KEY], False)
    intolerant = snapshot(record(VALUE), record(b"{", 1), record(b"]", 4))
    assert (intolerant["objects"], intolerant["failed"]) == ({}, True)
    assert [dead_letter["offset"] for dead_letter in intolerant["dead_letters"]] == [1, 4]


def test_the_wallclock_is_the_newest_record_s_time() -> None:
    layout = {"template": "{time:yyyy-MM-dd HH.mm}/{partition}-{offset}", "time": {"source": "wallclock"}}
    assert list(snapshot(record(VALUE), layout=layout)["objects"]) == ["2026-11-22 10.15/0-0.json"]


def test_every_sink_that_reads_the_topic_is_in_the_snapshot() -> None:
    both = build_snapshot([sink(), sink(name="copies", prefix="copies")], [record(VALUE)])
    assert {name: list(entry["objects"]) for name, entry in both.items()} == {
        "events": [KEY],
        "copies": [f"copies/{KEY}"],
    }
    with pytest.raises(ConfigurationError, match="no sink reads topic 'orders'"):
        build_snapshot([sink(topics=("clicks",))], [record(VALUE)])


def test_a_diff_has_the_lines_that_differ_whatever_the_order_of_names() -> None:
    assert compare_snapshots('{"b": 1, "a": 2}', format_snapshot({"a": 2, "b": 1})) == []
    lines = compare_snapshots('{"n": 2}', format_snapshot({"n": 2.0}))
    assert [line for line in lines if line[0] in "-+"] == ['-  "n": 2', '+  "n": 2.0']
