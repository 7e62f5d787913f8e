"""One snapshot: hours of a table become what the index says of them, together with the table's notes of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from s3lake.commit.documents import Manifest, files_of
from s3lake.commit.index import TopicIndex
from s3lake.commit.replace import offset_ranges_of
from s3lake.table.iceberg import ledger
from s3lake.table.iceberg.columns import grow, of_files
from s3lake.table.iceberg.difference import Difference
from s3lake.table.iceberg.entries import Entries, Footers
from s3lake.table.iceberg.present import Exchange, Present

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction


@dataclass(frozen=True)
class Followed:
    """One snapshot.

    Attributes:
        hours: that it is about.
        commits: that it added.
        files: that it added.
        rows: that it added.
        removed: files that it took out.
    """

    hours: tuple[str, ...]
    commits: int
    files: int
    rows: int
    removed: int

    def __str__(self) -> str:
        span = self.hours[0] if len(self.hours) == 1 else f"{len(self.hours)} hours from {self.hours[0]}"
        out = f", {self.removed} files taken out" if self.removed else ""
        return f"{span}: {self.commits} commits, {self.files} files, {self.rows} rows added{out}"


def snapshot(
    table: Table,
    taken: Sequence[Difference],
    footers: Footers,
    index: TopicIndex,
    *,
    notes: Mapping[str, str],
    by_files: bool,
) -> Followed:
    """Commit one snapshot to a table that is still as it was loaded.

    Raises:
        CommitFailedException: it is not.
        TableConflictError: the table cannot hold these files.
    """
    present = Present(table, footers.bucket, (one.hour for one in taken))
    exchanges = {
        one.hour: present.exchange(index, one) if by_files or one.gone else Exchange(files_of(one.added, "data"))
        for one in taken
    }
    added = list(chain.from_iterable(exchange.added for exchange in exchanges.values()))
    removed = list(chain.from_iterable(exchange.removed for exchange in exchanges.values()))
    read = footers.of(added)
    change = _once(table)
    grow(change, of_files(read.values()))
    entries = Entries(change.table_metadata, footers.bucket)
    update = change.update_snapshot(snapshot_properties=_summary(index, taken, notes))
    with update.overwrite() if removed else update.merge_append() as producer:
        for hour, exchange in exchanges.items():
            for file in exchange.added:
                producer.append_data_file(entries.of(hour, file, read[file.key]))
        for gone in removed:
            producer.delete_data_file(gone)
    hours = {one.hour: ledger.shortened(manifest.id for manifest in one.listed) for one in taken}
    change.set_properties(
        {
            **ledger.changed(ledger.read(table.properties), hours),
            **notes,
            ledger.SNAPSHOT: str(producer.snapshot_id),
        }
    )
    change.commit_transaction()
    return Followed(
        hours=tuple(hours),
        commits=sum(len(one.added) for one in taken),
        files=len(added),
        rows=sum(file.records for file in added),
        removed=len(removed),
    )


def _once(table: Table) -> Transaction:
    """A change that is tried once: tried again by the library, it would put old notes beside a new snapshot."""
    properties = {**table.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table.transaction()


def _summary(index: TopicIndex, taken: Sequence[Difference], notes: Mapping[str, str]) -> dict[str, str]:
    """What a snapshot says of itself."""
    manifests = list(chain.from_iterable(one.added for one in taken))
    watermark = index.watermark()
    texts = {
        "s3lake.commits": ",".join(manifest.id for manifest in manifests),
        "s3lake.replaced": ",".join(chain.from_iterable(one.gone for one in taken)),
        "s3lake.hours": ",".join(one.hour for one in taken),
        "s3lake.offsets": json.dumps(_offsets(manifests), separators=(",", ":")),
        "s3lake.sealed-up-to": watermark[0].upto if watermark else "",
    }
    return {**notes, **{name: text for name, text in texts.items() if text}}


def _offsets(manifests: Iterable[Manifest]) -> dict[str, list[list[int]]]:
    """Topic-partition -> intervals of offsets, joined where they meet."""
    intervals: dict[int, list[list[int]]] = defaultdict(list)
    for partition, start, end in offset_ranges_of(manifests):
        before = intervals[partition]
        if before and before[-1][1] == start:
            before[-1][1] = end
        else:
            before.append([start, end])
    return {str(partition): spans for partition, spans in intervals.items()}
