"""Positions in the bytes of many Avro datums, moved on together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from s3lake.records.convert.read.avro.datums import MOST_WEIGHTLESS
from s3lake.records.convert.read.keys_and_values import Numbers

PADDING = 16  # a varint has ten bytes at most, wherever it begins
_WORD = 8


class Cursor:
    """Positions in the bytes of some records: one for each, all moved on together.

    Attributes:
        data: the bytes of all records, with `PADDING` behind.
        words: the eight bytes that begin at each byte.
        rows: the number of each record.
        at: where each is read next; ascending.
        end: where each ends. A record that ends too early is bad, and stays at its end.
        bad: numbers of bad records, of this cursor and of those it came from.
        weightless: the number of items that take no bytes, read so far of each record.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        rows: Numbers,
        at: Numbers,
        end: Numbers,
        bad: list[Numbers],
        weightless: Numbers,
    ) -> None:
        self.data = data
        self.words = np.ndarray((len(data) - _WORD,), "<u8", data, strides=(1,))
        self.rows, self.at, self.end, self.bad, self.weightless = rows, at, end, bad, weightless

    def __len__(self) -> int:
        return len(self.at)

    def select(self, at: Any) -> Cursor:
        """Return a cursor of some of the records, by mask or number."""
        return Cursor(self.data, self.rows[at], self.at[at], self.end[at], self.bad, self.weightless)

    def mark_bad(self, at: Any) -> None:
        """Add records to the bad ones, by mask or number."""
        rows = self.rows[at]
        if len(rows):
            self.bad.append(rows)

    def weigh(self, counts: Numbers) -> npt.NDArray[np.bool_]:
        """Count items that take no bytes. Return which records have too many."""
        beyond = counts > MOST_WEIGHTLESS
        self.weightless[self.rows] += np.where(beyond, 0, counts)
        return beyond | (self.weightless[self.rows] > MOST_WEIGHTLESS)

    def advance(self, size: Any) -> Numbers:
        """Pass so many bytes, or all that are left. Return where they begin."""
        start = self.at
        self.at = start + size
        short = (self.at > self.end) | (self.at < start)
        if short.any():
            self.mark_bad(short)
            self.at = np.where(short, self.end, self.at)
        return start

    def read_varint(self) -> Numbers:
        """Read the next integer of each."""
        first = self.data[self.at]
        if first.max(initial=0) < 0x80:
            self.advance(1)
            return (first >> 1).astype(np.int64) ^ -(first & 1).astype(np.int64)
        integers, size, more = (first & 0x7F).astype(np.uint64), np.ones(len(self), np.int64), first >= 0x80
        for place in range(1, 10):
            byte = self.data[self.at + place]
            integers |= np.where(more, byte & 0x7F, 0).astype(np.uint64) << np.uint64(7 * place)
            size += more
            more &= byte >= (0x80 if place < 9 else 2)  # the tenth byte has the last of 64 bits
            if not more.any():
                break
        # A last byte of zero has no meaning: Java's readers refuse integers of 32 bits in more than five bytes.
        self.mark_bad(more | ((size > 1) & (self.data[self.at + size - 1] == 0)))
        self.advance(size)
        half: Numbers = (integers >> np.uint64(1)).view(np.int64)
        sign: Numbers = (integers & np.uint64(1)).view(np.int64)
        return half ^ -sign
