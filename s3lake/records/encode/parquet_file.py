"""Parquet: row groups bounded in memory, dictionaries where values repeat, statistics, one schema a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s3lake.records.encode.formats import CODECS, FileFormat

if TYPE_CHECKING:
    from s3lake.records.encode import Disk, Encoder
    from s3lake.records.encode.background_work import BackgroundWork

# Arrow's gzip is zlib's. Dictionaries leave so little to zstd that its level 3 costs half as much again for nothing.
_DEFAULT_LEVELS = {"gzip": 6, "zstd": 1}
_LOOKED_AT = 2**13  # rows; nine tenths of so many values are different if 40,000 values come again at random
_BATCH_ROWS = 2**15  # read at once of a file that is joined
_OBJECT_BYTES = 512  # what pyarrow keeps per column of a batch, besides the data


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
    """Collects rows into row groups; the writer, which costs memory, begins with the first.

    Without memory the rows wait on disk: a row group is never cut short, whatever the number of open files.
    """

    def __init__(self, form: FileFormat, out: Callable[[bytes], None], disk: Disk, row_group_bytes: int) -> None:
        self._out = _Out(out)
        self._codec = form.codec
        self._level = _DEFAULT_LEVELS.get(form.codec, CODECS[form.codec].level) if form.level is None else form.level
        self._disk = disk
        self._spilled: list[tuple[int, int]] = []
        self._schema: pa.Schema = None
        self._held_bytes = 0
        self._row_group_bytes = row_group_bytes
        self._buffered: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self.pending = 0

    @property
    def memory(self) -> int:
        return self._held_bytes

    def write(self, payload: pa.RecordBatch) -> None:
        if not len(payload):
            return
        size = payload.nbytes
        if payload.get_total_buffer_size() > 2 * size:  # a slice would keep all that it was cut from
            payload = payload.take(pa.array(range(payload.num_rows), pa.int64()))
        self._buffered.append(payload)
        self._held_bytes += size + _OBJECT_BYTES * payload.num_columns
        self.pending += size
        if self.pending >= self._row_group_bytes:
            self.drain()

    def drain(self) -> None:
        kept = [pa.ipc.read_record_batch(pa.py_buffer(self._disk.take(one)), self._schema) for one in self._spilled]
        if not kept and not self._buffered:
            return
        table = pa.Table.from_batches([*kept, *self._buffered])
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._out,
                table.schema,
                compression=self._codec,
                compression_level=self._level,
                use_dictionary=_repeating(table),
                store_schema=False,  # types are the format's own; readers need no Arrow
            )
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._spilled.clear()
        self._buffered.clear()
        self._held_bytes = self.pending = 0

    def relieve(self) -> None:
        if not self._buffered:
            return
        self._schema = self._buffered[0].schema
        for batch in pa.Table.from_batches(self._buffered).combine_chunks().to_batches():
            self._spilled.append(self._disk.add(batch.serialize().to_pybytes()))
        self._buffered.clear()
        self._held_bytes = 0

    def close(self) -> None:
        self.drain()
        if self._writer is not None:
            self._writer.close()


class ParquetJoiner:
    """Rows of several files with the same columns: read here, written by the thread `behind`."""

    def __init__(self, encoder: Encoder, schema: bytes, behind: BackgroundWork) -> None:
        """`schema` is the result of `schema_of` for each of the files."""
        self._encoder, self._behind = encoder, behind
        self._schema = pa.ipc.read_schema(pa.py_buffer(schema))

    def add(self, body: BinaryIO) -> int:
        file = pq.ParquetFile(body, pre_buffer=False)  # reading ahead would hold a row group more, for no less time
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            rows = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
            self._behind.do(partial(self._encoder.write, rows), rows.nbytes)
        return int(file.metadata.num_rows)

    def close(self) -> None:
        self._behind.do(self._encoder.close, 0)
        self._behind.settle()


def schema_of(body: BinaryIO) -> bytes:
    """The columns of a file."""
    schema: bytes = pq.read_schema(body).remove_metadata().serialize().to_pybytes()
    return schema


def _repeating(table: pa.Table) -> list[str] | bool:
    """Columns whose values come again. For others the writer would make a dictionary only to give it up."""
    if table.num_rows < _LOOKED_AT:
        return True
    (rows,) = table.slice(0, _LOOKED_AT).combine_chunks().to_batches()
    leaves = chain.from_iterable(map(_leaves, rows.schema.names, rows.columns))
    return [path for path, values in leaves if 10 * _count_distinct(values) <= 9 * len(values)]


def _count_distinct(values: pa.Array) -> int:
    """Count the different values, without null. Arrow's own `count_distinct` takes twice the CPU."""
    return len(pc.unique(values)) - int(values.null_count > 0)


def _leaves(path: str, column: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """The columns that Parquet makes of one, as it names them."""
    of = pa.types
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if of.is_struct(column.type):
        for field, child in zip(column.type, column.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", child)
    elif of.is_map(column.type):
        yield from _leaves(f"{path}.key_value.key", column.keys)
        yield from _leaves(f"{path}.key_value.value", column.items)
    elif of.is_list(column.type):
        yield from _leaves(f"{path}.list.element", column.flatten())
    else:
        yield path, column
