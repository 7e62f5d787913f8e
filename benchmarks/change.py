"""What changing landed hours costs: compaction of Parquet in MB/s, restoring into a topic in records/s.

One JSON line each. The bucket is in memory, so what is measured is ours; the broker is a real one beside it.

    python -m benchmarks.change --mb 200
    python -m benchmarks.change --records 200000
"""

import argparse
import json
import os
import resource
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.index.commit.documents import Manifest, Read, TopicHead
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.form import form_of
from s3lake.land.change.compact import compact_hours
from s3lake.land.change.restore import Restore, restore_records
from s3lake.land.request import stage_values
from s3lake.land.request.in_process_tasks import KafkaRecord, to_record_batch
from s3lake.land.task.outcomes import Done, Grown
from s3lake.land.task.pipeline import run
from s3lake.land.task.staging import Staging, StagingRows
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.records.schema.columns.types import Primitive, from_document, to_document
from s3lake.source.kafka.reader import KafkaReader

HOUR, TOPIC, COMMIT = "2026-11-20T05", "orders", "c0"
COLUMNS = {
    "id": Primitive.INT64,
    "user": Primitive.STRING,
    "type": Primitive.STRING,
    "amount": Primitive.DOUBLE,
    "at": Primitive.INT64,
    "note": Primitive.STRING,
}


def rows(first: int, count: int) -> pa.RecordBatch:
    """Events: some columns repeat, some hardly compress."""
    random = np.random.default_rng(first)
    numbers = pa.array(np.arange(first, first + count))
    return pa.record_batch(
        {
            "id": numbers,
            "user": pc.binary_join_element_wise("user-", pa.array(random.integers(0, 10**6, count)).cast("string"), ""),
            "type": pa.array(np.array(["view", "click", "order", "refund"])[random.integers(0, 4, count)]),
            "amount": pa.array(random.normal(100, 30, count)),
            "at": pa.array(1_700_000_000_000 + np.arange(count) * 7),
            "note": pc.binary_join_element_wise("note ", pa.array(random.integers(0, 2**62, count)).cast("string"), ""),
        }
    )


class Hour:
    """A landed hour of one commit, in memory."""

    def __init__(self, **sink: Any) -> None:
        base = {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": HOUR}
        self.sink = Sink.model_validate({**base, **sink})
        self.store = MemoryStore("lake")
        nothing: Any = None  # changes of landed hours need neither Spark nor Kafka
        self.target = TopicSink(
            self.sink, TOPIC, nothing, lambda _: self.store, nothing, lambda: KafkaReader("nowhere:1")
        )
        self.index = self.target.index

    def entered(self, files: list[Any], reads: dict[int, Read], columns: Any) -> None:
        """List what was staged."""
        for file in files:
            self.store.complete_upload(file.key, file.upload, file.parts)
        landed = self.sink.after_transforms
        self.index.record(
            Manifest(
                COMMIT,
                TOPIC,
                HOUR,
                reads,
                tuple(files),
                form=form_of(landed),
                nulls=landed.nulls,
                columns=columns,
            )
        )
        spans = {number: TileRange(read.start, read.end, read.end) for number, read in reads.items()}
        self.index.create(self.index.head_key, TopicHead(topic_id="one", hours=((HOUR, HOUR),)))
        self.index.create(self.index.tile_key(HOUR), Tile(HOUR, spans, commits=(COMMIT,)))


def compaction(megabytes: int, file_megabytes: int) -> dict[str, Any]:
    hour = Hour(format={"type": "parquet"}, flush={"size": f"{file_megabytes}MB"})
    keys = stage_values.build_key_layout(hour.sink, TOPIC, hour_ms=hours.start_ms(HOUR))
    staging = Staging(hour.store, keys, stage_values.build_file_rule(hour.sink), COMMIT)
    group, offset = keys.fixed_group(0), 0
    assert group is not None
    while sum(file.bytes for file in staging.closed) < megabytes * 10**6:
        data = rows(offset, 50_000)
        offsets = pa.array(range(offset, offset + len(data)), pa.int64())
        staging.add(0, group, StagingRows(offsets, pa.array([0] * len(data), pa.int64()), {"data": data}))
        offset += len(data)
    files = staging.finish()
    hour.entered(files, {0: Read(0, offset, read=offset, landed=offset)}, to_document(COLUMNS))
    wall, cpu = time.perf_counter(), time.process_time()
    (done,) = compact_hours(hour.target, [HOUR], yes=True)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "what": "compact",
        "mb": round(done.bytes / 1e6, 1),
        "records": offset,
        "files": done.files,
        "left": sum(len(one.files) for one in hour.target.manifests(HOUR) or []),
        "s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "mb_per_s": round(done.bytes / 1e6 / wall, 1),
        "mb_per_cpu_s": round(done.bytes / 1e6 / cpu, 1),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def restoring(count: int) -> dict[str, Any]:
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    from s3lake.demo.embedded_kafka import EmbeddedKafka

    hour = Hour(
        format={"type": "json"}, envelope={"style": "record", "fields": ["key", "value", "headers", "metadata"]}
    )
    work = stage_values.build_work(hour.sink, TOPIC, lambda _: hour.store, HOUR, commit=COMMIT)
    stamp = hours.start_ms(HOUR)
    value = b'{"id": %d, "user": "user-%d", "type": "order", "amount": 12.5, "note": "' + b"x" * 120 + b'"}'
    records = [
        KafkaRecord(TOPIC, 0, number, stamp + number, b"k%d" % number, value % (number, number), (("source", b"web"),))
        for number in range(count)
    ]
    (outcome,) = run(work, [to_record_batch(records[at : at + 10_000]) for at in range(0, count, 10_000)])
    while isinstance(outcome, Grown):
        work = work.with_columns(from_document(outcome.columns))
        (outcome,) = run(work, [to_record_batch(records)])
    assert isinstance(outcome, Done)
    hour.entered(outcome.files, outcome.reads, None)
    with tempfile.TemporaryDirectory() as home, EmbeddedKafka.start(Path(home)) as kafka:
        into = f"into-{uuid.uuid4()}"
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.create_topics([NewTopic(into, 1, 1)])[into].result()
        wall, cpu = time.perf_counter(), time.process_time()
        restore_records(Restore(hour.target, [HOUR], into), kafka.bootstrap_servers, {})
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "what": "restore",
        "records": count,
        "s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "records_per_s": round(count / wall),
        "records_per_cpu_s": round(count / cpu),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, help="compact so many megabytes of Parquet")
    parser.add_argument("--file-mb", type=int, default=64, help="of so large files (default: %(default)s)")
    parser.add_argument("--records", type=int, help="restore so many records")
    asked = parser.parse_args()
    for measured in (
        *([compaction(asked.mb, asked.file_mb)] if asked.mb else []),
        *([restoring(asked.records)] if asked.records else []),
    ):
        print(json.dumps({**measured, "load": round(os.getloadavg()[0], 1)}), flush=True)


if __name__ == "__main__":
    main()
