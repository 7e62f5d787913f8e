"""Land hours of a topic into a sink, micro-batch by micro-batch: the driver's side.

Hours are done in order. While one hour's commit is made visible the next hour is read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from s3lake.errors import DataLossError, FencedError, S3LakeError, TooManyFilesError
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import MOST_FILES, TopicHead, count_data_files
from s3lake.index.commit.protocol import Attempt, Committed, Staged
from s3lake.index.commit.replacing_attempts import begin_rewrite
from s3lake.index.commit.sums import Commits
from s3lake.index.store.trial import ensure_keeps_objects, ensure_tried
from s3lake.land.change.compact import CompactOptions, merge
from s3lake.land.change.hour_change import CannotChange, commit_staged
from s3lake.land.request.read_request import RunTasks
from s3lake.land.request.run_request import SparkTaskRunner, run_request
from s3lake.land.spark.spark_jobs import SparkJobs, await_result
from s3lake.land.topic.missing_topic import refuse_missing
from s3lake.land.topic.observer import LandedHour, Logged, Observer
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

_log = logging.getLogger(__name__)
_TRIES = 5

AT_WORK = 12
"""Threads that ask Kafka and S3 at once, of all topics: more only take turns in one Python process."""
_committing = ThreadPoolExecutor(AT_WORK, "s3lake-commit")


def land(
    target: TopicSink,
    requested: Sequence[str],
    observer: Observer | None = None,
    *,
    run: RunTasks | None = None,
    publishes: bool = True,
) -> list[LandedHour]:
    """Land what Kafka has now of the hours `requested`, in order; hours that are complete cost two requests.

    Records that come from now on wait for another run: else it would follow an open hour in ever smaller files.

    Args:
        target: the sink and the topic.
        requested: the keys of the hours, such as `2026-11-20T05`, in UTC.
        observer: gets what is planned, committed and done; None for the log.
        run: runs the tasks of each request; None for Spark jobs of this landing only.
        publishes: False if the caller publishes to the consumer group how far the topic is landed.

    Raises:
        ConfigurationError: there is no such topic, and never was one; the sink does not wait for it.
        RecordError: a record was refused and the sink tolerates none; its micro-batch is not visible.
        DataLossError: Kafka no longer is what the index expects.
        TransientError: Kafka, S3 or another writer was in the way; what was committed stays.
    """
    observer = observer or Logged(target.sink.name, target.topic)
    until = {partition: end for partition, (_, end) in target.offsets.log_ranges(target.topic).items()}
    if not until:
        refuse_missing(target.sink, target.index, target.offsets)
    heads = {hour: _open(target, hour) for hour in requested}
    target.index.follow(*requested)  # what a run before did not come to
    return _Landing(target, observer, run or _run_alone(target), heads, until, publishes).land(requested)


def rewrite(target: TopicSink, hour: str, observer: Observer | None = None) -> LandedHour:
    """Land a complete hour again, in place of what was landed.

    Raises:
        DataLossError: the hour is not complete, or Kafka no longer has all of it.
    """
    head = _open(target, hour)
    if head is None:
        raise DataLossError(f"topic {target.topic!r} does not exist: there is nothing to rewrite")
    observer = observer or Logged(target.sink.name, target.topic)
    attempt = begin_rewrite(target.index, target.offsets, head, hour)
    return _Landing(target, observer, _run_alone(target), {hour: head}, {}, publishes=False).rewrite(head, attempt)


def batch_limit(sink: Sink) -> int:
    """Return how many records a micro-batch has at most: what would make too many files is not even tried."""
    streams = 1 + sum(one is not None for one in (sink.sidecars.keys, sink.sidecars.headers))
    # Files are closed at flush.count at the latest.
    return min(sink.batch_records, MOST_FILES // streams * (sink.flush.count or sink.batch_records))


def _run_alone(target: TopicSink) -> RunTasks:
    return partial(run_request, SparkTaskRunner(target.reader(), SparkJobs(target.spark)))


def ensure_store_tried(target: TopicSink) -> None:
    """Try that the store does what the sink needs, unless that was done a short time ago."""
    sink = target.sink
    if sink.exactly_once:
        ensure_tried(target.store, sink.index_root, sink.root)
    else:
        ensure_keeps_objects(target.store, sink.root)


def _open(target: TopicSink, hour: str) -> TopicHead | None:
    sink = target.sink
    ensure_store_tried(target)
    first = sink.start if sink.from_ == "earliest" else None
    return open_and_close.open_hour(target.index, target.offsets, hour, earliest_hour=first, now_ms=target.clock())


@dataclass
class _Landing:
    """The hours of one landing, and what has become of them.

    Attributes:
        run: runs the tasks of each request.
        heads: the topic by hour; None if it does not exist.
        until: the log ends when the landing began.
        limit: records of a micro-batch.
        new: commits of this landing by hour.
        in_flight: the commit that is being made visible, and its hour, of which nothing else is left to plan once the
            next hour is being read.
        ended: hours of which nothing is left to plan, and that are not reported as done yet.
        again: hours that another writer was faster with.
        last: the last commit of each hour, unless another writer has changed the hour since.
    """

    target: TopicSink
    observer: Observer
    run: RunTasks
    heads: Mapping[str, TopicHead | None]
    until: Mapping[int, int]
    publishes: bool = True
    new: Counter[str] = field(default_factory=Counter)
    in_flight: tuple[str, Future[Committed]] | None = None
    ended: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    last: dict[str, Committed] = field(default_factory=dict)
    landed: dict[str, LandedHour] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.limit = batch_limit(self.target.sink)

    def rewrite(self, head: TopicHead, attempt: Attempt) -> LandedHour:
        hour = attempt.tile.hour
        self.observer.hour_planned(hour, attempt.batch.offsets, 1)
        self._land_batch(head, attempt)
        self.observer.hour_landed(landed := self._report(hour))
        return landed

    def land(self, requested: Sequence[str]) -> list[LandedHour]:
        try:
            for hour in requested:
                self._land_batches(hour)
                self.ended.append(hour)
                self._report_ended()
            self._wait_for_commit()
        except BaseException:  # what is visible in the end is reported in any case
            if self.in_flight is not None and self.in_flight[1].exception() is None:
                self._report_commit(self.in_flight[1].result())
            raise
        for hour in self.again:
            self._land_again(hour)
            self._finish(hour)
        return [self.landed[hour] for hour in requested]

    def _land_batches(self, hour: str) -> None:
        """Stage and commit micro-batches until nothing is left to plan; the last one's commit may be under way then."""
        head = self.heads[hour]
        begun = False
        while head is not None and (attempt := self._begin(head, hour)):
            if not begun:
                offsets = attempt.batch.offsets + attempt.batch.left
                self.observer.hour_planned(hour, offsets, -(-offsets // self.limit))
                begun = True
            try:
                staged = self._stage(head, attempt)
            except TooManyFilesError:
                if not self._narrow(attempt):
                    raise
                continue
            try:
                self._wait_for_commit()
            except BaseException:
                abort_uploads(self.target.store, staged.files)
                raise
            self.in_flight = (hour, _committing.submit(commit_staged, self.target, attempt, staged))
            if not attempt.batch.left:
                return  # the next hour can be read while this one becomes visible
            self._wait_for_commit()

    def _land_again(self, hour: str) -> None:
        head = self.heads[hour]
        self.last.pop(hour, None)
        for tries in range(1, _TRIES + 1):
            try:
                while head is not None and (attempt := self._begin(head, hour)):
                    self._land_batch(head, attempt)
                return
            except FencedError:
                if tries == _TRIES:
                    raise

    def _land_batch(self, head: TopicHead, attempt: Attempt) -> None:
        """Stage and commit a micro-batch, one after the other."""
        staged = self._stage(head, attempt)
        self._report_commit(commit_staged(self.target, attempt, staged))

    def _begin(self, head: TopicHead, hour: str) -> Attempt | None:
        target = self.target
        return protocol.begin_micro_batch(
            target.index,
            target.offsets,
            head,
            hour,
            limit=self.limit,
            now_ms=target.clock(),
            grace_ms=int(target.sink.close_grace * 1000),
            until=self.until,
        )

    def _stage(self, head: TopicHead, attempt: Attempt) -> Staged:
        """Stage an attempt, and check that Kafka's log is still the one that it was planned on."""
        staged = self.target.stage(attempt, self.run)
        try:
            protocol.require_log_unchanged(self.target.index, self.target.offsets, head, attempt)
        except BaseException:
            abort_uploads(self.target.store, staged.files)
            raise
        return staged

    def _narrow(self, attempt: Attempt) -> bool:
        """Make the next micro-batches smaller after one with too many files. Return False if that is not possible."""
        read = sum(end - start for start, end in attempt.batch.reads.values())
        if read <= 1:
            return False
        self.limit = max(1, read // 4)
        _log.warning("%s: too many files; micro-batches of %d records from here on", self.target.name, self.limit)
        return True

    def _wait_for_commit(self) -> None:
        """Wait for the commit under way; if another writer was faster its hour is planned again in the end."""
        if self.in_flight is None:
            return
        hour, commit = self.in_flight
        try:
            self._report_commit(await_result(commit))
        except FencedError as error:
            _log.warning("%s: %s; planning again", self.target.name, error)
            self.again.append(hour)
        self.in_flight = None
        self._report_ended()

    def _report_commit(self, commit: Committed) -> None:
        hour = commit.manifest.hour
        self.new[hour] += 1
        self.last[hour] = commit
        self.observer.batch_committed(commit.manifest)
        self.target.follower.tell(self.observer)
        if self.publishes:
            self.target.publish([] if commit.tile.closed else [commit.tile])  # an open tile is the last one

    def _report_ended(self) -> None:
        """Report hours as done in order, each once its last commit has arrived."""
        while self.ended and not (self.in_flight and self.in_flight[0] == self.ended[0]):
            hour = self.ended.pop(0)
            if hour not in self.again:
                self._finish(hour)

    def _finish(self, hour: str) -> None:
        landed = self._report(hour)
        if self._merge(landed):
            landed = self._report(hour)
        self.landed[hour] = landed
        self.observer.hour_landed(landed)

    def _report(self, hour: str) -> LandedHour:
        """Return the index's state of `hour`, or the state after this landing's last commit, which need not be read."""
        commit = self.last.pop(hour, None)
        if commit is None:
            return self.target.report(hour, self.new[hour])
        manifests = Commits(self.target.index, hour, commit.tile.commits, [commit.manifest])
        return LandedHour(commit.tile, manifests, self.new[hour])

    def _merge(self, landed: LandedHour) -> bool:
        """Make one commit of the small ones of a complete hour. Return False if it stays as it is.

        An error here fails nothing: all is landed, and the next run that is asked for the hour tries again.
        """
        target, tile, merges = self.target, landed.tile, 0
        if not target.sink.flush.merge or not tile.complete or len(tile.commits) < 2:
            return False
        try:
            if tile.hour in target.follower.behind:
                raise CannotChange("the table is behind, and may list them")
            manifests = list(landed.manifests)
            for merged in merge(target, tile.hour, manifests, CompactOptions.at_hour_end(target.sink)):
                self.last[tile.hour], merges = merged, merges + 1
                replaced = [manifest for manifest in manifests if manifest.id in merged.manifest.replaces]
                counts = sum(map(count_data_files, replaced)), count_data_files(merged.manifest)
                commits, files = format_count(len(replaced), "commits"), format_count(counts[0], "files")
                outcome = f"{commits} of {files} became one of {counts[1]}"
                self.observer.hour_merged(tile.hour, outcome)
                target.follower.tell(self.observer)
        except (CannotChange, S3LakeError) as error:
            self.observer.hour_merged(tile.hour, f"its small files stay: {error}")
        self.new[tile.hour] += min(merges, 1)
        return merges > 0
