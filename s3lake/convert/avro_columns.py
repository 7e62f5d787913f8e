"""Avro datums of many records to Arrow, all records at once: each step reads the same field of every record.

Datums have no marks to look for, but records of one schema have the same fields in the same order, so numpy can keep
one position for each record and move all of them on together. That is twenty times as fast as reading one by one, and
knows of each record where it ends.

Whatever is not plainly right (a length beyond the record, an unknown branch, a value that its column cannot hold) makes
the record one of those that are left to fastavro, which reads them one by one and has the words for what is wrong.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import gate
from s3lake.convert.arrays import DAY_S
from s3lake.convert.avro_cursor import PADDING, Cursor, Odd
from s3lake.convert.schemas import Numbers
from s3lake.encode.buffers import data_of, slice_values
from s3lake.schema.arrow import arrow_type
from s3lake.schema.types import TICKS, UNKNOWN, Decimal, Primitive, Type, fields_of, item_of

Decode = Callable[[Cursor], pa.Array]
"""Reads one value of every record that a cursor stands at."""

_INT32 = 2**31
_LAPS = 16
_FEW = 16
_TRIES = 8
_UUID = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"


def decode(decoder: Decode, raw: pa.BinaryArray, rows: Numbers, skipped: int) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """The values of some records, and which records these are; the others are left to be read one by one.

    Args:
        decoder: of their schema.
        raw: of all records, with what stands before each datum.
        rows: which of them, ascending.
        skipped: how many bytes stand before the datum.
    """
    starts = np.frombuffer(raw.buffers()[1], np.int32, len(raw) + 1, raw.offset * 4).astype(np.int64)
    size = int(starts[-1] - starts[0])
    data = np.zeros(size + PADDING, np.uint8)
    if size:
        data[:size] = np.frombuffer(raw.buffers()[2], np.uint8, size, int(starts[0]))
    starts -= starts[0]
    plain = np.ones(len(rows), np.bool_)
    for _ in range(_TRIES):
        left = rows[plain]
        cursor = Cursor(data, left, starts[left] + skipped, starts[left + 1])
        try:
            decoded = decoder(cursor)
            cursor.refuse(cursor.at != cursor.end)  # something is left after it
        except Odd as odd:
            cursor.short.append(odd.rows)
        else:
            short = np.isin(left, np.concatenate(cursor.short)) if cursor.short else np.zeros(len(left), np.bool_)
            plain[plain] = ~short
            return decoded.filter(pa.array(~short)) if short.any() else decoded, plain
        plain[np.searchsorted(rows, np.concatenate(cursor.short))] = False
    return decoder(cursor.some(slice(0))), np.zeros(len(rows), np.bool_)


def compile_schema(plain: Any, type: Type) -> Decode:
    """Return what reads the values of a schema.

    Args:
        plain: as `schema.avro.Node` has it.
        type: of its column.
    """
    if isinstance(plain, list):
        branches = [one for one in plain if one != "null"]
        return _union(plain, type) if len(branches) > 1 else _optional(plain, type)
    if isinstance(plain, str):
        return _primitive(plain, type)
    match plain["type"]:
        case "record":
            return _record(plain, type)
        case "array":
            return _array(plain, type)
        case "map":
            return _map(plain, type)
        case "enum":
            return _enum(plain["symbols"])
    return _fixed(plain["size"], type)


def _primitive(name: str, type: Type) -> Decode:
    match name:
        case "null":
            return lambda cursor: pa.nulls(len(cursor))
        case "boolean":
            return _boolean
        case "int":
            return _whole(_int32, type)
        case "long":
            return _whole(Cursor.varint, type)
        case "float":
            return lambda cursor: pa.array(cursor.words[cursor.skip(4)].astype(np.uint32).view(np.float32))
        case "double":
            return lambda cursor: pa.array(cursor.words[cursor.skip(8)].view(np.float64))
        case "string":
            return _uuid_of_text if type is Primitive.UUID else _text
    return (lambda cursor: _decimal(cursor, *_extent(cursor), type)) if isinstance(type, Decimal) else _bytes


def _boolean(cursor: Cursor) -> pa.Array:
    decoded = cursor.byte()
    cursor.refuse(decoded > 1)
    return pa.array(decoded.view(np.bool_))


def _int32(cursor: Cursor) -> npt.NDArray[np.int32]:
    decoded = cursor.varint()
    cursor.refuse((decoded < -_INT32) | (decoded >= _INT32))
    return decoded.astype(np.int32)


def _whole(read: Callable[[Cursor], npt.NDArray[Any]], type: Type) -> Decode:
    """Integers, and dates and times, which are integers too."""
    arrow = arrow_type(type)
    if type is not Primitive.TIME and type is not Primitive.TIME_US:
        return lambda cursor: pa.array(read(cursor)).view(arrow)
    day = DAY_S * TICKS[type]

    def decode(cursor: Cursor) -> pa.Array:
        decoded = read(cursor)
        cursor.refuse((decoded < 0) | (decoded >= day))
        return pa.array(decoded).view(arrow)

    return decode


def _extent(cursor: Cursor) -> tuple[Numbers, Numbers]:
    """Where bytes begin whose number stands before them, and how many they are."""
    start = cursor.skip(cursor.varint())
    return start, cursor.at - start


def _bytes(cursor: Cursor) -> pa.Array:
    return _slices(cursor, *_extent(cursor))


def _slices(cursor: Cursor, start: Numbers, size: Numbers) -> pa.BinaryArray:
    """So many bytes of each record."""
    return slice_values(start, start + size, pa.py_buffer(cursor.data))


def _text(cursor: Cursor) -> pa.StringArray:
    decoded = _bytes(cursor)
    try:
        return decoded.cast(pa.string())
    except pa.ArrowInvalid:
        raise Odd(cursor.rows[list(gate.text_refusals(decoded))]) from None


def _uuid_of_text(cursor: Cursor) -> pa.Array:
    decoded = _text(cursor)
    cursor.refuse(~pc.match_substring_regex(decoded, _UUID).to_numpy(zero_copy_only=False))
    data = binascii.unhexlify(data_of(pc.replace_substring(decoded, "-", "")))
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(decoded), [None, pa.py_buffer(data)])
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _enum(symbols: Sequence[str]) -> Decode:
    texts = pa.array(symbols, pa.string())

    def decode(cursor: Cursor) -> pa.Array:
        decoded = cursor.varint()
        cursor.refuse((decoded < 0) | (decoded >= len(texts)))
        return texts.take(pa.array(decoded))

    return decode


def _fixed(size: int, type: Type) -> Decode:
    def decode(cursor: Cursor) -> pa.Array:
        start = cursor.skip(size)
        sizes = cursor.at - start
        cursor.refuse(sizes != size)
        if isinstance(type, Decimal):
            return _decimal(cursor, start, sizes, type)
        decoded = _slices(cursor, start, sizes)
        return (
            pa.ExtensionArray.from_storage(pa.uuid(), decoded.cast(pa.binary(16)))
            if type is Primitive.UUID
            else decoded
        )

    return decode


def _decimal(cursor: Cursor, start: Numbers, size: Numbers, type: Decimal) -> pa.Array:
    """Two's complement, the most significant byte first, as Arrow has it: 16 bytes, the least significant first."""
    cursor.refuse(size > 16)
    negative = (size > 0) & (cursor.data[start] >= 0x80)
    decoded = np.repeat(np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None], 16, axis=1)
    for at in range(int(size.max(initial=0))):
        has = size > at
        decoded[has, at] = cursor.data[(start + size - 1 - at)[has]]
    low, high = decoded.view("<u8")[:, 0], decoded.view("<i8")[:, 1]
    (most, more), (least, less) = divmod(10**type.precision, 2**64), divmod(-(10**type.precision), 2**64)
    below = (high < most) | ((high == most) & (low < more))
    above = (high > least) | ((high == least) & (low > less))
    cursor.refuse(~(below & above))
    return pa.Array.from_buffers(arrow_type(type), len(start), [None, pa.py_buffer(decoded)])


def _record(plain: Any, type: Type) -> Decode:
    types, arrow = fields_of(type), arrow_type(type)
    reads = [
        (field["name"], compile_schema(field["type"], types.get(field["name"], UNKNOWN))) for field in plain["fields"]
    ]

    def decode(cursor: Cursor) -> pa.Array:
        arrays = {name: read(cursor) for name, read in reads}
        return pa.StructArray.from_arrays([arrays[field.name] for field in arrow], fields=list(arrow))

    return decode


def _optional(plain: Sequence[Any], type: Type) -> Decode:
    """A union of one type, with or without null."""
    value = next((at for at, one in enumerate(plain) if one != "null"), None)
    read = compile_schema("null" if value is None else plain[value], type)

    def decode(cursor: Cursor) -> pa.Array:
        branch = cursor.varint()
        cursor.refuse((branch < 0) | (branch >= len(plain)))
        return _where(cursor, branch == value, read)

    return decode


def _union(plain: Sequence[Any], type: Type) -> Decode:
    """A union of several types is a struct with a field for each."""
    types, arrow = fields_of(type), arrow_type(type)
    branches = {
        at: (one["fields"][0]["name"], one["fields"][0]["type"]) for at, one in enumerate(plain) if one != "null"
    }
    reads = {at: (name, compile_schema(one, types.get(name, UNKNOWN))) for at, (name, one) in branches.items()}

    def decode(cursor: Cursor) -> pa.Array:
        branch = cursor.varint()
        cursor.refuse((branch < 0) | (branch >= len(plain)))
        decoded = {name: _where(cursor, branch == at, read) for at, (name, read) in reads.items()}
        nothing = ~np.isin(branch, list(reads))
        mask = pa.array(nothing) if nothing.any() else None
        return pa.StructArray.from_arrays([decoded[field.name] for field in arrow], fields=list(arrow), mask=mask)

    return decode


def _where(cursor: Cursor, chosen: npt.NDArray[np.bool_], read: Decode) -> pa.Array:
    """Values of the chosen records, null for the others, which have none."""
    if chosen.all():
        return read(cursor)
    some = cursor.some(chosen)
    decoded = read(some)
    cursor.at[chosen] = some.at
    return decoded.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


def _array(plain: Any, type: Type) -> Decode:
    read, arrow = compile_schema(plain["items"], item_of(type)), arrow_type(type)

    def decode(cursor: Cursor) -> pa.Array:
        owners, (values,) = _items(cursor, [read])
        return pa.ListArray.from_arrays(_offsets(cursor, owners), values, type=arrow)

    return decode


def _map(plain: Any, type: Type) -> Decode:
    read = compile_schema(plain["values"], item_of(type))

    def decode(cursor: Cursor) -> pa.Array:
        owners, (names, values) = _items(cursor, [_text, read])
        codes = names.dictionary_encode().indices.to_numpy() if len(names) else owners
        pairs = np.sort(owners * (len(names) + 1) + codes)
        twice = pairs[1:][pairs[1:] == pairs[:-1]] // (len(names) + 1)
        if len(twice):
            raise Odd(np.unique(cursor.rows[twice]))
        return pa.MapArray.from_arrays(_offsets(cursor, owners), names, values)

    return decode


def _offsets(cursor: Cursor, owners: Numbers) -> pa.Int32Array:
    counts = np.bincount(owners, minlength=len(cursor))
    return pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())


def _items(cursor: Cursor, reads: Sequence[Decode]) -> tuple[Numbers, list[pa.Array]]:
    """What arrays or maps hold, record by record, and which record holds each.

    A lap reads one item of every record that has one left. Where a few records go on for many laps more than the
    others, they are better read one by one.
    """
    owners: list[Numbers] = []
    decoded: list[list[pa.Array]] = []
    active = np.arange(len(cursor))
    lap = 0
    while len(active):
        blocks = cursor.some(active)
        left = blocks.varint()
        sized = left < 0
        if sized.any():
            some = blocks.some(sized)
            some.varint()  # the block's size in bytes: for readers that skip it
            blocks.at[sized] = some.at
            left = np.abs(left)
        blocks.refuse((left < 0) | (left > blocks.end - blocks.at))
        cursor.at[active] = blocks.at
        rows, active = active[left > 0], active[left > 0]
        left = left[left > 0]
        while len(rows):
            some = cursor.some(rows)
            lap += 1
            if lap > _LAPS and len(rows) < _FEW:
                raise Odd(some.rows)
            decoded.append([read(some) for read in reads])
            owners.append(rows)
            cursor.at[rows] = some.at
            left -= 1
            rows, left = rows[left > 0], left[left > 0]
    if not decoded:
        nothing = cursor.some(slice(0))
        return active, [read(nothing) for read in reads]
    if len(decoded) == 1:
        return owners[0], decoded[0]
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return owner[order], [pa.concat_arrays(one).take(pa.array(order)) for one in zip(*decoded, strict=True)]
