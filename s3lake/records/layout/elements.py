"""The texts of the elements of keys for a batch of records, and the reasons why a record has none.

A value field that is null or missing is `missing`; a missing header, and any value that is not a primitive, is a record
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache, reduce
from itertools import repeat
from typing import Any

import msgspec

from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.layout.field_times import SHAPES, explain_no_date, read_time
from s3lake.records.layout.pieces import (
    WRITE_ANOTHER,
    DateElement,
    Element,
    FieldElement,
    HeaderElement,
    KeyElement,
    NoObjectKeyError,
    RoutedTopicElement,
    SchemaNameElement,
    TimeElement,
)
from s3lake.text.dates import joda, zones
from s3lake.text.dates.java import compile_key_date
from s3lake.text.masking import quote_masked
from s3lake.text.quantities import format_double

_CONNECT = {"schema", "payload"}
_TAKE_A_FIELD = "lay out by one of its fields, or by another element"
_WRITE_IT = "have the producer write it, or lay out by another element"
_TIME_BITS = 64  # of a column of times: what needs them all is of no date


@dataclass(frozen=True)
class RecordColumns:
    """The parts of records that keys can contain: one entry per record, empty if no element needs the part.

    Attributes:
        values: values as JSON text.
        keys: keys as bytes.
        headers: lists of `{"key": name, "value": bytes}`.
        timestamps: epoch milliseconds; -1 for none.
        schemas: names of the values' schemas.
        topics: the records' topics as routers renamed them.
        times: the type of the field with the time by the values' schemas: `timestamp_us`; None if a schema has none.
    """

    values: Sequence[bytes | None] = ()
    keys: Sequence[bytes | None] = ()
    headers: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    timestamps: Sequence[int] = ()
    schemas: Sequence[str | None] = ()
    topics: Sequence[str] = ()
    times: Sequence[str | None] = ()


@dataclass(frozen=True)
class Reading:
    """How elements are read: the key's converter, and the text for a missing field."""

    key_converter: str
    missing: str


Texts = list["str | NoObjectKeyError"]


def element_texts(elements: Sequence[Element], fields: RecordColumns, reading: Reading) -> list[Texts]:
    """Return the texts of each element, one per record, with the reason in place of a text that is not valid."""
    of_value = (element for element in elements if isinstance(element, FieldElement | TimeElement) and element.path)
    names = tuple(sorted({element.path[0] for element in of_value}))
    rows = _decode(fields.values, names) if names else []
    return [_make_texts(element, fields, rows, reading) for element in elements]


def _make_texts(element: Element, fields: RecordColumns, rows: list[Any], reading: Reading) -> Texts:
    match element:
        case FieldElement(path):
            what = f"field {'.'.join(path)}"
            return _format_values([_take_field(row, path) for row in rows], what, reading.missing)
        case KeyElement():
            return [_attempt(_format_key, key, element, reading) for key in fields.keys]
        case HeaderElement():
            return [_attempt(_format_header, headers, element, reading) for headers in fields.headers]
        case SchemaNameElement():
            return [_attempt(check_key_text, name or "null", "the schema's name") for name in fields.schemas]
        case RoutedTopicElement():
            return [_attempt(check_key_text, name, "the routed topic") for name in fields.topics]
        case DateElement(pattern):
            return _format_dates(compile_key_date(pattern), fields.timestamps)
        case TimeElement(clock="field"):
            return _format_field_times(element, rows, fields.times)
        case TimeElement():
            return _format_dates(_compile_time(element), fields.timestamps)


def format_wallclock(element: TimeElement, epoch_ms: int) -> str:
    """Return the text of an element that is the same for every record."""
    return check_key_text(_compile_time(element)(epoch_ms), f"time {element.pattern}")


def _compile_time(element: TimeElement) -> Callable[[int], str]:
    return joda.compile_formatter(
        element.pattern, element.zone, element.locale, element.bucket_ms, toward_zero=element.toward_zero
    )


def _format_dates(formatter: Callable[[int], str], timestamps: Sequence[int]) -> Texts:
    if -1 not in timestamps:
        try:
            return list(map(formatter, timestamps))
        except ValueError:  # one of them has no date: format each
            pass
    return [_attempt(_format_date, formatter, timestamp) for timestamp in timestamps]


def _format_date(formatter: Callable[[int], str], epoch_ms: int) -> str:
    if epoch_ms == -1:
        raise NoObjectKeyError("the record has no date: its timestamp is -1, none; lay out by a time in a field")
    try:
        return formatter(epoch_ms)
    except ValueError as error:
        raise NoObjectKeyError(f"the record has no date: {error}") from None


def read_field_times(element: TimeElement, fields: RecordColumns) -> list[int | None]:
    """Return the epoch milliseconds of the time in a field, None for a record without one, or with one of no date."""
    where, what = zones.parse_zone(element.zone), f"time field {'.'.join(element.path)}"
    rows = _decode(fields.values, element.path[:1])
    times = [
        _attempt(_read_field_time, row, element, where, what, time) for row, time in _zip_times(rows, fields.times)
    ]
    return [time if isinstance(time, int) and time.bit_length() < _TIME_BITS else None for time in times]


def _zip_times(rows: list[Any], times: Sequence[str | None]) -> Iterable[tuple[Any, str | None]]:
    return zip(rows, times or repeat(None), strict=False)


def _read_field_time(row: Any, element: TimeElement, where: tzinfo, what: str, time: str | None) -> int:
    value = _take_field(row, element.path)
    if isinstance(value, NoObjectKeyError):
        raise value
    return read_time(value, where, what, time, element.unit)


def _format_field_times(element: TimeElement, rows: list[Any], times: Sequence[str | None]) -> Texts:
    formatter, where = _compile_time(element), zones.parse_zone(element.zone)
    what = f"time field {'.'.join(element.path)}"

    def text(row: Any, time: str | None) -> str:
        epoch_ms = _read_field_time(row, element, where, what, time)
        try:
            return formatter(epoch_ms)
        except ValueError:
            raise NoObjectKeyError(explain_no_date(epoch_ms, what, time, element.unit)) from None

    return [_attempt(text, row, time) for row, time in _zip_times(rows, times)]


def _format_values(values: list[Any], what: str, missing: str) -> Texts:
    texts_of: dict[str, str | NoObjectKeyError] = {}
    texts: Texts = []
    for value in values:
        if type(value) is str:
            text = texts_of.get(value)
            if text is None:
                text = texts_of[value] = _attempt(_check_value, value, what)
        elif value is None:
            text = missing
        else:
            text = value if isinstance(value, NoObjectKeyError) else _attempt(_check_value, value, what)
        texts.append(text)
    return texts


def _check_value(value: Any, what: str) -> str:
    return check_key_text(format_primitive(value, what), what)


def _attempt(extract: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return extract(*arguments)
    except NoObjectKeyError as error:
        return error


def _decode(values: Sequence[bytes | None], names: tuple[str, ...]) -> list[Any]:
    """Decode the fields `names` of each value: a row with them, None without a value, or the reason why not."""
    decode = _make_decoder(names).decode
    try:
        return [None if value is None else decode(value) for value in values]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [None if value is None else _decode_alone(value, names) for value in values]


def _decode_alone(value: bytes, names: tuple[str, ...]) -> Any:
    try:
        return _make_decoder(names).decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _attempt(decode_json_for_key, value, "the value")  # not an object, or not JSON


@lru_cache(maxsize=64)
def _make_decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    if any(char in '"\\' or not char.isprintable() for char in "".join(names)):
        return msgspec.json.Decoder()
    # Attributes are numbered, because a name can be any text.
    slots = {name: f"f{position}" for position, name in enumerate(names)}
    row = msgspec.defstruct(
        "Row",
        [(slot, Any, None) for slot in slots.values()],
        rename={slot: name for name, slot in slots.items()},
        namespace={"slots": slots},
    )
    return msgspec.json.Decoder(row)


def _take_field(row: Any, path: tuple[str, ...]) -> Any:
    if isinstance(row, NoObjectKeyError):
        return row
    if not isinstance(row, msgspec.Struct):
        return reduce(_get_member, path, row)
    value = getattr(row, row.slots[path[0]])  # type: ignore[attr-defined]
    return value if len(path) == 1 else reduce(_get_member, path[1:], value)


def read_field(value: Any, path: tuple[str, ...], what: str, missing: str) -> str:
    """Return the field at `path` of a decoded value as text, or `missing` if it is null or missing."""
    stepped = reduce(_get_member, path, value)
    return missing if stepped is None else format_primitive(stepped, what)


def _get_member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def format_primitive(value: Any, what: str) -> str:
    """Return a primitive as keys write it.

    Raises:
        NoObjectKeyError: `value` is not a primitive.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value.replace("\n", "\\n")
        case int():
            return str(value)
        case float():
            return format_double(value)
        case _:
            raise NoObjectKeyError(f"{what} is {SHAPES[type(value)]}, not a primitive: {_TAKE_A_FIELD}")


def decode_json_for_key(data: bytes, what: str) -> Any:
    """Decode JSON.

    Raises:
        NoObjectKeyError: it is not JSON, or contains a number that is too large.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoObjectKeyError(f"{what} is not JSON: {error}") from None


def _format_key(key: bytes | None, element: KeyElement, reading: Reading) -> str:
    name = ".".join(element.path)
    what = f"key field {name}" if name else "the key"
    if key is None:
        if element.required:
            raise NoObjectKeyError(f"the record has no key: {_WRITE_IT}")
        return reading.missing
    if CONVERTERS[reading.key_converter].gives != "json":
        return check_key_text(_decode_text(key, "the key"), what)
    document = decode_json_for_key(key, "the key")
    if CONVERTERS[reading.key_converter].enveloped and isinstance(document, dict) and document.keys() == _CONNECT:
        document = document["payload"]
    if document is None and not element.required:
        return reading.missing
    if element.path and isinstance(document, dict):
        return check_key_text(read_field(document, element.path, what, reading.missing), what)
    return check_key_text(format_primitive(document, "the key"), what)


def _format_header(headers: Sequence[Mapping[str, Any]] | None, element: HeaderElement, reading: Reading) -> str:
    values = [header["value"] for header in headers or () if header["key"] == element.name]
    what = f"header {element.name!r}"
    if not values:
        raise NoObjectKeyError(f"{what} is not in the record: {_WRITE_IT}")
    if values[-1] is None:
        raise NoObjectKeyError(f"{what} is null: {_WRITE_IT}")
    text = _decode_text(values[-1], what)
    if element.path:
        name = f"header {'.'.join((element.name, *element.path))}"
        text = read_field(decode_json_for_key(values[-1], what), element.path, name, reading.missing)
    return check_key_text(text, what)


def _decode_text(data: bytes, what: str) -> str:
    try:
        return data.decode().replace("\n", "\\n")
    except UnicodeDecodeError:
        raise NoObjectKeyError(f"{what} is not UTF-8: {WRITE_ANOTHER}") from None


def check_key_text(value: str, what: str) -> str:
    """Return `value` if it is valid in a key.

    Raises:
        NoObjectKeyError: it is not; S3 takes any bytes, but XML listings cannot have every character, and clients
            resolve dot segments.
    """
    if not value.isprintable() and any(ord(char) < 32 or char in "\x7f\ufffe\uffff" for char in value):
        problem = "a control character"
    elif "." in value and any(part in (".", "..") for part in value.split("/")):
        problem = "a path step"
    else:
        return value
    raise NoObjectKeyError(f"{what} holds {problem}: {quote_masked(what, repr(value[:40]))}: {WRITE_ANOTHER}")
