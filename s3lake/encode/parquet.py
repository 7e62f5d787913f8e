"""Parquet: row groups bounded in memory, dictionary and statistics on, one schema a file."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq


class _Out:
    """The file object that pyarrow writes to: nothing is kept."""

    closed = False

    def __init__(self, out: Callable[[bytes], None]) -> None:
        self._out = out
        self._position = 0

    def write(self, data: bytes) -> int:
        block = bytes(data)
        self._out(block)
        self._position += len(block)
        return len(block)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The writer closes what it was given; the upload is closed by its owner."""


class ParquetEncoder:
    """Collects rows into row groups; the writer, which costs memory, begins with the first."""

    def __init__(self, out: Callable[[bytes], None], codec: str, level: int | None, row_group_bytes: int) -> None:
        self._out = _Out(out)
        self._codec, self._level = codec, level
        self._row_group_bytes = row_group_bytes
        self._held: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self.pending = 0

    def write(self, payload: pa.RecordBatch) -> None:
        """See `Encoder.write`."""
        self._held.append(payload)
        self.pending += payload.nbytes
        if self.pending >= self._row_group_bytes:
            self.drain()

    def drain(self) -> None:
        """Write a row group."""
        if not self._held:
            return
        table = pa.Table.from_batches(self._held)
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._out,
                table.schema,
                compression=self._codec,
                compression_level=self._level,
                store_schema=False,  # types are the format's own; readers need no Arrow
            )
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._held.clear()
        self.pending = 0

    def close(self) -> None:
        """See `Encoder.close`."""
        self.drain()
        if self._writer is not None:
            self._writer.close()
