"""Kafka topics landed in S3 as hourly-partitioned Dagster assets, exactly once."""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from s3lake.config.load import load
    from s3lake.orchestration.automation import on_sealed_hours
    from s3lake.orchestration.build import build_definitions
    from s3lake.orchestration.component import SinkComponent
    from s3lake.orchestration.io_manager import SinkIOManager
    from s3lake.orchestration.resources import KafkaResource, SparkResource
    from s3lake.sink import Config, Sink

__all__ = [
    "Config",
    "KafkaResource",
    "Sink",
    "SinkComponent",
    "SinkIOManager",
    "SparkResource",
    "build_definitions",
    "load",
    "on_sealed_hours",
]

# Looked up on first use: Spark's Python workers import this package and must not pay for Dagster.
_HOMES = {
    "Config": "s3lake.sink",
    "KafkaResource": "s3lake.orchestration.resources",
    "Sink": "s3lake.sink",
    "SinkComponent": "s3lake.orchestration.component",
    "SinkIOManager": "s3lake.orchestration.io_manager",
    "SparkResource": "s3lake.orchestration.resources",
    "build_definitions": "s3lake.orchestration.build",
    "load": "s3lake.config.load",
    "on_sealed_hours": "s3lake.orchestration.automation",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
