"""The events that a landing reports while it works, and an hour as they report it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from s3lake.index.commit.documents import Manifest, count_data_files
from s3lake.index.commit.sums import Commits
from s3lake.index.plan.stamps import find_notices
from s3lake.index.plan.tile import Sums, Tile
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    pass

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
        """An hour is complete, in several commits: what became of them."""

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
        self._log(f"{hour}: {format_count(offsets, 'offsets')} in {format_count(batches, 'micro-batches')}")

    def batch_committed(self, manifest: Manifest) -> None:
        records = sum(read.landed for read in manifest.partitions.values())
        files = format_count(count_data_files(manifest), "files")
        self._log(f"{manifest.hour}: landed {format_count(records, 'records')}, {files}")

    def hour_merged(self, hour: str, outcome: str) -> None:
        self._log(f"{hour}: {outcome}")

    def table_followed(self, outcome: str, *, behind: bool) -> None:
        self._log(f"table: {outcome}", logging.WARNING if behind else logging.INFO)

    def hour_landed(self, landed: LandedHour) -> None:
        for notice in find_notices(landed.tile):
            self._log(f"{landed.tile.hour}: {notice}", logging.WARNING)

    def _log(self, line: str, level: int = logging.INFO) -> None:
        _log.log(level, "%s %s %s", self.sink, self.topic, line)
