"""Assets: an external one for each topic, and one for each sink and topic, partitioned by hours."""

import hashlib
import json
from typing import Any

import dagster as dg

from s3lake.orchestration import names
from s3lake.orchestration.io_manager import Request
from s3lake.orchestration.resources import landing
from s3lake.sink import Sink

_SEMANTIC: dict[str, Any] = {
    **dict.fromkeys(("converter", "format", "layout", "nulls", "bucket", "prefix"), True),
    "errors": {"tolerance"},  # the rest of it says what happens beside the files
}


class LandConfig(dg.Config):
    """Run config of a sink asset."""

    rewrite: bool = False


def topic_asset(topic: str) -> dg.AssetSpec:
    """The topic, observed by its sensor and never materialised."""
    return dg.AssetSpec(
        names.topic_key(topic), kinds={"kafka"}, group_name="kafka", description=f"Kafka topic {topic}."
    )


def sink_asset(sink: Sink, topic: str) -> dg.AssetsDefinition:
    """The hours of `topic` in the bucket."""

    @dg.asset(
        key=names.sink_key(sink, topic),
        deps=[names.topic_key(topic)],
        description=f"Topic {topic} in s3://{sink.bucket}/{sink.root}, hour by hour, as {sink.format.type}.",
        partitions_def=names.hourly(sink),
        backfill_policy=backfill_policy(sink),
        io_manager_key="sink",
        kinds={"s3", "pyspark", sink.format.type},
        group_name=names.identifier(sink.name),
        pool=f"s3lake_{names.identifier(sink.name, topic)}",
        code_version=code_version(sink),
        metadata={"topic": topic, "bucket": sink.bucket, "prefix": sink.prefix, "format": sink.format.type},
        op_tags={"s3lake/sink": sink.name},
    )
    def land(
        context: dg.AssetExecutionContext,
        config: LandConfig,
        kafka: dg.ResourceParam[Any],
        s3: dg.ResourceParam[Any],
        spark: dg.ResourceParam[Any],
    ) -> Request:
        return Request(landing(sink, topic, kafka, s3, spark), list(context.partition_keys), config.rewrite)

    return land


def backfill_policy(sink: Sink) -> dg.BackfillPolicy:
    """How many hours one run lands; null is one run for all."""
    if sink.hours_per_run is None:
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(sink.hours_per_run)


def code_version(sink: Sink) -> str:
    """Changes when the bytes that the sink writes would."""
    settings = sink.model_dump(mode="json", include=_SEMANTIC)
    settings["converter"].pop("registry")  # where schemas are is no part of them
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
