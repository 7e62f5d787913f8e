"""Records that the writer's own code stages and commits, in a world that `verify` looks at."""

import msgspec
import pyarrow as pa

from s3lake.index.store import Store
from s3lake.lake.form import form_of
from s3lake.land.request import stage_values
from s3lake.land.task.outcomes import with_seen
from s3lake.records.schema.columns.types import Columns, to_document
from s3lake_tests.lake.verify.world import HOUR, IN_TIME, TOPIC, VerifiedTopic
from s3lake_tests.land.task.settled import settled

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
CLOCK_MS = 1_795_150_812_345


def stage_records(world: VerifiedTopic, records: list[Record], held_to: Columns | None = None) -> None:
    """Land records with the writer's own code, in one commit; `held_to` are columns of commits before it."""
    for key, value, headers in records:
        world.record(value, key, headers)
    given = [value for _, value, _ in records]
    listed = [[{"key": name, "value": one} for name, one in headers] or None for _, _, headers in records]

    def stores(_: str) -> Store:
        return world.store

    batch = pa.record_batch(
        {
            "partition": pa.array([0] * len(given), pa.int32()),
            "offset": pa.array(range(len(given)), pa.int64()),
            "timestamp": pa.array([IN_TIME * 1000] * len(given), pa.timestamp("us", "UTC")),
            "value": pa.array(given, pa.binary()),
            "key": pa.array([key for key, _, _ in records], pa.binary()),
            "headers": pa.array(listed, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )
    work = stage_values.build_work(world.sink, TOPIC, stores, HOUR, commit="c1", wallclock_ms=CLOCK_MS)
    work = work.with_contract(held_to or {}).with_columns(held_to or {})
    outcome, work = settled(work, batch)
    for file in outcome.files:
        world.store.complete_upload(file.key, file.upload, file.parts)
    done = msgspec.structs.replace(outcome.reads[0], start=0, end=len(given))
    world.commit("c1", outcome.files, {0: done})
    landed = world.sink.after_transforms
    world.change(
        "c1",
        clocks=((0, len(given), CLOCK_MS),) if landed.transforms else (),
        form=form_of(landed),
        nulls=landed.nulls,
        columns=None if work.file_columns is None else to_document(with_seen(work.file_columns, [outcome])),
    )


def require_agreement(world: VerifiedTopic, given: list[Record], touched: int) -> None:
    """Whether verifying finds nothing where nothing is wrong, and a record that is missing or there twice."""
    stage_records(world, given)
    report = world.verify()
    assert report.clean, (report.differences, report.checked)
    assert report.kafka_records == report.landed + report.dead_letters + report.skipped == len(given)
    if report.counted_reasons:  # files overlap, and nothing separates their rows
        return

    log = world.log.records[0]
    offset = touched % len(given)
    saved = log.pop(offset)
    assert not world.verify().clean
    log[offset] = log[len(given)] = saved
    world.log.more[0, len(given)] = world.log.more[0, offset]
    world.log.end[0] = len(given) + 1
    world.change("c1", partitions={0: msgspec.structs.replace(world.manifests["c1"].partitions[0], end=len(given) + 1)})
    world.span(0, len(given) + 1, None)
    assert not world.verify().clean
