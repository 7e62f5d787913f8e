"""A run that lands one topic or many: its log, a materialisation of each hour when it is done, checks, sealed hours."""

import functools
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import dagster as dg

from s3lake import hours
from s3lake.config.model import Errors, Sink
from s3lake.errors import RecordError, S3LakeError, TransientError
from s3lake.index.commit.documents import count_data_files
from s3lake.index.plan.stamps import find_notices
from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.heartbeat import keep_beating
from s3lake.orchestration.hour_checks import check_hours, check_quiet_hours
from s3lake.orchestration.hour_metadata import hour_events
from s3lake.orchestration.resource_connections import open_spark_of_run, open_topic
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.index.commit.documents import Manifest
    from s3lake.land.request.read_request import RunTasks
    from s3lake.land.spark.opened_spark import OpenedSpark
    from s3lake.land.topic.observer import LandedHour
    from s3lake.land.topic.topic_sink import TopicSink
    from s3lake.source.offsets import Lag

A = TypeVar("A")


def as_dagster_errors(work: Callable[[], A], errors: Errors) -> A:
    """Run `work`. Raise its errors as Dagster's; `errors` of the sink set how often and when a step is retried.

    An op's `RetryPolicy` is not used: it would retry after every exception, a mistake in the code included.

    Raises:
        RetryRequested: the error is transient.
        Failure: it is not, so that a retry would fail too.
    """
    try:
        return work()
    except TransientError as error:
        raise dg.RetryRequested(max_retries=errors.max_retries, seconds_to_wait=errors.retry_interval) from error
    except S3LakeError as error:
        place = error.place if isinstance(error, RecordError) else {}
        # The text is complete: with the error as its cause, Dagster would show the text twice.
        raise dg.Failure(str(error), metadata={"error": type(error).__name__, **place}, allow_retries=False) from None


def log_start(
    opening: "Callable[[], OpenedSpark]", log: dg.DagsterLogManager, *, sql: bool
) -> "Callable[[], OpenedSpark]":
    """Return `opening`, which logs the first start of Spark and checks that a session can do the work.

    `sql` is True if a sink's `sql` is part of the work.
    """
    is_ready = False

    def open_and_log() -> "OpenedSpark":
        from s3lake.land.spark.installation import fit
        from s3lake.land.spark.opened_spark import find_session, is_session
        from s3lake.land.spark.starting import tell_start

        nonlocal is_ready
        if is_ready:
            return opening()
        with tell_start(log.info):
            opened = opening()
            if sql or is_session(opened):
                opened = fit(find_session(opened), sql=sql)
        is_ready = True
        return opened

    return open_and_log


class LandingRun:
    """Lands topics of a sink in one op, and reports on their assets.

    Events are stored when they happen, so a run that is cancelled or killed has materialisations of what it did.

    Attributes:
        attempt: how often all of it was tried before.
        materialised: hours by topic, which this run has materialised.
    """

    def __init__(
        self,
        context: dg.AssetExecutionContext | dg.OpExecutionContext,
        resources: Any,
        catalog: Catalog,
        sink: Sink,
    ) -> None:
        """Prepare to land in the op of `context`, with the S3 and the Spark of `resources`."""
        self.context, self.catalog, self.sink = context, catalog, sink
        self.attempt = context.retry_number
        self.materialised: dict[str, set[str]] = defaultdict(set)
        self._reached: dict[str, Mapping[int, int]] = {}
        self._storing, self._in_group = threading.Lock(), False  # threads land the topics of a group
        opening = functools.partial(open_spark_of_run, resources, catalog)
        spark = log_start(opening, context.log, sql=sink.sql is not None)
        self._open = functools.partial(open_topic, resources, catalog, sink, spark=spark)

    def land(self, topic: str, requested: Sequence[str], *, rewrite: bool = False) -> "list[LandedHour]":
        """Land hours of one topic, in order; with `rewrite` complete hours too, in place of what was landed.

        Raises:
            RetryRequested: something transient is in the way.
            Failure: an hour cannot be landed.
        """
        if self.attempt:
            self.materialised[topic] |= _find_materialised(self.context, self.catalog.key(self.sink, topic))
        target = self._open(topic)
        report = TopicReport(self, target, requested)

        from s3lake.land.hour import landing

        def work() -> "list[LandedHour]":
            if rewrite:
                landed = [landing.rewrite(target, hour, report) for hour in requested]
            else:
                landed = landing.land(target, requested, report)
            self._check_landed(target, landed)
            return landed

        with keep_beating(self.context):
            try:
                return as_dagster_errors(work, self.sink.errors)
            except Exception:
                raise  # an hour that failed is to show as failed, whatever of it was committed
            except BaseException:
                report.interrupt()
                raise

    def land_together(self, hours_by_topic: Mapping[str, Sequence[str]]) -> dict[str, BaseException]:
        """Land hours of many topics with one Spark job, and retry transient errors as often as the sink allows.

        Return the errors of the topics that failed; all others are landed.
        """
        left, failed = dict(hours_by_topic), dict[str, BaseException]()
        with keep_beating(self.context):
            # Not a retry of tenacity: each try has only the topics that failed, whose errors are values here.
            for attempt in range(1 + self.sink.errors.max_retries):
                self.attempt = attempt
                if attempt:
                    failing = format_count(len(left), "topics")
                    self.context.log.warning(f"{failing} failed with a transient error, and will be tried again")
                    time.sleep(self.sink.errors.retry_interval)
                errors = self._land_group(left)
                failed = {topic: error for topic, error in failed.items() if topic not in left} | errors
                left = {topic: left[topic] for topic, error in errors.items() if isinstance(error, TransientError)}
                if not left:
                    break
        for topic, error in sorted(failed.items()):
            trace = "" if isinstance(error, S3LakeError) else "".join(traceback.format_exception(error))
            self.context.log.error(f"{topic}: {trace or error}")
        return failed

    def check(self, topic: str, checks: Sequence[str]) -> None:
        """Make these checks of the hours of the run, or of all hours if it names none, and announce sealed hours."""
        span = dagster_names.find_range(self.context.run.tags)
        requested = list(hours.span(*span)) if span else []
        as_dagster_errors(lambda: self._check(self._open(topic), requested, checks), self.sink.errors)

    def log_line(self, line: str) -> None:
        """Log a line; print it in a group, where each line of a hundred topics would be an event of the run's log."""
        if self._in_group:
            print(line, flush=True)
        else:
            self.context.log.info(line)

    def warn(self, line: str) -> None:
        """Log a warning."""
        with self._storing:
            self.context.log.warning(line)

    def log_event(self, event: dg.AssetMaterialization | dg.AssetCheckEvaluation) -> None:
        """Store an event."""
        with self._storing:
            self.context.log_event(event)  # type: ignore[arg-type]  # it takes evaluations too

    def _check_landed(self, target: "TopicSink", landed: "Sequence[LandedHour]") -> None:
        """Check complete hours. The open hour is checked when it is complete: it is landed every few minutes."""
        complete = [hour.tile.hour for hour in landed if hour.tile.complete]
        if complete:
            self._check(target, complete)

    def _check(self, target: "TopicSink", requested: Sequence[str], checks: Sequence[str] | None = None) -> None:
        for event in check_hours(self.context.instance, self.catalog, target, requested, checks):
            self.log_event(event)

    def _land_group(self, hours_by_topic: Mapping[str, Sequence[str]]) -> dict[str, BaseException]:
        from s3lake.land.many_topics.landing_threads import land_together

        targets = [self._open(topic) for topic in hours_by_topic]
        self._in_group, began = True, time.monotonic()
        quiet = self._close_quiet_hours({target: hours_by_topic[target.topic] for target in targets})
        count, targets = len(targets), [target for target in targets if target not in quiet]
        reports = [TopicReport(self, target, hours_by_topic[target.topic]) for target in targets]
        landings = {
            target: functools.partial(self._land_in_group, target, report)
            for target, report in zip(targets, reports, strict=True)
        }
        try:
            results = land_together(landings, targets[0].spark) if targets else {}
        except BaseException:
            for report in reports:
                report.interrupt()
            raise
        self._in_group = False
        if (group := [*quiet, *targets][0].group) is not None:
            group.publish({topic: self._reached[topic] for topic in hours_by_topic if topic in self._reached})
        failed = {target.topic: error for target, error in results.items() if error is not None}
        self.context.log.info(
            f"landed {count - len(failed)} of {format_count(count, 'topics')} in {time.monotonic() - began:.1f} s, "
            f"{len(quiet)} of them without a record; the step's output has a line for each hour"
        )
        return failed

    def _close_quiet_hours(self, hours_by_target: "Mapping[TopicSink, Sequence[str]]") -> "set[TopicSink]":
        """Close and report hours of topics that have no record in them. Return those topics."""
        from s3lake.land.many_topics.quiet_topics import close_quiet_hours

        closed: set[TopicSink] = set()
        for topics in close_quiet_hours(hours_by_target):
            for topic in topics:
                self._reached[topic.target.topic] = topic.landed_offsets
                report = TopicReport(self, topic.target, [landed.tile.hour for landed in topic.closed])
                for landed in topic.closed:
                    report.hour_landed(landed)
            for event in check_quiet_hours(self.context.instance, self.catalog, topics) if topics else ():
                self.log_event(event)
            closed.update(topic.target for topic in topics)
        return closed

    def _land_in_group(self, target: "TopicSink", report: "TopicReport", run: "RunTasks") -> None:
        from s3lake.land.hour.landing import land

        # Offsets are published once, of all topics.
        landed = land(target, report.requested, report, run=run, publishes=False)
        # The last tile is the only one that is open.
        self._reached[target.topic] = target.find_landed_offsets(
            hour.tile for hour in landed[-1:] if not hour.tile.closed
        )
        self._check_landed(target, landed)


class TopicReport:
    """The observer of one topic's landing: lines, and the events of each hour when it is done."""

    def __init__(self, run: LandingRun, target: "TopicSink", requested: Sequence[str]) -> None:
        self.requested = requested
        self._run, self._target = run, target
        self._batches: dict[str, int] = {}
        self._commits: Counter[str] = Counter()
        self._done: set[str] = set()
        self._before = frozenset(run.materialised[target.topic])  # by earlier attempts of this run
        self._begin = f"{target.sink.name} {target.topic}, "

    def hour_planned(self, hour: str, offsets: int, batches: int) -> None:
        self._batches[hour] = batches
        self._log_line(
            f"hour {hour}: planned {format_count(offsets, 'offsets')} in {format_count(batches, 'micro-batches')}"
        )

    def batch_committed(self, manifest: "Manifest") -> None:
        hour = manifest.hour
        self._commits[hour] += 1
        rows = sum(read.landed for read in manifest.partitions.values())
        dead = sum(read.dead for read in manifest.partitions.values())
        files = count_data_files(manifest)
        # Another writer may have taken some of what was planned, or left more: "of" is what was planned.
        number = f"{self._commits[hour]} of {max(self._commits[hour], self._batches.get(hour, 1))}"
        counts = f"{format_count(rows, 'rows')} in {format_count(files, 'files')}, {format_count(dead, 'dead letters')}"
        self._log_line(f"hour {hour}: commit {number}: {counts}")

    def hour_merged(self, hour: str, outcome: str) -> None:
        self._log_line(f"hour {hour}: {outcome}")

    def table_followed(self, outcome: str, *, behind: bool) -> None:
        (self._warn if behind else self._log_line)(f"table: {outcome}")

    def hour_landed(self, landed: "LandedHour") -> None:
        hour = landed.tile.hour
        self._done.add(hour)
        count, total = len(self._done), len(self.requested)
        rows = f"{format_count(landed.sums.landed, 'rows')} in {format_count(landed.sums.files, 'files')}"
        new = "" if landed.new else "; nothing new to land"
        self._log_line(
            f"hour {hour}: done, {rows}{new}; {count} of {format_count(total, 'hours')}, {count * 100 // total}%"
        )
        for notice in find_notices(landed.tile):
            self._warn(f"hour {hour}: {notice}")
        if landed.new or hour not in self._before:
            self._materialise(landed)

    def interrupt(self) -> None:
        """Materialise hours that are not done and of which this run has committed something: the run is cancelled."""
        for hour in sorted(set(self._commits) - self._done):
            self._log_line(f"hour {hour}: not done, {format_count(self._commits[hour], 'commits')} of this run stay")
            try:
                self._materialise(self._target.report(hour, self._commits[hour]))
            except S3LakeError as error:  # the run ends because it was cancelled, and not because of this
                self._warn(f"hour {hour}: not materialised: {error}")

    def _materialise(self, landed: "LandedHour") -> None:
        run, target = self._run, self._target
        retries = {"retried_requests": target.retries, "retried_attempts": run.attempt}
        retries = {name: count for name, count in retries.items() if count}
        for event in hour_events(run.catalog, target, landed, _measure_lag(target, landed), retries):
            run.log_event(event)
            run.materialised[target.topic].add(landed.tile.hour)

    def _log_line(self, line: str) -> None:
        self._run.log_line(self._begin + line)

    def _warn(self, line: str) -> None:
        self._run.warn(self._begin + line)


def _measure_lag(target: "TopicSink", landed: "LandedHour") -> "Lag | None":
    """Return what of an open hour is not landed yet; None if the hour is closed."""
    if landed.tile.closed or not landed.tile.partitions:
        return None
    reached = {partition: span.committed for partition, span in landed.tile.partitions.items()}
    return target.offsets.lag(target.topic, reached, begin_ms=0, now_ms=target.clock())


def _find_materialised(context: dg.AssetExecutionContext | dg.OpExecutionContext, key: dg.AssetKey) -> set[str]:
    """Return the hours that earlier attempts of this run's step have materialised."""
    records = context.instance.get_records_for_run(
        context.run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    ).records
    events = [record.event_log_entry.asset_materialization for record in records]
    return {event.partition for event in events if event and event.asset_key == key and event.partition}
