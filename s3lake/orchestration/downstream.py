"""Assets downstream of sealed hours: the condition that materialises them, its sensor, and an example."""

import warnings
from typing import Any

import dagster as dg

from s3lake.orchestration import names
from s3lake.orchestration.assets import backfill_policy
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.hour_metadata import build_table
from s3lake.sink import Sink

with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)  # selections of assets that Dagster does not materialise
    _SEALED = dg.AssetSelection.tag(names.SEALED, "true", include_sources=True)


def on_sealed_hours() -> "dg.AutomationCondition[dg.AssetKey]":
    """Materialise an asset when an hour that it depends on is sealed, and again when that hour was rewritten.

    A partition of several hours, as of a day, is materialised once all of its hours are sealed. Dependencies other than
    `s3/<sink>/<topic>_sealed` count for nothing. An hour that is sealed while the asset is being materialised is not
    forgotten: it is materialised again afterwards.
    """
    sealed = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.newly_updated()).allow(_SEALED)
    missing = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.missing()).allow(_SEALED)
    condition = sealed.since_last_handled() & ~missing & ~dg.AutomationCondition.in_progress()
    return condition.with_label("on_sealed_hours")


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
    sealed = catalog.sealed(sink, topic)

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
            table = build_table([("type",), ("records", "int")], by_type)
            total = sum(number for _, number in by_type)
            context.add_asset_metadata({"by_type": table, "records": total}, partition_key=hour)
        return dg.MaterializeResult()

    return count
