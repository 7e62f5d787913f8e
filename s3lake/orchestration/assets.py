"""Assets: an external one for each topic, and one for each sink and topic, partitioned by hours."""

import hashlib
import json
from typing import Any

import dagster as dg
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION

from s3lake.orchestration import names
from s3lake.orchestration.alive import alive
from s3lake.orchestration.io_manager import Landed
from s3lake.orchestration.progress import Announced
from s3lake.orchestration.resources import landing
from s3lake.sink import Sink

_SEMANTIC: dict[str, Any] = {
    **dict.fromkeys(("converter", "format", "layout", "nulls", "bucket", "prefix"), True),
    "errors": {"tolerance"},  # the rest of it says what happens beside the files
}

# Dagster materialises every hour of a range when the op's output is handled, that is, when the last hour is done, and
# has no other way to leave that out. Ours are materialised one by one before.
_MATERIALISED_BEFORE = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}


class LandConfig(dg.Config):
    """Run config of a sink asset."""

    rewrite: bool = False


def topic_asset(topic: str) -> dg.AssetSpec:
    """The topic, observed by its sensor and never materialised."""
    return dg.AssetSpec(
        names.topic_key(topic), kinds={"kafka"}, group_name="kafka", description=f"Kafka topic {topic}."
    )


def sink_asset(route: Sink, topic: str) -> dg.AssetsDefinition:
    """The hours of `topic` in the bucket."""

    @dg.asset(
        key=names.sink_key(route, topic),
        deps=[names.topic_key(topic)],
        description=f"Topic {topic} in s3://{route.bucket}/{route.root}, hour by hour, as {route.format.type}.",
        partitions_def=names.hourly(route),
        backfill_policy=backfill_policy(route),
        io_manager_key="sink",
        kinds={"s3", "pyspark", route.format.type},
        group_name=names.identifier(route.name),
        pool=f"s3lake_{names.identifier(route.name, topic)}",
        code_version=code_version(route),
        metadata={"topic": topic, "bucket": route.bucket, "prefix": route.prefix, "format": route.format.type},
        op_tags={"s3lake/sink": route.name},
    )
    def land(
        context: dg.AssetExecutionContext,
        config: LandConfig,
        kafka: dg.ResourceParam[Any],
        s3: dg.ResourceParam[Any],
        spark: dg.ResourceParam[Any],
        sink: dg.ResourceParam[Any],
    ) -> dg.Output[Landed]:
        lander = landing(route, topic, kafka, s3, Announced(spark, context.log))
        with alive(context):
            landed = sink.land(context, lander, list(context.partition_keys), rewrite=config.rewrite)
        return dg.Output(landed, metadata=_MATERIALISED_BEFORE)

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
