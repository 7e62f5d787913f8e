"""What a landing reports while it works, and the table that follows its index."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import Manifest, count_data_files
from s3lake.index.commit.sums import Commits
from s3lake.index.plan.stamps import find_notices
from s3lake.index.plan.tile import Sums, Tile

if TYPE_CHECKING:
    from s3lake.lake.table.iceberg import LakeTable

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LandedHour:
    """An hour in the index after a run; the `manifests` of its commits are read when they are needed."""

    tile: Tile
    manifests: Commits
    new: int

    @property
    def sums(self) -> Sums:
        """The sums of all commits."""
        return self.tile.sums


class Observer(Protocol):
    """Receives the events of a landing as they happen, in the thread that lands."""

    def hour_planned(self, hour: str, offsets: int, batches: int) -> None:
        """An hour is begun: what there is to read of it, and in how many micro-batches."""

    def batch_committed(self, manifest: Manifest) -> None:
        """A micro-batch is visible."""

    def hour_merged(self, hour: str, outcome: str) -> None:
        """An hour is landed as a whole, in several commits: what became of them."""

    def table_followed(self, outcome: str, *, behind: bool) -> None:
        """The sink's table was brought to the index, or is behind it, and why."""

    def hour_landed(self, landed: LandedHour) -> None:
        """Nothing of an hour is left for this run."""


@dataclass
class Logged:
    """Writes it to the log of this process; `sink` and `topic` begin each line."""

    sink: str
    topic: str

    def hour_planned(self, hour: str, offsets: int, batches: int) -> None:
        self._log(f"{hour}: {offsets} offsets in {batches} micro-batches")

    def batch_committed(self, manifest: Manifest) -> None:
        records = sum(read.landed for read in manifest.partitions.values())
        self._log(f"{manifest.hour}: landed {records} records, {count_data_files(manifest)} files")

    def hour_merged(self, hour: str, outcome: str) -> None:
        self._log(f"{hour}: {outcome}")

    def table_followed(self, outcome: str, *, behind: bool) -> None:
        self._log(f"table: {outcome}", logging.WARNING if behind else logging.INFO)

    def hour_landed(self, landed: LandedHour) -> None:
        for notice in find_notices(landed.tile):
            self._log(f"{landed.tile.hour}: {notice}", logging.WARNING)

    def _log(self, line: str, level: int = logging.INFO) -> None:
        _log.log(level, "%s %s %s", self.sink, self.topic, line)


class TableFollower:
    """Brings the table of a sink to its index; a sink without a table has nothing that follows.

    Attributes:
        behind: hours that the table could not be brought to when it was tried last.
    """

    def __init__(self, table: LakeTable | None) -> None:
        self.behind: set[str] = set()
        self._table = table
        self._outcomes = SimpleQueue[tuple[str, bool]]()

    def follow(self, hours: Collection[str]) -> S3LakeError | None:
        """See `commit.index.Follower`; the thread that lands reports the result."""
        if self._table is None:
            return None
        try:
            for snapshot in self._table.sync(hours):
                self._outcomes.put((str(snapshot), False))
        except S3LakeError as error:
            self._outcomes.put((str(error), True))
            self.behind.update(hours)
            return error
        self.behind.difference_update(hours)
        return None

    def tell(self, observer: Observer) -> None:
        """Report what became of the table since the last report."""
        while not self._outcomes.empty():
            outcome, behind = self._outcomes.get()
            observer.table_followed(outcome, behind=behind)
