"""Where in their bytes the datums of many records are read: one position for each, all moved on together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from s3lake.convert.schemas import Numbers

_WORD = 8
PADDING = 2 * _WORD  # a varint is read as a word and two bytes, wherever it begins
_SIGNS, _SEVEN = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_GATHERED = (  # seven bits of each byte, moved together by pairs
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)
_ONE = np.uint64(1)


class Odd(Exception):
    """Records that one has to look at one by one."""

    def __init__(self, rows: Numbers) -> None:
        super().__init__()
        self.rows = rows


class Cursor:
    """Where in their bytes some records are read.

    Attributes:
        data: of all records, with `PADDING` behind.
        words: the eight bytes that begin at each byte.
        rows: the number of each record.
        at: where each is read next; ascending.
        end: where each ends.
        short: records that end before what they say they hold, of this cursor and of those it came from. They stay at
            their end, and what is read of them there is worth nothing: so the others need not be read once more.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        rows: Numbers,
        at: Numbers,
        end: Numbers,
        short: list[Numbers] | None = None,
    ) -> None:
        self.data = data
        self.words = np.ndarray((len(data) - _WORD,), "<u8", data, strides=(1,))
        self.rows, self.at, self.end = rows, at, end
        self.short = [] if short is None else short

    def __len__(self) -> int:
        return len(self.at)

    def some(self, at: Any) -> Cursor:
        """A cursor of some of the records, by mask or number."""
        return Cursor(self.data, self.rows[at], self.at[at], self.end[at], self.short)

    def refuse(self, odd: npt.NDArray[np.bool_]) -> None:
        """Leave records to whoever reads one by one.

        Raises:
            Odd: there are such.
        """
        if odd.any():
            raise Odd(self.rows[odd])

    def skip(self, size: Any) -> Numbers:
        """Pass so many bytes, or what there is of them: where they begin."""
        start = self.at
        self.at = start + size
        short = (self.at > self.end) | (self.at < start)
        if short.any():
            self.short.append(self.rows[short])
            self.at = np.where(short, self.end, self.at)
        return start

    def byte(self) -> npt.NDArray[np.uint8]:
        """The next byte of each."""
        return self.data[self.skip(1)]

    def varint(self) -> Numbers:
        """The next integer of each."""
        first = self.data[self.at]
        if first.max(initial=0) < 0x80:
            self.skip(1)
            return (first >> 1).astype(np.int64) ^ -(first & 1).astype(np.int64)
        word = self.words[self.at]
        stops = ~word & _SIGNS
        lowest = stops & (~stops + _ONE)
        size = np.bitwise_count(lowest - _ONE).astype(np.int64) // 8 + 1
        integers = word & (lowest | (lowest - _ONE)) & _SEVEN
        for low, high, by in _GATHERED:
            integers = (integers & low) | ((integers & high) >> by)
        if not stops.all():
            long = np.flatnonzero(stops == 0)
            integers[long], size[long] = self._longer(long, integers[long])
        self.skip(size)
        half: Numbers = (integers >> _ONE).view(np.int64)
        sign: Numbers = (integers & _ONE).view(np.int64)
        return half ^ -sign

    def _longer(self, long: Numbers, integers: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Numbers]:
        """Integers that go on behind eight bytes, and their sizes."""
        ninth, tenth = (self.data[self.at[long] + at].astype(np.uint64) for at in (8, 9))
        ten = ninth >= 0x80
        odd = np.zeros(len(self), np.bool_)
        odd[long] = ten & (tenth > 1)
        self.refuse(odd)
        integers |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        return np.where(ten, integers | tenth << np.uint64(63), integers), np.where(ten, 10, 9)
