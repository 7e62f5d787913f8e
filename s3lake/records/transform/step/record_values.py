"""Keys and values as transforms see them: JSON decoded, with the dates and times that their schema has."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, Literal

import msgspec

from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import Primitive, Struct, Type, fold
from s3lake.text.masking import quote_masked

DAY_MS = 86_400_000
_SHOWN = 60

Side = Literal["key", "value"]
"""The keys, or the values, of a batch; of one record its key or its value."""

Header = tuple[str, bytes | None]
"""The name of a header, and its value; names may repeat."""

NOT_READ: Any = object()
"""A key or value that no transform reads."""

NULL = msgspec.Raw(b"null")
"""JSON's null as a value; None is Kafka's, a tombstone."""

MarkInstants = Callable[[Any], Any]
"""Makes instants of the numbers in a value decoded from JSON, in which members of its schema may be missing."""


class TransformError(ValueError):
    """A transform cannot handle this record; the message names field and value."""


class Instant(int):
    """A point in time, in the unit of its kind. In JSON it is this number."""

    __slots__ = ()
    unit_ns: ClassVar[int] = 1_000_000

    @property
    def epoch_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self * self.unit_ns

    @property
    def epoch_ms(self) -> int:
        """Milliseconds since 1970, the one that it is in."""
        return self.epoch_ns // 1_000_000


class Timestamp(Instant):
    """Milliseconds since 1970."""

    __slots__ = ()


class TimeOfDay(Instant):
    """Milliseconds of a day, which is the first of 1970."""

    __slots__ = ()


class Date(Instant):
    """Days since 1970."""

    __slots__ = ()
    unit_ns = DAY_MS * 1_000_000


class FineInstant(Instant):
    """A point in time that is finer than a millisecond."""

    __slots__ = ()
    unit_ns = 1000


class MicroTime(FineInstant):
    """Microseconds of a day, which is the first of 1970."""

    __slots__ = ()


class MicroTimestamp(FineInstant):
    """Microseconds since 1970."""

    __slots__ = ()


class NanoTimestamp(FineInstant):
    """Nanoseconds since 1970."""

    __slots__ = ()
    unit_ns = 1


class TimeNumber(int):
    """A number that is a time by its schema, in the unit of `time`, but has no column of times."""

    time: Primitive

    def __new__(cls, number: int, time: Primitive) -> TimeNumber:
        time_number = super().__new__(cls, number)
        time_number.time = time
        return time_number


class Float32(float):
    """A number of 32 bits, whose text has fewer digits than a double's."""

    __slots__ = ()


INSTANTS: dict[Type, type[Instant]] = {
    Primitive.DATE: Date,
    Primitive.TIME: TimeOfDay,
    Primitive.TIME_US: MicroTime,
    Primitive.TIMESTAMP: Timestamp,
    Primitive.TIMESTAMP_US: MicroTimestamp,
    Primitive.TIMESTAMP_NS: NanoTimestamp,
}


def make_marker(type: Type) -> MarkInstants | None:
    """Return the function that makes instants of a type's dates and times. Return None if it has none."""

    def of_leaf(leaf: Type) -> MarkInstants | None:
        instant = INSTANTS.get(leaf)
        return instant and (lambda value: instant(value) if value.__class__ is int else value)

    def of_list(mark: MarkInstants | None) -> MarkInstants | None:
        return mark and (lambda value: list(map(mark, value)) if isinstance(value, list) else value)

    def of_map(mark: MarkInstants | None) -> MarkInstants | None:
        if mark is None:
            return None
        # A map whose keys are not texts is a list.
        return lambda value: {key: mark(one) for key, one in value.items()} if isinstance(value, dict) else value

    return fold(type, of_leaf, of_list, _mark_fields, of_map)


def _mark_fields(marks: dict[str, MarkInstants | None]) -> MarkInstants | None:
    marked = {name: mark for name, mark in marks.items() if mark is not None}

    def mark_fields(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return value | {name: mark(value[name]) for name, mark in marked.items() if name in value}

    return mark_fields if marked else None


def make_unit_marker(type: Type, detail: Detail | None) -> MarkInstants | None:
    """Return the function that makes TimeNumbers of numbers that are times by their schema, None if it has none."""
    if detail is None:
        return None
    if isinstance(type, Struct):
        fields = zip(type.fields.items(), detail.inner, strict=False)
        return _mark_fields({name: make_unit_marker(inner, each) for (name, inner), each in fields})
    if detail.time is None or type in INSTANTS:
        return None
    time = Primitive(detail.time)
    return lambda value: TimeNumber(value, time) if value.__class__ is int else value


# A number with a fraction keeps its digits: through a double, 0.10 would become 0.1, and long ones would be cut.
_decode_json = msgspec.json.Decoder(float_hook=Decimal).decode
_encode_json = msgspec.json.Encoder(decimal_format="number", enc_hook=int).encode  # an instant is its number


def decode_side(data: bytes | None, converter: str, mark: MarkInstants | None = None) -> Any:
    """Decode a key or value.

    Args:
        data: the data as Kafka has it, or JSON made of data with a schema.
        converter: the converter of the data.
        mark: marks the instants of the data's schema.

    Raises:
        TransformError: the data is not valid for the converter.
    """
    if data is None or CONVERTERS[converter].gives == "bytes":
        return data
    try:
        if CONVERTERS[converter].gives == "text":
            return data.decode()
        value = _decode_json(data)
        return value if mark is None else mark(value)
    except RecursionError:
        raise TransformError("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise TransformError(f"not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from None
    except ArithmeticError:
        raise TransformError("a number in it has an exponent beyond all bounds") from None
    except msgspec.DecodeError as error:
        raise TransformError(f"not JSON: {error}" if data.strip() else "empty; JSON is needed") from None


def encode(value: Any) -> bytes | None:
    """Encode a value as JSON; None stays None."""
    return None if value is None else _encode_json(value)


def to_header(value: Any) -> bytes | None:
    """Return a value as a header has it: text as it is, numbers plain, true and false, objects and lists as JSON."""
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
        case Decimal() if -30 < value.adjusted() < 30:
            return format(value, "f").encode()
    return _encode_json(to_plain(value))


def to_plain(value: Any) -> Any:
    """Return a value with bytes in base64 and floats in the fewest digits, as Connect's JSON converter prints them."""
    match value:
        case dict():
            return {name: to_plain(inner) for name, inner in value.items()}
        case list():
            return [to_plain(inner) for inner in value]
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case Float32():
            return float(format_float32(value))
    return value


def format_float32(value: float) -> str:
    """Return a number of 32 bits in the fewest digits that read back."""
    import numpy as np

    return str(np.float32(value))


def describe(value: Any, field: str = "") -> str:
    """Describe a value for messages by its kind and, if it is short and `field` is not the name of a secret, its text.

    >>> describe(7), describe({}), describe(7, "password")
    ('7 (a number)', 'an object', '******** (a number)')
    """
    match value:
        case None:
            return "null"
        case bool():
            return f"{quote_masked(field, str(value).lower())} (a boolean)"
        case int() | float() | Decimal():
            return f"{quote_masked(field, str(value)[:_SHOWN])} (a number)"
        case str():
            return f"{quote_masked(field, repr(value[:_SHOWN]))} (a text)"
        case bytes():
            return f"{len(value)} bytes"
        case dict():
            return "an object"
        case list():
            return "a list"
    return "null" if value is NULL else "not read"
