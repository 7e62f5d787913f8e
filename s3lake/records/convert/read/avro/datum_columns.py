"""Avro datums of many records to Arrow, all records at once: each step reads the same field of every record.

Datums have no marks to look for, but records of one schema have the same fields in the same order, so numpy can keep
one position for each record and move all of them on together. That is twenty times as fast as reading one by one, and
knows of each record where it ends.

A record with a mistake (a length beyond the record, an unknown branch, a value that its column cannot hold) is bad.
Reading continues, at positions within the record, and what is read of it is dropped at the end. `avro_datums` reads bad
records again one by one, and has the words for what is wrong.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.arrays import DAY_S
from s3lake.records.convert.read.avro.datum_cursor import PADDING, Cursor
from s3lake.records.convert.read.avro.datums import is_weightless
from s3lake.records.convert.read.keys_and_values import Numbers
from s3lake.records.encode.column_bytes import data_of, offsets_of, slice_values
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.types import (
    MOST_DIGITS,
    TICKS,
    UNKNOWN,
    Decimal,
    Primitive,
    Type,
    fields_of,
    item_of,
)

_INT32 = 2**31
_LAPS = 16
_FEW = 16
_NO_END = -1
_UUID = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
_NO_UUID = "00000000-0000-0000-0000-000000000000"


Decode = Callable[[Cursor], pa.Array]
"""Reads one value of every record that a cursor is at; of bad records it is any value."""


def decode_datums(
    decoder: Decode, raw: pa.BinaryArray, rows: Numbers, skipped: int
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the values of the records without a mistake, and which of `rows` these are.

    Args:
        raw: the bytes of all records, with what is before each datum.
        rows: the numbers of the records to decode, ascending.
        skipped: how many bytes are before the datum.
    """
    starts = offsets_of(raw).astype(np.int64)
    size = int(starts[-1] - starts[0])
    data = np.zeros(size + PADDING, np.uint8)
    if size:
        data[:size] = np.frombuffer(raw.buffers()[2], np.uint8, size, int(starts[0]))
    starts -= starts[0]
    cursor = Cursor(data, rows, starts[rows] + skipped, starts[rows + 1], [], np.zeros(len(raw), np.int64))
    decoded = decoder(cursor)
    cursor.mark_bad(cursor.at != cursor.end)  # something is left after it
    if not cursor.bad:
        return decoded, np.ones(len(rows), np.bool_)
    is_sound = ~np.isin(rows, np.concatenate(cursor.bad))
    return decoded.filter(pa.array(is_sound)), is_sound


def compile_column_reader(plain: Any, type: Type) -> Decode:
    """Return what reads the values of a schema.

    Args:
        plain: the schema of the datums, as `SchemaNode.plain` has it.
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
    if "scale" in plain:  # a decimal whose column has another scale
        return _leave(None if plain["type"] == "bytes" else plain["size"], type)
    return _make_fixed(plain["size"], type)


def _leave(size: int | None, type: Type) -> Decode:
    """Leave all values to be read one by one; `size` is of a fixed."""

    def decode(cursor: Cursor) -> pa.Array:
        cursor.mark_bad(slice(None))
        _ = _extent(cursor) if size is None else cursor.advance(size)
        return pa.nulls(len(cursor), arrow_type(type))

    return decode


def _primitive(name: str, type: Type) -> Decode:
    match name:
        case "null":
            return lambda cursor: pa.nulls(len(cursor), arrow_type(type))
        case "boolean":
            return _boolean
        case "int":
            return _whole(_int32, type)
        case "long":
            return _whole(Cursor.read_varint, type)
        case "float":
            return lambda cursor: pa.array(cursor.words[cursor.advance(4)].astype(np.uint32).view(np.float32))
        case "double":
            return lambda cursor: pa.array(cursor.words[cursor.advance(8)].view(np.float64))
        case "string":
            return _uuid_of_text if type is Primitive.UUID else _text
    return (lambda cursor: _decimal(cursor, *_extent(cursor), type)) if isinstance(type, Decimal) else _bytes


def _boolean(cursor: Cursor) -> pa.Array:
    decoded = cursor.data[cursor.advance(1)]
    cursor.mark_bad(decoded > 1)
    return pa.array(decoded == 1)


def _int32(cursor: Cursor) -> npt.NDArray[np.int32]:
    decoded = cursor.read_varint()
    cursor.mark_bad((decoded < -_INT32) | (decoded >= _INT32))
    return decoded.astype(np.int32)


def _whole(read: Callable[[Cursor], npt.NDArray[Any]], type: Type) -> Decode:
    """Read integers, and dates and times, which are integers too."""
    arrow = arrow_type(type)
    if type is not Primitive.TIME and type is not Primitive.TIME_US:
        return lambda cursor: pa.array(read(cursor)).view(arrow)
    day = DAY_S * TICKS[type]

    def decode(cursor: Cursor) -> pa.Array:
        decoded = read(cursor)
        cursor.mark_bad((decoded < 0) | (decoded >= day))
        return pa.array(decoded).view(arrow)

    return decode


def _extent(cursor: Cursor) -> tuple[Numbers, Numbers]:
    """Read the length of some bytes, and pass them. Return where they begin, and how many they are."""
    start = cursor.advance(cursor.read_varint())
    return start, cursor.at - start


def _bytes(cursor: Cursor) -> pa.BinaryArray:
    start, size = _extent(cursor)
    return slice_values(start, start + size, pa.py_buffer(cursor.data))


def _text(cursor: Cursor) -> pa.StringArray:
    decoded = _bytes(cursor)
    try:
        return decoded.cast(pa.string())
    except pa.ArrowInvalid:
        bad = list(value_checks.check_utf8(decoded))
        cursor.mark_bad(bad)
        return pc.replace_with_mask(decoded, np.isin(np.arange(len(cursor)), bad), b"").cast(pa.string())


def _uuid_of_text(cursor: Cursor) -> pa.Array:
    decoded = _text(cursor)
    is_uuid = pc.match_substring_regex(decoded, _UUID)
    cursor.mark_bad(~is_uuid.to_numpy(zero_copy_only=False))
    decoded = pc.if_else(is_uuid, decoded, _NO_UUID)
    data = binascii.unhexlify(data_of(pc.replace_substring(decoded, "-", "")))
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(decoded), [None, pa.py_buffer(data)])
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _enum(symbols: Sequence[str]) -> Decode:
    texts = pa.array([*symbols, None], pa.string())

    def decode(cursor: Cursor) -> pa.Array:
        decoded = cursor.read_varint()
        bad = (decoded < 0) | (decoded >= len(symbols))
        cursor.mark_bad(bad)
        return texts.take(pa.array(np.where(bad, len(symbols), decoded)))

    return decode


def _make_fixed(size: int, type: Type) -> Decode:
    def decode(cursor: Cursor) -> pa.Array:
        start = cursor.advance(size)
        if isinstance(type, Decimal):
            return _decimal(cursor, start, cursor.at - start, type)
        if type is Primitive.UUID:  # as long as the padding, so that one that ends too early is read, too
            storage = slice_values(start, start + size, pa.py_buffer(cursor.data)).cast(pa.binary(size))
            return pa.ExtensionArray.from_storage(pa.uuid(), storage)
        return slice_values(start, cursor.at, pa.py_buffer(cursor.data))

    return decode


def _decimal(cursor: Cursor, start: Numbers, size: Numbers, type: Decimal) -> pa.Array:
    """Two's complement, the most significant byte first, as Arrow has it: 16 bytes, the least significant first.

    Of a decimal of more digits than that this reads the values that fit.
    """
    if type.scale > MOST_DIGITS:
        cursor.mark_bad(slice(None))
        return pa.nulls(len(start), arrow_type(type))
    narrow = Decimal(min(type.precision, MOST_DIGITS), type.scale)
    cursor.mark_bad(size > 16)
    size = np.minimum(size, 16)
    negative = (size > 0) & (cursor.data[start] >= 0x80)
    decoded = np.repeat(np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None], 16, axis=1)
    for at in range(int(size.max(initial=0))):
        has = size > at
        decoded[has, at] = cursor.data[(start + size - 1 - at)[has]]
    low, high = decoded.view("<u8")[:, 0], decoded.view("<i8")[:, 1]
    (most, more), (least, less) = divmod(10**narrow.precision, 2**64), divmod(-(10**narrow.precision), 2**64)
    below = (high < most) | ((high == most) & (low < more))
    above = (high > least) | ((high == least) & (low > less))
    cursor.mark_bad(~(below & above))
    fitting = pa.Array.from_buffers(arrow_type(narrow), len(start), [None, pa.py_buffer(decoded)])
    return fitting if narrow == type else fitting.cast(arrow_type(type), safe=False)


def _record(plain: Any, type: Type) -> Decode:
    types, arrow = fields_of(type), arrow_type(type)
    reads = [
        (field["name"], compile_column_reader(field["type"], types.get(field["name"], UNKNOWN)))
        for field in plain["fields"]
    ]

    def decode(cursor: Cursor) -> pa.Array:
        arrays = {name: read(cursor) for name, read in reads}
        # A record without fields has a placeholder, which no datum has.
        columns = [arrays[field.name] if field.name in arrays else pa.nulls(len(cursor), field.type) for field in arrow]
        return pa.StructArray.from_arrays(columns, fields=list(arrow))

    return decode


def _optional(plain: Sequence[Any], type: Type) -> Decode:
    """A union of one type, with or without null."""
    value = next((at for at, one in enumerate(plain) if one != "null"), None)
    read = compile_column_reader("null" if value is None else plain[value], type)

    def decode(cursor: Cursor) -> pa.Array:
        branch = cursor.read_varint()
        cursor.mark_bad((branch < 0) | (branch >= len(plain)))
        return _read_some(cursor, branch == value, read)

    return decode


def _union(plain: Sequence[Any], type: Type) -> Decode:
    """A union of several types is a struct with a field for each."""
    types, arrow = fields_of(type), arrow_type(type)
    branches = [(at, one["fields"][0]) for at, one in enumerate(plain) if one != "null"]
    reads = {
        at: (field["name"], compile_column_reader(field["type"], types.get(field["name"], UNKNOWN)))
        for at, field in branches
    }

    def decode(cursor: Cursor) -> pa.Array:
        branch = cursor.read_varint()
        cursor.mark_bad((branch < 0) | (branch >= len(plain)))
        decoded = {name: _read_some(cursor, branch == at, read) for at, (name, read) in reads.items()}
        nothing = ~np.isin(branch, list(reads))
        mask = pa.array(nothing) if nothing.any() else None
        return pa.StructArray.from_arrays([decoded[field.name] for field in arrow], fields=list(arrow), mask=mask)

    return decode


def _read_some(cursor: Cursor, chosen: npt.NDArray[np.bool_], read: Decode) -> pa.Array:
    """Read values of the chosen records; the others have none, which is null."""
    if chosen.all():
        return read(cursor)
    some = cursor.select(chosen)
    decoded = read(some)
    cursor.at[chosen] = some.at
    return decoded.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


def _array(plain: Any, type: Type) -> Decode:
    read, arrow = compile_column_reader(plain["items"], item_of(type)), arrow_type(type)
    without_bytes = is_weightless(plain["items"])

    def decode(cursor: Cursor) -> pa.Array:
        owners, (values,) = _items(cursor, [read], without_bytes=without_bytes)
        return pa.ListArray.from_arrays(_offsets(cursor, owners), values, type=arrow)

    return decode


def _map(plain: Any, type: Type) -> Decode:
    read = compile_column_reader(plain["values"], item_of(type))

    def decode(cursor: Cursor) -> pa.Array:
        owners, (names, values) = _items(cursor, [_text, read])
        codes = names.dictionary_encode().indices.to_numpy() if len(names) else owners
        pairs = np.sort(owners * (len(names) + 1) + codes)
        twice = pairs[1:][pairs[1:] == pairs[:-1]] // (len(names) + 1)
        cursor.mark_bad(twice)
        return pa.MapArray.from_arrays(_offsets(cursor, owners), names, values)

    return decode


def _offsets(cursor: Cursor, owners: Numbers) -> pa.Int32Array:
    counts = np.bincount(owners, minlength=len(cursor))
    return pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())


def _items(cursor: Cursor, reads: Sequence[Decode], *, without_bytes: bool = False) -> tuple[Numbers, list[pa.Array]]:
    """Read what arrays or maps hold, record by record. Return which record holds each item, and the items.

    A lap reads one item of every record that has one left. A few records with many more items than the others are bad:
    it costs less to read them one by one.
    """
    owners: list[Numbers] = []
    decoded: list[list[pa.Array]] = []
    active = np.arange(len(cursor))
    block_end = np.full(len(cursor), _NO_END)
    lap = 0
    while len(active):
        blocks = cursor.select(active)
        left = blocks.read_varint()
        sized = left < 0
        if sized.any():
            some = blocks.select(sized)
            size = some.read_varint()  # of the block in bytes: for readers that skip it
            blocks.at[sized] = some.at
            some.mark_bad((size < 0) | (size > some.end - some.at))
            block_end[active[sized]] = some.at + size
            left = np.abs(left)
        bad = left < 0
        if without_bytes:
            bad |= blocks.weigh(np.where(bad, 0, left))
        else:
            bad |= left > blocks.end - blocks.at
        blocks.mark_bad(bad)
        left[bad] = 0
        cursor.at[active] = blocks.at
        rows, active = active[left > 0], active[left > 0]
        left = left[left > 0]
        if without_bytes and len(rows):
            rows = np.repeat(rows, left)
            decoded.append([read(cursor.select(rows)) for read in reads])
            owners.append(rows)
            rows = rows[:0]
        while len(rows):
            some = cursor.select(rows)
            lap += 1
            if lap > _LAPS and len(rows) < _FEW:
                cursor.mark_bad(rows)
                active = np.setdiff1d(active, rows)
                break
            decoded.append([read(some) for read in reads])
            owners.append(rows)
            cursor.at[rows] = some.at
            left -= 1
            rows, left = rows[left > 0], left[left > 0]
        other_end = active[(block_end[active] != _NO_END) & (block_end[active] != cursor.at[active])]
        cursor.mark_bad(other_end)
        block_end[:] = _NO_END
    if not decoded:
        nothing = cursor.select(slice(0))
        return active, [read(nothing) for read in reads]
    if len(decoded) == 1:
        return owners[0], decoded[0]
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return owner[order], [pa.concat_arrays(one).take(pa.array(order)) for one in zip(*decoded, strict=True)]
