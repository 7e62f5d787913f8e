"""What msgspec finds in JSON objects, text by text, before or after pyarrow reads them all at once."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from s3lake.schema.types import MOST_DIGITS, Columns, Decimal, Primitive, Struct, Type, Unknown, fold
from s3lake.schema.unite import joined

_NULL = msgspec.Raw(b"null")
_Steps = tuple[str | None, ...]
"""Names of fields; None is an item of a list."""
_Check = Callable[[bytes], Any]
"""Takes the text of a value; returns what is to be said of it, None for nothing."""
_Find = Callable[[Any], Iterator[tuple[_Steps, Any]]]
_Probe = tuple[Any, _Find]
"""What msgspec decodes only some leaves of a value with, as texts, and what yields what is to be said of them."""


def _probe(columns: Columns, checks: Callable[[Type], _Check | None]) -> Callable[[bytes], Iterator[Any]] | None:
    """Return what yields, of a JSON object, what the checks of its leaves say; None if no leaf has one."""
    leaf = functools.partial(_probe_leaf, checks)
    probe = fold(Struct(columns), leaf, _probe_list, _probe_struct, lambda _: None)
    if probe is None:
        return None
    decode, find = msgspec.json.Decoder(probe[0]).decode, probe[1]
    return lambda text: find(decode(text))


def _probe_leaf(checks: Callable[[Type], _Check | None], leaf: Primitive | Decimal | Unknown) -> _Probe | None:
    check = checks(leaf)
    if check is None:
        return None

    def find(raw: msgspec.Raw) -> Iterator[tuple[_Steps, Any]]:
        if (said := check(bytes(raw))) is not None:
            yield (), said

    return msgspec.Raw, find


def _probe_list(item: _Probe | None) -> _Probe | None:
    if item is None:
        return None
    decoded, of_item = item

    def find(values: Any) -> Iterator[tuple[_Steps, Any]]:
        for value in values or ():
            for steps, said in of_item(value):
                yield (None, *steps), said

    return list[decoded] | None, find  # type: ignore[valid-type]


def _probe_struct(fields: dict[str, _Probe | None]) -> _Probe | None:
    probes = [(name, *probe) for name, probe in fields.items() if probe is not None]
    if not probes:
        return None
    # Names of fields need be no names of Python's.
    members = [
        (f"f{at}", decoded, _NULL if decoded is msgspec.Raw else None) for at, (_, decoded, _) in enumerate(probes)
    ]
    probe = msgspec.defstruct("Probe", members, rename={f"f{at}": name for at, (name, _, _) in enumerate(probes)})
    attributes = [(f"f{at}", name, of_field) for at, (name, _, of_field) in enumerate(probes)]

    def find(value: Any) -> Iterator[tuple[_Steps, Any]]:
        if value is not None:
            for attribute, name, of_field in attributes:
                for steps, said in of_field(getattr(value, attribute)):
                    yield (name, *steps), said

    return probe | None, find


# pyarrow's reader of JSON multiplies a decimal to its column's scale without looking at overflow: 44696973661389609 as
# decimal(38,30) silently becomes another number, and the text "1e-41" becomes zero. So each decimal's text is looked at
# first; what is not plainly safe is left to `json_values.py`, which computes exactly.


def decimals_of(columns: Columns) -> Callable[[pa.BinaryArray], bool] | None:
    """Return what says of JSON objects whether the reader may be trusted with their decimals; None without decimals."""
    unsafe = _probe(columns, _unsafe_decimal)
    if unsafe is None:
        return None

    def are_safe(values: pa.BinaryArray) -> bool:
        try:
            return not any(True for value in values.to_pylist() for _ in unsafe(value))
        except msgspec.DecodeError:
            return False

    return are_safe


def _unsafe_decimal(type: Type) -> _Check | None:
    if not isinstance(type, Decimal):
        return None
    # No exponent, and room for the column's scale behind the digits that are there.
    digits = type.precision - type.scale
    whole = rf"\d{{1,{digits}}}" if digits else "0"
    plain = re.compile(rf'"?-?{whole}(?:\.\d{{1,{MOST_DIGITS - 1}}})?"?|null'.encode()).fullmatch
    return lambda text: None if plain(text) else text


# Integers in columns of doubles or floats: pyarrow rounds them without a word.

LARGE = 2**53
"""All integers up to here are doubles."""
LARGE_FLOAT = 2**24
"""All integers up to here are floats."""


def large_integers(columns: Columns) -> Callable[[bytes], Iterator[tuple[str, int, Type]]] | None:
    """Return what yields path, value and type of the large integers that an object has in columns of doubles or floats.

    Return None if there is no such column.
    """
    find = _probe(columns, _large_integer)
    if find is None:
        return None
    return lambda text: ((_path_of(steps), *said) for steps, said in find(text))


def _large_integer(type: Type) -> _Check | None:
    if type not in (Primitive.DOUBLE, Primitive.FLOAT):
        return None
    least = LARGE if type is Primitive.DOUBLE else LARGE_FLOAT

    def check(text: bytes) -> tuple[int, Type] | None:
        if not text.removeprefix(b"-").isdigit():
            return None
        number = int(text)
        return (number, type) if abs(number) > least else None

    return check


def holds_exactly(type: Type, number: int) -> bool:
    """Return False if the type is one of doubles or floats, none of which is this integer."""
    match type:
        case Primitive.DOUBLE:
            return int(float(number)) == number
        case Primitive.FLOAT:
            return int(struct.unpack("<f", struct.pack("<f", number))[0]) == number
    return True


def explain_rounding(type: Type, path: str) -> str:
    """Return why a record is refused that has such an integer at the path."""
    return (
        f"field {path!r} is an integer that its column, {type}, does not hold exactly: give the column a type, "
        "decimal(38,0) or string"
    )


def _path_of(steps: _Steps) -> str:
    return functools.reduce(lambda path, step: f"{path}[]" if step is None else joined(path, step), steps, "")


# What says of each text whether it fits the columns as they are, so that only the others are looked at one by one.

_DAY = r"^\d{4}-\d\d-\d\d"
_DATE, _TIME, _MOMENT = (
    Annotated[str, msgspec.Meta(pattern=text)] | int for text in (f"{_DAY}$", r"^\d\d(:|$)", f"{_DAY}([T ]|$)")
)
_EXACTLY: dict[Primitive, Any] = {
    Primitive.BOOL: bool,
    Primitive.STRING: str,
    Primitive.UUID: str,
    Primitive.BINARY: str,
    Primitive.INT32: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)],
    Primitive.INT64: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    Primitive.FLOAT: float,
    Primitive.DOUBLE: float,
    Primitive.DATE: _DATE,
    Primitive.TIME: _TIME,
    Primitive.TIME_US: _TIME,
    Primitive.TIMESTAMP: _MOMENT,
    Primitive.TIMESTAMP_US: _MOMENT,
    Primitive.TIMESTAMP_NS: _MOMENT,
}
"""What msgspec decodes a value of a column as: what no reader takes is refused, not all else fits."""


def strict_decoder(columns: Columns) -> Callable[[bytes], Any]:
    """Return what raises on a text that is not an object with these columns, or some of them, and nothing else.

    Columns of an unknown type hold nothing.
    """
    return _strict_decoder(Struct(columns))


@functools.lru_cache(maxsize=64)
def _strict_decoder(columns: Struct) -> Callable[[bytes], Any]:
    decoded = fold(columns, _exact_leaf, _exact_list, _exact_struct, _exact_map)
    return msgspec.json.Decoder(decoded).decode


def _exact_leaf(leaf: Primitive | Decimal | Unknown) -> Any:
    match leaf:
        case Primitive():
            return _EXACTLY[leaf]
        case Decimal():
            return msgspec.Raw
    return None


def _exact_list(item: Any) -> Any:
    return list[_or_null(item)]  # type: ignore[misc]


def _exact_map(value: Any) -> Any:
    return dict[str, _or_null(value)]  # type: ignore[misc]


def _or_null(decoded: Any) -> Any:
    return decoded if decoded in (msgspec.Raw, None) else decoded | None


def _exact_struct(fields: dict[str, Any]) -> Any:
    members = [
        (f"f{at}", _or_null(decoded), _NULL if decoded is msgspec.Raw else None)
        for at, decoded in enumerate(fields.values())
    ]
    names = {f"f{at}": name for at, name in enumerate(fields)}
    return msgspec.defstruct("Fitting", members, rename=names, forbid_unknown_fields=True, gc=False)
