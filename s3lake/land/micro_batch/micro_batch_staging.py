"""Stage a micro-batch: tasks read it until its columns fit all records, and their results become one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.errors import S3LakeError, TooManyFilesError
from s3lake.index.commit import dead_letter_reasons
from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import MOST_FILES, File, Recorded, collect_files
from s3lake.index.commit.protocol import Staged
from s3lake.index.plan.batch import Intervals
from s3lake.lake.form import form_of
from s3lake.land.request.read_request import ReadRequest, RunTasks, refusal_error
from s3lake.land.spark.failures import translate_spark_error
from s3lake.land.task import outcomes
from s3lake.land.task.outcomes import Done, Failed, Outcome, Refused
from s3lake.land.task.pipeline import Work
from s3lake.records.schema.columns.types import from_document, to_document

if TYPE_CHECKING:
    from s3lake.config.model import Sink

SAMPLE_RECORDS = 10_000
"""How many records of a sink's first micro-batch are read first, to find the columns."""

Record = Callable[[Sequence[Outcome]], Recorded]
"""Unites the columns that tasks saw with the recorded ones, and returns the result."""


@dataclass(frozen=True)
class MicroBatchStaging:
    """Stages micro-batches of a topic, each of which may need several requests to see its columns.

    Attributes:
        run: runs the tasks of each request.
    """

    sink: Sink
    topic: str
    run: RunTasks

    def stage(
        self,
        work: Work,
        reads: Intervals,
        recorded: Recorded | None,
        record: Record,
        check: Callable[[Sequence[Done]], None] = lambda _: None,
    ) -> Staged:
        """Stage the records of `reads` as one commit, with columns that fit all of them.

        Args:
            recorded: the columns that are recorded; None for a sink's first micro-batch.
            record: unites what tasks saw with what is recorded, and returns the result.
            check: raises if what the tasks staged may not be committed.

        Raises:
            ConfigurationError: Spark does not accept the sink's SQL.
            RecordError: a record was refused that the sink does not tolerate.
            TooManyFilesError: one commit cannot list the files.
            TransientError: Kafka or Spark did not answer, or Kafka expired what was being read.
            TaskFailedError: a task failed in a way that s3lake does not know.
        """
        try:
            done, work = self._run_until_settled(work, reads, recorded, record)
        except S3LakeError:
            raise
        except Exception as error:
            raise translate_spark_error(error, f"landing topic {self.topic!r} into sink {self.sink.name}") from None
        try:
            check(done)
        except S3LakeError:
            self._drop(work, collect_files(done))
            raise
        return self._combine(work, done)

    def _run_until_settled(
        self, work: Work, reads: Intervals, recorded: Recorded | None, record: Record
    ) -> tuple[list[Done], Work]:
        """Return what the tasks staged, and the work with the columns of its files."""
        columns = recorded or Recorded({})
        work = work.with_contract(from_document(columns.columns))
        if recorded is None:  # a first look spares reading everything twice
            heads = _first_offsets(reads, SAMPLE_RECORDS)
            computed = work.projection is not None and work.projection.query.needs_spark
            for needed in (computed, work.conversion.has_columns):
                if needed:
                    columns = record(self._run(replace(work, look_only=True), heads, columns))
        while True:
            work = work.with_columns(from_document(columns.columns), columns.exact)
            results = self._run(work, reads, columns)
            done = [one for one in results if isinstance(one, Done)]
            is_settled = work.has_settled_columns(results)
            # Readers know all columns, whichever schema a file has; and which columns later commits must not round.
            if is_settled and not any(one.seen or {*one.large} - {*columns.exact} for one in done):
                return done, work
            columns = record(results)
            if is_settled and outcomes.is_judged_by(columns, work.columns, work.conversion.integral, done):
                return done, work
            self._drop(work, collect_files(done))

    def _run(self, work: Work, reads: Intervals, recorded: Recorded) -> list[Outcome]:
        """Run the tasks. Return their results if none is an error; `recorded` has the shapes of records seen so far."""
        if not reads:
            return []
        return self._require_sound(work, self.run(ReadRequest(self.sink, self.topic, work, reads, recorded.shapes)))

    def _require_sound(self, work: Work, outcomes: list[Outcome]) -> list[Outcome]:
        bad = [one for one in outcomes if isinstance(one, Refused | Failed)]
        if not bad:
            return outcomes
        self._drop(work, collect_files(one for one in outcomes if isinstance(one, Done)))
        first = min(bad, key=_place)
        if isinstance(first, Failed):
            raise first.exception
        raise refusal_error(self.sink, self.topic, first)

    def _drop(self, work: Work, files: Sequence[File]) -> None:
        if files:
            abort_uploads(work.stores(work.bucket), files)

    def _combine(self, work: Work, done: Sequence[Done]) -> Staged:
        landed, files = self.sink.after_transforms, collect_files(done)
        if work.keys.replaces:  # of several files with one key the last one stays
            last = {file.key: file for file in files}
            self._drop(work, [file for file in files if last[file.key] is not file])
            files = list(last.values())
        if len(files) > MOST_FILES:
            self._drop(work, files)
            hour = hours.key_of_ms(work.hour_start_ms)
            raise TooManyFilesError(
                f"a micro-batch of {self.topic} {hour} has {len(files):,} files, one commit may have {MOST_FILES:,}: "
                "raise flush.count or flush.size, or let the layout name fewer places"
            )
        reads, columns = outcomes.merge_reads(one.reads for one in done), work.file_columns
        if columns is not None:
            columns = outcomes.with_seen(columns, done, work.conversion.integral)
        clocks = tuple((partition, read.end, work.wallclock_ms) for partition, read in sorted(reads.items()))
        return Staged(
            files=tuple(sorted(files, key=attrgetter("key"))),
            reads=reads,
            clocks=clocks if work.chain else (),
            form=form_of(landed),
            nulls=landed.nulls,
            columns=None if columns is None else to_document(columns),
            replacing=work.keys.replaces,
            refusal_reasons=dead_letter_reasons.merge_reasons(one.refusal_reasons for one in done),
        )


def _first_offsets(reads: Intervals, most: int) -> Intervals:
    """Return the first `most` offsets of `reads`, or all; no record is looked at before an earlier one.

    Of two records that disagree the earlier one decides, and a lower topic-partition counts as earlier.
    """
    first: dict[int, tuple[int, int]] = {}
    for partition, (start, end) in sorted(reads.items()):
        if most > 0:
            first[partition] = start, min(end, start + most)
        most -= end - start
    return first


def _place(outcome: Refused | Failed) -> tuple[int, int, int]:
    """Return the order in which errors count: each try of a micro-batch reports the same record."""
    return (0, outcome.partition, outcome.offset) if isinstance(outcome, Refused) else (1, 0, 0)
