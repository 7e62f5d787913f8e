"""Reads JSON objects into columns by `json_columns.c`, if each value is surely an object of just these columns.

It accepts no value that the gate refuses, and gives the same columns as Arrow's reader, for a third of the CPU
(`s3lake_tests/records/convert/read/json/test_compiled_columns.py`). Lists and maps are left to Arrow's reader.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read.compiled_library import load_compiled_library
from s3lake.records.convert.read.json.inferred_types import LARGE
from s3lake.records.schema.connect_schema import UNREADABLE

LIBRARY = Path(__file__).parents[1] / "libjson_columns.so"
"""The library that `hatch_build.py` compiles."""

_ALWAYS_NULL, _BOOLEAN, _INTEGER, _DOUBLE, _TEXT, _STRUCT = range(6)
_CODES = {
    pa.null(): _ALWAYS_NULL,
    pa.bool_(): _BOOLEAN,
    pa.int64(): _INTEGER,
    pa.float64(): _DOUBLE,
    pa.string(): _TEXT,
}
_POINTERS = ("valid", "bits", "integers", "doubles", "offsets", "places")
_NUMBERS = ("name_size", "present", "size", "unread", "row")

_log = logging.getLogger(__name__)


class _Column(ctypes.Structure):
    """`Column` of json_columns.c."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_int64) for name in _NUMBERS),
        *((name, ctypes.c_int32) for name in ("code", "first", "count")),
    ]


@functools.cache
def load_reader() -> CompiledReader | None:
    """Return what reads columns by C, and log once if it does not work here: then Arrow reads them."""
    try:
        return CompiledReader(LIBRARY)
    except OSError as error:
        _log.warning("JSON is read into columns by Arrow, which takes more CPU than json_columns.c: %s", error)
        return None


class CompiledReader:
    """Functions of `json_columns.c`.

    Args:
        path: the path of the compiled library.

    Raises:
        OSError: it is missing, or was not compiled of this json_columns.c for this platform.
    """

    def __init__(self, path: Path) -> None:
        pointer, number, rows = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
        functions = {
            "read_columns": (number, pointer, number, number, pointer, pointer, rows, rows),
            "copy_texts": (None, pointer, pointer, rows, pointer),
        }
        library = load_compiled_library(path, functions, [_Column])
        self.read_columns: Callable[..., int] = library.read_columns
        self.copy_texts: Callable[..., None] = library.copy_texts


@dataclass(frozen=True)
class _JsonMember:
    """A column of objects, or a member of a struct.

    Attributes:
        name: the name as JSON has it.
        code: the number of its type in C.
        inner: a struct's members: the place of the first one, which is behind the struct, and their number.
    """

    name: bytes
    type: pa.DataType
    code: int
    inner: tuple[int, int]


@functools.lru_cache(maxsize=256)
def _list_members(schema: pa.Schema, nulls: frozenset[str]) -> tuple[_JsonMember, ...]:
    """Return the columns of a schema, then ones that are always null, then the members of structs.

    Return an empty tuple if C does not read the type or the name of one of them.
    """
    fields = [*schema, *(pa.field(name, pa.null()) for name in sorted(nulls))]
    members = []
    for field in fields:  # which grows by the members of structs
        inner = list(field.type) if pa.types.is_struct(field.type) else []
        code = _STRUCT if inner else _CODES.get(field.type)
        if code is None or UNREADABLE.search(field.name):
            return ()
        members.append(_JsonMember(field.name.encode(), field.type, code, (len(fields), len(inner))))
        fields += inner
    return tuple(members)


def read_columns(
    reader: CompiledReader, values: pa.BinaryArray, schema: pa.Schema, nulls: Collection[str] = ()
) -> pa.RecordBatch | None:
    """Read objects, none of which is null, into the columns of a schema. Return None if C is not sure of all of them.

    Args:
        reader: the compiled functions.
        values: the texts of the objects, which need not have passed the gate.
        schema: the columns that the objects may have.
        nulls: the names of more members that they may have, which are always null.
    """
    members, (_, offsets, data) = _list_members(schema, frozenset(nulls)), values.buffers()
    rows, top = len(values), len(schema) + len(nulls)
    if not members or not rows or data is None or values.type != pa.binary():
        return None
    columns = (_Column * len(members))()
    buffers = [_allocate_buffers(member.code, rows) for member in members]
    for column, member, allocated in zip(columns, members, buffers, strict=True):
        column.name, column.name_size, column.code = member.name, len(member.name), member.code
        column.first, column.count = member.inner
        for name, buffer in allocated.items():
            setattr(column, name, buffer.address)
    if not reader.read_columns(columns, len(members), top, data.address, offsets.address, values.offset, rows):
        return None
    arrays: list[pa.Array] = []  # of the members from the last one on, because the members of a struct are behind it
    for column, member, allocated in zip(reversed(columns), reversed(members), reversed(buffers), strict=True):
        if column.unread and not _read_doubles(column, allocated, data):
            return None
        if column.code == _TEXT:
            allocated["texts"] = pa.allocate_buffer(column.size)
            reader.copy_texts(ctypes.byref(column), data.address, rows, allocated["texts"].address)
        end = len(members) - column.first
        arrays.append(_build_array(column, member.type, rows, allocated, arrays[end - column.count : end][::-1]))
    return pa.RecordBatch.from_arrays(arrays[::-1][: len(schema)], schema=schema)


def _allocate_buffers(code: int, rows: int) -> dict[str, pa.Buffer]:
    """Return memory for the rows of a column by its names in `_Column`; C fills it."""
    if code == _ALWAYS_NULL:
        return {}
    bitmap = (rows + 7) // 8
    sizes = {
        _BOOLEAN: {"bits": bitmap},
        _INTEGER: {"integers": 8 * rows},
        _DOUBLE: {"doubles": 8 * rows, "places": 12 * rows},
        _TEXT: {"offsets": 4 * (rows + 1), "places": 4 * rows},
    }
    return {name: pa.allocate_buffer(size) for name, size in {"valid": bitmap, **sizes.get(code, {})}.items()}


def _build_array(
    column: _Column, type: pa.DataType, rows: int, buffers: dict[str, pa.Buffer], children: list[pa.Array]
) -> pa.Array:
    """Build the array of a column that C has read; `children` are the members of a struct."""
    if column.code == _ALWAYS_NULL:
        return pa.nulls(rows)
    layout = [buffers["valid"] if column.present < rows else None]
    layout += [buffers[name] for name in ("bits", "integers", "doubles", "offsets", "texts") if name in buffers]
    return pa.Array.from_buffers(type, rows, layout, rows - column.present, children=children or None)


def _read_doubles(column: _Column, buffers: dict[str, pa.Buffer], data: pa.Buffer) -> bool:
    """Read the doubles that C left to Arrow, which rounds them right. Return False if one is too large or too small."""
    places = np.frombuffer(buffers["places"], np.int32, 3 * column.unread).reshape(-1, 3)
    text = memoryview(data)
    numbers = pa.array([bytes(text[start:end]) for _, start, end in places.tolist()], pa.binary())
    try:
        doubles = numbers.cast(pa.string()).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return False
    np.frombuffer(buffers["doubles"], np.float64)[places[:, 0]] = doubles
    return bool((np.abs(doubles) < LARGE).all())
