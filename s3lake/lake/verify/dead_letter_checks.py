"""Dead letters: each must carry what Kafka has at its offset, and no record is both a dead letter and a row."""

from s3lake.errors import UnreadableError
from s3lake.index.commit.documents import File
from s3lake.index.store import Store
from s3lake.lake.objects import content
from s3lake.lake.objects.dead_letter_objects import StoredDeadLetter, parse_dead_letter
from s3lake.lake.objects.shape import LINE_FRAMING
from s3lake.lake.verify.commit_file_groups import read_body
from s3lake.lake.verify.decoded_values import DIGEST_BYTES, digest_row
from s3lake.lake.verify.digests import describe_offsets
from s3lake.lake.verify.index_checks import CommitRange, ReportDifference
from s3lake.lake.verify.log import UNREADABLE, Headers, Records
from s3lake.text.quantities import format_count


class DeadLetters:
    """The dead letters of one commit range.

    Attributes:
        count: lines in dead-letter objects.
        missing: dead letters that are not their record as Kafka has it.
        duplicated: dead letters without a record, or of one that is a dead letter already.
    """

    def __init__(self, topic: str, commit_range: CommitRange, report: ReportDifference) -> None:
        self.count = self.missing = self.duplicated = 0
        self._topic, self._range, self._report = topic, commit_range, report
        self._digests: dict[int, bytes] = {}
        self._unseen: set[int] = set()

    def read(self, store: Store, file: File) -> None:
        count = 0
        try:
            body = read_body(store, file.key)
            for lines in content.split_lines(content.decompress_blocks(body, file.key, "none"), LINE_FRAMING, file.key):
                for line in lines:
                    self._read_line(line, f"{file.key} row {count}")
                    count += 1
        except UnreadableError as problem:
            self._report("object", str(problem))
        self.count += count
        if count != file.records:
            has = format_count(count, "records")
            self._report("count", f"{file.key} has {has}, the manifest states {file.records}")

    def expect(self, first: int, end: int) -> None:
        """Note that all objects are read, and that Kafka will be asked for offsets `[first, end)`."""
        self._unseen = {offset for offset in self._digests if first <= offset < end}

    @property
    def needs(self) -> frozenset[str]:
        """The parts of Kafka's records, next to their values, that dead letters are compared with."""
        return frozenset(("key", "headers")) if self._unseen else frozenset()

    def add_records(self, records: Records) -> None:
        """Compare dead letters with records of Kafka."""
        if not self._digests or self._digests.keys().isdisjoint(records.offsets):
            return
        for offset, stamp, value, key, headers in zip(*records[1:], strict=True):
            if offset in self._digests:
                self._unseen.discard(offset)
                expected, now = self._digests[offset], _digest_record(value, stamp, key, headers)
                compared = DIGEST_BYTES if headers is UNREADABLE else None  # of such a record the value alone
                if expected[:compared] != now[:compared]:
                    self.missing += 1
                    is_value = expected[:DIGEST_BYTES] != now[:DIGEST_BYTES]
                    part = "value" if is_value else "key, timestamp or headers"
                    self._report("dead_letter", f"offset {offset} has another {part} in Kafka")

    def exclude_dead_letters(self, records: Records) -> Records:
        if not self._digests or self._digests.keys().isdisjoint(records.offsets):
            return records
        return records.select([row for row, offset in enumerate(records.offsets) if offset not in self._digests])

    def report_unmatched(self, compacted: int) -> None:
        """Report dead letters without a record, unless as many may have been compacted away."""
        if len(self._unseen) <= compacted:
            return
        self.duplicated += len(self._unseen)
        for text in describe_offsets(sorted(self._unseen)):
            self._report("dead_letter", f"{text}: Kafka has no such record")

    def _read_line(self, line: bytes, place: str) -> None:
        try:
            dead_letter = parse_dead_letter(line)
        except ValueError as error:
            self._report("dead_letter", f"{place} is not a dead letter: {error}")
            return
        if problem := self._find_problem(dead_letter, place):
            self.duplicated += 1
            self._report("dead_letter", problem)
        else:
            self._digests[dead_letter.offset] = _digest_record(
                dead_letter.value, dead_letter.timestamp_ms, dead_letter.key, dead_letter.headers
            )

    def _find_problem(self, dead_letter: StoredDeadLetter, place: str) -> str:
        if (dead_letter.topic, dead_letter.partition) != (self._topic, self._range.partition):
            of = f"topic {dead_letter.topic} partition {dead_letter.partition}"
            return f"{place} is of {of}, offset {dead_letter.offset}"
        if dead_letter.offset in self._digests:
            return f"offset {dead_letter.offset} is a dead letter twice, again in {place}"
        if not self._range.start <= dead_letter.offset < self._range.end:
            return f"{place} has offset {dead_letter.offset}, which its commit does not cover"
        return ""


def _digest_record(value: bytes | None, stamp: int, key: bytes | None, headers: Headers) -> bytes:
    """Return the digest of a record's value, and behind it that of its other parts."""
    return digest_row(value) + digest_row([stamp, key, list(map(list, headers))])
