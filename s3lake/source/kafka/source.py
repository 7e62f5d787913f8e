"""Kafka as a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from s3lake.source.kafka.client import KafkaOffsets

if TYPE_CHECKING:
    from s3lake.source.kafka.reader import Brokers


class KafkaSource:
    """`Source` of a cluster; `settings` are those of `kafka` in a configuration."""

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._settings = settings
        self.place = f"kafka {settings['bootstrap_servers']}"
        self.offsets = KafkaOffsets(**settings, timeout_s=timeout_s)

    @property
    def reader(self) -> Brokers:
        """The cluster, as Spark's tasks reach it."""
        from s3lake.source.kafka.reader import Brokers  # and Arrow, which nobody needs who only asks

        return Brokers(**self._settings)
