"""The second look, only where sums differ: which records and which rows, with digests on local disk, not in memory."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from struct import Struct
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO

from s3lake.scratch import scratch
from s3lake.verify import digest

_entry = Struct(f"<{digest.SIZE}sq")
_ENTRIES_AT_ONCE = 10_000
_REMEMBERED = 1_000_000
_ROW_BITS = 40
_LISTED = 20


class Spill:
    """Digests and where each was met, in one temporary file per bucket that matters."""

    def __init__(self, buckets: Iterable[int]) -> None:
        self._files: dict[int, IO[bytes] | None] = dict.fromkeys(buckets)
        self._stack = ExitStack()

    def __enter__(self) -> "Spill":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with scratch(_entry.size):  # what waits in a buffer is written
            self._stack.close()

    def add(self, digests: Iterable[bytes], places: Iterable[int]) -> None:
        """Note digests of buckets that matter."""
        for value, place in zip(digests, places, strict=False):
            bucket = digest.bucket_of(value)
            if bucket not in self._files:
                continue
            file = self._files[bucket]
            with scratch(_entry.size):
                if file is None:
                    file = self._files[bucket] = self._stack.enter_context(TemporaryFile())  # noqa: SIM115
                file.write(_entry.pack(value, place))

    def bucket(self, number: int) -> Iterator[tuple[bytes, int]]:
        """What was noted of one bucket."""
        file = self._files[number]
        if file is None:
            return
        file.seek(0)
        while block := file.read(_entry.size * _ENTRIES_AT_ONCE):
            yield from _entry.iter_unpack(block)


@dataclass
class Places:
    """Offsets, or rows of files: how many, and those that are remembered."""

    count: int = 0
    remembered: list[int] = field(default_factory=list)

    def add(self, places: list[int]) -> None:
        """Take places in."""
        self.count += len(places)
        self.remembered += places[: max(0, _REMEMBERED - len(self.remembered))]

    def runs(self) -> tuple[list[tuple[int, int]], int]:
        """The first runs of consecutive places, and how many places are in none of them."""
        listed_runs: list[tuple[int, int]] = []
        listed = 0
        for _, run in groupby(enumerate(sorted(self.remembered)), lambda numbered: numbered[1] - numbered[0]):
            if len(listed_runs) == _LISTED:
                break
            places = [place for _, place in run]
            listed_runs.append((places[0], places[-1]))
            listed += len(places)
        return listed_runs, self.count - listed


@dataclass
class Differing:
    """Where two multisets differ.

    Attributes:
        missing: offsets of records that no row is left for.
        unknown: rows whose value Kafka does not have.
        repeated: rows whose value Kafka has, but not as often.
    """

    missing: Places = field(default_factory=Places)
    unknown: Places = field(default_factory=Places)
    repeated: Places = field(default_factory=Places)


def place(file: int, row: int) -> int:
    """A row of a file as one number."""
    return file << _ROW_BITS | row


def file_and_row(place: int) -> tuple[int, int]:
    """The opposite of `place`."""
    return place >> _ROW_BITS, place & ((1 << _ROW_BITS) - 1)


def differing(buckets: Iterable[int], kafka: Spill, rows: Spill, spare: Spill) -> Differing:
    """Match records with rows, bucket by bucket.

    Args:
        buckets: where to look.
        kafka: records.
        rows: rows that each need a record.
        spare: rows that may answer for a record, but need none.
    """
    outcome = Differing()
    for bucket in sorted(buckets):
        expected = _by_digest(kafka.bucket(bucket))
        have = _by_digest(rows.bucket(bucket))
        more = _by_digest(spare.bucket(bucket))
        # Equal values answer for one another: of too many, the last are named.
        for value, offsets in expected.items():
            outcome.missing.add(offsets[len(have.get(value, ())) + len(more.get(value, ())) :])
        for value, places in have.items():
            if value in expected:
                outcome.repeated.add(places[len(expected[value]) :])
            else:
                outcome.unknown.add(places)
    return outcome


def _by_digest(entries: Iterable[tuple[bytes, int]]) -> dict[bytes, list[int]]:
    by_digest: dict[bytes, list[int]] = {}
    for value, place in entries:
        by_digest.setdefault(value, []).append(place)
    return by_digest
