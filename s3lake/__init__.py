"""Kafka topics landed in S3 as hourly-partitioned Dagster assets, exactly once."""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from s3lake.config.load import load
    from s3lake.forwarding.elasticsearch import Elasticsearch
    from s3lake.forwarding.mongodb import MongoDB
    from s3lake.forwarding.postgres import Postgres
    from s3lake.forwarding.quickwit import Quickwit
    from s3lake.forwarding.stdout import Stdout
    from s3lake.objects.readback.committed import CommittedFile, files
    from s3lake.orchestration.assets import LandConfig, sink_assets
    from s3lake.orchestration.automation import on_sealed_hours
    from s3lake.orchestration.build import build_definitions
    from s3lake.orchestration.component import SinkComponent
    from s3lake.orchestration.forwards import forward
    from s3lake.orchestration.io_manager import KafkaHours, SinkIOManager
    from s3lake.orchestration.resources import resources
    from s3lake.orchestration.s3_resource import S3Resource
    from s3lake.orchestration.spark_resource import SparkResource
    from s3lake.orchestration.translator import SinkTranslator, dead_letters_key, hourly, sealed_key, sink_key
    from s3lake.sink import Config, Sink

__all__ = [
    "CommittedFile",
    "Config",
    "Elasticsearch",
    "KafkaHours",
    "LandConfig",
    "MongoDB",
    "Postgres",
    "Quickwit",
    "S3Resource",
    "Sink",
    "SinkComponent",
    "SinkIOManager",
    "SinkTranslator",
    "SparkResource",
    "Stdout",
    "build_definitions",
    "dead_letters_key",
    "files",
    "forward",
    "hourly",
    "load",
    "on_sealed_hours",
    "resources",
    "sealed_key",
    "sink_assets",
    "sink_key",
]

# Looked up on first use: Spark's Python workers import this package and must not pay for Dagster.
_HOMES = {
    "CommittedFile": "s3lake.objects.readback.committed",
    "Config": "s3lake.sink",
    "Elasticsearch": "s3lake.forwarding.elasticsearch",
    "KafkaHours": "s3lake.orchestration.io_manager",
    "LandConfig": "s3lake.orchestration.assets",
    "MongoDB": "s3lake.forwarding.mongodb",
    "Postgres": "s3lake.forwarding.postgres",
    "Quickwit": "s3lake.forwarding.quickwit",
    "S3Resource": "s3lake.orchestration.s3_resource",
    "Sink": "s3lake.sink",
    "SinkComponent": "s3lake.orchestration.component",
    "SinkIOManager": "s3lake.orchestration.io_manager",
    "SinkTranslator": "s3lake.orchestration.translator",
    "SparkResource": "s3lake.orchestration.spark_resource",
    "Stdout": "s3lake.forwarding.stdout",
    "build_definitions": "s3lake.orchestration.build",
    "files": "s3lake.objects.readback.committed",
    "forward": "s3lake.orchestration.forwards",
    "hourly": "s3lake.orchestration.translator",
    "load": "s3lake.config.load",
    "on_sealed_hours": "s3lake.orchestration.automation",
    "resources": "s3lake.orchestration.resources",
    "dead_letters_key": "s3lake.orchestration.translator",
    "sealed_key": "s3lake.orchestration.translator",
    "sink_assets": "s3lake.orchestration.assets",
    "sink_key": "s3lake.orchestration.translator",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
