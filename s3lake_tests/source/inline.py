"""Landings whose tasks run in this process: every stage is the real one, and there is no Spark."""

from collections.abc import Callable

from s3lake.config.model import Config
from s3lake.index.plan.hour_grid import Grid
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.verify import VerifyReport, open_log, verify_against
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.sources import open_source
from s3lake_tests.land.in_process import TwoCoreSession


def inline(config: Config, topic: str, store: MemoryStore, clock: Callable[[], int]) -> TopicSink:
    """What lands a topic into the first sink of a configuration."""
    source, session = open_source(config), TwoCoreSession()
    return TopicSink(
        config.sinks[0],
        topic,
        lambda: session,  # type: ignore[arg-type,return-value]
        lambda _: store,
        source.offsets,
        lambda: source.reader,
        clock=clock,
    )


def verified(config: Config, landed: TopicSink) -> VerifyReport:
    """The source and what is landed, compared record by record."""
    tiles = [tile.hour for tile in landed.index.tiles()]
    with open_log(config) as log:
        return verify_against(
            landed.sink, landed.index, log, Grid.from_sink(landed.sink, landed.clock(), min(tiles), max(tiles))
        )


def body(landed: TopicSink, hour: str) -> bytes:
    """All data that is landed in an hour, in the order of keys."""
    files = [file for manifest in landed.report(hour).manifests for file in manifest.files]
    found = [landed.store.get(file.key) for file in sorted(files, key=lambda file: file.key) if file.stream == "data"]
    return b"".join(one.body for one in found if one is not None)
