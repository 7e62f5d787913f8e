"""Text files: records with a framing around and between them, compressed as one stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.encode import csv_rows
from s3lake.records.encode.codecs import Compressor, compressor, decompress, memory
from s3lake.records.encode.column_bytes import ENCODED
from s3lake.records.encode.formats import FileFormat

if TYPE_CHECKING:
    from s3lake.records.encode import Disk, Out

_CHUNK = 1_000_000


class TextEncoder:
    """Joins records; compresses them a megabyte at a time, so an idle file holds no compressor.

    A drained file goes on with another gzip member, zstd frame or snappy stream, which readers take for the same one.
    """

    def __init__(self, form: FileFormat, out: Out, _disk: Disk | None = None, _chunk: int = _CHUNK) -> None:
        """Text needs no disk, and holds back a megabyte before it is compressed, however small `_chunk` is."""
        self._out, self._form = out, form
        self._opening, self._between, self._closing = form.frame
        # Where files end as records do, each record ends itself, and closing a file has nothing to add.
        self._ends_itself = self._between == self._closing
        self._stream: Compressor | None = None
        self._buffered: list[bytes | memoryview] = []
        self._held_bytes = 0
        self._stream_memory = memory(form.codec, form.level)
        self._begun = False

    @property
    def pending(self) -> int:
        return self._held_bytes + (len(self._closing) if self._begun and not self._ends_itself else 0)

    @property
    def memory(self) -> int:
        return self._held_bytes + (self._stream_memory if self._stream is not None else 0)

    def write(self, payload: pa.BinaryArray | pa.RecordBatch) -> None:
        if not len(payload):
            return
        if isinstance(payload, pa.RecordBatch):
            payload = csv_rows.encode_lines(payload)
            if self._form.header and not self._begun:
                self._put(self._join(pa.array([payload.schema.metadata[ENCODED]], pa.binary())))
            payload = payload.column(0)
        self._put(self._join(payload))

    def put(self, text: bytes) -> None:
        """Take text of the file, framing and all, as it is."""
        self._begun = True
        self._put(text)

    def drain(self) -> None:
        self._compress()
        if self._stream is not None:
            self._out(self._stream.flush())
            self._stream = None

    def relieve(self) -> None:
        self.drain()

    def close(self) -> None:
        if self._begun and self._closing and not self._ends_itself:
            self._put(self._closing)
        self.drain()

    def _join(self, records: pa.BinaryArray) -> bytes | memoryview:
        """Join records: the separator is after each if records end themselves, else before each."""
        pair = (records, b"") if self._ends_itself else (b"", records)
        block = memoryview(pc.binary_join_element_wise(*pair, self._between).buffers()[2] or b"")
        if self._begun:
            return block
        self._begun = True
        return self._opening + bytes(block if self._ends_itself else block[len(self._between) :])

    def _put(self, block: bytes | memoryview) -> None:
        if self._form.codec == "none":
            if block:
                self._out(block)
            return
        self._buffered.append(block)
        self._held_bytes += len(block)
        if self._held_bytes >= _CHUNK:
            self._compress()

    def _compress(self) -> None:
        if not self._buffered:  # an empty record is something: a stream of nothing has a beginning and an end
            return
        if self._stream is None:
            self._stream = compressor(self._form.codec, self._form.level)
        assert self._stream is not None  # the codec is not none, or nothing would be held
        self._out(self._stream.compress(b"".join(self._buffered)))
        self._buffered.clear()
        self._held_bytes = 0


# Text files joined: as they are stored if a file is its records and no more, else without what is around them


def opening_of(form: FileFormat, body: BinaryIO) -> bytes:
    """Return the text before the first record of a file: its framing, and the header line of CSV."""
    opening, between, _ = form.frame
    if form.type != "csv" or not form.header:
        return opening
    text = b""
    for block in decompress(body, form.codec):
        text += block
        at = text.find(between, len(opening))
        while at >= 0 and text.count(b'"', 0, at) % 2:  # the name of a column may hold a line end, in quotes
            at = text.find(between, at + 1)
        if at >= 0:
            return text[: at + len(between)]
    raise ValueError("the header line has no end")


class TextJoiner:
    """Records of several text files, with the framing of one."""

    def __init__(self, form: FileFormat, opening: bytes, out: Callable[[bytes | memoryview], None]) -> None:
        """`opening` is what each of the files begins with."""
        self._form, self._opening, self._out = form, opening, out
        _, self._between, closing = form.frame
        self._ends_itself = self._between == closing
        self._closing = b"" if self._ends_itself else closing
        self._file = TextEncoder(form, out)
        self._begun = False

    def add(self, body: BinaryIO) -> None:
        if not self._opening and self._ends_itself:
            for block in decompress(body):
                self._out(block)
            return
        if not self._begun:
            self._file.put(self._opening)
        elif not self._ends_itself:
            self._file.put(self._between)
        self._begun = True
        for text in _within(decompress(body, self._form.codec), self._opening, self._closing):
            self._file.put(text)

    def close(self) -> None:
        self._file.close()


def _within(text: Iterable[bytes], opening: bytes, closing: bytes) -> Iterator[bytes]:
    """Yield the text between the opening and the closing of a file.

    Raises:
        ValueError: it lacks one of them.
    """
    buffered, begun = b"", not opening
    for block in text:
        buffered += block
        if not begun and len(buffered) < len(opening):
            continue
        if not begun and not buffered.startswith(opening):
            break
        buffered, begun = (buffered if begun else buffered[len(opening) :]), True
        ready = max(0, len(buffered) - len(closing))
        yield buffered[:ready]
        buffered = buffered[ready:]
    if not begun or buffered != closing:
        raise ValueError(f"the file does not begin with {opening[:80]!r} and end with {closing!r}")
