"""One sink and topic, for all that changes or reads what has landed: its index, and the bucket of its objects."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from s3lake import hours
from s3lake.commit.documents import Manifest
from s3lake.commit.index import TopicIndex
from s3lake.commit.sums import Commits
from s3lake.errors import ConfigurationError, FencedError
from s3lake.land.task.pipeline import Stores
from s3lake.store import Store

if TYPE_CHECKING:
    from s3lake.sink import Sink

_TRIES = 5
A = TypeVar("A")
P = ParamSpec("P")


def retry_fenced(change: Callable[P, A]) -> Callable[P, A]:
    """Make a function run again if another writer was faster, up to five times."""

    @wraps(change)
    def run(*args: P.args, **kwargs: P.kwargs) -> A:
        for _ in range(_TRIES - 1):
            with suppress(FencedError):
                return change(*args, **kwargs)
        return change(*args, **kwargs)

    return run


@dataclass(frozen=True)
class TopicSink:
    """One sink and topic.

    Attributes:
        index: of them; it knows the table that follows.
        stores: opens the bucket, here and in Spark's workers.
    """

    sink: Sink
    index: TopicIndex
    stores: Stores

    @property
    def topic(self) -> str:
        """The topic."""
        return self.index.topic

    @property
    def store(self) -> Store:
        """The bucket."""
        return self.index.store

    def hours(self, first: str | None = None, last: str | None = None) -> list[str]:
        """Return the hours of the index in this range."""
        head = self.index.head()
        listed = hours.expand(head[0].hours) if head else []
        return [hour for hour in listed if hours.is_within(hour, first, last)]

    @retry_fenced
    def manifests(self, hour: str) -> list[Manifest] | None:
        """Return the manifests of an hour's commits. Return None if the hour is not landed as a whole."""
        stored = self.index.tile(hour)
        return list(Commits(self.index, hour, stored[0].commits)) if stored and stored[0].landed else None

    def require_exactly_once(self) -> TopicSink:
        """Return the target itself.

        Raises:
            ConfigurationError: the sink is not exactly once, so the index does not list all of its objects.
        """
        if not self.sink.exactly_once:
            raise ConfigurationError(
                f"sink {self.sink.name} has exactly_once: false, so objects that the index does not list may hold "
                "the same records: what it has landed cannot be changed commit by commit. Rewrite its hours"
            )
        return self
