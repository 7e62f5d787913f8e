"""What an hour's materialisation says of itself, from the index alone."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.plan.freshness import Wait, quantile_s
from s3lake.schema.types import from_document

if TYPE_CHECKING:
    from s3lake.commit.index import TopicIndex
    from s3lake.land.observer import LandedHour
    from s3lake.plan.tile import Tile


def of_hour(landed: "LandedHour", index: "TopicIndex", lag: int | None) -> dict[str, Any]:
    """Metadata of one hour; counts are records unless they say bytes or files.

    Args:
        landed: what the index says of the hour.
        index: of its sink and topic.
        lag: offsets of the open tile that are not landed yet; None where the hour is closed.
    """
    tile, sums = landed.tile, landed.sums
    bucket = index.store.bucket
    metadata: dict[str, Any] = {
        "dagster/partition_row_count": sums.landed,
        "rows": sums.landed,
        "bytes": sums.bytes,
        "files": sums.files,
        "dead_letters": sums.dead,
        "skipped_nulls": sums.skipped,
        "late": sums.late,
        "expired": sum(end - start for _, start, end in tile.expired),
        "lag": lag or 0,
        "commits": len(tile.commits),
        "new_commits": landed.new,
        **freshness(sums.waits),
        "complete": dg.MetadataValue.bool(tile.complete),
        "offsets": offsets(tile),
        "index": dg.MetadataValue.path(f"s3://{bucket}/{index.tile_key(tile.hour)}"),
    }
    if landed.manifests:
        last = landed.manifests[-1]
        metadata["dagster/uri"] = f"s3://{bucket}/{index.manifest_key(tile.hour, last.id)}"
        if last.columns:
            metadata["dagster/column_schema"] = dg.TableSchema(
                columns=[dg.TableColumn(name, str(type)) for name, type in from_document(last.columns).items()]
            )
    return metadata


def freshness(waits: Iterable[Wait]) -> dict[str, float]:
    """Seconds from record timestamp to commit: half of the records, 95 of 100, and all."""
    of_records = list(waits)
    shares = {"freshness_median_s": 0.5, "freshness_p95_s": 0.95, "freshness_max_s": 1.0}
    quantiles = {name: quantile_s(of_records, share) for name, share in shares.items()}
    return {name: round(seconds, 1) for name, seconds in quantiles.items() if seconds is not None}


def offsets(tile: "Tile") -> dg.TableMetadataValue:
    """The tile's intervals, a topic-partition a row."""
    columns = [dg.TableColumn(name, "int") for name in ("partition", "start", "landed")]
    records = [
        dg.TableRecord(
            {
                "partition": partition,
                "start": span.start,
                "landed": span.committed,
                "end": "open" if span.end is None else str(span.end),
            }
        )
        for partition, span in sorted(tile.partitions.items())
    ]
    return dg.MetadataValue.table(records, dg.TableSchema([*columns, dg.TableColumn("end")]))
