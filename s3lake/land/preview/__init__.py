"""Preview: what a sink would make of given records, without Kafka and S3: through the real stages, hour by hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.config.model import Spark
from s3lake.index.commit.documents import File, Recorded
from s3lake.index.plan.batch import Intervals
from s3lake.index.store.memory import MemoryStore
from s3lake.land.micro_batch.micro_batch_staging import MicroBatchStaging
from s3lake.land.preview.record_lines import batches
from s3lake.land.request import stage_values
from s3lake.land.request.in_process_tasks import InProcessTaskRunner, KafkaRecord, Refusal, is_in_ranges
from s3lake.land.request.run_request import run_request
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.task.outcomes import Outcome, unite_recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.config.model import Sink

_COMMIT = "preview"


@dataclass(frozen=True)
class Object:
    """An object that would be in the bucket."""

    file: File
    topic: str
    body: bytes


@dataclass(frozen=True)
class Preview:
    """The objects and refusals of one sink for one topic's records; no objects if a refusal fails the micro-batch."""

    objects: tuple[Object, ...]
    refusals: tuple[Refusal, ...]
    failed: bool


def preview(
    sink: Sink, topic: str, records: Sequence[KafkaRecord], now_ms: int | None = None, spark: Spark | None = None
) -> Preview:
    """Run a micro-batch an hour of `records`, which are all of `topic`, through the stages of `sink`.

    Hours end as tiles do: at the first record of the next one, so what comes late stays with what it came with.

    Args:
        records: the records, in any order; offsets of a topic-partition are unique.
        now_ms: the micro-batch's wallclock, epoch milliseconds; now without it.
        spark: the session's settings, of which only a sink with SQL has need.

    Raises:
        S3LakeError: a stage failed, not a record.
    """
    store = MemoryStore(sink.bucket)
    now_ms = hours.now_ms() if now_ms is None else now_ms

    def open_session() -> SparkSession:
        from s3lake.land.spark import get_session

        return get_session(spark or Spark())

    runner = InProcessTaskRunner(
        lambda reads: batches([one for one in records if is_in_ranges(one, reads)]), SparkJobs(open_session)
    )
    seen = Recorded({})

    def record(outcomes: Sequence[Outcome]) -> Recorded:
        nonlocal seen
        seen = unite_recorded(seen, outcomes, sink.max_columns)
        return seen

    files: list[File] = []
    refusals: list[Refusal] = []
    for hour, reads in _hours(records, now_ms).items():
        work = stage_values.build_work(sink, topic, lambda _: store, hour, commit=_COMMIT, wallclock_ms=now_ms)
        tolerant = replace(work, tolerant=True)  # to name every refused record, not only the first
        staging = MicroBatchStaging(sink, topic, partial(run_request, runner))
        files += staging.stage(tolerant, reads, None if sink.sql else seen, record).files
        refusals += runner.refusals
    objects = tuple(_objects(store, topic, files))
    failed = bool(refusals) and sink.errors.tolerance == "none"
    return Preview(() if failed else tuple(sorted(objects, key=attrgetter("file.key"))), tuple(refusals), failed)


def _hours(records: Sequence[KafkaRecord], now_ms: int) -> dict[str, Intervals]:
    """Per hour, in order, the offsets of each topic-partition that its tile would have.

    A record that is stamped after all hours, such as in nanoseconds, is in the hour of the record before it.
    """
    first = min((record.timestamp for record in records if 0 <= record.timestamp <= hours.LAST_MS), default=now_ms)
    reached: dict[int, str] = {}
    reads: dict[str, dict[int, tuple[int, int]]] = {}
    for record in sorted(records, key=attrgetter("offset")):
        hour = hours.key_of_ms(max(record.timestamp, first) if record.timestamp <= hours.LAST_MS else first)
        hour = reached[record.partition] = max(hour, reached.get(record.partition, hour))
        start, _ = reads.setdefault(hour, {}).get(record.partition, (record.offset, 0))
        reads[hour][record.partition] = (start, record.offset + 1)
    return dict(sorted(reads.items()))


def _objects(store: MemoryStore, topic: str, files: Sequence[File]) -> Iterator[Object]:
    last = {}
    for file in files:
        store.complete_upload(file.key, file.upload, file.parts, replace=True)
        last[file.key] = file  # of several objects with one key the last one stays
    for key, file in last.items():
        yield Object(file, topic, store.objects[key][0])
