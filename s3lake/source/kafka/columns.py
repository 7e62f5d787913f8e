"""Messages of librdkafka as a record batch: by `columns.c` where that is compiled, else by a loop in Python.

Both give the same (`s3lake_tests/source/kafka/test_columns.py`); the loop takes about fifteen times the CPU.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa

from s3lake.records.convert.read.compiled_library import load_compiled_library
from s3lake.source.kafka.librdkafka import Message, PolledMessages, load_librdkafka
from s3lake.source.record_batches import HEADERS, KAFKA_SCHEMA, OffsetRange

LIBRARY = Path(__file__).with_name("libcolumns.so")
"""What `hatch_build.py` compiles."""

_END_OF_LOG = -191
_log = logging.getLogger(__name__)


class PolledBatch(NamedTuple):
    """A batch of messages.

    Attributes:
        batch: the records; None if there are none among the messages.
        next_offset: where reading continues.
        size: how many bytes the records have.
    """

    batch: pa.RecordBatch | None
    next_offset: int
    size: int


Take = Callable[[PolledMessages, OffsetRange, Sequence[str], int], PolledBatch]
"""Takes messages up to the first that is an error, and destroys them: the records of a range.

They have some of the columns of `KAFKA_SCHEMA`.

A batch ends before the record that would make it larger than so many bytes, but has one record at least.
"""


@functools.cache
def choose_take() -> Take:
    """Return the faster of the two that works here, and log once which one that is."""
    try:
        take = CompiledTake(LIBRARY)
    except OSError as error:
        _log.warning(
            "records of Kafka are read by a loop in Python, which takes more CPU than columns.c: %s. Install s3lake's "
            "wheel for this platform, or have a C compiler where it is built",
            error,
        )
        return take_in_python
    _log.info("records of Kafka are read by columns.c")
    return take


def _make_struct(type_: Any, *names: str) -> type[ctypes.Structure]:
    return type("Struct", (ctypes.Structure,), {"_fields_": [(name, type_) for name in names]})


_NUMBER, _POINTER = ctypes.c_int64, ctypes.c_void_p
_Functions = _make_struct(_POINTER, "timestamp", "headers", "header_at", "destroy")
_Batch = _make_struct(_NUMBER, "messages", "rows", "next_offset", "values", "keys", "headers", "names", "header_values")
_Column = _make_struct(_POINTER, "valid", "offsets", "data", "rows")  # of as many bits
_Columns = _make_struct(_Column, "offset", "timestamp", "value", "key", "headers", "names", "header_values")


class CompiledTake:
    """`Take` by `columns.c`.

    Args:
        path: the path of the compiled library.

    Raises:
        OSError: it is missing, or not compiled of this columns.c for this platform.
    """

    def __init__(self, path: Path) -> None:
        rd = load_librdkafka()
        measured = (None, _POINTER, _NUMBER, _NUMBER, _NUMBER, ctypes.c_int, _POINTER, _POINTER)
        filled = (None, _POINTER, _NUMBER, _POINTER, _POINTER, _POINTER)
        structs = (Message, _Functions, _Batch, _Columns)
        library = load_compiled_library(path, {"measure": measured, "fill_columns": filled}, structs)
        self._measure, self._fill = library.measure, library.fill_columns
        functions = (rd.message_timestamp, rd.message_headers, rd.header_get_all, rd.message_destroy)
        self._functions = _Functions(*(ctypes.cast(function, _POINTER).value for function in functions))

    def __call__(
        self, messages: PolledMessages, offset_range: OffsetRange, columns: Sequence[str], most_bytes: int
    ) -> PolledBatch:
        batch, functions = _Batch(next_offset=offset_range.start), ctypes.byref(self._functions)
        place, count, end = messages.place, len(messages), offset_range.end
        self._measure(place, count, end, most_bytes, "headers" in columns, functions, ctypes.byref(batch))
        buffers, pointers = _allocate(batch, columns), _Columns()
        for name, column in buffers.items():
            setattr(pointers, name, _Column(*(None if one is None else one.address for one in column)))
        messages.taken += batch.messages  # before they are destroyed: nothing may destroy them again
        self._fill(place, end, functions, ctypes.byref(batch), ctypes.byref(pointers))
        rows = _build_batch(batch, buffers, offset_range.partition, columns) if batch.rows else None
        size = batch.values + batch.keys + batch.names + batch.header_values
        return PolledBatch(rows, batch.next_offset, size)


def _allocate(batch: Any, columns: Sequence[str]) -> dict[str, list[pa.Buffer | None]]:
    """Allocate bitmap, offsets and data of each column that C fills."""
    rows, headers = batch.rows, batch.headers

    def size_texts(rows: int, size: int) -> tuple[int, ...]:
        return (rows + 7) // 8, 4 * (rows + 1), size

    sizes = {
        "offset": (None, None, 8 * rows),
        "timestamp": (None, None, 8 * rows),
        "value": size_texts(rows, batch.values),
        "key": size_texts(rows, batch.keys),
        "headers": size_texts(rows, 0),
        "names": size_texts(headers, batch.names),
        "header_values": size_texts(headers, batch.header_values),
    }
    names = {*columns, "names", "header_values"} if "headers" in columns else {*columns}
    return {
        name: [None if size is None else pa.allocate_buffer(size) for size in sizes[name]]
        for name in sizes.keys() & names
    }


def _build_batch(
    batch: Any, buffers: Mapping[str, list[pa.Buffer | None]], partition: int, columns: Sequence[str]
) -> pa.RecordBatch:
    def build(name: str) -> pa.Array:
        if name == "partition":
            return pa.repeat(pa.scalar(partition, pa.int32()), batch.rows)
        valid, offsets, data = buffers[name]
        if name in ("offset", "timestamp"):
            return pa.Array.from_buffers(KAFKA_SCHEMA.field(name).type, batch.rows, [valid, data])
        if name != "headers":
            return pa.Array.from_buffers(pa.binary(), batch.rows, [valid, offsets, data])
        names, values = (
            pa.Array.from_buffers(pa.binary(), batch.headers, buffers[part]) for part in ("names", "header_values")
        )
        try:
            names = names.cast(pa.string())
        except pa.ArrowInvalid:  # not UTF-8: as Java's client has it
            names = pa.array([one.decode(errors="replace") for one in names.to_pylist()], pa.string())
        entries = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
        return pa.Array.from_buffers(HEADERS, batch.rows, [valid, offsets], children=[entries])

    return pa.RecordBatch.from_arrays([build(name) for name in columns], names=list(columns))


def take_in_python(
    messages: PolledMessages, offset_range: OffsetRange, columns: Sequence[str], most_bytes: int
) -> PolledBatch:
    """`Take` by a loop."""
    rd, next_offset, total, taken = load_librdkafka(), offset_range.start, 0, 0
    rows: list[dict[str, Any]] = []
    for address in messages.addresses:
        message = Message.from_address(address)
        if message.error == _END_OF_LOG:
            next_offset = max(next_offset, message.offset)
        elif message.error:
            break
        else:
            offset = message.offset
            if offset < offset_range.end:
                headers = _read_headers(rd, address) if "headers" in columns else None
                size = message.value_size + message.key_size
                size += sum(len(name) + len(value or b"") for name, value in headers or ())
                if rows and total + size > most_bytes:
                    break
                total += size
                rows.append(
                    {
                        "partition": offset_range.partition,
                        "offset": offset,
                        "timestamp": rd.message_timestamp(address, None),
                        "value": _copy(message.value, message.value_size),
                        "key": _copy(message.key, message.key_size),
                        "headers": headers and [(name.decode(errors="replace"), value) for name, value in headers],
                    }
                )
            next_offset = max(next_offset, offset + 1)
        taken += 1
    messages.destroy(taken)
    if not rows:
        return PolledBatch(None, next_offset, 0)
    schema = pa.schema([KAFKA_SCHEMA.field(name) for name in columns])
    return PolledBatch(pa.RecordBatch.from_pylist(rows, schema), next_offset, total)


def _read_headers(rd: SimpleNamespace, address: int) -> list[tuple[bytes, bytes | None]] | None:
    """Return the record's headers, None if it has none."""
    headers = ctypes.c_void_p()
    if rd.message_headers(address, ctypes.byref(headers)):
        return None
    entries: list[tuple[bytes, bytes | None]] = []
    name, value, size = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t()
    out = ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
    while rd.header_get_all(headers, len(entries), *out) == 0:
        entries.append((name.value or b"", _copy(value.value, size.value)))
    return entries


def _copy(address: int | None, size: int) -> bytes | None:
    return None if address is None else ctypes.string_at(address, size)
