"""What an hour's materialisation says of itself, from the index alone.

Dagster plots every number, hour by hour: a number here is one whose course means something. The rest are tables.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.commit.evolution import steps
from s3lake.orchestration import letters, names, prose
from s3lake.orchestration.catalogue import Catalogue
from s3lake.plan import sealed
from s3lake.plan.freshness import Wait, quantile_s
from s3lake.plan.stamps import find_notices
from s3lake.schema.types import from_document

if TYPE_CHECKING:
    from s3lake.commit.index import File, Manifest, TopicIndex
    from s3lake.land.landing import Landing
    from s3lake.land.observer import LandedHour
    from s3lake.plan.tile import Sums, Tile
    from s3lake.store import Store

_OBJECTS = 10


@dataclass(frozen=True)
class Lag:
    """What of an hour under way is not landed yet.

    Attributes:
        seconds: how old the oldest such record is, at least; 0 where there is none.
        ends: last stable offset per topic-partition.
    """

    seconds: float = 0.0
    ends: Mapping[int, int] = field(default_factory=dict)


def hour_events(
    catalogue: Catalogue,
    target: "Landing",
    landed: "LandedHour",
    lag: Lag | None = None,
    retries: Mapping[str, Any] = {},
) -> Iterator[dg.AssetMaterialization]:
    """Yield the materialisation of an hour, and that of its dead letters if it has one.

    The version of the hour's data is the digest of its commits, so an hour that is materialised again without a new
    commit keeps it, and nothing downstream is out of date. Dagster's own events name the versions of what they were
    made from as well. A topic's version is another one with each record, so each hour would be out of date as soon as
    it was landed: ours name none.

    Args:
        catalogue: of the sink.
        target: the sink and the topic.
        landed: the hour.
        lag: what of it is not landed yet.
        retries: further metadata of the hour, see `retried`.
    """
    sink, topic, tile = target.sink, target.topic, landed.tile
    columns = prose.of_columns(sink, topic, target.index)
    yield dg.AssetMaterialization(
        catalogue.key(sink, topic),
        partition=tile.hour,
        metadata={**of_hour(landed, target.index, lag, columns), **retries},
        tags={names.DATA_VERSION: sealed.content(tile.commits)},
    )
    dead_letters = letters.of_hour(landed, target)
    if dead_letters is not None:
        key = catalogue.dead_letters_key(sink, topic)
        yield dg.AssetMaterialization(key, partition=tile.hour, metadata=dead_letters)


def of_hour(
    landed: "LandedHour", index: "TopicIndex", lag: Lag | None, prose: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Metadata of one hour.

    Args:
        landed: what the index says of the hour.
        index: of its sink and topic.
        lag: None where the hour is closed.
        prose: what columns are in words, by name.
    """
    tile = landed.tile
    return {
        **numbers(landed.sums),
        **({} if lag is None else {"lag_s": round(lag.seconds, 1)}),
        **freshness(landed.sums.waits),
        "complete": dg.MetadataValue.bool(tile.complete),
        "commits": f"{len(tile.commits)}, {landed.new} of them new",
        **(_schema_changes(index, tile.hour) if landed.manifests and landed.manifests[-1].columns else {}),
        **_left_out(landed.sums.dropped),
        **tables(tile, landed.sums, index, lag),
        **(_of_newest(landed.manifests[-1], index.store, prose or {}) if landed.manifests else {}),
    }


def _left_out(dropped: Mapping[str, int]) -> dict[str, Any]:
    """The fields that the sink's contract left out."""
    rows = [dg.TableRecord({"field": path, "records": count}) for path, count in sorted(dropped.items())]
    schema = dg.TableSchema([dg.TableColumn("field"), dg.TableColumn("records", "int", "that had it")])
    return {"fields_left_out": dg.MetadataValue.table(rows, schema)} if rows else {}


def _schema_changes(index: "TopicIndex", hour: str) -> dict[str, Any]:
    """What the hour changed in the columns of the topic's files; the first columns of all are no change."""
    rows = [
        dg.TableRecord(
            {
                "column": step.change.column,
                "before": step.change.before or "",
                "after": step.change.after,
                "commit": step.commit or "",
            }
        )
        for step in steps(index, hour)
        if not step.first
    ]
    schema = dg.TableSchema(
        [
            dg.TableColumn("column"),
            dg.TableColumn("before", description="its type before; empty where there was no such column"),
            dg.TableColumn("after", description="its type from this hour on"),
            dg.TableColumn("commit", description="that brought it; empty where it is not visible yet"),
        ]
    )
    return {"schema_changes": dg.MetadataValue.table(rows, schema)} if rows else {}


def retried(requests: int, attempts: int) -> dict[str, int]:
    """What a run had to try again until then, where it had to: requests of the store, and the whole of its work."""
    counts = {"retried_requests": requests, "retried_attempts": attempts}
    return {name: count for name, count in counts.items() if count}


def numbers(sums: "Sums") -> dict[str, int]:
    """What there is of an hour; what mostly is not there only where it is."""
    uncommon = {"dead_letters": sums.dead, "late": sums.late, "erased": sums.erased}
    return {
        "dagster/row_count": sums.landed,
        "dagster/size_bytes": sums.bytes,
        "files": sums.files,
        **{name: count for name, count in uncommon.items() if count},
    }


def tables(tile: "Tile", sums: "Sums", index: "TopicIndex", lag: Lag | None = None) -> dict[str, Any]:
    """What explains an hour's offsets, what its timestamps do not tell, and the document that says so."""
    notices = find_notices(tile)
    return {
        **({"notices": dg.MetadataValue.text("\n".join(notices))} if notices else {}),
        "records": records(tile, sums),
        "offsets": offsets(index.topic, tile, lag.ends if lag else {}),
        "index": dg.MetadataValue.path(f"s3://{index.store.bucket}/{index.tile_key(tile.hour)}"),
    }


def records(tile: "Tile", sums: "Sums") -> dg.TableMetadataValue:
    """What became of the offsets that are landed: the lines after the first add up to it."""
    outcomes = {
        "landed offsets": sum(span.committed - span.start for span in tile.partitions.values()),
        "rows": sums.landed,
        "dead letters": sums.dead,
        "skipped nulls": sums.skipped,
        "erased, or expired by retention": sums.erased,
        "expired before they were read": sum(end - start for _, start, end in tile.expired),
        "without a record: markers, aborted or compacted": sealed.without_record(tile, sums),
    }
    lines = [dg.TableRecord({"what": name, "count": count}) for name, count in outcomes.items() if count]
    return dg.MetadataValue.table(lines, dg.TableSchema([dg.TableColumn("what"), dg.TableColumn("count", "int")]))


def offsets(topic: str, tile: "Tile", ends: Mapping[int, int]) -> dg.TableMetadataValue:
    """The tile's intervals, a topic-partition a row.

    Args:
        tile: the hour.
        ends: of an hour under way, where its topic-partitions end now.
    """
    columns = {
        "start": "the first offset of the hour",
        "landed": "up to here, not included, all is landed",
        "end": "the first offset after the hour, or after all that there is of an hour under way",
        "lag": "offsets that are not landed",
    }
    rows = []
    for partition, span in sorted(tile.partitions.items()):
        end = max(span.committed, ends.get(partition, 0)) if span.end is None else span.end
        counts = {"start": span.start, "landed": span.committed, "end": end, "lag": end - span.committed}
        rows.append(dg.TableRecord({"topic-partition": f"{topic}-{partition}", **counts}))
    schema = [dg.TableColumn(name, "int", description) for name, description in columns.items()]
    return dg.MetadataValue.table(rows, dg.TableSchema([dg.TableColumn("topic-partition"), *schema]))


def freshness(waits: Iterable[Wait]) -> dict[str, float]:
    """Seconds from record timestamp to commit: half of the records, 95 of 100, and all."""
    of_records = list(waits)
    shares = {"freshness_median_s": 0.5, "freshness_p95_s": 0.95, "freshness_max_s": 1.0}
    quantiles = {name: quantile_s(of_records, share) for name, share in shares.items()}
    return {name: round(seconds, 1) for name, seconds in quantiles.items() if seconds is not None}


def _of_newest(manifest: "Manifest", store: "Store", prose: Mapping[str, str]) -> dict[str, Any]:
    """Columns and objects of an hour's newest commit: after a merge, and mostly, it is the only one."""
    metadata: dict[str, Any] = {}
    files = [file for file in manifest.files if file.kind == "data"]
    if files:
        shared = commonprefix([file.key for file in files])  # noqa: RUF071 - it is cut at its last slash
        directory = shared[: shared.rfind("/") + 1]
        metadata["dagster/uri"] = f"s3://{store.bucket}/{directory}"
        page = store.console_url(directory)
        if page is not None:
            metadata["console"] = dg.MetadataValue.url(page)
        metadata["newest_objects"] = _objects(files[:_OBJECTS], len(directory))
    if manifest.columns:
        metadata["dagster/column_schema"] = dg.TableSchema(
            [dg.TableColumn(name, str(type), prose.get(name)) for name, type in from_document(manifest.columns).items()]
        )
    return metadata


def _objects(files: "Iterable[File]", below: int) -> dg.TableMetadataValue:
    columns = ("rows", "bytes", "first_offset", "last_offset")
    rows = [
        dg.TableRecord(
            {
                "object": file.key[below:],
                "rows": file.records,
                "bytes": file.bytes,
                "first_offset": file.first_offset,
                "last_offset": file.last_offset,
            }
        )
        for file in files
    ]
    schema = dg.TableSchema([dg.TableColumn("object"), *(dg.TableColumn(name, "int") for name in columns)])
    return dg.MetadataValue.table(rows, schema)
