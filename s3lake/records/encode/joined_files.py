"""Joining: files of one format become one file, and no record is converted again.

To join a new format: a class with the verbs of `Joiner` next to its encoder, and what its files must have in common.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO, Protocol

from s3lake.records.encode import Out, avro_file, open_encoder
from s3lake.records.encode.formats import FileFormat
from s3lake.records.encode.text_file import TextJoiner, opening_of

if TYPE_CHECKING:
    from s3lake.records.encode import Disk

JoinKey = bytes
"""What files must have in common, besides their form, to be joined: a schema, a header line."""


class Behind:
    """One thread, which does what it is given in order. What waits for it is bounded: who gives more waits too."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._bytes = most_bytes, 0
        self._pool = ThreadPoolExecutor(1, "s3lake-behind")
        self._waiting: deque[tuple[Future[object], int]] = deque()

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what waits; what is under way comes to its end."""
        self._pool.shutdown(cancel_futures=True)

    def do(self, work: Callable[[], object], size: int) -> None:
        """Give it work that holds so many bytes. What went wrong in work before is raised here."""
        self._waiting.append((self._pool.submit(work), size))
        self._bytes += size
        while self._bytes > self._most and len(self._waiting) > 1:
            self._first_done()

    def settle(self) -> None:
        """Wait until all is done. What went wrong is raised."""
        while self._waiting:
            self._first_done()

    def _first_done(self) -> None:
        work, size = self._waiting.popleft()
        self._bytes -= size
        work.result()


class Joiner(Protocol):
    """One file being made of others."""

    def add(self, body: BinaryIO) -> int | None:
        """Take the records of a file that lies open at its beginning: how many, where its format says it."""
        ...

    def close(self) -> None:
        """Let out the rest."""
        ...


def read_join_key(form: FileFormat, body: BinaryIO) -> JoinKey:
    """The likeness of a file; it lies open at its beginning again."""
    if form.type == "parquet":
        from s3lake.records.encode.parquet_file import schema_of

        shape: bytes = schema_of(body)
    else:
        shape = avro_file.beginning(body) if form.type == "avro" else opening_of(form, body)
    body.seek(0)
    return shape


def open_joiner(
    form: FileFormat,
    like: JoinKey,
    out: Out,
    disk: Disk,
    behind: Behind,
    *,
    chunk: int,
) -> Joiner:
    """A new file of files with this likeness.

    Args:
        behind: encodes rows of Parquet, while the next are read.
        chunk: it holds back at most about so many bytes.
    """
    if form.type == "parquet":
        from s3lake.records.encode.parquet_file import ParquetJoiner

        return ParquetJoiner(open_encoder(form, out, disk, chunk=chunk), like, behind)
    if form.type == "avro":
        return avro_file.AvroJoiner(out, like)
    return TextJoiner(form, like, out)
