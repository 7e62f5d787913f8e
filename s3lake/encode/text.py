"""Text files: records with a framing around and between them, compressed as one stream."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.encode import csv
from s3lake.encode.buffers import data_of
from s3lake.encode.codecs import Compressor, compressor, memory
from s3lake.encode.form import FileFormat

_CHUNK = 1_000_000


class TextEncoder:
    """Joins records; compresses them a megabyte at a time, so an idle file holds no compressor.

    A drained file goes on with another gzip member, zstd frame or snappy stream, which readers take for the same one.
    """

    def __init__(self, form: FileFormat, out: Callable[[bytes], None]) -> None:
        self._out, self._form = out, form
        self._opening, self._between, self._closing = form.frame
        # Where files end as records do, each record ends itself, and closing a file has nothing to add.
        self._ends_itself = self._between == self._closing
        self._stream: Compressor | None = None
        self._buffered: list[bytes] = []
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
            payload = csv.prepared(payload)
            if self._form.header and not self._begun:
                self._put(self._joined(csv.header(payload)))
            payload = payload.column(0)
        self._put(self._joined(payload))

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

    def _joined(self, records: pa.BinaryArray) -> bytes:
        """The records with what stands between them: after each where they end themselves, before each otherwise."""
        pair = (records, b"") if self._ends_itself else (b"", records)
        block = data_of(pc.binary_join_element_wise(*pair, self._between))
        if self._begun:
            return block
        self._begun = True
        return self._opening + (block if self._ends_itself else block[len(self._between) :])

    def _put(self, block: bytes) -> None:
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
