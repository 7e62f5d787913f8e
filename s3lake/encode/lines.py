"""JSON lines and text: one record a line, each line ended by a newline."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.encode.codecs import Compressor, compressor

_CHUNK = 1_000_000


class LinesEncoder:
    """Joins lines; compresses them a megabyte at a time, so an idle file holds no compressor."""

    def __init__(self, out: Callable[[bytes], None], codec: str, level: int | None) -> None:
        self._out = out
        self._codec, self._level = codec, level
        self._stream: Compressor | None = None
        self._held: list[bytes] = []
        self.pending = 0

    def write(self, payload: pa.BinaryArray) -> None:
        """See `Encoder.write`."""
        block = _joined(payload)
        if self._codec == "none":
            self._out(block)
            return
        self._held.append(block)
        self.pending += len(block)
        if self.pending >= _CHUNK:
            self.drain()

    def drain(self) -> None:
        """See `Encoder.drain`."""
        if not self._held:
            return
        if self._stream is None:
            self._stream = compressor(self._codec, self._level)
        assert self._stream is not None  # the codec is not none, or nothing would be held
        self._out(self._stream.compress(b"".join(self._held)))
        self._held.clear()
        self.pending = 0

    def close(self) -> None:
        """See `Encoder.close`."""
        self.drain()
        if self._stream is not None:
            self._out(self._stream.flush())


def _joined(lines: pa.BinaryArray) -> bytes:
    # A last empty line makes the join end in a newline, without copying the block again.
    ended = pa.concat_arrays([lines, pa.array([b""], lines.type)])
    whole = pa.ListArray.from_arrays(pa.array([0, len(ended)], pa.int32()), ended)
    return bytes(pc.binary_join(whole, b"\n")[0].as_buffer())
