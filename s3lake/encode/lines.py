"""JSON lines and text: one record a line, each line ended by a newline."""

from collections.abc import Callable

import pyarrow as pa

from s3lake.convert.gate import joined
from s3lake.encode.codecs import Compressor, compressor, memory

_CHUNK = 1_000_000


class LinesEncoder:
    """Joins lines; compresses them a megabyte at a time, so an idle file holds no compressor.

    A drained file goes on with another gzip member or zstd frame, which every reader takes for the same stream.
    """

    def __init__(self, out: Callable[[bytes], None], codec: str, level: int | None) -> None:
        self._out = out
        self._codec, self._level = codec, level
        self._stream: Compressor | None = None
        self._held: list[bytes] = []
        self._stream_memory = memory(codec, level)
        self.pending = 0

    @property
    def memory(self) -> int:
        """See `Encoder.memory`."""
        return self.pending + (self._stream_memory if self._stream is not None else 0)

    def write(self, payload: pa.BinaryArray) -> None:
        """See `Encoder.write`."""
        block = bytes(joined(payload))
        if self._codec == "none":
            self._out(block)
            return
        self._held.append(block)
        self.pending += len(block)
        if self.pending >= _CHUNK:
            self._compress()

    def drain(self) -> None:
        """See `Encoder.drain`."""
        self._compress()
        if self._stream is not None:
            self._out(self._stream.flush())
            self._stream = None

    def relieve(self) -> None:
        """See `Encoder.relieve`."""
        self.drain()

    def close(self) -> None:
        """See `Encoder.close`."""
        self.drain()

    def _compress(self) -> None:
        if not self._held:
            return
        if self._stream is None:
            self._stream = compressor(self._codec, self._level)
        assert self._stream is not None  # the codec is not none, or nothing would be held
        self._out(self._stream.compress(b"".join(self._held)))
        self._held.clear()
        self.pending = 0
