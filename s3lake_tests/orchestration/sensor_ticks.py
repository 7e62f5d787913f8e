"""A sensor that is evaluated as often as a test asks, and the indexes that it looks at."""

import functools
from typing import Any

import dagster as dg
import pytest

from s3lake.config.model import Config
from s3lake.index.commit.documents import File, Manifest, Read
from s3lake.orchestration import sensor_memory
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.sensor_memory import RouteMemory
from s3lake_tests.kit import indexes
from s3lake_tests.orchestration.world import KafkaEnds, Ticks, config


@functools.cache
def settings_of(*sinks: str) -> tuple[Config, dg.Definitions]:
    """Nobody changes them, and most worlds have the same."""
    settings = config(*(f"{sink[:-1]}, topics: [orders]}}" for sink in sinks))
    return settings, build_definitions(settings)


class SensorTicks(Ticks):
    """A topic and its sinks' indexes."""

    def __init__(self, patch: pytest.MonkeyPatch, *sinks: str) -> None:
        settings, self.definitions = settings_of(*sinks)
        super().__init__(patch, settings, KafkaEnds())
        self.sensor = self.definitions.get_repository_def().get_sensor_def("kafka_orders")

    def write_commit(self, hour: str, commit: str, *, size: int = 100, records: int = 10, at_ms: int = 0) -> None:
        file = File("k", "u", (), 0, 0, records - 1, records, size)
        manifest = Manifest(commit, "orders", hour, {0: Read(0, records)}, (file,), created_ms=at_ms)
        indexes.write_manifest(self.index(), manifest)

    @property
    def remembered(self) -> RouteMemory:
        return sensor_memory.decode_memory(self.cursor).routes["events/orders"]

    def tick(self, later_ms: int = 0) -> Any:
        result = super().tick(later_ms)
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)  # as the daemon does
        return result
