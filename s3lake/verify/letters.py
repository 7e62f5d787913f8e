"""Dead letters: each must carry what Kafka has at its offset, and no record is both a dead letter and a row."""

from collections.abc import Iterator

from s3lake.commit.index import File
from s3lake.errors import UnreadableError
from s3lake.store import Store
from s3lake.verify import digest, s3_side
from s3lake.verify.detail import Places
from s3lake.verify.index_side import Note, Segment
from s3lake.verify.log import Records


class DeadLetters:
    """The dead letters of one segment.

    Attributes:
        count: lines in dead-letter objects.
        missing: those that do not carry their record's value.
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
        for offset, value in zip(records.offsets, records.values, strict=True):
            if offset in self._digests:
                count += 1
                self._unseen.discard(offset)
                if self._digests[offset] != digest.of_value(value):
                    self.missing += 1
                    self._note("dead_letter", self._segment.partition, f"offset {offset} has another value in Kafka")
        return count

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

    def _add(self, letter: s3_side.Letter | str, key: str) -> None:
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
            self._digests[letter.offset] = letter.digest
            return
        self.duplicated += 1
        self._note("dead_letter", partition, text)


def in_words(places: Places) -> Iterator[str]:
    """Offsets in words, the first runs of them and how many more."""
    runs, rest = places.runs()
    for first, last in runs:
        yield f"offset {first}" if first == last else f"offsets {first} to {last}"
    if rest:
        yield f"and {rest} more"
