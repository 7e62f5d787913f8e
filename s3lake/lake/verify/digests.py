"""Multisets of digests: sums show whether two are equal, and places where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from struct import Struct

from s3lake.lake.verify.decoded_values import DIGEST_BYTES

BUCKETS = 64
_entry = Struct(f"<{DIGEST_BYTES}sq")
_LISTED = 20


class DigestSums:
    """A multiset of digests as one sum per bucket: equal multisets have equal sums, others (but for luck) do not."""

    def __init__(self) -> None:
        self._sums = [0] * BUCKETS

    def add(self, digests: Iterable[bytes]) -> None:
        sums, number = self._sums, int.from_bytes
        for digest in digests:
            sums[digest[0] % BUCKETS] += number(digest, "little")

    def find_differing_buckets(self, other: DigestSums) -> set[int]:
        return {bucket for bucket in range(BUCKETS) if self._sums[bucket] != other._sums[bucket]}


class DigestPlaces:
    """The digests of some buckets, and the place of each: an offset, or a row as one number. 24 bytes each."""

    def __init__(self, buckets: Iterable[int]) -> None:
        self._entries = {bucket: bytearray() for bucket in buckets}

    def add(self, digests: Iterable[bytes], places: Iterable[int]) -> None:
        for digest, place in zip(digests, places, strict=True):
            entries = self._entries.get(digest[0] % BUCKETS)
            if entries is not None:
                entries += _entry.pack(digest, place)

    def group_by_digest(self, bucket: int) -> dict[bytes, list[int]]:
        places: dict[bytes, list[int]] = {}
        for digest, place in _entry.iter_unpack(self._entries[bucket]):
            places.setdefault(digest, []).append(place)
        return places


@dataclass
class RowDifference:
    """The records and rows that differ.

    Attributes:
        missing: offsets of records that no row is left for.
        unknown: rows whose value Kafka does not have.
        repeated: rows whose value Kafka has, but not as often.
    """

    missing: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)


def match_rows(buckets: Iterable[int], records: DigestPlaces, rows: DigestPlaces, spare: DigestPlaces) -> RowDifference:
    """Match records with rows, bucket by bucket; `spare` are rows that may answer for a record, but need none."""
    outcome = RowDifference()
    for bucket in sorted(buckets):
        expected, have, more = (
            records.group_by_digest(bucket),
            rows.group_by_digest(bucket),
            spare.group_by_digest(bucket),
        )
        # Equal values answer for one another: of too many, the last are named.
        for value, offsets in expected.items():
            outcome.missing += offsets[len(have.get(value, ())) + len(more.get(value, ())) :]
        for value, places in have.items():
            if value in expected:
                outcome.repeated += places[len(expected[value]) :]
            else:
                outcome.unknown += places
    return outcome


def describe_runs(places: Sequence[int], describe: Callable[[int, int], str], noun: str = "") -> Iterator[str]:
    """Yield the first runs of consecutive places in words, each by its first and last, and how many more there are."""
    listed = 0
    runs = groupby(enumerate(sorted(places)), lambda numbered: numbered[1] - numbered[0])
    for numbers in ([place for _, place in run] for _, run in islice(runs, _LISTED)):
        listed += len(numbers)
        yield describe(numbers[0], numbers[-1])
    if listed < len(places):
        yield f"and {len(places) - listed} more{noun}"


def describe_offsets(offsets: Sequence[int]) -> Iterator[str]:
    """Yield the first runs of offsets in words, and how many more there are."""
    return describe_runs(
        offsets, lambda first, last: f"offset {first}" if first == last else f"offsets {first} to {last}"
    )
