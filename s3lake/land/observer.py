"""What a landing tells while it works, and of an hour when it is done with it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from s3lake.commit import sums
from s3lake.commit.files import count_data_files
from s3lake.commit.index import Manifest
from s3lake.plan.stamps import find_notices
from s3lake.plan.tile import Sums, Tile

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LandedHour:
    """What the index says of an hour after a run; `manifests` are its commits', read when they are asked for."""

    tile: Tile
    manifests: Sequence[Manifest]
    new: int

    @functools.cached_property
    def sums(self) -> Sums:
        """What the commits hold together."""
        return sums.of_tile(self.tile, self.manifests)


class Observer(Protocol):
    """Told what a landing does as it happens, in the thread that lands."""

    def planned(self, hour: str, offsets: int, batches: int) -> None:
        """An hour is begun: what there is to read of it, and in how many micro-batches."""

    def committed(self, manifest: Manifest) -> None:
        """A micro-batch is visible."""

    def merged(self, hour: str, outcome: str) -> None:
        """An hour is landed as a whole, in several commits: what became of them."""

    def followed(self, outcome: str, *, behind: bool) -> None:
        """The sink's table was brought to the index, or is behind it, and why."""

    def done(self, landed: LandedHour) -> None:
        """Nothing of an hour is left for this run."""


@dataclass
class Logged:
    """Writes it to the log of this process; `sink` and `topic` begin each line."""

    sink: str
    topic: str

    def planned(self, hour: str, offsets: int, batches: int) -> None:
        self._log(f"{hour}: {offsets} offsets in {batches} micro-batches")

    def committed(self, manifest: Manifest) -> None:
        records = sum(read.landed for read in manifest.partitions.values())
        self._log(f"{manifest.hour}: landed {records} records, {count_data_files(manifest)} files")

    def merged(self, hour: str, outcome: str) -> None:
        self._log(f"{hour}: {outcome}")

    def followed(self, outcome: str, *, behind: bool) -> None:
        self._log(f"table: {outcome}", logging.WARNING if behind else logging.INFO)

    def done(self, landed: LandedHour) -> None:
        for notice in find_notices(landed.tile):
            self._log(f"{landed.tile.hour}: {notice}", logging.WARNING)

    def _log(self, line: str, level: int = logging.INFO) -> None:
        _log.log(level, "%s %s %s", self.sink, self.topic, line)
