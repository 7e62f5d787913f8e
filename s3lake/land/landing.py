"""Land hours of a topic into a sink, micro-batch by micro-batch, in one Spark session: the driver's side.

Hours are done in order. While one hour's commit is made visible the next hour is read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.commit import opening, protocol, sums
from s3lake.commit.clean import Cleaned, clean
from s3lake.commit.documents import MOST_FILES, Manifest, TopicHead, count_data_files
from s3lake.commit.index import TopicIndex
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import abort
from s3lake.commit.replace import begin_rewrite
from s3lake.errors import DataLossError, FencedError, S3LakeError, TooManyFilesError
from s3lake.land import binding
from s3lake.land.checks import check_gate, refuse_missing
from s3lake.land.job import Engine, Job, TaskEngine
from s3lake.land.maintenance.compact import CompactOptions, merge
from s3lake.land.maintenance.replace import CannotChange, commit_staged
from s3lake.land.observer import ALONE, LandedHour, Logged, Run, TableFollower
from s3lake.land.target import TopicSink
from s3lake.land.task import outcomes
from s3lake.land.task.outcomes import Done
from s3lake.land.task.pipeline import Stores
from s3lake.plan.batch import TASK_RECORDS
from s3lake.plan.tile import Tile, find_landed_offsets
from s3lake.schema.types import from_document
from s3lake.sink.key_space import KeySpace
from s3lake.source.kafka.dead_letter_topic import DeadLetterTopic
from s3lake.source.kafka.group import ConsumerGroup
from s3lake.source.offsets import Offsets
from s3lake.source.records import Reader
from s3lake.store import Store
from s3lake.store.trial import ensure_settings_work, ensure_tried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.sink import Sink
    from s3lake.table.iceberg import LakeTable

_log = logging.getLogger(__name__)
_TRIES = 5


@dataclass
class Landing:
    """One sink, one topic, and the parts that landing needs.

    Attributes:
        spark: gives the session; called only when there is something to read.
        stores: opens the bucket, here and in the workers.
        reader: the source, as Spark's tasks reach it.
        dead_letter_topic: the sink's, with its connection.
        group: gets how far the topic is landed after each commit.
        clock: epoch milliseconds.
        engine: where Spark jobs run.
        table: that follows the index; None if the sink has none.
    """

    sink: Sink
    topic: str
    spark: Callable[[], SparkSession]
    stores: Stores
    offsets: Offsets
    reader: Reader
    dead_letter_topic: DeadLetterTopic | None = None
    group: ConsumerGroup | None = None
    clock: Callable[[], int] = hours.now_ms
    engine: Callable[[TaskEngine], Engine] = lambda own: own
    table: LakeTable | None = None
    retries: int = field(default=0, init=False)  # of requests that tasks have made
    _staging: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        self.name = f"{self.sink.name} {self.topic}"
        if self.sink.table is not None and self.table is None:
            raise ValueError(f"sink {self.sink.name} has a table: without it objects that it lists would be deleted")
        self.store: Store = self.stores(self.sink.bucket)
        self.follower = TableFollower(self.table)
        streams = 1 + sum(one is not None for one in (self.sink.sidecars.keys, self.sink.sidecars.headers))
        # Files are closed at flush.count at the latest: what would make too many is not even tried.
        count = self.sink.flush.count or self.sink.batch_records
        self.limit = min(self.sink.batch_records, MOST_FILES // streams * count)
        self.index = TopicIndex(self.store, self.sink.index_root, self.topic, self.sink.root, self.follower)

    @property
    def target(self) -> TopicSink:
        """The sink and topic, for changes of landed hours."""
        return TopicSink(self.sink, self.index, self.stores)

    @property
    def requests(self) -> Counter[str]:
        """S3 requests so far by kind, the workers' included."""
        return self._staging + Counter(getattr(self.store, "requests", {}))

    def land(self, wanted: Sequence[str], run: Run = ALONE) -> list[LandedHour]:
        """Land what Kafka has now of the hours `wanted`, in order; hours that are complete cost two requests.

        Records that come from now on wait for another run: else it would follow an open hour in ever smaller files.

        Raises:
            ConfigurationError: there is no such topic, and never was one; the sink does not wait for it.
            RecordError: a record was refused and the sink tolerates none; its micro-batch is not visible.
            DataLossError: Kafka no longer is what the index expects.
            TransientError: Kafka, S3 or another writer was in the way; what was committed stays.
        """
        until = {partition: end for partition, (_, end) in self.offsets.log_ranges(self.topic).items()}
        if not until:
            refuse_missing(self.sink, self.index, self.offsets)
        heads = {hour: self._open(hour) for hour in wanted}
        self.index.follow(*wanted)  # what a run before did not come to
        return _LandingRun(self, run, heads, until).land(wanted)

    def rewrite(self, hour: str, run: Run = ALONE) -> LandedHour:
        """Land a complete hour once more, in place of what was landed.

        Raises:
            DataLossError: the hour is not complete, or Kafka no longer has all of it.
        """
        head = self._open(hour)
        if head is None:
            raise DataLossError(f"topic {self.topic!r} does not exist: there is nothing to rewrite")
        attempt = begin_rewrite(self.index, self.offsets, head, hour)
        return _LandingRun(self, run, {hour: head}, {}).rewrite(attempt)

    def report(self, hour: str, new: int = 0) -> LandedHour:
        """Return what the index says of `hour`; with an empty tile if the hour has none."""
        tile, _ = self.index.tile(hour) or (Tile(hour, {}), "")
        return LandedHour(tile, sums.Commits(self.index, hour, tile.commits), new)

    def clean(self, *, dry_run: bool = False) -> list[Cleaned]:
        """Remove what dead writers left behind."""
        return clean(self.index, now_ms=self.clock(), dry_run=dry_run, keys=KeySpace.from_sink(self.sink, self.topic))

    def find_landed_offsets(self, newest: Iterable[Tile] = ()) -> dict[int, int]:
        """Return how far the topic is landed, per topic-partition. `newest` is its last tile, if that is known."""
        return find_landed_offsets(chain(newest, self._newest()))

    def _newest(self) -> Iterator[Tile]:
        found = self.index.head()
        yield from self.index.newest(found[0]) if found else ()

    def publish(self, newest: Iterable[Tile] = ()) -> None:
        """Commit to the consumer group how far the topic is landed. It is advice: an error is only logged."""
        if self.group is None:
            return
        try:
            self.group.publish({self.topic: self.find_landed_offsets(newest)})
        except S3LakeError as error:
            _log.warning("%s: offsets are not published to a consumer group: %s", self.name, error)

    def _open(self, hour: str) -> TopicHead | None:
        if self.sink.exactly_once:
            ensure_tried(self.store, self.sink.index_root, self.sink.root)
        else:
            ensure_settings_work(self.store, self.sink.root)
        first = self.sink.start if self.sink.from_ == "earliest" else None
        return opening.open_hour(self.index, self.offsets, hour, earliest_hour=first, now_ms=self.clock())

    def _begin(self, head: TopicHead, hour: str, until: Mapping[int, int]) -> Attempt | None:
        return protocol.begin(
            self.index,
            self.offsets,
            head,
            hour,
            limit=self.limit,
            now_ms=self.clock(),
            grace_ms=int(self.sink.close_grace * 1000),
            until=until,
        )

    def _stage_checked(self, head: TopicHead, attempt: Attempt, run: Run) -> Staged:
        """Stage an attempt, and check that Kafka's log is still the one that it was planned on."""
        batch = self._stage(attempt, run)
        try:
            protocol.must_be_the_log(self.index, self.offsets, head, attempt)
        except BaseException:
            abort(self.store, batch.files)
            raise
        return batch

    def _stage(self, attempt: Attempt, run: Run) -> Staged:
        """Steps 1 to 2: run the Spark job, with columns that fit all of the micro-batch."""
        if self.dead_letter_topic is not None:
            self.dead_letter_topic.ensure()
        hour = attempt.tile.hour
        work = binding.build_work(
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
        binding.refuse_other_types(self.sink, self.topic, from_document(recorded[0].columns) if recorded else {})
        session = run.session or self.spark
        engine = TaskEngine(self.topic, session, self.reader, self.sink.flush.count or TASK_RECORDS)
        job = Job(self.sink, self.topic, (run.engine or self.engine)(engine), session)
        record = partial(outcomes.record, self.index, self.sink.max_columns, hour, attempt.commit)

        def check(done: Sequence[Done]) -> None:
            for outcome in done:
                self._staging.update(outcome.requests)
                self.retries += outcome.retries
            check_gate(self.sink, self.topic, hour, done)

        return job.stage(work, attempt.batch.reads, recorded[0] if recorded else None, record, check)

    def narrow(self, attempt: Attempt) -> bool:
        """Make the next micro-batches smaller after one with too many files. Return False if that is not possible."""
        read = sum(end - start for start, end in attempt.batch.reads.values())
        if read <= 1:
            return False
        self.limit = max(1, read // 4)
        _log.warning("%s: too many files; micro-batches of %d records from here on", self.name, self.limit)
        return True


@dataclass
class _LandingRun:
    """One call of `Landing.land` or `rewrite`, and what has become of its hours.

    Attributes:
        run: what the caller brings along.
        until: the log ends when it began.
        flying: the commit that is being made visible, and its hour, of which nothing else is left to plan once the next
            hour is being read.
        ended: hours of which nothing is left to plan, and that are not reported as done yet.
        again: hours that another writer was faster with.
        last: the last commit of each hour.
        tiles: as the last commits left them; each is used once.
    """

    landing: Landing
    run: Run
    heads: Mapping[str, TopicHead | None]
    until: Mapping[int, int]
    new: Counter[str] = field(default_factory=Counter)
    flying: tuple[str, Future[Manifest]] | None = None
    ended: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    landed: dict[str, LandedHour] = field(default_factory=dict)
    last: dict[str, Manifest] = field(default_factory=dict)
    tiles: dict[str, Tile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.observer = self.run.observer or Logged(self.landing.sink.name, self.landing.topic)

    def rewrite(self, attempt: Attempt) -> LandedHour:
        hour, head = attempt.tile.hour, self.heads[attempt.tile.hour]
        assert head is not None
        self.observer.planned(hour, attempt.batch.offsets, 1)
        self.observer.committed(self._commit(attempt, self.landing._stage_checked(head, attempt, self.run)))
        self.landing.follower.tell(self.observer)
        self.observer.done(landed := self._report(hour, 1))
        return landed

    def land(self, wanted: Sequence[str]) -> list[LandedHour]:
        with ThreadPoolExecutor(1, "s3lake-commit") as background:
            try:
                for hour in wanted:
                    self._land_batches(hour, background)
                    self.ended.append(hour)
                    self._report_ended()
                self._wait_for_commit()
            except BaseException:  # what is visible in the end is reported in any case
                if self.flying is not None and self.flying[1].exception() is None:
                    self._report_commit(self.flying[1].result())
                raise
        for hour in self.again:
            self._land_again(hour)
            self._finish(hour)
        return [self.landed[hour] for hour in wanted]

    def _land_batches(self, hour: str, background: ThreadPoolExecutor) -> None:
        """Stage and commit micro-batches until nothing is left to plan; the last one's commit may be under way then."""
        head, lander = self.heads[hour], self.landing
        begun = False
        while head is not None and (attempt := lander._begin(head, hour, self.until)):
            if not begun:
                offsets = attempt.batch.offsets + attempt.batch.left
                self.observer.planned(hour, offsets, -(-offsets // lander.limit))
                begun = True
            try:
                staged = lander._stage_checked(head, attempt, self.run)
            except TooManyFilesError:
                if not lander.narrow(attempt):
                    raise
                continue
            try:
                self._wait_for_commit()
            except BaseException:
                abort(lander.store, staged.files)
                raise
            self.flying = (hour, background.submit(self._commit, attempt, staged))
            if not attempt.batch.left:
                return  # the next hour can be read while this one becomes visible
            self._wait_for_commit()

    def _wait_for_commit(self) -> None:
        """Wait for the commit under way; where another writer was faster its hour is planned again in the end."""
        if self.flying is None:
            return
        hour, commit = self.flying
        try:
            self._report_commit(commit.result())
        except FencedError as error:
            _log.warning("%s: %s; planning again", self.landing.name, error)
            self.again.append(hour)
        self.flying = None
        self._report_ended()

    def _land_again(self, hour: str) -> None:
        head, lander = self.heads[hour], self.landing
        self.tiles.pop(hour, None)  # another writer has changed it since
        for tries in range(1, _TRIES + 1):
            try:
                while head is not None and (attempt := lander._begin(head, hour, self.until)):
                    self._report_commit(self._commit(attempt, lander._stage_checked(head, attempt, self.run)))
                return
            except FencedError:
                if tries == _TRIES:
                    raise

    def _commit(self, attempt: Attempt, staged: Staged) -> Manifest:
        """Steps 3 to 6: see `protocol.commit`."""
        with self.run.committing:
            manifest, self.tiles[attempt.tile.hour] = commit_staged(self.landing.target, attempt, staged)
        self.last[manifest.hour] = manifest
        return manifest

    def _report_commit(self, manifest: Manifest) -> None:
        self.new[manifest.hour] += 1
        self.observer.committed(manifest)
        self.landing.follower.tell(self.observer)
        if self.run.publishes:
            tile = self.tiles.get(manifest.hour)
            self.landing.publish([] if tile is None or tile.closed else [tile])  # an open tile is the last one

    def _report_ended(self) -> None:
        """Report hours as done in order, each once its last commit has arrived."""
        while self.ended and not (self.flying and self.flying[0] == self.ended[0]):
            hour = self.ended.pop(0)
            if hour not in self.again:
                self._finish(hour)

    def _finish(self, hour: str) -> None:
        landed = self._report(hour, self.new[hour])
        if self._merge(landed):
            self.new[hour] += 1
            landed = self._report(hour, self.new[hour])
        self.landed[hour] = landed
        self.observer.done(landed)

    def _report(self, hour: str, new: int) -> LandedHour:
        """Return what the index says of `hour`, or said after this run's last commit, which need not be read."""
        tile = self.tiles.pop(hour, None)
        if tile is None:
            return self.landing.report(hour, new)
        return LandedHour(tile, sums.Commits(self.landing.index, hour, tile.commits, [self.last[hour]]), new)

    def _merge(self, landed: LandedHour) -> bool:
        """Make one commit of the small ones of a complete hour; False where it stays as it is.

        An error here fails nothing: all is landed, and the next run that is asked for the hour tries again.
        """
        lander, tile, done = self.landing, landed.tile, False
        if not lander.sink.flush.merge or not tile.complete or len(tile.commits) < 2:
            return False
        try:
            if tile.hour in lander.follower.behind:
                raise CannotChange("the table is behind, and may list them")
            manifests = list(landed.manifests)
            for merged in merge(lander.target, tile.hour, manifests, CompactOptions.at_hour_end(lander.sink)):
                self.last[tile.hour], self.tiles[tile.hour], done = merged.manifest, merged.tile, True
                replaced = [manifest for manifest in manifests if manifest.id in merged.manifest.replaces]
                counts = sum(map(count_data_files, replaced)), count_data_files(merged.manifest)
                outcome = f"{len(replaced)} commits of {counts[0]} files became one of {counts[1]}"
                self.observer.merged(tile.hour, outcome)
                lander.follower.tell(self.observer)
        except (CannotChange, S3LakeError) as error:
            self.observer.merged(tile.hour, f"its small files stay: {error}")
        return done
