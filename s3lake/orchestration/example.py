"""An example of what comes after landing: events per type and sealed hour, counted by Spark from the landed files."""

from typing import Any

import dagster as dg

from s3lake.orchestration.assets import backfill_policy
from s3lake.orchestration.automation import on_sealed_hours
from s3lake.orchestration.catalogue import Catalogue
from s3lake.sink import Sink


def counts_by_type(catalogue: Catalogue, sink: Sink, topic: str) -> dg.AssetsDefinition:
    """Counts the records of each `type` in each of the hours that are sealed."""
    sealed = catalogue.sealed(sink, topic)

    @dg.asset(
        key=catalogue.example_key(sink, topic),
        ins={"landed": dg.AssetIn(sealed.key)},
        deps=[catalogue.key(sink, topic)],  # in one run with the hours themselves it comes after them
        automation_condition=on_sealed_hours(),
        partitions_def=sealed.partitions_def,
        backfill_policy=backfill_policy(sink),
        kinds={"spark"},
        group_name="example",
        description=f"Records of {topic} of each type, by hour: a small asset that follows sealed hours.",
    )
    def count(context: dg.AssetExecutionContext, landed: dict[str, Any]) -> dg.MaterializeResult[None]:
        for hour, records in landed.items():
            context.add_asset_metadata(_counted(records), partition_key=hour)
        return dg.MaterializeResult()

    return count


def _counted(records: Any) -> dict[str, Any]:
    counts = records.groupBy("type").count().orderBy("type").collect() if "type" in records.columns else []
    table = [dg.TableRecord({"type": row["type"] or "", "records": row["count"]}) for row in counts]
    columns = dg.TableSchema([dg.TableColumn("type"), dg.TableColumn("records", "int")])
    return {"by_type": dg.MetadataValue.table(table, columns), "records": sum(row["count"] for row in counts)}
