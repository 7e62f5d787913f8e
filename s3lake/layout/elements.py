"""What an element of a key says of a record: columns of texts, and why a record has none.

A value field that is null or missing is `missing`; a missing header, and anything that is no primitive, is a record
error. Source: compatibility.md, Object keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache, reduce
from typing import Any

import msgspec

from s3lake.convert.converters import CONVERTERS
from s3lake.convert.java_numbers import java_double
from s3lake.layout.pieces import Date, Element, Field, Header, Key, Routed, Schema, Time, Unplaceable
from s3lake.text.dates import iso, joda, zones
from s3lake.text.dates.java import compile_key_date
from s3lake.text.masking import quote

_CONNECT = {"schema", "payload"}
_DIGITS = re.compile(r"-?[0-9]{1,19}")
_SHAPES = {bool: "a boolean", float: "a fraction", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class Fields:
    """What keys can be made from: one entry per record, empty where no element asks for it.

    Attributes:
        values: values as JSON text.
        keys: keys as bytes.
        headers: lists of `{"key": name, "value": bytes}`.
        timestamps: epoch milliseconds; -1 for none.
        schemas: names of the values' schemas.
        topics: names that routers gave the records' topic.
    """

    values: Sequence[bytes | None] = ()
    keys: Sequence[bytes | None] = ()
    headers: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    timestamps: Sequence[int] = ()
    schemas: Sequence[str | None] = ()
    topics: Sequence[str] = ()


@dataclass(frozen=True)
class Reading:
    """How elements are read: the key's converter, and what stands for a missing field."""

    key_converter: str
    missing: str


Texts = list["str | Unplaceable"]


def columns(elements: Sequence[Element], fields: Fields, reading: Reading) -> list[Texts]:
    """The texts of each element, one per record."""
    names = tuple(sorted({_path(one)[0] for one in elements if one.source == "value"}))
    rows = _decoded(fields.values, names) if names else []
    return [_column(one, fields, rows, reading) for one in elements]


def _path(element: Element) -> tuple[str, ...]:
    return element.path if isinstance(element, Field | Time) else ()


def _column(element: Element, fields: Fields, rows: list[Any], reading: Reading) -> Texts:
    match element:
        case Field(path):
            what = f"field {'.'.join(path)}"
            return _texts([_stepped(row, path) for row in rows], what, reading.missing)
        case Key():
            return [_attempt(_key, key, element, reading) for key in fields.keys]
        case Header():
            return [_attempt(_header, headers, element, reading) for headers in fields.headers]
        case Schema():
            return [_attempt(safe, name or "null", "the schema's name") for name in fields.schemas]
        case Routed():
            return [_attempt(safe, name, "the routed topic") for name in fields.topics]
        case Date(pattern):
            return _dates(_date_formatter(pattern), fields.timestamps)
        case Time(clock="field"):
            return _field_times(element, rows)
        case Time():
            return _dates(_time_formatter(element), fields.timestamps)


def wallclock_text(element: Time, epoch_ms: int) -> str:
    """The text of an element that is the same for every record."""
    return safe(_time_formatter(element)(epoch_ms), f"time {element.pattern}")


@lru_cache(maxsize=64)
def _date_formatter(pattern: str) -> Callable[[int], str]:
    return compile_key_date(pattern)


@lru_cache(maxsize=64)
def _time_formatter(element: Time) -> Callable[[int], str]:
    # One per process, because each remembers what it has formatted.
    return joda.formatter(element.pattern, element.zone, element.locale, element.bucket_ms)


def _dates(formatter: Callable[[int], str], timestamps: Sequence[int]) -> Texts:
    if -1 not in timestamps:
        try:
            return list(map(formatter, timestamps))
        except ValueError:  # one of them has no date: look at each
            pass
    return [_attempt(_date, formatter, timestamp) for timestamp in timestamps]


def _date(formatter: Callable[[int], str], epoch_ms: int) -> str:
    if epoch_ms == -1:
        raise Unplaceable("the record has no date: its timestamp is -1, none")
    try:
        return formatter(epoch_ms)
    except ValueError as error:
        raise Unplaceable(f"the record has no date: {error}") from None


def field_times(element: Time, fields: Fields) -> list[int | None]:
    """The epoch milliseconds of a field that has a time, None where a record has none."""
    where, what = zones.zone(element.zone), f"time field {'.'.join(element.path)}"
    times = [_attempt(_field_time, row, element, where, what) for row in _decoded(fields.values, element.path[:1])]
    return [None if isinstance(time, Unplaceable) else time for time in times]


def _field_time(row: Any, element: Time, where: tzinfo, what: str) -> int:
    return read_time(_stepped(row, element.path, strict=True), where, what)


def _field_times(element: Time, rows: list[Any]) -> Texts:
    formatter, where = _time_formatter(element), zones.zone(element.zone)
    what = f"time field {'.'.join(element.path)}"

    def text(row: Any) -> str:
        epoch_ms = _field_time(row, element, where, what)
        try:
            return formatter(epoch_ms)
        except ValueError as error:
            raise Unplaceable(f"{what} has no date: {error}") from None

    return [_attempt(text, row) for row in rows]


def _texts(values: list[Any], what: str, missing: str) -> Texts:
    texts_of: dict[str, str | Unplaceable] = {}
    texts: Texts = []
    for value in values:
        if type(value) is str:
            text = texts_of.get(value)
            if text is None:
                text = texts_of[value] = _attempt(_safe_text, value, what)
        elif value is None:
            text = missing
        else:
            text = value if isinstance(value, Unplaceable) else _attempt(_safe_text, value, what)
        texts.append(text)
    return texts


def _safe_text(value: Any, what: str) -> str:
    return safe(text_of(value, what), what)


def _attempt(extract: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return extract(*arguments)
    except Unplaceable as error:
        return error


def _decoded(values: Sequence[bytes | None], names: tuple[str, ...]) -> list[Any]:
    """Each value, decoded as far as `names` need it: a row with them, None without a value, or why it is none."""
    decode = _decoder(names).decode
    try:
        return [None if value is None else decode(value) for value in values]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [None if value is None else _alone(value, names) for value in values]


def _alone(value: bytes, names: tuple[str, ...]) -> Any:
    try:
        return _decoder(names).decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _attempt(decoded, value, "the value")  # no object, or no JSON


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    if any(char in '"\\' or not char.isprintable() for char in "".join(names)):
        return msgspec.json.Decoder()
    # Attributes are numbered, as names can be anything.
    slots = {name: f"f{position}" for position, name in enumerate(names)}
    row = msgspec.defstruct(
        "Row",
        [(slot, Any, None) for slot in slots.values()],
        rename={slot: name for name, slot in slots.items()},
        namespace={"slots": slots},
    )
    return msgspec.json.Decoder(row)


def _stepped(row: Any, path: tuple[str, ...], *, strict: bool = False) -> Any:
    if isinstance(row, Unplaceable):
        if strict:
            raise row
        return row
    if not isinstance(row, msgspec.Struct):
        return reduce(_step, path, row)
    value = getattr(row, row.slots[path[0]])  # type: ignore[attr-defined]
    return value if len(path) == 1 else reduce(_step, path[1:], value)


def field(value: Any, path: tuple[str, ...], what: str, missing: str) -> str:
    """The field at `path` of a decoded value as text, `missing` where there is none."""
    stepped = reduce(_step, path, value)
    return missing if stepped is None else text_of(stepped, what)


def _step(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def text_of(value: Any, what: str) -> str:
    """A primitive as keys spell it.

    Raises:
        Unplaceable: `value` is no primitive.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value.replace("\n", "\\n")
        case int():
            return str(value)
        case float():
            return java_double(value)
        case _:
            shape = {type(None): "null", dict: "an object"}.get(type(value), "a list")
            raise Unplaceable(f"{what} is {shape}, not a primitive")


def decoded(data: bytes, what: str) -> Any:
    """JSON decoded.

    Raises:
        Unplaceable: it is no JSON, or holds a number that nothing can hold.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unplaceable(f"{what} is no JSON: {error}") from None


def _key(key: bytes | None, element: Key, reading: Reading) -> str:
    name = ".".join(element.path)
    what = f"key field {name}" if name else "the key"
    if key is None:
        if element.required:
            raise Unplaceable("the record has no key")
        return reading.missing
    if CONVERTERS[reading.key_converter].gives != "json":
        return safe(_utf8(key, "the key"), what)
    found = decoded(key, "the key")
    if CONVERTERS[reading.key_converter].enveloped and isinstance(found, dict) and found.keys() == _CONNECT:
        found = found["payload"]
    if found is None and not element.required:
        return reading.missing
    if element.path and isinstance(found, dict):
        return safe(field(found, element.path, what, reading.missing), what)
    return safe(text_of(found, "the key"), what)


def _header(headers: Sequence[Mapping[str, Any]] | None, element: Header, reading: Reading) -> str:
    found = [header["value"] for header in headers or () if header["key"] == element.name]
    what = f"header {element.name!r}"
    if not found:
        raise Unplaceable(f"{what} is not in the record")
    if found[-1] is None:
        raise Unplaceable(f"{what} is null")
    text = _utf8(found[-1], what)
    if element.path:
        name = f"header {'.'.join((element.name, *element.path))}"
        text = field(decoded(found[-1], what), element.path, name, reading.missing)
    return safe(text, what)


def _utf8(data: bytes, what: str) -> str:
    try:
        return data.decode().replace("\n", "\\n")
    except UnicodeDecodeError:
        raise Unplaceable(f"{what} is no UTF-8") from None


def read_time(value: Any, where: tzinfo, what: str) -> int:
    """Convert the time in a field to epoch milliseconds: a number, digits, or ISO 8601 text.

    A text without an offset is read in the zone `where`.

    Raises:
        Unplaceable: it is not a time.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is None:
        raise Unplaceable(f"{what} is null or missing: it has no time")
    if not isinstance(value, str):
        name = _SHAPES[type(value)]
        raise Unplaceable(f"{what} is {name}, not a time: write epoch milliseconds or ISO 8601 text")
    if _DIGITS.fullmatch(value):
        return int(value)
    try:
        return iso.epoch_ms(value, where)
    except iso.NonexistentTimeError:
        raise Unplaceable(
            f"{what} is {quote(what, repr(value))}, which the clock of {where} skips: write it with an offset"
        ) from None
    except (ValueError, OverflowError):
        raise Unplaceable(
            f"{what} is {quote(what, repr(value[:40]))}, which is not a time: write epoch milliseconds or ISO 8601, "
            "for example 2026-11-20T09:30:00Z"
        ) from None


def safe(value: str, what: str) -> str:
    """`value` where it can stand in a key.

    Raises:
        Unplaceable: it cannot; S3 takes any bytes, but XML listings do not carry every character and clients resolve
            dot segments.
    """
    if not value.isprintable() and any(ord(char) < 32 or char in "\x7f\ufffe\uffff" for char in value):
        raise Unplaceable(f"{what} holds a control character: {quote(what, repr(value[:40]))}")
    if "." in value and any(part in (".", "..") for part in value.split("/")):
        raise Unplaceable(f"{what} holds a path step: {quote(what, repr(value[:40]))}")
    return value
