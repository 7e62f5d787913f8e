"""Which files a table lists now, and what becomes of them when commits are exchanged."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3lake import hours as hourly
from s3lake.commit.documents import File, Manifest, files_of
from s3lake.commit.index import TopicIndex
from s3lake.errors import TableConflictError
from s3lake.table.iceberg.columns import LANDED_HOUR
from s3lake.table.iceberg.difference import Difference
from s3lake.table.iceberg.entries import address, by_hour
from s3lake.table.iceberg.ledger import short

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


@dataclass(frozen=True)
class Exchange:
    """What a table gets and loses of an hour."""

    added: Sequence[File]
    removed: Sequence[DataFile] = ()


class Present:
    """The data files that a table lists of some hours, of all where it is not partitioned by them."""

    def __init__(self, table: Table, bucket: str, hours: Iterable[str]) -> None:
        self._table, self._bucket, self._asked = table, bucket, tuple(hours)

    def exchange(self, index: TopicIndex, difference: Difference) -> Exchange:
        """What makes the table's files of an hour those that the index lists.

        With the hour as partition, all that stands there and is not listed goes, whoever wrote it: a compaction has
        moved rows that are listed, or were, into files of its own. Without it, nobody knows which rows a file of
        somebody else holds.

        Raises:
            TableConflictError: rows of the hour may stand in files that s3lake did not give to the table.
        """
        listed = self._addresses(difference.listed)
        if self._by_hour:
            there = self._hours[difference.hour]
            removed = [file for path, file in there.items() if path not in listed]
            return Exchange([file for path, file in listed.items() if path not in there], removed)
        gone = self._addresses(_replaced(index, difference, self._table))
        if any(path not in self._files for path in gone):
            raise self._conflict(difference.hour)
        return Exchange(
            [file for path, file in listed.items() if path not in self._files], [self._files[path] for path in gone]
        )

    def lacks(self, difference: Difference) -> bool:
        """Whether the files of an hour are others than the index lists."""
        listed = self._addresses(difference.listed)
        if self._by_hour:
            return listed.keys() != self._hours[difference.hour].keys()
        return not listed.keys() <= self._files.keys()

    def must_be_ours(self, index: TopicIndex, of: Iterable[Difference]) -> None:
        """Refuse a table without the hour as partition that lists files which the index has not.

        Raises:
            TableConflictError: it does.
        """
        if self._by_hour:
            return
        ours = {path for one in of for path in self._addresses((*one.listed, *_replaced(index, one, self._table)))}
        if not self._files.keys() <= ours:
            raise self._conflict("some hour")

    def _conflict(self, hour: str) -> TableConflictError:
        return TableConflictError(
            f"table {'.'.join(self._table.name())} is not partitioned by hour, and rows of {hour} were moved into "
            "files of somebody else, by a compaction for example: which of them were replaced cannot be told. Drop the "
            "table and run `s3lake table sync`, which lists the files anew and writes none; with table.partition: "
            "[hour] it does not come to this"
        )

    def _addresses(self, manifests: Iterable[Manifest]) -> dict[str, File]:
        return {address(self._bucket, file.key): file for file in files_of(manifests, "data")}

    @functools.cached_property
    def _files(self) -> Mapping[str, DataFile]:
        from pyiceberg.expressions import AlwaysTrue

        moments = ", ".join(f"'{hourly.parse(hour).isoformat()}'" for hour in self._asked)
        wanted = f"{LANDED_HOUR} in ({moments})" if self._by_hour else AlwaysTrue()
        return {task.file.file_path: task.file for task in self._table.scan(row_filter=wanted).plan_files()}

    @functools.cached_property
    def _hours(self) -> Mapping[str, Mapping[str, DataFile]]:
        files_of: dict[str, dict[str, DataFile]] = defaultdict(dict)
        for path, file in self._files.items():
            position = by_hour(self._table.specs()[file.spec_id], self._table.schema())
            files_of[hourly.key_of_ms(file.partition[position or 0] // 1000)][path] = file
        return files_of

    @functools.cached_property
    def _by_hour(self) -> bool:
        """Whether every file stands in an hour: those of a specification before need not."""
        snapshot = self._table.current_snapshot()
        manifests = snapshot.manifests(self._table.io) if snapshot else ()
        used = {self._table.spec().spec_id, *(manifest.partition_spec_id for manifest in manifests)}
        return all(by_hour(self._table.specs()[spec], self._table.schema()) is not None for spec in used)


def _replaced(index: TopicIndex, difference: Difference, table: Table) -> list[Manifest]:
    """The manifests of commits that the tile lists no more.

    Raises:
        TableConflictError: they are gone, as they are two weeks after the commit.
    """
    if not difference.gone:
        return []
    names = {short(commit): commit for commit in index.manifest_ids(difference.hour)}
    manifests = [index.manifest(difference.hour, names[one]) for one in difference.gone if one in names]
    there = [manifest for manifest in manifests if manifest is not None]
    if len(there) < len(difference.gone):
        raise TableConflictError(
            f"table {'.'.join(table.name())} lists files of commits of {difference.hour} that were replaced so long "
            "ago that the index has forgotten them: drop the table and run `s3lake table sync`, which writes no file"
        )
    return there
