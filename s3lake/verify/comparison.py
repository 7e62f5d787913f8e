"""One commit's part of one topic-partition: what Kafka has against what the objects hold.

First a cheap look: sums of digests, in any order. Only where they differ a second one says which records and rows.

Kafka may have expired a part of what a commit covers. Lines carry no offsets, so then files tell by their first and
last offset where they belong: those wholly below the log start are not read (their size and owner are checked); those
wholly above it are, and each of their rows needs a record; the rows of a file across the log start may answer for
records that Kafka still has, but need none. So a record that is gone from the lake is found as long as Kafka has it,
and a row too many is found unless it is in a file across the log start. The same holds for a log that was cut off at
its end. In a compacted topic as many rows may lack a record as Kafka has fewer than the commit read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3lake.commit.index import File, Manifest, TopicIndex
from s3lake.errors import UnreadableError
from s3lake.objects.digest import Digest
from s3lake.objects.shape import Shape
from s3lake.source.offsets import LogRange
from s3lake.verify import detail, digest, index_side, parts, s3_side
from s3lake.verify.detail import Differing, Places, Spill
from s3lake.verify.digest import Sums
from s3lake.verify.framed import Telling
from s3lake.verify.index_side import Note, Segment
from s3lake.verify.letters import DeadLetters, in_words
from s3lake.verify.log import UNREADABLE, Log, Records
from s3lake.verify.reading import Group, Reading
from s3lake.verify.report import Kind, Unchecked

if TYPE_CHECKING:
    from s3lake.sink import Sink

_LETTERS = Shape("json", codec="none")
_LAST = "the sink keeps the last record of each key: its template says no offset, so nothing tells which are left"
_SCHEMAS = 5
_NAMELESS = "an earlier s3lake landed it, and noted no columns of CSV files without a header line"
_CHANGED = "the sink changes values (transforms or SQL), so files do not hold what Kafka has"


@dataclass(frozen=True)
class Question:
    """What is compared with what: a sink's index of a topic, and the topic's log.

    Attributes:
        since: the hour in which s3lake took over from a connector, whose objects it may have; None if there is none.
    """

    sink: "Sink"
    index: TopicIndex
    log: Log
    since: str | None = None


class Comparison:
    """The comparison of one segment: read the objects, take the records, conclude.

    Attributes:
        window: offsets `[first, end)` of the segment that Kafka still has.
        whole: whether Kafka still has all that the commit could read.
        unchecked: the rest of the segment, and why it cannot be checked.
        erased: records that its commit says were taken out of its files.
    """

    def __init__(
        self, question: Question, segment: Segment, kafka: LogRange | None, hour_start_ms: int, note: Note
    ) -> None:
        """`kafka` is the topic-partition's log, None where the topic was deleted since."""
        self.segment, self.unchecked = segment, list[Unchecked]()
        self.window = _window(segment, kafka)
        self.whole = (
            kafka is not None
            and self.window[1] == segment.end
            and self.window[0] <= max(segment.start, segment.landable)
        )
        self.kafka_records = self.rows = self.skipped = self.missing = self.duplicated = self.stored = 0
        self.letters = DeadLetters(question.index.topic, segment, note)
        self._question, self._note_of, self._hour_start_ms = question, note, hour_start_ms
        sink, manifest = question.sink, segment.manifest
        self._nulls = (manifest.nulls if manifest else "") or sink.nulls
        self._changed = manifest.shape.changed is True if manifest else bool(sink.transforms or sink.sql)
        self._translated = Telling(_shape_of(manifest, sink), sink.converter.registry)
        self._shape = self._translated.shape
        self._replaces = index_side.keeps_last(question.sink)
        self._opaque = _LAST if self._replaces else self._translated.problem
        if self._changed and not self._replaces:
            self._opaque = _CHANGED
        groups = [] if self._opaque else Group.all_of(segment.files)
        concerned = [group for group in groups if self._concerns(group.first)]
        # A merge may join files of a replay, whose records stand after those of later offsets.
        in_order = manifest is not None and not manifest.replaces
        self._reading = Reading(question.index, self._shape, concerned, in_order=in_order)
        self._beyond = [group for group in groups if not self._concerns(group.first)]
        self._in_kafka, self._in_files = Sums(), Sums()
        self._late = self._unknown = 0
        self.erased = segment.read.erased if segment.read else 0
        if self.erased and not segment.files:
            # Kafka is not read for what is in no file on purpose.
            self.window, self.whole = (segment.end, segment.end), False
        self._say_unchecked(kafka)

    def read_objects(self) -> None:
        """The objects' side: whether they are there, and what is in them."""
        gone = set()
        for file in self.segment.files:
            if self._replaces and file.kind != "dead_letters":
                continue  # it may be another commit's by now
            size = self._look_at(file)
            self.stored += size or 0
            if size is None:
                gone.add(file.key)
                continue
            if file.kind == "dead_letters":
                self.letters.read(self._question.index.store, file)
            if file.digest:
                self._compare_digest(file)
        unread = Group.all_of(self.segment.files) if self._opaque else self._beyond
        self.rows = sum(group.first.records for group in unread)
        for group in self._reading.groups:
            if gone.isdisjoint(file.key for file in group.files.values()):
                self._read_rows(group)
        self.letters.expect(*self.window)

    def take(self, records: Records) -> None:
        """Records of Kafka."""
        dead = self.letters.take(records)
        told = self._translated(self.letters.others(records))
        landing = self._landing(told)
        for offset, headers in zip(landing.offsets, landing.headers, strict=False):
            if headers is UNREADABLE and "headers" in self._of_files:
                self._opaque = f"the headers of offset {offset} cannot be read: a name is not UTF-8"
        if not self._opaque:
            digests, _ = self._reading.expected(landing)
            self._in_kafka.add(digests)
            self._reading.take_whole(landing, digests)
        self.kafka_records += len(records.offsets)
        self.skipped += len(told.offsets) - len(landing.offsets)
        self._unknown += len(records.offsets) - dead - len(told.offsets)
        self._late += sum(map(self._hour_start_ms.__gt__, records.timestamps))

    def conclude(self) -> None:
        """Say what differs, once both sides are known."""
        compacted = self._compacted_away()
        self.letters.conclude(compacted)
        self._say_incomparable()
        spare = compacted + self._unknown
        if self.whole:
            if not self._opaque and (buckets := self._in_kafka.differing(self._in_files)):
                self._name(self._look_closer(buckets), spare)
            self._compare_counts(compacted)
        elif self.window[0] < self.window[1] and not self._opaque:
            self._name(self._look_closer(set(range(digest.BUCKETS))), spare)
        if not (spare or self.erased or self.missing or self.duplicated or self._opaque):
            self._reading.compare_whole(self._needs_records, lambda text: self._note("object", text))
        self.missing += self.letters.missing
        self.duplicated += self.letters.duplicated

    @property
    def not_compared(self) -> int:
        """How many of Kafka's records were counted alone."""
        return self.kafka_records if self._opaque or self._reading.problem else self._unknown

    @property
    def needs(self) -> frozenset[str]:
        """What must be known of Kafka's records beside their values."""
        return self.letters.needs if self._opaque else self.letters.needs | self._of_files

    @property
    def _of_files(self) -> frozenset[str]:
        fields = self._shape.envelope.fields if self._shape.envelope else ()
        beside = {"key": self._shape.sidecars.keys, "headers": self._shape.sidecars.headers}
        return frozenset(part for part, sidecar in beside.items() if part in fields or sidecar)

    def _say_unchecked(self, kafka: LogRange | None) -> None:
        start, end, (first, last) = self.segment.start, self.segment.end, self.window
        if self.erased and not self.segment.files and self.segment.manifest is not None:
            reason = f"all of it is said to be gone on purpose: {self.segment.manifest.reason}"
            self.unchecked.append(Unchecked(start, end, reason))
            return
        if kafka is None:
            if start < end:
                self.unchecked.append(Unchecked(start, end, "its topic was deleted"))
            return
        landable = max(start, min(self.segment.landable, first))
        if start < landable:
            self.unchecked.append(Unchecked(start, landable, "expired before it was landed"))
        if landable < first:
            self.unchecked.append(Unchecked(landable, first, f"expired since: Kafka's log starts at {kafka.low}"))
        if last < end:
            self.unchecked.append(Unchecked(last, end, f"Kafka's log ends at {kafka.end}"))
            self._note("kafka", f"offsets {last} to {end - 1} are committed, but Kafka's log ends at {kafka.end}")

    def _say_incomparable(self) -> None:
        """Once records are taken: which schemas they need, and whether rows tell files apart, is known then."""
        problem = self._opaque or self._reading.problem
        if not problem and self._unknown:
            schemas = "; ".join(sorted(self._translated.unknown)[:_SCHEMAS])
            problem = f"{self._unknown} of its records have a schema that converter.registry does not: {schemas}"
        if problem:
            unchecked = Unchecked(self.segment.start, self.segment.end, problem, incomparable=True)
            self.unchecked.insert(0, unchecked)

    def _concerns(self, file: File) -> bool:
        """Whether a file may hold records that Kafka still has."""
        first, end = self.window
        return self.whole or (file.first_offset < end and first <= file.last_offset)

    def _needs_records(self, file: File) -> bool:
        """Whether every row of a file must come from a record that Kafka still has."""
        first, end = self.window
        return self.whole or (first <= file.first_offset and file.last_offset < end)

    def _look_at(self, file: File) -> int | None:
        assert self.segment.manifest is not None  # files come with their manifest
        size, problems = s3_side.problems(self._question.index.store, file, self.segment.manifest.id)
        for problem in problems:
            self._note("object", problem)
        return size

    def _compare_digest(self, file: File) -> None:
        """Whether a file holds what those held that it took the place of."""
        assert self.segment.manifest is not None  # files come with their manifest
        data, held = Shape.of(self.segment.manifest), Digest()
        shape = {"data": data, "dead_letters": _LETTERS}.get(file.kind) or data.sidecar(file.kind)
        try:
            held.add(shape, s3_side.body(self._question.index.store, file.key), file.key)
        except UnreadableError as problem:
            self._note("object", str(problem))
            return
        if str(held) != file.digest:
            self._note("object", f"{file.key} does not hold the records of the files that it was made of")

    def _read_rows(self, group: Group) -> None:
        rows = 0
        try:
            for digests in self._reading.rows(group):
                rows += len(digests)
                self._in_files.add(digests)
                self._reading.place(group, digests)
            self._reading.read_whole(group)
        except UnreadableError as problem:
            if self._shape.nameless and self._shape.value == parts.CONNECT and group.first.columns is None:
                self._opaque = f"{_NAMELESS}: {problem}"
                rows = group.first.records
            else:
                self._note("object", str(problem))
        if not self._reading.counts:
            rows = group.first.records
        self.rows += rows
        if rows != group.first.records:
            self._note("count", f"{group.first.key} has {rows} records, the manifest says {group.first.records}")

    def _landing(self, records: Records) -> Records:
        """Of records that were told those that must be in data files."""
        if self._nulls == "skip" and None in records.values:
            return records.only([row for row, value in enumerate(records.values) if value is not None])
        return records

    def _compacted_away(self) -> int:
        """How many records Kafka may have compacted away since the commit read them."""
        read = self.segment.read
        if read is None or self.kafka_records >= read.read or self.window[0] == self.window[1]:
            return 0
        if not self._question.log.compacted(self._question.index.topic):
            return 0
        # Of what expired nobody knows how much was compacted before.
        return read.read - self.kafka_records if self.whole else read.read

    def _look_closer(self, buckets: set[int]) -> Differing:
        with Spill(buckets) as kafka, Spill(buckets) as rows, Spill(buckets) as spare:
            for number, group in enumerate(self._reading.groups):
                row, into = 0, rows if self._needs_records(group.first) else spare
                try:
                    for digests in self._reading.rows(group):
                        into.add(digests, range(detail.place(number, row), detail.place(number, row + len(digests))))
                        row += len(digests)
                except UnreadableError:
                    pass  # said already; what came before it counts
            ranges = {self.segment.partition: self.window}
            for records in self._question.log.read(self._question.index.topic, ranges, self.needs):
                told = self._translated(self.letters.others(records))
                kafka.add(*self._reading.expected(self._landing(told)))
            return detail.differing(buckets, kafka, rows, spare)

    def _name(self, differing: Differing, spare: int) -> None:
        """Report what differs. Up to `spare` rows may lack a record: it was compacted, or its schema is unknown."""
        missing = max(0, differing.missing.count - self.erased)
        self.missing += missing
        where = f"topic {self._question.index.topic}, partition {self.segment.partition}"
        whose = f"in no file of commit {self.segment.manifest.id}" if self.segment.manifest else "in no commit"
        beside = f", and its manifest says that {self.erased} were erased" if self.erased else ""
        for text in in_words(differing.missing) if missing else ():
            self._note("missing", f"{where}, {text}: {whose}{beside}")
        if differing.unknown.count + differing.repeated.count <= spare:
            return
        self.duplicated += differing.unknown.count + differing.repeated.count
        for text in self._rows_in_words(differing.unknown):
            self._note("duplicated", f"{text}: Kafka has no such value among this commit's records")
        for text in self._rows_in_words(differing.repeated):
            self._note("duplicated", f"{text}: Kafka has this value fewer times among this commit's records")

    def _rows_in_words(self, places: Places) -> Iterator[str]:
        runs, rest = places.runs()
        for first, last in runs:
            (number, row), (_, end) = detail.file_and_row(first), detail.file_and_row(last)
            yield f"{self._reading.groups[number].first.key} " + (
                f"row {row}" if row == end else f"rows {row} to {end}"
            )
        if rest:
            yield f"and {rest} more rows"

    def _compare_counts(self, compacted: int) -> None:
        read, manifest = self.segment.read, self.segment.manifest
        if read is None or manifest is None:
            return
        if compacted:
            text = f"compacted: {compacted} of the records that were landed are no longer in Kafka"
            self.unchecked.append(Unchecked(self.segment.start, self.segment.end, text))
            return
        if (self.segment.start, self.segment.end) != (read.start, read.end):
            return  # another commit has a part of it, which was said
        counts = (
            ("read", read.read, self.kafka_records),
            ("skipped", read.skipped, self.skipped),
            ("late", read.late, self._late),
        )
        for what, of_commit, of_kafka in counts:
            if of_commit != of_kafka and not (what == "skipped" and self._changed):
                self._note(
                    "count", f"commit {manifest.id} says {what} {of_commit}, by Kafka's records it is {of_kafka}"
                )

    def _note(self, kind: Kind, text: str) -> None:
        self._note_of(kind, self.segment.partition, text)


def _shape_of(manifest: Manifest | None, sink: "Sink") -> Shape:
    """The shape of a commit's files; where it recorded no converters, or there is no commit, they are the sink's."""
    key, value = sink.converter.key, sink.converter.value
    return Shape.of(manifest, key=key, value=value) if manifest else Shape(sink.format.type, value, key)


def _window(segment: Segment, kafka: LogRange | None) -> tuple[int, int]:
    if kafka is None:
        return segment.end, segment.end
    first = max(segment.start, min(kafka.low, segment.end))
    return first, max(first, min(segment.end, kafka.end))
