"""Avro datums read one by one, strictly: whatever is not exactly a datum of its schema is refused, with the reason.

It reads what `avro_columns` leaves: records with a mistake, and few with many more items than others. The libraries are
lenient: fastavro 1.12 takes the index -1 for an enum's last symbol, the byte 2 for true, and an integer of any length.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from s3lake.records.convert.read.arrays import DAY_S, Misfit
from s3lake.records.schema.columns.types import TICKS, UNKNOWN, Decimal, Primitive, Type, fields_of, item_of

MOST_WEIGHTLESS = 1_000
"""Items of a record that take no bytes, nulls and empty records: a few bytes could ask for more than memory holds."""

_LONGEST_VARINT = 10
_BITS = {"int": 32, "long": 64}
_EXACT = decimal.Context(prec=1_000, traps=[decimal.Inexact, decimal.InvalidOperation])


class DatumError(ValueError):
    """The bytes are not a datum of the schema."""


class Datum:
    """The bytes of a record, and how far they are read.

    Attributes:
        at: where reading continues.
        weightless: how many items were read that take no bytes.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at, self.weightless = data, at, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        start, left = self.at, len(self.data) - self.at
        if size < 0:
            raise DatumError(f"a length of {size}, at byte {start}: a length is not negative")
        if size > left:
            raise DatumError(f"it ends too early: {size} bytes are expected at byte {start}, {left} are there")
        self.at += size
        return self.data[start : self.at]

    def take_integer(self, type_name: str = "long") -> int:
        """Return the next integer: 7 bits a byte, the lowest first."""
        start, zigzag = self.at, 0
        for place in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            zigzag |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                break
        else:
            raise DatumError(f"an integer of more than {_LONGEST_VARINT} bytes, at byte {start}")
        number = zigzag >> 1 ^ -(zigzag & 1)
        bits = _BITS[type_name]
        if zigzag >> bits:
            raise DatumError(f"an integer beyond {bits} bits, at byte {start}, where the schema has {type_name!r}")
        return number

    def take_index(self, count: int, of: str) -> int:
        """Return the next integer, an index below `count`."""
        start, index = self.at, self.take_integer()
        if not 0 <= index < count:
            raise DatumError(f"number {index} of {count} {of}, at byte {start}: 0 to {count - 1} are expected")
        return index


Read = Callable[[Datum], Any]


def read_datum(read: Read, data: bytes, at: int) -> Any:
    """Return the value whose bytes begin at `at`, and are all the rest.

    Raises:
        DatumError: they are not.
        Misfit: its column cannot hold it.
    """
    datum = Datum(data, at)
    value = read(datum)
    if left := len(data) - datum.at:
        raise DatumError(f"{left} bytes are left after it")
    return value


def is_weightless(plain: Any) -> bool:
    """Return whether values of a schema take no bytes."""
    if not isinstance(plain, dict):
        return bool(plain == "null")
    match plain["type"]:
        case "record":
            return all(is_weightless(field["type"]) for field in plain["fields"])
        case "fixed":
            return bool(plain["size"] == 0)
    return False


def compile_datum_reader(plain: Any, type: Type) -> Read:
    """Return what reads a value of a schema.

    Args:
        plain: the schema of the datums, as `SchemaNode.plain` has it.
    """
    if isinstance(plain, list):
        return _read_union(plain, type)
    if isinstance(plain, str):
        return _read_primitive(plain, type)
    match plain["type"]:
        case "record":
            return _read_record(plain, type)
        case "array":
            return _read_array(plain, type)
        case "map":
            return _read_map(plain, type)
        case "enum":
            symbols = plain["symbols"]
            return lambda datum: symbols[datum.take_index(len(symbols), "symbols")]
        case "bytes":
            return _fit_bytes(_read_bytes, type, plain["scale"])
    size = plain["size"]
    return _fit_bytes(lambda datum: datum.take(size), type, plain.get("scale"))


def _read_primitive(name: str, type: Type) -> Read:
    match name:
        case "null":
            return lambda _: None
        case "boolean":
            return _read_boolean
        case "int" | "long":
            return _fit_integer(lambda datum: datum.take_integer(name), type)
        case "float" | "double":
            number = struct.Struct("<f" if name == "float" else "<d")
            return lambda datum: number.unpack(datum.take(number.size))[0]
        case "string":
            return _fit_uuid if type is Primitive.UUID else _read_text
    return _fit_bytes(_read_bytes, type)


def _read_bytes(datum: Datum) -> bytes:
    return datum.take(datum.take_integer())


def _read_boolean(datum: Datum) -> bool:
    start, byte = datum.at, datum.take(1)[0]
    if byte > 1:
        raise DatumError(f"byte {byte} is not a boolean, at byte {start}: 0 or 1 is expected")
    return byte == 1


def _read_text(datum: Datum) -> str:
    start, data = datum.at, datum.take(datum.take_integer())
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DatumError(f"the text at byte {start} is not UTF-8") from None


def _fit_uuid(datum: Datum) -> UUID:
    text = _read_text(datum)
    try:
        if len(text) == 36:
            return UUID(text)
    except ValueError:
        pass
    raise Misfit(Primitive.UUID)


def _fit_integer(read: Read, type: Type) -> Read:
    if type is not Primitive.TIME and type is not Primitive.TIME_US:
        return read
    day = DAY_S * TICKS[type]

    def read_time(datum: Datum) -> int:
        time: int = read(datum)
        if not 0 <= time < day:
            raise Misfit(type)
        return time

    return read_time


def _fit_bytes(read: Read, type: Type, scale: int | None = None) -> Read:
    """Read bytes, or what they are. `scale` is that of a decimal whose column has another."""
    if type is Primitive.UUID:
        return lambda datum: UUID(bytes=read(datum))
    if not isinstance(type, Decimal):
        return read

    def read_decimal(datum: Datum) -> decimal.Decimal:
        unscaled = int.from_bytes(read(datum), "big", signed=True)
        if scale is not None:
            unscaled, rest = divmod(unscaled, 10 ** (scale - type.scale))
            if rest:
                raise Misfit(type)
        if abs(unscaled) >= 10**type.precision:
            raise Misfit(type)
        return decimal.Decimal(unscaled).scaleb(-type.scale, _EXACT)

    return read_decimal


def _read_record(plain: Any, type: Type) -> Read:
    types = fields_of(type)
    reads = [
        (field["name"], compile_datum_reader(field["type"], types.get(field["name"], UNKNOWN)))
        for field in plain["fields"]
    ]

    def read(datum: Datum) -> dict[str, Any]:
        return {name: _read_within(name, read, datum) for name, read in reads}

    return read


def _read_union(plain: Sequence[Any], type: Type) -> Read:
    """A union of several types has records of one field as branches: their fields are the struct's."""
    reads = [_read_primitive("null", UNKNOWN) if one == "null" else compile_datum_reader(one, type) for one in plain]

    def read(datum: Datum) -> Any:
        return reads[datum.take_index(len(reads), "branches")](datum)

    return read


def _read_array(plain: Any, type: Type) -> Read:
    item, without_bytes = compile_datum_reader(plain["items"], item_of(type)), is_weightless(plain["items"])

    def read(datum: Datum) -> list[Any]:
        return _read_blocks(datum, lambda: _read_within("[]", item, datum), without_bytes=without_bytes)

    return read


def _read_map(plain: Any, type: Type) -> Read:
    value = compile_datum_reader(plain["values"], item_of(type))

    def read(datum: Datum) -> dict[str, Any]:
        return dict(_read_blocks(datum, lambda: (_read_text(datum), _read_within("[]", value, datum))))

    return read


def _read_blocks(datum: Datum, read: Callable[[], Any], *, without_bytes: bool = False) -> list[Any]:
    """Read the items of blocks, until an empty one. A block may state its number of bytes, for readers that skip it."""
    items: list[Any] = []
    while True:
        start, count, end = datum.at, datum.take_integer(), None
        if count < 0:
            size = datum.take_integer()
            count, end = -count, datum.at + size
            if size < 0 or end > len(datum.data):
                raise DatumError(f"a block of {size} bytes, at byte {start}, which are not there")
        if count == 0 and end is None:
            return items
        if without_bytes:
            datum.weightless += count
            if datum.weightless > MOST_WEIGHTLESS:
                raise DatumError(f"more than {MOST_WEIGHTLESS} items that take no bytes")
        items.extend(read() for _ in range(count))
        if end is not None and datum.at != end:
            raise DatumError(f"the block at byte {start} has another size than it states")


def _read_within(name: str, read: Read, datum: Datum) -> Any:
    try:
        return read(datum)
    except Misfit as misfit:
        raise misfit.within(name) from None
