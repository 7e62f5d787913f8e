"""Digests of records, and sums of them that do not depend on order: how two multisets are compared in little memory."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec

BAD = (ValueError, OverflowError, RecursionError, KeyError, TypeError, StopIteration)
"""What reading leads to where there is no record, or no part of one."""

SIZE = 16
BUCKETS = 64

_pack = msgspec.msgpack.Encoder().encode

NULL = blake2b(digest_size=SIZE, person=b"null").digest()
"""Of a record that holds nothing, unlike one that is empty."""


def of(data: bytes) -> bytes:
    return blake2b(data, digest_size=SIZE).digest()


def of_value(value: bytes | None) -> bytes:
    return NULL if value is None else of(value)


def unfit(data: bytes, side: bytes) -> bytes:
    """A digest that nothing of the other side has: of what should not have landed, or cannot have come from Kafka."""
    return blake2b(data, digest_size=SIZE, person=side).digest()


def of_record(row: Any) -> bytes:
    """The digest of what a record of Kafka holds."""
    try:
        return of(_pack(row))
    except (ValueError, OverflowError, TypeError):  # a number that no file holds
        return unfit(repr(row).encode(), b"kafka")


def of_text(text: bytes, read: Callable[[bytes], Any]) -> bytes:
    """The digest of what a text of a file holds; of one that is no record's, one that nothing of Kafka has."""
    try:
        return of(_pack(read(text)))
    except BAD:
        return unfit(text, b"file")


def bucket_of(digest: bytes) -> int:
    return digest[0] % BUCKETS


class Sums:
    """A multiset of digests as one sum per bucket: equal multisets have equal sums, others (but for luck) do not.

    Buckets tell where two multisets differ, so that looking closer takes a part of the memory.
    """

    def __init__(self) -> None:
        self.count = 0
        self._sums = [0] * BUCKETS

    def add(self, digests: Iterable[bytes]) -> None:
        """Take digests in."""
        sums, number, count = self._sums, int.from_bytes, 0
        for digest in digests:
            sums[digest[0] % BUCKETS] += number(digest, "little")
            count += 1
        self.count += count

    def differing(self, other: "Sums") -> set[int]:
        """Buckets in which the two differ."""
        return {bucket for bucket in range(BUCKETS) if self._sums[bucket] != other._sums[bucket]}
