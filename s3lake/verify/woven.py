"""Files whose records alternate, as those of two schemas do: which of them each record is in, told by their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from s3lake.verify import digest


@dataclass
class _Rows:
    first: int
    last: int
    digests: bytearray = field(default_factory=bytearray)
    at: int = 0

    def next_is(self, offset: int, row: bytes) -> bool:
        return self.first <= offset <= self.last and self.digests.startswith(row, self.at)


class Woven:
    """Rows of files that overlap, and the records of Kafka dealt out to them: each file has its own in their order.

    Attributes:
        unsure: whether a record could have been the next one of several files.
    """

    def __init__(self) -> None:
        self.unsure = False
        self._files: dict[str, _Rows] = {}

    def add(self, file: str, span: tuple[int, int], rows: Iterable[bytes]) -> None:
        """Take in digests of rows of a file, and the offsets of its first and last record."""
        self._files.setdefault(file, _Rows(*span)).digests += b"".join(rows)

    def deal(self, offsets: Sequence[int], rows: Sequence[bytes]) -> list[str | None]:
        """The file of each record, None where it is the next one of none."""
        return [self._file_of(offset, row) for offset, row in zip(offsets, rows, strict=True)]

    def _file_of(self, offset: int, row: bytes) -> str | None:
        possible = [file for file, rows in self._files.items() if rows.next_is(offset, row)]
        if not possible:
            return None
        self.unsure = self.unsure or len(possible) > 1
        self._files[possible[0]].at += digest.SIZE
        return possible[0]
