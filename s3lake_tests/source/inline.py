"""Landings whose tasks run in this process: every stage is the real one, and there is no Spark."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from s3lake.land.job import TaskEngine
from s3lake.land.landing import Landing
from s3lake.land.task.outcomes import Outcome
from s3lake.land.task.pipeline import Work, run
from s3lake.plan.batch import Intervals
from s3lake.sink import Config
from s3lake.source.opening import open_source
from s3lake.source.records import OffsetRange
from s3lake.store.memory import MemoryStore
from s3lake.verify import Grid, Report, open_log, verify_against


@dataclass(frozen=True)
class Inline:
    """`Engine` that reads and runs here."""

    own: TaskEngine

    def outcomes(self, work: Work, reads: Intervals) -> list[Outcome]:
        ranges = [OffsetRange(partition, start, end) for partition, (start, end) in sorted(reads.items())]
        return list(run(work, self.own.reader.batches(self.own.topic, ranges, work.record_columns)))

    def table(self, *_: Any) -> Any:
        raise AssertionError("SQL needs Spark")

    projected = table


def start_spark() -> Any:
    raise AssertionError("nothing here needs Spark")


def inline(config: Config, topic: str, store: MemoryStore, clock: Callable[[], int]) -> Landing:
    """What lands a topic into the first sink of a configuration."""
    source = open_source(config)
    return Landing(
        config.sinks[0], topic, start_spark, lambda _: store, source.offsets, source.reader, clock=clock, engine=Inline
    )


def verified(config: Config, landed: Landing) -> Report:
    """The source and what is landed, compared record by record."""
    tiles = [tile.hour for tile in landed.index.tiles()]
    with open_log(config) as log:
        return verify_against(
            landed.sink, landed.index, log, Grid.from_sink(landed.sink, landed.clock(), min(tiles), max(tiles))
        )


def body(landed: Landing, hour: str) -> bytes:
    """All data that is landed in an hour, in the order of keys."""
    files = [file for manifest in landed.report(hour).manifests for file in manifest.files]
    found = [landed.store.get(file.key) for file in sorted(files, key=lambda file: file.key) if file.stream == "data"]
    return b"".join(one.body for one in found if one is not None)
