"""What a sink holds of a topic, hour by hour, and the exchange of commits for one that takes their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from s3lake import hours
from s3lake.commit import protocol
from s3lake.commit.index import Manifest, TopicIndex
from s3lake.commit.marker import renew_existing
from s3lake.commit.merge import begin_merge, united
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import PACE, Pace, settle, sweep
from s3lake.commit.sums import Commits
from s3lake.errors import ConfigurationError, FencedError
from s3lake.land.task.pipeline import Stores
from s3lake.plan.tile import Tile

if TYPE_CHECKING:
    from s3lake.land.landing import Landing
    from s3lake.sink import Sink

_TRIES = 5
A = TypeVar("A")


@dataclass(frozen=True)
class Holding:
    """One sink and topic.

    Attributes:
        index: of them, with what follows it.
        stores: opens the bucket.
        pace: of requests.
    """

    sink: Sink
    index: TopicIndex
    stores: Stores
    pace: Pace = PACE

    @classmethod
    def of(cls, landing: Landing) -> Holding:
        """What a landing has landed.

        Raises:
            ConfigurationError: the sink is not exactly once, so its objects are not all told apart.
        """
        if not landing.sink.exactly_once:
            raise ConfigurationError(
                f"sink {landing.sink.name} has exactly_once: false, so objects that the index does not list may hold "
                "the same records: what it has landed cannot be changed commit by commit. Rewrite its hours"
            )
        return cls(landing.sink, landing.index, landing.stores)

    def hours(self, first: str | None = None, last: str | None = None) -> list[str]:
        """The hours that the index has, of this range."""
        head = self.index.head()
        listed = hours.expand(head[0].hours) if head else []
        return [hour for hour in listed if (first or hour) <= hour <= (last or hour)]

    def manifests(self, hour: str) -> list[Manifest] | None:
        """Those of the commits of an hour; None where it is not landed as a whole."""
        return again(partial(self._listed, hour))

    def _listed(self, hour: str) -> list[Manifest] | None:
        stored = self.index.tile(hour)
        return list(Commits(self.index, hour, stored[0].commits)) if stored and stored[0].landed else None

    def tidied(self, hour: str) -> Tile:
        """The tile with nothing pending and no garbage: what an exchange before did not come to is done.

        Raises:
            StoreDeniedError: objects that were replaced may not be deleted.
            TableUnavailableError: the table, its catalog or the store was in the way, and the table may list them.
            TableConflictError: the table cannot follow before somebody has changed something.
        """
        settle(self.index, hour, self.pace)
        self._follow(hour)
        tile, _ = protocol.ready(self.index, hour, self.pace)
        while tile.garbage:  # it was denied, and somebody has to be told
            self._follow(hour)
            swept = sweep(self.index, hour, self.pace)
            tile = swept[0] if swept else tile
        renew_existing(self.index, self.sink, tile)  # a change before may have ended between its switch and this
        return tile

    def _follow(self, hour: str) -> None:
        """Bring the table to the hour, and raise what prevents that: a change begins only once it can be finished."""
        error = self.index.follow(hour)
        if error is not None:
            raise error

    def exchange(
        self, hour: str, replaced: Sequence[Manifest], reason: str, stage: Callable[[Attempt], Staged]
    ) -> Manifest:
        """Let one commit, which `stage` stages, take the place of others.

        Raises:
            FencedError: another writer was faster; nothing is changed.
            TableUnavailableError: the table could not follow. Nothing is changed, or the replaced objects stay until
                this is repeated.
        """
        self.tidied(hour)
        attempt = begin_merge(self.index, hour, replaced, self.pace, reason=reason)
        if attempt is None:
            raise FencedError(f"{self.index.topic} {hour} is made of other commits by now; nothing of it is changed")
        with self.index.reading(hour, [manifest.id for manifest in replaced]):
            staged = stage(attempt)
        manifest, tile = protocol.commit(self.index, attempt, staged, self.pace)
        renew_existing(self.index, self.sink, tile)
        if tile.garbage:
            self.tidied(hour)
        return manifest


def again(change: Callable[[], A]) -> A:
    """What a change comes to, which begins once more where another writer was faster.

    Raises:
        FencedError: one was, each time.
    """
    for _ in range(_TRIES - 1):
        with suppress(FencedError):
            return change()
    return change()


def alike(manifests: Sequence[Manifest]) -> list[list[Manifest]]:
    """Commits whose files a reader reads the same way, as one commit can replace them: those of an hour, or each."""
    groups: dict[bytes, list[Manifest]] = {}
    for manifest in manifests:
        form = (manifest.format, manifest.converter, manifest.nulls, manifest.shape, manifest.columns)
        groups.setdefault(msgspec.json.encode(form), []).append(manifest)
    return [part for some in groups.values() for part in ([some] if united(some) else [[each] for each in some])]
