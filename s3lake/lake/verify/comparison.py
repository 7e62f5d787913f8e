"""One commit's part of one topic-partition: what Kafka has against what the objects hold.

First a cheap look: sums of digests, in any order. Only if they differ a second one finds which records and rows.

Kafka may have expired a part of what a commit covers. Rows need not contain their offsets, so files show by their first
and last offset where they belong: those wholly below the log start are not read (their size and owner are checked);
those wholly above it are, and each of their rows needs a record; the rows of a file across the log start may answer for
records that Kafka still has, but need none. So a record that is lost is found as long as Kafka has it, and a row too
many is found unless it is in a file across the log start. The same holds for a log that was cut off at its end. In a
compacted topic as many rows may lack a record as Kafka has fewer than the commit read.

A commit whose values cannot be worked out here is counted: its rows, and Kafka's records, are as many as it states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3lake.errors import UnreadableError
from s3lake.index.commit.documents import DEAD_LETTERS, File
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.lake.objects.shape import ObjectShape
from s3lake.lake.verify.commit_file_groups import CommitFiles, FileGroup, count_rows, group_files
from s3lake.lake.verify.dead_letter_checks import DeadLetters
from s3lake.lake.verify.differences import ComparedCounts, NotChecked
from s3lake.lake.verify.digests import (
    BUCKETS,
    DigestPlaces,
    DigestSums,
    RowDifference,
    describe_offsets,
    describe_runs,
    match_rows,
)
from s3lake.lake.verify.expected import ExpectedRecords
from s3lake.lake.verify.index_checks import CommitRange, ReportDifference, check_object, replaces_files
from s3lake.lake.verify.log import Log, Records
from s3lake.source.offsets import LogRange
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

_ROW_BITS = 40
_ROW = (1 << _ROW_BITS) - 1


@dataclass(frozen=True)
class VerifyContext:
    """A sink's index of a topic, and the topic's log, which are compared.

    Attributes:
        since: the hour in which s3lake took over from a connector, whose objects it may have; None if it did not.
    """

    sink: Sink
    index: TopicIndex
    log: Log
    since: str | None = None


class Comparison:
    """The comparison of one commit range: `read_objects`, `add_records`, then `compare`.

    Attributes:
        window: offsets `[first, end)` of the range that Kafka still has.
        not_checked: the offsets that are not compared, and why; complete after `compare`.
    """

    def __init__(
        self,
        context: VerifyContext,
        commit_range: CommitRange,
        kafka: LogRange | None,
        hour_start_ms: int,
        report: ReportDifference,
    ) -> None:
        """`kafka` is the topic-partition's log, None if the topic was deleted since."""
        self.range, self.window = commit_range, _find_window(commit_range, kafka)
        self._context, self._report, self._hour_start_ms = context, report, hour_start_ms
        self._whole = (
            kafka is not None
            and self.window[1] == commit_range.end
            and self.window[0] <= max(commit_range.start, commit_range.landable)
        )  # Kafka still has all that the commit could read
        self._replaces, store, topic = replaces_files(context.sink), context.index.store, context.index.topic
        self._shape = (
            ObjectShape.from_manifest(commit_range.manifest)
            if commit_range.manifest
            else ObjectShape(context.sink.format.type)
        )
        self._records = ExpectedRecords(context.sink, topic, self._shape, commit_range, replaces=self._replaces)
        self._groups = group_files(commit_range.files)
        compared = [group for group in self._groups if self._concerns(group.first) and not self._records.reason]
        # A merge may join files of a replay, whose records come after later offsets.
        in_order = commit_range.manifest is not None and not commit_range.manifest.replaces
        self._files = CommitFiles(store, topic, self._shape, compared, self._records.registry, in_order=in_order)
        self._records.only_count(self._files.counted_reason)
        self._in_kafka, self._in_files = DigestSums(), DigestSums()
        self._late = self._kafka_records = self._rows = self._skipped = self._stored = 0
        self._missing = self._duplicated = 0
        self._dead_letters = DeadLetters(topic, commit_range, report)
        self._erased = commit_range.read.erased if commit_range.read else 0
        if self._erased and not commit_range.files:  # Kafka is not read for what is in no file on purpose
            self.window, self._whole = (commit_range.end, commit_range.end), False
        self.not_checked = list(self._find_not_checked(kafka))

    @property
    def needs(self) -> frozenset[str]:
        """The parts of Kafka's records that are needed, next to their values."""
        return self._dead_letters.needs | self._records.needs

    def read_objects(self) -> None:
        """Read the objects: whether they are there, and what is in them."""
        store, missing = self._context.index.store, set[str]()
        for file in self.range.files:
            if self._replaces and file.stream != DEAD_LETTERS:
                continue  # it may be another commit's by now
            assert self.range.manifest is not None  # files come with their manifest
            size, problems = check_object(store, file, self.range.manifest.id)
            for problem in problems:
                self._report("object", problem)
            self._stored += size or 0
            if size is None:
                missing.add(file.key)
            elif file.stream == DEAD_LETTERS:
                self._dead_letters.read(store, file)
        for group in self._groups:
            if missing.isdisjoint(file.key for file in group.files.values()):
                self._read_group(group)
        self._dead_letters.expect(*self.window)

    def add_records(self, records: Records) -> None:
        self._dead_letters.add_records(records)
        not_dead = self._dead_letters.exclude_dead_letters(records)
        expected, refused = self._records.select(not_dead)
        for offset, why in refused.items():
            self._missing += 1
            self._report("missing", f"offset {offset} is not a dead letter, and the transforms refuse it: {why}")
        if not self._records.reason:
            digests = self._files.expect(expected)
            self._in_kafka.add(digests)
            self._files.expect_order(expected, digests)
        self._kafka_records += len(records.offsets)
        self._skipped += len(not_dead.offsets) - len(expected.offsets)
        self._late += sum(map(self._hour_start_ms.__gt__, records.timestamps))

    def compare(self) -> ComparedCounts:
        """Compare both sides, once they are known."""
        compacted = self._count_compacted()
        self._dead_letters.report_unmatched(compacted)
        is_counted, buckets = bool(self._records.reason), set[int]()
        if self._whole:
            buckets = self._in_kafka.find_differing_buckets(self._in_files)
        elif self.window[0] < self.window[1]:
            buckets = set(range(BUCKETS))
        if buckets and not is_counted:
            self._report_rows(self._find_differences(buckets), compacted)
        if self._whole:
            self._compare_counts(compacted)
        if not (compacted or self._erased or self._missing or self._duplicated or is_counted):
            for text in self._files.find_misordered(self._needs_records):
                self._report("object", text)
        return self._count()

    def _find_not_checked(self, kafka: LogRange | None) -> Iterator[NotChecked]:
        start, end, (first, last) = self.range.start, self.range.end, self.window
        if self._erased and not self.range.files and self.range.manifest is not None:
            yield NotChecked(start, end, f"all of it was removed on purpose: {self.range.manifest.reason}")
            return
        if kafka is None:
            if start < end:
                yield NotChecked(start, end, "its topic was deleted")
            return
        landable = max(start, min(self.range.landable, first))
        if start < landable:
            yield NotChecked(start, landable, "expired before it was landed")
        if landable < first:
            yield NotChecked(landable, first, f"expired since: Kafka's log starts at {kafka.log_start}")
        if last < end:
            yield NotChecked(last, end, f"Kafka's log ends at {kafka.log_end}")
            self._report("kafka", f"offsets {last} to {end - 1} are committed, but Kafka's log ends at {kafka.log_end}")

    def _concerns(self, file: File) -> bool:
        """Return whether a file may hold records that Kafka still has."""
        first, end = self.window
        return self._whole or (file.first_offset < end and first <= file.last_offset)

    def _needs_records(self, file: File) -> bool:
        """Return whether every row of a file must come from a record that Kafka still has."""
        first, end = self.window
        return self._whole or (first <= file.first_offset and file.last_offset < end)

    def _read_group(self, group: FileGroup) -> None:
        """Read the rows of files, or only count them; of offsets that Kafka lost there are as many as listed."""
        rows = group.first.records
        if not self._replaces and self._concerns(group.first):
            try:
                bodies = self._files.fetch(group)
                if self._records.reason:
                    rows = count_rows(self._shape, group, bodies)
                else:
                    rows = 0 if self._files.can_count else rows
                    for digests in self._files.read_first(group, bodies):
                        rows += len(digests)
                        self._in_files.add(digests)
            except UnreadableError as problem:
                self._report("object", str(problem))
        self._rows += rows
        if rows != group.first.records:
            has = format_count(rows, "records")
            self._report("count", f"{group.first.key} has {has}, the manifest states {group.first.records}")

    def _count_compacted(self) -> int:
        """Count the records that Kafka may have compacted away since the commit read them."""
        read = self.range.read
        if read is None or self._kafka_records >= read.read or self.window[0] == self.window[1]:
            return 0
        if not self._context.log.is_compacted(self._context.index.topic):
            return 0
        # How many of the expired ones were compacted before is not known.
        return read.read - self._kafka_records if self._whole else read.read

    def _find_differences(self, buckets: set[int]) -> RowDifference:
        kafka, rows, spare = DigestPlaces(buckets), DigestPlaces(buckets), DigestPlaces(buckets)
        for number, group in enumerate(self._files.groups):
            row, into = number << _ROW_BITS, rows if self._needs_records(group.first) else spare
            try:
                for digests in self._files.read_files(group):
                    into.add(digests, range(row, row + len(digests)))
                    row += len(digests)
            except UnreadableError:
                pass  # it is reported already; what came before it counts
        ranges = {self.range.partition: self.window}
        for records in self._context.log.read(self._context.index.topic, ranges, self.needs):
            expected, _ = self._records.select(self._dead_letters.exclude_dead_letters(records))
            if digests := self._files.expect(expected):
                kafka.add(digests, expected.offsets)
        return match_rows(buckets, kafka, rows, spare)

    def _report_rows(self, rows: RowDifference, spare: int) -> None:
        """Report what differs. Up to `spare` rows may lack a record, because it was compacted."""
        missing = max(0, len(rows.missing) - self._erased)
        self._missing += missing
        where = f"topic {self._context.index.topic}, partition {self.range.partition}"
        whose = f"in no file of commit {self.range.manifest.id}" if self.range.manifest else "in no commit"
        erased = f", and its manifest states that {self._erased} were erased" if self._erased else ""
        for text in describe_offsets(rows.missing) if missing else ():
            self._report("missing", f"{where}, {text}: {whose}{erased}")
        if len(rows.unknown) + len(rows.repeated) <= spare:
            return
        self._duplicated += len(rows.unknown) + len(rows.repeated)
        for text in self._describe_rows(rows.unknown):
            self._report("duplicated", f"{text}: Kafka has no such value among this commit's records")
        for text in self._describe_rows(rows.repeated):
            self._report("duplicated", f"{text}: Kafka has this value fewer times among this commit's records")

    def _describe_rows(self, places: Sequence[int]) -> Iterator[str]:
        def describe(first: int, last: int) -> str:
            row, end = first & _ROW, last & _ROW
            key = self._files.groups[first >> _ROW_BITS].first.key
            return f"{key} row {row}" if row == end else f"{key} rows {row} to {end}"

        return describe_runs(places, describe, " rows")

    def _compare_counts(self, compacted: int) -> None:
        read, manifest = self.range.read, self.range.manifest
        if read is None or manifest is None:
            return
        if compacted:
            text = f"compacted: {compacted} of the records that were landed are no longer in Kafka"
            self.not_checked.append(NotChecked(self.range.start, self.range.end, text))
            return
        if (self.range.start, self.range.end) != (read.start, read.end):
            return  # another commit has a part of it, which is reported
        counts = [("read", read.read, self._kafka_records), ("late", read.late, self._late)]
        if not self._records.reason:
            counts.append(("skipped", read.skipped + read.filtered, self._skipped))
        for what, by_commit, by_kafka in counts:
            if by_commit != by_kafka:
                self._report(
                    "count", f"commit {manifest.id} states {what} {by_commit}, by Kafka's records it is {by_kafka}"
                )

    def _count(self) -> ComparedCounts:
        reason, read = self._records.reason, self.range.read
        if reason:
            self.not_checked.insert(0, NotChecked(self.range.start, self.range.end, reason, self._records.state))
        return ComparedCounts(
            kafka_records=self._kafka_records,
            not_compared=self._kafka_records if reason else 0,
            landed=self._rows,
            skipped=read.skipped + read.filtered if reason and read else self._skipped,
            dead_letters=self._dead_letters.count,
            missing=self._missing + self._dead_letters.missing,
            duplicated=self._duplicated + self._dead_letters.duplicated,
            files=sum(file.stream != DEAD_LETTERS for file in self.range.files),
            dead_letter_files=sum(file.stream == DEAD_LETTERS for file in self.range.files),
            bytes=self._stored,
            erased=self._erased,
        )


def _find_window(commit_range: CommitRange, kafka: LogRange | None) -> tuple[int, int]:
    if kafka is None:
        return commit_range.end, commit_range.end
    first = max(commit_range.start, min(kafka.log_start, commit_range.end))
    return first, max(first, min(commit_range.end, kafka.log_end))
