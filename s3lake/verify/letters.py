"""Dead letters: each must carry what Kafka has at its offset, and no record is both a dead letter and a row."""

from collections.abc import Iterator

from s3lake.commit.index import File
from s3lake.errors import UnreadableError
from s3lake.objects.letters import Letter
from s3lake.store import Store
from s3lake.verify import digest, s3_side
from s3lake.verify.detail import Places
from s3lake.verify.index_side import Note, Segment
from s3lake.verify.log import UNREADABLE, Headers, Records


class DeadLetters:
    """The dead letters of one segment.

    Attributes:
        count: lines in dead-letter objects.
        missing: those that are not their record as Kafka has it.
        duplicated: those that no record answers for, or one that is a dead letter already.
    """

    def __init__(self, topic: str, segment: Segment, note: Note) -> None:
        self.count = self.missing = self.duplicated = 0
        self._topic, self._segment, self._note = topic, segment, note
        self._digests: dict[int, bytes] = {}
        self._unseen: set[int] = set()

    def read(self, store: Store, file: File) -> None:
        """Take in an object."""
        count = 0
        try:
            for letter in s3_side.letters(store, file.key):
                count += 1
                self._add(letter, file.key)
        except UnreadableError as problem:
            self._note("object", self._segment.partition, str(problem))
        self.count += count
        if count != file.records:
            text = f"{file.key} has {count} records, the manifest says {file.records}"
            self._note("count", self._segment.partition, text)

    def expect(self, first: int, end: int) -> None:
        """All are read: Kafka will be asked for offsets `[first, end)`."""
        self._unseen = {offset for offset in self._digests if first <= offset < end}

    def take(self, records: Records) -> int:
        """Compare with records of Kafka: how many of them are dead letters."""
        if not self._digests or self._digests.keys().isdisjoint(records.offsets):
            return 0
        count = 0
        _, *columns = records
        for offset, stamp, value, key, headers in zip(*columns, strict=True):
            if offset in self._digests:
                count += 1
                self._unseen.discard(offset)
                now = _digest(value, stamp, key, headers)
                compared = digest.SIZE if headers is UNREADABLE else None  # of such a record the value alone
                if self._digests[offset][:compared] != now[:compared]:
                    self.missing += 1
                    is_value = self._digests[offset][: digest.SIZE] != now[: digest.SIZE]
                    part = "value" if is_value else "key, timestamp or headers"
                    self._note("dead_letter", self._segment.partition, f"offset {offset} has another {part} in Kafka")
        return count

    @property
    def needs(self) -> frozenset[str]:
        """The parts of Kafka's records, next to their values, that dead letters are compared with."""
        return frozenset(("key", "headers")) if self._unseen else frozenset()

    def others(self, records: Records) -> Records:
        """The records that are no dead letters."""
        if not self._digests or self._digests.keys().isdisjoint(records.offsets):
            return records
        return records.only([row for row, offset in enumerate(records.offsets) if offset not in self._digests])

    def conclude(self, allowed: int) -> None:
        """Kafka has given all it has: name those without a record, unless that many may have been compacted away."""
        if len(self._unseen) <= allowed:
            return
        self.duplicated += len(self._unseen)
        places = Places()
        places.add(sorted(self._unseen))
        for text in in_words(places):
            self._note("dead_letter", self._segment.partition, f"{text}: Kafka has no such record")

    def _add(self, letter: Letter | str, key: str) -> None:
        partition = self._segment.partition
        if isinstance(letter, str):
            self._note("dead_letter", partition, letter)
            return
        if (letter.topic, letter.partition) != (self._topic, partition):
            text = f"{key} has a record of topic {letter.topic} partition {letter.partition}, offset {letter.offset}"
        elif letter.offset in self._digests:
            text = f"offset {letter.offset} is a dead letter twice, again in {key}"
        elif not self._segment.start <= letter.offset < self._segment.end:
            text = f"{key} has offset {letter.offset}, which its commit does not cover"
        else:
            self._digests[letter.offset] = _digest(letter.value, letter.timestamp_ms, letter.key, letter.headers)
            return
        self.duplicated += 1
        self._note("dead_letter", partition, text)


def _digest(value: bytes | None, stamp: int, key: bytes | None, headers: Headers) -> bytes:
    """Return the digest of a record's value, and behind it that of its other parts."""
    return digest.of_value(value) + digest.of_record([stamp, key, list(map(list, headers))])


def in_words(places: Places) -> Iterator[str]:
    """Offsets in words, the first runs of them and how many more."""
    runs, rest = places.runs()
    for first, last in runs:
        yield f"offset {first}" if first == last else f"offsets {first} to {last}"
    if rest:
        yield f"and {rest} more"
