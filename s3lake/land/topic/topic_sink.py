"""One sink and topic, with all that landing, changing and reading what has landed needs of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from itertools import chain
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from s3lake import hours
from s3lake.config.model.key_space import KeySpace
from s3lake.errors import ConfigurationError, FencedError, S3LakeError
from s3lake.index.commit import sums
from s3lake.index.commit.clean import Cleaned, clean_index
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.index.commit.sums import Commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, find_landed_offsets
from s3lake.index.store import Store, Stores
from s3lake.land.micro_batch.gate import check_gate
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.table_follower import TableFollower
from s3lake.records.schema.columns.types import from_document
from s3lake.source.kafka.consumer_group import ConsumerGroup
from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget
from s3lake.source.offsets import Offsets

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.lake.table.iceberg import LakeTable
    from s3lake.land.request.read_request import RunTasks
    from s3lake.land.spark.opened_spark import OpenedSpark
    from s3lake.land.task.outcomes import Done
    from s3lake.source.record_batches import Reader

_log = logging.getLogger(__name__)
_TRIES = 5
A = TypeVar("A")
P = ParamSpec("P")


def retry_fenced(change: Callable[P, A]) -> Callable[P, A]:
    """Make a function run again if another writer was faster, up to five times."""

    @wraps(change)
    def run(*args: P.args, **kwargs: P.kwargs) -> A:
        import tenacity

        fenced, stop = tenacity.retry_if_exception_type(FencedError), tenacity.stop_after_attempt(_TRIES)
        return tenacity.Retrying(retry=fenced, stop=stop, reraise=True)(change, *args, **kwargs)

    return run


@dataclass
class TaskRequests:
    """S3 requests that tasks have made, by operation, and how many of them were retries."""

    counts: Counter[str] = field(default_factory=Counter)
    retries: int = 0


@dataclass(frozen=True, eq=False)
class TopicSink:
    """One sink and one topic.

    Attributes:
        spark: returns what Spark's jobs run in; called only when there is something to read.
        stores: opens the bucket, here and in Spark's workers.
        reader: gives the source, as Spark's tasks reach it; called only when there is something to read.
        dead_letter_topic: the sink's, with its connection.
        group: gets how far the topic is landed after each commit.
        table: the table that follows the index; None if the sink has none.
        clock: epoch milliseconds.
    """

    sink: Sink
    topic: str
    spark: Callable[[], OpenedSpark]
    stores: Stores
    offsets: Offsets
    reader: Callable[[], Reader]
    dead_letter_topic: DeadLetterTarget | None = None
    group: ConsumerGroup | None = None
    table: LakeTable | None = None
    clock: Callable[[], int] = hours.now_ms
    task_requests: TaskRequests = field(default_factory=TaskRequests, init=False)

    def __post_init__(self) -> None:
        if self.sink.table is not None and self.table is None:
            raise ValueError(f"sink {self.sink.name} has a table: without it objects that it lists would be deleted")

    @property
    def name(self) -> str:
        """The sink and the topic, for lines of the log."""
        return f"{self.sink.name} {self.topic}"

    @cached_property
    def follower(self) -> TableFollower:
        """The table, as it follows the index."""
        return TableFollower(self.table)

    @cached_property
    def index(self) -> TopicIndex:
        """The index; it knows the table that follows."""
        store, root = self.stores(self.sink.bucket), self.sink.index_root
        return TopicIndex(store, root, self.topic, self.sink.root, self.follower)

    @property
    def store(self) -> Store:
        """The bucket."""
        return self.index.store

    @property
    def requests(self) -> Counter[str]:
        """S3 requests so far by operation, the tasks' included."""
        return self.task_requests.counts + self.store.requests

    @property
    def retries(self) -> int:
        """S3 requests so far that were repetitions, the tasks' included."""
        return self.task_requests.retries + self.store.retries

    def hours(self, first: str | None = None, last: str | None = None) -> list[str]:
        """Return the hours of the index in this range."""
        head = self.index.head()
        listed = hours.expand(head[0].hours) if head else []
        return [hour for hour in listed if hours.is_within(hour, first, last)]

    @retry_fenced
    def manifests(self, hour: str) -> list[Manifest] | None:
        """Return the manifests of an hour's commits. Return None if the hour is not complete."""
        stored = self.index.tile(hour)
        return list(Commits(self.index, hour, stored[0].commits)) if stored and stored[0].landed else None

    def report(self, hour: str, new: int = 0) -> LandedHour:
        """Return what the index contains of `hour`; with an empty tile if the hour has none."""
        tile, _ = self.index.tile(hour) or (Tile(hour, {}), "")
        return LandedHour(tile, sums.Commits(self.index, hour, tile.commits), new)

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

    def clean(self, *, dry_run: bool = False) -> list[Cleaned]:
        """Remove what crashed writers left behind."""
        return clean_index(
            self.index, now_ms=self.clock(), dry_run=dry_run, keys=KeySpace.from_sink(self.sink, self.topic)
        )

    def find_landed_offsets(self, newest: Iterable[Tile] = ()) -> dict[int, int]:
        """Return how far the topic is landed, per topic-partition. `newest` is its last tile, if that is known."""
        return find_landed_offsets(chain(newest, self._read_newest()))

    def _read_newest(self) -> Iterator[Tile]:
        head = self.index.head()
        yield from self.index.newest(head[0]) if head else ()

    def publish(self, newest: Iterable[Tile] = ()) -> None:
        """Commit to the consumer group how far the topic is landed. It is advice: an error is only logged."""
        if self.group is None:
            return
        try:
            self.group.publish({self.topic: self.find_landed_offsets(newest)})
        except S3LakeError as error:
            _log.warning("%s: offsets are not published to a consumer group: %s", self.name, error)

    def stage(self, attempt: Attempt, run: RunTasks) -> Staged:
        """Do steps 1 and 2 of a commit: `run` the tasks, with columns that fit all of the micro-batch."""
        # What reads and converts records is imported when there are some: to look at an index takes a third of the CPU.
        from s3lake.land.micro_batch.micro_batch_staging import MicroBatchStaging
        from s3lake.land.request import stage_values
        from s3lake.land.task import outcomes

        if self.dead_letter_topic is not None:
            self.dead_letter_topic.create_if_missing()
        hour = attempt.tile.hour
        work = stage_values.build_work(
            self.sink,
            self.topic,
            self.stores,
            hour,
            commit=attempt.commit,
            mark=attempt.suffix,
            wallclock_ms=self.clock(),
            dead_letter_topic=self.dead_letter_topic,
        )
        recorded = self.index.columns() if work.by_columns or work.projection is not None else None
        stage_values.refuse_other_types(self.sink, self.topic, from_document(recorded[0].columns) if recorded else {})
        record = partial(outcomes.record, self.index, self.sink.max_columns, hour, attempt.commit)

        def check(done: Sequence[Done]) -> None:
            for outcome in done:
                self.task_requests.counts.update(outcome.requests)
                self.task_requests.retries += outcome.retries
            check_gate(self.sink, self.topic, hour, done)

        staging = MicroBatchStaging(self.sink, self.topic, run)
        return staging.stage(work, attempt.batch.reads, recorded[0] if recorded else None, record, check)
