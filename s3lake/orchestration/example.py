"""An example of what comes after landing: events per type and hour, counted by Spark from exactly the landed files."""

from typing import Any

import dagster as dg

from s3lake.orchestration import names
from s3lake.orchestration.assets import backfill_policy
from s3lake.sink import Sink


def events_by_type(sink: Sink, topic: str) -> dg.AssetsDefinition:
    """Counts the records of each `type` in the hours that are asked for."""

    @dg.asset(
        key=dg.AssetKey(["example", sink.name, topic, "events_by_type"]),
        ins={"records": dg.AssetIn(names.sink_key(sink, topic), input_manager_key="sink")},
        partitions_def=names.hourly(sink),
        backfill_policy=backfill_policy(sink),
        kinds={"spark"},
        group_name="example",
        description=f"Records of {topic} by their field `type`: a small downstream asset that shows lineage.",
    )
    def count(context: dg.AssetExecutionContext, records: Any) -> dg.MaterializeResult[None]:
        counts = records.groupBy("type").count().orderBy("type").collect() if "type" in records.columns else []
        table = [dg.TableRecord({"type": row["type"] or "", "records": row["count"]}) for row in counts]
        return dg.MaterializeResult(
            metadata={
                "events_by_type": dg.MetadataValue.table(
                    table, dg.TableSchema([dg.TableColumn("type"), dg.TableColumn("records", "int")])
                ),
                "records": sum(row["count"] for row in counts),
                "hours": len(context.partition_keys),
            }
        )

    return count
