"""Assets downstream of sealed hours: the condition that materialises them, its sensor, forwards, and an example."""

import functools
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.config.model import Config, Sink
from s3lake.errors import ConfigurationError
from s3lake.lake.forwarding.destination import Destination, open_destination, open_forwards
from s3lake.orchestration import dagster_names
from s3lake.orchestration.assets import backfill_policy
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.hour_metadata import build_metadata_table
from s3lake.orchestration.landing_run import as_dagster_errors
from s3lake.orchestration.resource_connections import find_sink_connection
from s3lake.orchestration.translator import SinkTranslator

if TYPE_CHECKING:
    from s3lake.lake.forwarding.destination import Forwarded

with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)  # selections of assets that Dagster does not materialise
    _SEALED = dg.AssetSelection.tag(dagster_names.SEALED, "true", include_sources=True)


def on_sealed_hours() -> "dg.AutomationCondition[dg.AssetKey]":
    """Materialise an asset when an hour that it depends on is sealed, and again when that hour was rewritten.

    A partition of several hours, as of a day, is materialised once all of its hours are sealed. Dependencies other than
    `s3/<sink>/<topic>_sealed` count for nothing. An hour that is sealed while the asset is being materialised is not
    forgotten: it is materialised again afterwards. That holds for every materialisation between the sealing and the
    sensor's next tick, as nothing records what it had read, except that of a run which seals this one hour itself.
    """
    of = dg.AutomationCondition
    sealed, in_one_run = of.newly_updated(), of.executed_with_root_target()
    together = of.any_deps_match(sealed & in_one_run).allow(_SEALED)
    apart = of.any_deps_match(sealed & ~in_one_run).allow(_SEALED)
    # What is sealed in the tick after a request was not seen by it: so a request handles nothing of its next tick.
    by_request = of.newly_requested() | of.initial_evaluation()
    pending = apart.since(by_request & ~apart) | together.since(of.newly_updated() | (by_request & ~together))
    missing = of.any_deps_match(of.missing()).allow(_SEALED)
    return (pending & ~missing & ~of.in_progress()).with_label("on_sealed_hours")


def automation_sensor(
    catalog: Catalog, assets: "list[dg.AssetsDefinition]", status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    """Return the sensor that materialises these `assets` by their conditions."""
    return dg.AutomationConditionSensorDefinition(
        catalog.name("follow_sealed_hours"),
        target=dg.AssetSelection.assets(*assets),
        default_status=status,
        description="Materialises forwards and example assets of an hour when it is sealed.",
    )


def counts_by_type(catalog: Catalog, sink: Sink, topic: str) -> dg.AssetsDefinition:
    """Define the example asset that counts, with Spark, the records of each `type` in each sealed hour."""
    sealed = catalog.specs(sink, topic).sealed

    @dg.asset(
        key=catalog.other_key("example", sink.name, f"{topic}_by_type"),
        ins={"landed": dg.AssetIn(sealed.key)},
        deps=[catalog.key(sink, topic)],  # in one run with the hours themselves it comes after them
        automation_condition=on_sealed_hours(),
        partitions_def=sealed.partitions_def,
        backfill_policy=backfill_policy(sink),
        kinds={"spark"},
        group_name="example",
        description=f"Records of {topic} of each type, by hour: a small asset that follows sealed hours.",
    )
    def count(context: dg.AssetExecutionContext, landed: dict[str, Any]) -> dg.MaterializeResult[None]:
        for hour, records in landed.items():
            has_types = "type" in records.columns
            rows = records.groupBy("type").count().orderBy("type").collect() if has_types else []
            by_type = [(row["type"] or "", row["count"]) for row in rows]
            table = build_metadata_table([("type",), ("records", "int")], by_type)
            total = sum(number for _, number in by_type)
            context.add_asset_metadata({"by_type": table, "records": total}, partition_key=hour)
        return dg.MaterializeResult()

    return count


def forward_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """Define the assets of all `forwards` of the configuration. Raise ConfigurationError if two are the same asset."""
    assets = [
        _define_forward(catalog, sink, topic, destination, forward.key)
        for sink in catalog.config.sinks
        for forward, destination in open_forwards(sink)
        for topic in catalog.topics[sink.name]
        if topic in (forward.topics or (topic,))
    ]
    for key, count in Counter(asset.key for asset in assets).items():
        if count > 1:  # topics of expressions; `sink.forwards` checks all others
            raise ConfigurationError(
                f"{count} forwards would be the asset {key.to_user_string()}: give each a `name` of its own"
            )
    return assets


def forward(
    config: Config,
    sink: str,
    topics: Sequence[str] | None = None,
    *,
    to: Destination | str,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    translator: SinkTranslator | None = None,
    resources: Mapping[str, Any] | None = None,
) -> list[dg.AssetsDefinition]:
    """Define assets `forward/<name>/<topic>` that bring sealed hours of a sink to another system, each exactly once.

    `forwards` of the sink in a configuration does the same without Python; this is for an object of your own. An hour
    is forwarded when it is sealed, and again, replacing what is there of it, when it was rewritten. Give the assets to
    `dg.Definitions` with the result of `build_definitions` for the same configuration, whose S3 they use.

    Args:
        config: the configuration.
        sink: the name of the sink.
        topics: the topics to forward; default: all topics of the sink.
        to: `postgres`, `mongodb`, `elasticsearch`, `quickwit`, `stdout`, the name of a plugin's entry point in the
            group `s3lake.forwards`, or an object such as these make.
        options: the options of a destination that is given by name.
        name: the name of the destination in keys of assets; default: its own name.
        translator: the translator of the configuration's assets.
        resources: the project's own for `s3` and `spark`, as `build_definitions` takes them.

    Raises:
        ConfigurationError: the destination does not exist or refuses its options, or a topic is not one of the sink.
        KeyError: the configuration has no such sink.
    """
    if isinstance(to, str):
        destination, own_name = open_destination(to, options or {}), to
    elif options is not None:
        raise ConfigurationError("options: they make a destination that is given by name; this one is made already")
    else:
        destination, own_name = to, type(to).__name__.lower()
    catalog = Catalog(config, translator, topics={sink: topics} if topics is not None else None, resources=resources)
    route = config.sink(sink)
    for topic in catalog.topics[sink]:
        if route.topics and topic not in route.topics:
            raise ConfigurationError(f"topics: {topic} is not a topic of sink {sink}; it has {', '.join(route.topics)}")
    return [_define_forward(catalog, route, topic, destination, name or own_name) for topic in catalog.topics[sink]]


def _define_forward(
    catalog: Catalog, sink: Sink, topic: str, destination: Destination, name: str
) -> dg.AssetsDefinition:
    sealed = catalog.specs(sink, topic).sealed

    def hours_forwarded(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        from s3lake.lake.forwarding.complete_hour import CompleteHour
        from s3lake.lake.forwarding.destination import forward_hour
        from s3lake.land.topic.open_topic_sink import open_stores

        store = open_stores(find_sink_connection(context.resources, catalog, sink))(sink.bucket)

        def forward_one(hour: str) -> "Forwarded":
            return forward_hour(CompleteHour.from_index(sink, topic, hour, store), destination)

        for hour in context.partition_keys:
            began = time.monotonic()
            forwarded = as_dagster_errors(functools.partial(forward_one, hour), sink.errors)
            context.log.info("%s %s: %s in %s", topic, hour, forwarded.outcome, destination.place)
            seconds = round(time.monotonic() - began, 3)
            context.add_asset_metadata(_metadata(forwarded, destination, seconds), partition_key=hour)
        return dg.MaterializeResult()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill policies
        return dg.asset(
            key=catalog.other_key("forward", name, topic),
            # In one run with the hours themselves it comes after them.
            deps=[sealed.key, catalog.key(sink, topic)],
            automation_condition=on_sealed_hours(),
            partitions_def=sealed.partitions_def,
            backfill_policy=backfill_policy(sink),
            required_resource_keys=catalog.own_resource_keys("s3"),
            pool=catalog.own_name("forward", name),
            op_tags={dagster_names.SINK: catalog.tag(sink)},
            kinds={name} if name.isalnum() else None,
            group_name=sealed.group_name,
            owners=list(sealed.owners),
            description=f"Sealed hours of {topic} in s3://{sink.bucket}/{sink.root}, forwarded to {name}.",
        )(hours_forwarded)


def _metadata(forwarded: "Forwarded", destination: Destination, seconds: float) -> dict[str, Any]:
    hour = forwarded.hour
    return {
        "dagster/row_count": hour.rows,
        "seconds": seconds,
        "outcome": forwarded.outcome,
        "destination": destination.place,
        "ledger": dg.MetadataValue.json(
            {
                "sink": hour.sink,
                "topic": hour.topic,
                "hour": hour.hour,
                "bucket": hour.bucket,
                "content": hour.content,
                "commits": list(hour.commits),
                "offsets": {str(number): list(span) for number, span in hour.offsets.items()},
            }
        ),
    }
