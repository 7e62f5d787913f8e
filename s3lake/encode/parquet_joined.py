"""Joined Parquet: row groups that are large enough are copied, the rows of others are written anew in large ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.encode import parquet_footer
from s3lake.encode.parquet import ParquetEncoder, empty
from s3lake.encode.parquet_footer import MAGIC, Footer, Group, Unspliceable

if TYPE_CHECKING:
    from s3lake.encode.behind import Behind

_ROWS = 2**15  # read at once
_PIECE_BYTES = 2**23  # copied at once
_TRAILER = 8  # the length of the footer, and the magic


class ParquetJoiner:
    """Rows of several files of the same columns: read here, written behind."""

    def __init__(
        self,
        encoder: Callable[[Callable[[bytes], None]], ParquetEncoder],
        schema: bytes,
        out: Callable[[bytes], None],
        behind: Behind,
        *,
        least: int,
        see: Callable[[pa.RecordBatch], object],
    ) -> None:
        """Begin a file.

        Args:
            encoder: makes one that gives its file to what it is called with.
            schema: what `parquet.schema_of` says of each of the files.
            out: takes the bytes.
            behind: writes.
            least: bytes in memory of row groups that are copied.
            see: is shown all rows.
        """
        self._schema = pa.ipc.read_schema(pa.py_buffer(schema))
        self._file = _File(out, _footer(empty(self._schema)))
        self._encoder, self._behind, self._least, self._see = encoder, behind, least, see
        self._part: _Part | None = None

    def add(self, body: BinaryIO) -> int:
        file = pq.ParquetFile(body, pre_buffer=False)  # reading ahead would hold a row group more, for no less time
        groups = self._groups(body)
        for number in range(file.num_row_groups):
            batches = file.iter_batches(_ROWS, row_groups=[number], use_threads=False)
            first = next(batches, None)
            if first is None:
                continue
            count = file.metadata.row_group(number).num_rows
            copied = groups is not None and first.nbytes * count >= self._least * len(first)
            for batch in chain([first], batches):
                self._see(batch)
                if not copied:
                    rows = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
                    self._behind.do(partial(self._encode, rows), rows.nbytes)
            if groups is not None and copied:
                self._copy(body, groups[number])
        return int(file.metadata.num_rows)

    def close(self) -> None:
        self._behind.do(self._end, 0)
        self._behind.settle()

    def _groups(self, body: BinaryIO) -> list[Group] | None:
        """The row groups of a file, where they can stand in this one as they are."""
        size = body.seek(0, 2)
        body.seek(size - _TRAILER)
        length = int.from_bytes(body.read(_TRAILER)[:4], "little")
        body.seek(size - _TRAILER - length)
        try:
            footer = Footer(body.read(length))
            for group in footer.row_groups:
                parquet_footer.extent(group)
        except Unspliceable:
            return None
        return footer.row_groups if footer.alike(self._file.footer) else None

    def _copy(self, body: BinaryIO, group: Group) -> None:
        begin, end = parquet_footer.extent(group)
        self._behind.do(partial(self._begin, group, begin), 0)
        body.seek(begin)
        for size in _sizes(end - begin):
            self._behind.do(partial(self._file.write, body.read(size)), size)

    # Behind

    def _encode(self, rows: pa.RecordBatch) -> None:
        if self._part is None:
            self._part = _Part(self._file, self._encoder)
        self._part.encoder.write(rows)

    def _begin(self, group: Group, begin: int) -> None:
        self._end_part()
        self._file.footer.take(group, self._file.at - begin)

    def _end_part(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None

    def _end(self) -> None:
        self._end_part()
        self._file.write(self._file.footer.end())


class _File:
    """The file that becomes."""

    def __init__(self, out: Callable[[bytes], None], footer: Footer) -> None:
        self.at, self.footer = 0, footer
        self._out = out
        self.write(MAGIC)

    def write(self, data: bytes) -> None:
        self._out(data)
        self.at += len(data)


class _Part:
    """Row groups that an encoder writes into the file, as a file of its own without beginning and end."""

    def __init__(self, file: _File, encoder: Callable[[Callable[[bytes], None]], ParquetEncoder]) -> None:
        self._file, self._by = file, file.at - len(MAGIC)
        self._left, self._end = len(MAGIC), bytearray()
        self._ended = False
        self.encoder = encoder(self._write)

    def close(self) -> None:
        self.encoder.drain()
        self._ended = True
        self.encoder.close()
        for group in _footer(bytes(self._end)).row_groups:
            self._file.footer.take(group, self._by)

    def _write(self, data: bytes) -> None:
        if self._ended:
            self._end += data
            return
        self._file.write(data[self._left :])
        self._left -= min(self._left, len(data))


def _footer(end: bytes) -> Footer:
    """Of the end of a file."""
    length = int.from_bytes(end[-_TRAILER:-4], "little")
    return Footer(end[-_TRAILER - length : -_TRAILER])


def _sizes(size: int) -> Iterator[int]:
    for _ in range(size // _PIECE_BYTES):
        yield _PIECE_BYTES
    if size % _PIECE_BYTES:
        yield size % _PIECE_BYTES
