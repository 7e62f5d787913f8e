"""What a landing tells while it works, and of an hour when it is done with it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from s3lake.commit import sums
from s3lake.commit.index import Manifest
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


class Logged:
    """Says it in the log of this process."""

    def planned(self, hour: str, offsets: int, batches: int) -> None:
        _log.info("%s: %d offsets in %d micro-batches", hour, offsets, batches)

    def committed(self, manifest: Manifest) -> None:
        records = sum(read.landed for read in manifest.partitions.values())
        _log.info("landed %s %s: %d records, %d files", manifest.topic, manifest.hour, records, len(manifest.files))

    def merged(self, hour: str, outcome: str) -> None:
        _log.info("%s: %s", hour, outcome)

    def followed(self, outcome: str, *, behind: bool) -> None:
        _log.log(logging.WARNING if behind else logging.INFO, "table: %s", outcome)

    def done(self, landed: LandedHour) -> None:
        """See `Observer.done`."""
