"""The events of a landed hour and of its dead letters, from the index.

Dagster plots every number, hour by hour: a number here is one whose course means something. The rest are tables.
Contents of a dead letter are shown only if `errors.samples` allows it: an event log outlives a bucket's retention, is
read by more people, and erasing a person's records does not change it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.errors import S3LakeError
from s3lake.index.commit.column_history import list_column_steps
from s3lake.index.commit.dead_letter_reasons import merge_reasons
from s3lake.index.commit.documents import DEAD_LETTERS, collect_files
from s3lake.index.plan import sealed
from s3lake.index.plan.counts import list_counts, list_counts_by_field
from s3lake.index.plan.sealed import compute_wait_quantile_s
from s3lake.index.plan.stamps import find_notices
from s3lake.index.plan.tile import Wait
from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.column_descriptions import describe_columns
from s3lake.records.schema.columns.types import from_document
from s3lake.text.masking import format_content
from s3lake.text.quantities import format_wait

if TYPE_CHECKING:
    from s3lake.index.commit.documents import Manifest
    from s3lake.index.commit.topic_index import TopicIndex
    from s3lake.index.plan.tile import Sums, Tile
    from s3lake.index.store import Store
    from s3lake.lake.objects.dead_letter_objects import StoredDeadLetter
    from s3lake.land.topic.observer import LandedHour
    from s3lake.land.topic.topic_sink import TopicSink
    from s3lake.source.offsets import Lag

_OBJECTS = 10
_SAMPLES = 10
_SAMPLE_LENGTH = 80


def hour_events(
    catalog: Catalog,
    target: "TopicSink",
    landed: "LandedHour",
    lag: "Lag | None" = None,
    retries: Mapping[str, Any] = {},
) -> Iterator[dg.AssetMaterialization]:
    """Yield the materialisation of an hour, and that of its dead letters if it has one.

    The version of the hour's data is the digest of its commits, so an hour that is materialised again without a new
    commit keeps it, and nothing downstream is out of date. No versions of inputs are named: that of a topic changes
    with each record, so each hour would be out of date as soon as it was landed.
    """
    sink, topic, tile = target.sink, target.topic, landed.tile
    descriptions = describe_columns(sink, topic, target.index)
    yield dg.AssetMaterialization(
        catalog.key(sink, topic),
        partition=tile.hour,
        metadata={**hour_metadata(landed, target.index, lag, descriptions), **retries},
        tags={dagster_names.DATA_VERSION: sealed.digest_commits(tile.commits)},
    )
    dead_letters = dead_letters_metadata(landed, target)
    if dead_letters is not None:
        key = catalog.specs(sink, topic).dead_letters.key
        yield dg.AssetMaterialization(key, partition=tile.hour, metadata=dead_letters)


def hour_metadata(
    landed: "LandedHour", index: "TopicIndex", lag: "Lag | None" = None, descriptions: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Return the metadata of one hour; `lag` is None if it is closed, `descriptions` are its columns' descriptions."""
    tile, newest = landed.tile, landed.manifests[-1] if landed.manifests else None
    return {
        **counts(landed.sums),
        **({} if lag is None else {"lag_s": round(lag.seconds, 1)}),
        **freshness(landed.sums.waits),
        "complete": dg.MetadataValue.bool(tile.complete),
        "commits": f"{len(tile.commits)}, {landed.new} of them new",
        **(_schema_changes(index, tile.hour) if newest and newest.columns else {}),
        **_counts_by_field(landed.sums),
        **offset_tables(tile, landed.sums, index, lag),
        **(_newest_commit(newest, index.store, descriptions) if newest else {}),
    }


def counts(sums: "Sums") -> dict[str, int]:
    """Return the counts of an hour; counts that are mostly 0 only if they are not."""
    plotted = [(one, count) for one, count in list_counts(sums) if one.is_plotted and not one.by_field and count]
    return {
        "dagster/row_count": sums.landed,
        "dagster/size_bytes": sums.bytes,
        "files": sums.files,
        **{one.name: count for one, count in plotted},
    }


def freshness(waits: Iterable[Wait]) -> dict[str, float | str]:
    """Return the seconds from record timestamp to commit: of half of the records, of 95 in 100, and of all.

    Dagster plots the numbers. People read the text: a backfill's records have waited for hours or days.
    """
    waits = list(waits)
    shares = {"freshness_median_s": 0.5, "freshness_p95_s": 0.95, "freshness_max_s": 1.0}
    quantiles = {name: compute_wait_quantile_s(waits, share) for name, share in shares.items()}
    seconds = {name: round(quantile, 1) for name, quantile in quantiles.items() if quantile is not None}
    if not seconds:
        return {}
    median, p95, longest = map(format_wait, seconds.values())
    return {
        "freshness": f"half of the records within {median}, 95 of 100 within {p95}, all within {longest}",
        **seconds,
    }


def offset_tables(tile: "Tile", sums: "Sums", index: "TopicIndex", lag: "Lag | None" = None) -> dict[str, Any]:
    """Return the tables that explain an hour's offsets, notices about its timestamps, and the place of its tile."""
    notices = find_notices(tile)
    return {
        **({"notices": dg.MetadataValue.text("\n".join(notices))} if notices else {}),
        **_records(tile, sums),
        "offsets": _offsets(index.topic, tile, lag.ends if lag else {}),
        "index": dg.MetadataValue.path(f"s3://{index.store.bucket}/{index.tile_key(tile.hour)}"),
    }


def _records(tile: "Tile", sums: "Sums") -> dict[str, Any]:
    """Return how the landed offsets add up: the lines after the first. Nothing if each offset is a row."""
    outcomes = {
        "landed offsets": sum(span.committed - span.start for span in tile.partitions.values()),
        **{
            definition.label or definition.text: count
            for definition, count in list_counts(sums)
            if definition.role == "outcome"
        },
        "expired before they were read": sum(end - start for _, start, end in tile.expired),
        "without a record: markers, aborted or compacted": sealed.count_without_record(tile, sums),
    }
    lines = [outcome for outcome in outcomes.items() if outcome[1]]
    if all(name in ("landed offsets", "rows") for name, _ in lines):  # the number of rows is a count of its own
        return {}
    return {"records": build_metadata_table([("what",), ("count", "int")], lines)}


def _offsets(topic: str, tile: "Tile", ends: Mapping[int, int]) -> dg.TableMetadataValue:
    """Return the tile's offset ranges; `ends` are the present ends of topic-partitions if the hour is open."""
    columns = [
        ("topic-partition",),
        ("start", "int", "the first offset of the hour"),
        ("landed", "int", "up to here, not included, all is landed"),
        ("end", "int", "the first offset after the hour, or after all that there is of an open hour"),
        ("lag", "int", "offsets that are not landed"),
    ]
    rows = []
    for partition, span in sorted(tile.partitions.items()):
        end = max(span.committed, ends.get(partition, 0)) if span.end is None else span.end
        rows.append((f"{topic}-{partition}", span.start, span.committed, end, end - span.committed))
    return build_metadata_table(columns, rows)


def _counts_by_field(sums: "Sums") -> dict[str, Any]:
    """Return a table for each count by field, if there is anything to show."""
    return {
        definition.name: build_metadata_table(
            [("field",), ("records", "int", definition.meaning)], sorted(by_field.items())
        )
        for definition, by_field in list_counts_by_field(sums)
        if by_field
    }


def _schema_changes(index: "TopicIndex", hour: str) -> dict[str, Any]:
    """Return how the hour changed the columns of the topic's files; the first columns of all are not a change."""
    rows = [
        (step.change.column, step.change.before or "", step.change.after, step.commit or "")
        for step in list_column_steps(index, hour)
        if not step.first
    ]
    columns = [
        ("column",),
        ("before", "string", "its type before; empty if there was no such column"),
        ("after", "string", "its type from this hour on"),
        ("commit", "string", "that brought it; empty if it is not visible yet"),
    ]
    return {"schema_changes": build_metadata_table(columns, rows)} if rows else {}


def _newest_commit(manifest: "Manifest", store: "Store", descriptions: Mapping[str, str]) -> dict[str, Any]:
    """Return columns and objects of an hour's newest commit; mostly, and after a merge, it is the only one."""
    metadata: dict[str, Any] = {}
    files = collect_files([manifest], "data")
    if files:
        shared = commonprefix([file.key for file in files])  # noqa: RUF071 - it is cut at its last slash
        directory = shared[: shared.rfind("/") + 1]
        metadata["dagster/uri"] = f"s3://{store.bucket}/{directory}"
        page = store.console_url(directory)
        if page is not None:
            metadata["console"] = dg.MetadataValue.url(page)
        metadata["newest_objects"] = build_metadata_table(
            [("object",), ("rows", "int"), ("bytes", "int"), ("first_offset", "int"), ("last_offset", "int")],
            (
                (file.key[len(directory) :], file.records, file.bytes, file.first_offset, file.last_offset)
                for file in files[:_OBJECTS]
            ),
        )
    if manifest.columns:
        columns = from_document(manifest.columns).items()
        metadata["dagster/column_schema"] = dg.TableSchema(
            [dg.TableColumn(name, str(type), descriptions.get(name)) for name, type in columns]
        )
    return metadata


def dead_letters_metadata(landed: "LandedHour", target: "TopicSink") -> dict[str, Any] | None:
    """Return the metadata of an hour's dead letters: counts by reason, and where some of them are.

    Return None if the sink has no asset of them. An open hour without any costs no event; a complete one has 0, so
    that Dagster does not show it as missing.
    """
    sums, tile, sink = landed.sums, landed.tile, target.sink
    if sink.errors.tolerance != "all" or not (sums.dead or sums.taken or tile.complete):
        return None
    manifests = [manifest for manifest in landed.manifests if collect_files([manifest], DEAD_LETTERS)]
    metadata: dict[str, Any] = {"dead_letters": sums.dead, "share": dead_share(sums)}
    if sums.taken:
        replays = chain.from_iterable(manifest.taken for manifest in landed.manifests)
        metadata["replayed"] = sums.taken
        metadata["replays"] = build_metadata_table(
            [("commit",), ("at", "int", "epoch ms"), ("dead_letters", "int")],
            ((replay.commit, replay.at_ms, replay.count) for replay in replays),
        )
    if manifests:
        try:
            metadata |= _read_dead_letters(target, manifests)
        except S3LakeError as error:  # they are shown to people: landing them succeeded
            metadata["not_read"] = str(error)
        metadata["to_replay"] = dg.MetadataValue.md(
            f"`s3lake dead-letters replay --sink {sink.name} --topic {target.topic} --hour {tile.hour}`"
        )
    return metadata


def dead_share(sums: "Sums") -> float:
    """Return the share of dead letters among the records that were read."""
    return round(sums.dead / sums.read, 6) if sums.read else 0.0


def _read_dead_letters(target: "TopicSink", manifests: Sequence["Manifest"]) -> dict[str, Any]:
    from s3lake.land.change.committed_dead_letters import some_of

    store, files = target.store, collect_files(manifests, DEAD_LETTERS)
    reasons = merge_reasons(manifest.refusal_reasons for manifest in manifests)
    samples = some_of(store, manifests, _SAMPLES)
    return {
        "reasons": build_metadata_table(
            [
                ("stage",),
                ("reason", "string", "what it quotes is left out"),
                ("count", "int"),
                ("first", "string", "topic-partition@offset"),
            ],
            ((one.stage, one.reason, one.count, f"{one.partition}@{one.offset}") for one in reasons),
        ),
        "samples": _samples(samples, contents=target.sink.errors.samples == "contents"),
        "objects": dg.MetadataValue.json([f"s3://{store.bucket}/{file.key}" for file in files[:_OBJECTS]]),
    }


def _samples(dead_letters: Iterable["StoredDeadLetter"], *, contents: bool) -> dg.TableMetadataValue:
    """Return the places and sizes of dead letters, or with `contents` the begin of what they hold."""
    further = [("reason",), ("key",), ("value",)] if contents else [("key_bytes", "int"), ("value_bytes", "int")]
    columns = [("topic-partition",), ("offset", "int"), ("timestamp", "int"), ("stage",), ("headers", "int"), *further]
    rows = []
    for dead_letter in dead_letters:
        if contents:
            texts = [format_content(part, _SAMPLE_LENGTH) for part in (dead_letter.key, dead_letter.value)]
            shown: list[Any] = [dead_letter.message, *texts]
        else:
            shown = [len(dead_letter.key or b""), len(dead_letter.value or b"")]
        place = f"{dead_letter.topic}-{dead_letter.partition}"
        rows.append(
            [place, dead_letter.offset, dead_letter.timestamp_ms, dead_letter.stage, len(dead_letter.headers), *shown]
        )
    return build_metadata_table(columns, rows)


def build_metadata_table(columns: Sequence[tuple[str, ...]], rows: Iterable[Sequence[Any]]) -> dg.TableMetadataValue:
    """Build a table for the UI; a column is its name, its type if it is not a string, and its description."""
    parts = ("name", "type", "description")
    schema = [dg.TableColumn(**dict(zip(parts, column, strict=False))) for column in columns]  # type: ignore[arg-type]
    records = [dg.TableRecord({one.name: cell for one, cell in zip(schema, row, strict=True)}) for row in rows]
    return dg.MetadataValue.table(records, dg.TableSchema(schema))
