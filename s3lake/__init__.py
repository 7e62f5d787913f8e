"""Kafka topics landed in S3 as hourly-partitioned Dagster assets, exactly once."""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from s3lake.config.load import load as load
    from s3lake.config.model import Config as Config
    from s3lake.config.model import Sink as Sink
    from s3lake.lake.forwarding.destination import Stdout as Stdout
    from s3lake.lake.forwarding.elasticsearch import Elasticsearch as Elasticsearch
    from s3lake.lake.forwarding.mongodb import MongoDB as MongoDB
    from s3lake.lake.forwarding.postgres import Postgres as Postgres
    from s3lake.lake.forwarding.quickwit import Quickwit as Quickwit
    from s3lake.lake.readback.committed import CommittedFile as CommittedFile
    from s3lake.lake.readback.committed import files as files
    from s3lake.orchestration.assets import LandConfig as LandConfig
    from s3lake.orchestration.assets import sink_assets as sink_assets
    from s3lake.orchestration.build import build_definitions as build_definitions
    from s3lake.orchestration.build import resources as resources
    from s3lake.orchestration.component import SinkComponent as SinkComponent
    from s3lake.orchestration.downstream import forward as forward
    from s3lake.orchestration.downstream import on_sealed_hours as on_sealed_hours
    from s3lake.orchestration.io_manager import KafkaHours as KafkaHours
    from s3lake.orchestration.io_manager import SinkIOManager as SinkIOManager
    from s3lake.orchestration.overlapping_hours import OverlappingHours as OverlappingHours
    from s3lake.orchestration.preload.run_launcher import PreloadedRunLauncher as PreloadedRunLauncher
    from s3lake.orchestration.s3_resource import S3Resource as S3Resource
    from s3lake.orchestration.spark_resource import SparkResource as SparkResource
    from s3lake.orchestration.translator import SinkTranslator as SinkTranslator
    from s3lake.orchestration.translator import dead_letters_key as dead_letters_key
    from s3lake.orchestration.translator import hourly as hourly
    from s3lake.orchestration.translator import sealed_key as sealed_key
    from s3lake.orchestration.translator import sink_key as sink_key

# Looked up on first use: Spark's Python workers import this package and must not pay for Dagster.
_NAMES = {
    "config.load": ["load"],
    "config.model": ["Config", "Sink"],
    "lake.forwarding.destination": ["Stdout"],
    "lake.forwarding.elasticsearch": ["Elasticsearch"],
    "lake.forwarding.mongodb": ["MongoDB"],
    "lake.forwarding.postgres": ["Postgres"],
    "lake.forwarding.quickwit": ["Quickwit"],
    "lake.readback.committed": ["CommittedFile", "files"],
    "orchestration.assets": ["LandConfig", "sink_assets"],
    "orchestration.build": ["build_definitions", "resources"],
    "orchestration.component": ["SinkComponent"],
    "orchestration.downstream": ["forward", "on_sealed_hours"],
    "orchestration.io_manager": ["KafkaHours", "SinkIOManager"],
    "orchestration.overlapping_hours": ["OverlappingHours"],
    "orchestration.preload.run_launcher": ["PreloadedRunLauncher"],
    "orchestration.s3_resource": ["S3Resource"],
    "orchestration.spark_resource": ["SparkResource"],
    "orchestration.translator": ["SinkTranslator", "dead_letters_key", "hourly", "sealed_key", "sink_key"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
