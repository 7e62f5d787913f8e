"""One snapshot: hours of a table get their state in the index, together with the table's ledger."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from s3lake import hours as hourly
from s3lake.index.commit.documents import File, Manifest, collect_files
from s3lake.index.commit.replacing_attempts import list_offset_ranges
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.lake.table.iceberg import table_commits
from s3lake.lake.table.iceberg.entries import Entries, Footers, find_hour, make_object_uri
from s3lake.lake.table.iceberg.iceberg_columns import list_schemas, widen_schema
from s3lake.lake.table.iceberg.table_commits import TableDifference
from s3lake.records.schema.columns.limits import LANDED_HOUR
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction

Files = Mapping[str, Mapping[str, "DataFile"]]
"""Hour -> name -> file of a table."""


@dataclass(frozen=True)
class SyncResult:
    """A snapshot.

    Attributes:
        hours: the hours that the snapshot changed.
        commits, files, rows: the numbers that it added.
        removed: number of files that it removed.
    """

    hours: tuple[str, ...]
    commits: int
    files: int
    rows: int
    removed: int

    def __str__(self) -> str:
        span = self.hours[0] if len(self.hours) == 1 else f"{len(self.hours)} hours from {self.hours[0]}"
        out = f", {format_count(self.removed, 'files')} removed" if self.removed else ""
        commits, files = format_count(self.commits, "commits"), format_count(self.files, "files")
        return f"{span}: {commits}, {files}, {format_count(self.rows, 'rows')} added{out}"


def commit_snapshot(
    table: Table,
    taken: Sequence[TableDifference],
    footers: Footers,
    index: TopicIndex,
    *,
    notes: Mapping[str, str],
    by_files: bool,
) -> SyncResult:
    """Commit one snapshot to a table, if it did not change since it was loaded.

    Raises:
        CommitFailedException: it changed.
        TableConflictError: the table cannot take these files.
    """
    # A compaction has moved rows that the index lists, or listed, into files of its own: if commits were replaced, all
    # files of the hour that the index does not list are removed, whichever program wrote them.
    existing = list_table_files(table, [one.hour for one in taken if by_files or one.removed])
    added: dict[str, list[File]] = {}
    removed: list[DataFile] = []
    for difference in taken:
        hour = difference.hour
        if hour not in existing:
            added[hour] = collect_files(difference.added, "data")
            continue
        listed = name_files(footers.bucket, difference.listed)
        added[hour] = [file for name, file in listed.items() if name not in existing[hour]]
        removed += [file for name, file in existing[hour].items() if name not in listed]
    files = list(chain.from_iterable(added.values()))
    read = footers.read(files)
    change = _start_transaction(table)
    widen_schema(change, list_schemas(read.values()))
    entries = Entries(change.table_metadata, footers.bucket)
    update = change.update_snapshot(snapshot_properties=_summarize(index, taken, notes))
    with update.overwrite() if removed else update.merge_append() as producer:
        for hour, new in added.items():
            for file in new:
                producer.append_data_file(entries.make_data_file(hour, file, read[file.key]))
        for old in removed:
            producer.delete_data_file(old)
    hours = {one.hour: table_commits.shorten_ids(manifest.id for manifest in one.listed) for one in taken}
    change.set_properties(
        {
            **table_commits.update_properties(table_commits.read_ledger(table.properties), hours),
            **notes,
            table_commits.SNAPSHOT: str(producer.snapshot_id),
        }
    )
    change.commit_transaction()
    return SyncResult(
        hours=tuple(hours),
        commits=sum(len(one.added) for one in taken),
        files=len(files),
        rows=sum(file.records for file in files),
        removed=len(removed),
    )


def list_table_files(table: Table, hours: Sequence[str]) -> Files:
    """Return the data files that a table lists of some hours.

    Raises:
        TableConflictError: a file has no hour of landing as its partition.
    """
    files: dict[str, dict[str, DataFile]] = {hour: {} for hour in hours}
    if not hours:
        return files
    moments = ", ".join(f"'{hourly.parse_hour(hour).isoformat()}'" for hour in hours)
    for task in table.scan(row_filter=f"{LANDED_HOUR} in ({moments})").plan_files():
        position = find_hour(table.specs()[task.file.spec_id], table.schema())
        files[hourly.key_of_ms(task.file.partition[position] // 1000)][task.file.file_path] = task.file
    return files


def name_files(bucket: str, manifests: Iterable[Manifest]) -> dict[str, File]:
    """Return the data files of commits by their names in tables."""
    return {make_object_uri(bucket, file.key): file for file in collect_files(manifests, "data")}


def _start_transaction(table: Table) -> Transaction:
    """Return a transaction without retries: a retry of the library would put an old ledger next to a new snapshot."""
    properties = {**table.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table.transaction()


def _summarize(index: TopicIndex, taken: Sequence[TableDifference], notes: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a snapshot's summary."""
    manifests = list(chain.from_iterable(one.added for one in taken))
    head = index.head()
    watermark = head[0].sealed if head else None
    texts = {
        "s3lake.commits": ",".join(manifest.id for manifest in manifests),
        "s3lake.replaced": ",".join(chain.from_iterable(one.removed for one in taken)),
        "s3lake.hours": ",".join(one.hour for one in taken),
        "s3lake.offsets": json.dumps(_merge_offsets(manifests), separators=(",", ":")),
        "s3lake.sealed-up-to": watermark.upto if watermark else "",
    }
    return {**notes, **{name: text for name, text in texts.items() if text}}


def _merge_offsets(manifests: Iterable[Manifest]) -> dict[str, list[list[int]]]:
    """Return the offset ranges by topic-partition, merged if they are adjacent."""
    intervals: dict[int, list[list[int]]] = defaultdict(list)
    for partition, start, end in list_offset_ranges(manifests):
        before = intervals[partition]
        if before and before[-1][1] == start:
            before[-1][1] = end
        else:
            before.append([start, end])
    return {str(partition): spans for partition, spans in intervals.items()}
