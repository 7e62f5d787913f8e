"""What a run says while it works: lines in its log, and a materialisation of each hour as soon as it is done."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import dagster as dg

from s3lake.commit.files import count_data_files
from s3lake.errors import S3LakeError
from s3lake.orchestration import letters, metadata, names, prose
from s3lake.orchestration.resources import session_of
from s3lake.plan.sealed import content
from s3lake.plan.stamps import find_notices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.commit.index import Manifest
    from s3lake.land.landing import Landing
    from s3lake.land.observer import LandedHour


class Announced:
    """A `spark` resource whose first session of a run is announced: it takes seconds, and minutes on a cluster.

    That one is asked whether it can do the work, so that nothing is begun with one that cannot.
    """

    def __init__(self, spark: Any, log: dg.DagsterLogManager, *, sql: bool = False) -> None:
        self._spark, self._log, self._sql = spark, log, sql
        self._ready = False

    @property
    def spark_session(self) -> "SparkSession":
        if self._ready:
            return self._spark.spark_session  # type: ignore[no-any-return]
        self._log.info("Spark session: starting")
        began = time.monotonic()
        session = session_of(self._spark, sql=self._sql)
        self._log.info(f"Spark session: ready after {time.monotonic() - began:.1f} s")
        self._ready = True
        return session


def materialisation(
    key: dg.AssetKey, hour: str, metadata_of_hour: dict[str, Any], commits: Sequence[str]
) -> dg.AssetMaterialization:
    """Build the event of an hour, with the digest of its commits as the version of its data.

    An hour that is materialised again without a new commit keeps its version, so nothing downstream is out of date.
    Dagster's own events name the versions of what they were made from as well. A topic's version is another one with
    each record, so each hour would be out of date as soon as it was landed: ours name none.
    """
    tags = {names.DATA_VERSION: content(commits)}
    return dg.AssetMaterialization(key, partition=hour, metadata=metadata_of_hour, tags=tags)


class Reporter(Protocol):
    """Where a run keeps what is said of one topic.

    Attributes:
        before: hours that an earlier attempt of the run has materialised.
        attempt: how many there were before this one.
    """

    @property
    def before(self) -> frozenset[str]: ...

    @property
    def attempt(self) -> int: ...

    def say(self, line: str) -> None:
        """Keep a line."""
        ...

    def warn(self, line: str) -> None:
        """Keep a line that somebody should read."""
        ...

    def materialise(self, hour: str, metadata_of_hour: dict[str, Any], commits: Sequence[str]) -> None:
        """Store the event of an hour, with its metadata."""
        ...

    def dead_letters(self, hour: str, metadata_of_letters: dict[str, Any]) -> None:
        """Store the event of its dead letters."""
        ...


class AssetReporter:
    """Into the run of a sink asset."""

    def __init__(self, context: dg.AssetExecutionContext, key: dg.AssetKey, dead_letters_key: dg.AssetKey) -> None:
        self._context, self._key, self._dead_letters_key = context, key, dead_letters_key
        self.attempt = context.retry_number
        self.before = _materialised(context, key) if context.retry_number else frozenset()

    def say(self, line: str) -> None:
        self._context.log.info(line)

    def warn(self, line: str) -> None:
        self._context.log.warning(line)

    def materialise(self, hour: str, metadata_of_hour: dict[str, Any], commits: Sequence[str]) -> None:
        self._context.log_event(materialisation(self._key, hour, metadata_of_hour, commits))

    def dead_letters(self, hour: str, metadata_of_letters: dict[str, Any]) -> None:
        """See `Reporter.dead_letters`."""
        self._context.log_event(
            dg.AssetMaterialization(self._dead_letters_key, partition=hour, metadata=metadata_of_letters)
        )


class Progress:
    """The observer of one landing in one run.

    Events are stored when they happen, so a run that is cancelled or killed has materialisations for what it did.
    """

    def __init__(self, reporter: Reporter, landing: "Landing", wanted: Sequence[str]) -> None:
        self._reporter = reporter
        self._landing = landing
        self._wanted = wanted
        self._batches: dict[str, int] = {}
        self._commits: Counter[str] = Counter()
        self._done: set[str] = set()

    def planned(self, hour: str, offsets: int, batches: int) -> None:
        self._batches[hour] = batches
        self._say(f"hour {hour}: planned {_counted(offsets, 'offset')} in {_counted(batches, 'micro-batch', 'es')}")

    def committed(self, manifest: "Manifest") -> None:
        hour = manifest.hour
        self._commits[hour] += 1
        rows = sum(read.landed for read in manifest.partitions.values())
        dead = sum(read.dead for read in manifest.partitions.values())
        files = count_data_files(manifest)
        # Another writer may have taken some of what was planned, or left more: "of" is what was planned.
        number = f"{self._commits[hour]} of {max(self._commits[hour], self._batches.get(hour, 1))}"
        counts = f"{_counted(rows, 'row')} in {_counted(files, 'file')}, {_counted(dead, 'dead letter')}"
        self._say(f"hour {hour}: commit {number}: {counts}")

    def merged(self, hour: str, outcome: str) -> None:
        self._say(f"hour {hour}: {outcome}")

    def followed(self, outcome: str, *, behind: bool) -> None:
        self._say(f"table: {outcome}", self._reporter.warn if behind else self._reporter.say)

    def done(self, landed: "LandedHour") -> None:
        hour = landed.tile.hour
        self._done.add(hour)
        count, total = len(self._done), len(self._wanted)
        content = f"{_counted(landed.sums.landed, 'row')} in {_counted(landed.sums.files, 'file')}"
        new = "" if landed.new else "; nothing new to land"
        self._say(f"hour {hour}: done, {content}{new}; {count} of {total} hours, {count * 100 // total}%")
        for notice in find_notices(landed.tile):
            self._say(f"hour {hour}: {notice}", self._reporter.warn)
        if landed.new or hour not in self._reporter.before:
            self._materialise(landed)

    def interrupted(self) -> None:
        """The run is cancelled: hours that are not done keep what this run has committed, and show it."""
        for hour in sorted(set(self._commits) - self._done):
            self._say(f"hour {hour}: not done, {_counted(self._commits[hour], 'commit')} of this run stay")
            try:
                self._materialise(self._landing.report(hour, self._commits[hour]))
            except S3LakeError as error:  # the run ends because it was cancelled, and not because of this
                self._say(f"hour {hour}: not materialised: {error}", self._reporter.warn)

    def _materialise(self, landed: "LandedHour") -> None:
        words = prose.of_columns(self._landing.sink, self._landing.topic, self._landing.index)
        metadata_of_hour = metadata.of_hour(landed, self._landing.index, _lag(self._landing, landed), words)
        retries = self._landing.retries + getattr(self._landing.store, "retries", 0)
        metadata_of_hour |= metadata.retried(retries, self._reporter.attempt)
        self._reporter.materialise(landed.tile.hour, metadata_of_hour, landed.tile.commits)
        metadata_of_letters = letters.of_hour(landed, self._landing)
        if metadata_of_letters is not None:
            self._reporter.dead_letters(landed.tile.hour, metadata_of_letters)

    def _say(self, line: str, say: Callable[[str], None] | None = None) -> None:
        (say or self._reporter.say)(f"{self._landing.sink.name} {self._landing.topic}, {line}")


def _counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def _lag(landing: "Landing", landed: "LandedHour") -> metadata.Lag | None:
    """What of an open hour is not landed yet."""
    if landed.tile.closed or not landed.tile.partitions:
        return None
    reached = {partition: span.committed for partition, span in landed.tile.partitions.items()}
    waiting = landing.offsets.waiting(landing.topic, reached, begin_ms=0, now_ms=landing.clock())
    return metadata.Lag(waiting.seconds, waiting.ends)


def _materialised(context: dg.AssetExecutionContext, key: dg.AssetKey) -> frozenset[str]:
    """Hours that an earlier attempt of this run's step has materialised."""
    records = context.instance.get_records_for_run(
        context.run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    ).records
    events = [record.event_log_entry.asset_materialization for record in records]
    return frozenset(one.partition for one in events if one and one.asset_key == key and one.partition)
