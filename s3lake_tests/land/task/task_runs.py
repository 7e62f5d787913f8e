"""One task of a landing in memory: its records, its work, and what the driver gets from it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from s3lake.config.model import Sink
from s3lake.index.store.memory import MemoryStore
from s3lake.land.request import stage_values
from s3lake.land.task.outcomes import Done, Outcome, outcome_of
from s3lake.land.task.pipeline import Work
from s3lake.records.schema.columns.types import from_document
from s3lake.source.record_batches import SCHEMA

HOUR_MS = int(datetime(2026, 11, 20, 5, tzinfo=timezone.utc).timestamp()) * 1000


@dataclass
class TaskRecord:
    """One record as Kafka has it; without an offset it follows the one before."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    ms: int = HOUR_MS
    partition: int = 0
    offset: int | None = None


@dataclass
class TaskBucket:
    """The bucket of a test: every task of it opens the same one."""

    store: MemoryStore = field(default_factory=MemoryStore)

    def __call__(self, bucket: str) -> MemoryStore:
        assert bucket == "lake"
        return self.store

    def visible(self, done: Outcome) -> dict[str, bytes]:
        """What is there after the driver has completed the files of a task."""
        assert isinstance(done, Done), done
        for file in done.files:
            if file.key not in self.store.objects:
                assert self.store.complete_upload(file.key, file.upload, file.parts) == "completed"
        return {key: body for key, (body, _) in self.store.objects.items()}


def build_task(bucket: TaskBucket, columns: dict[str, Any] | None = None, **changes: Any) -> Work:
    fixed = {"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", "layout": {"template": None}}
    sink = Sink(**{**fixed, **changes})
    made = stage_values.build_work(sink, "t", bucket, "2026-11-20T05", commit="c1", wallclock_ms=HOUR_MS)
    return replace(made, columns=from_document(columns or {}))


def to_record_batch(of: Work, records: Sequence[TaskRecord]) -> pa.RecordBatch:
    """A batch with the columns that the work asks Spark for."""
    following, rows = 0, []
    for record in records:
        following = following if record.offset is None else record.offset
        rows.append(
            {
                "partition": record.partition,
                "offset": following,
                "timestamp": datetime.fromtimestamp(record.ms / 1000, timezone.utc),
                "value": record.value,
                "key": record.key,
                "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
            }
        )
        following += 1
    return pa.RecordBatch.from_pylist(rows, SCHEMA).select(list(of.record_columns))


def run_batches(of: Work, *batches: Sequence[TaskRecord]) -> list[Outcome]:
    """What the driver gets from one task, over the bytes that it gets."""
    following, made = 0, []
    for records in batches:
        if records and records[0].offset is None:
            records[0].offset = following
        made.append(to_record_batch(of, records))
        following = made[-1]["offset"][-1].as_py() + 1 if records else following
    return [outcome_of(row["outcome"].as_py()) for one in of(made) for row in one.to_struct_array()]


def run_task(of: Work, *batches: Sequence[TaskRecord]) -> Any:
    (one,) = run_batches(of, *batches)
    return one


def number_records(*numbers: int) -> list[TaskRecord]:
    return [TaskRecord(json.dumps({"n": number}).encode()) for number in numbers]
