"""What an hour's materialisation says of itself, from the index alone."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.convert import types

if TYPE_CHECKING:
    from s3lake.commit.index import TopicIndex
    from s3lake.landing import LandedHour


def of_hour(landed: "LandedHour", index: "TopicIndex", lag: int | None) -> dict[str, Any]:
    """Metadata of one hour; counts are records unless they say bytes or files.

    Args:
        landed: what the index says of the hour.
        index: of its sink and topic.
        lag: offsets of the open tile that are not landed yet; None where the hour is closed.
    """
    tile, manifests = landed.tile, landed.manifests
    total: Counter[str] = Counter()
    for manifest in manifests:
        for read in manifest.partitions.values():
            total.update(rows=read.landed, dead=read.dead, skipped=read.skipped, late=read.late)
        for file in manifest.files:
            total.update({"bytes": file.bytes, "dead_files" if file.kind == "dead_letters" else "files": 1})
    bucket = index.store.bucket
    metadata: dict[str, Any] = {
        "dagster/partition_row_count": total["rows"],
        "rows": total["rows"],
        "bytes": total["bytes"],
        "files": total["files"],
        "dead_letters": total["dead"],
        "skipped_nulls": total["skipped"],
        "late": total["late"],
        "expired": sum(end - start for _, start, end in tile.expired),
        "lag": lag or 0,
        "commits": len(tile.commits),
        "new_commits": landed.new,
        "complete": dg.MetadataValue.bool(tile.complete),
        "offsets": dg.MetadataValue.json(
            {str(p): [span.start, span.committed, span.end] for p, span in sorted(tile.partitions.items())}
        ),
        "index": dg.MetadataValue.path(f"s3://{bucket}/{index.tile_key(tile.hour)}"),
    }
    if manifests:
        last = manifests[-1]
        metadata["dagster/uri"] = f"s3://{bucket}/{index.manifest_key(tile.hour, last.id)}"
        if last.columns:
            metadata["dagster/column_schema"] = dg.TableSchema(
                columns=[dg.TableColumn(name, types.text(kind)) for name, kind in last.columns.items()]
            )
    return metadata
