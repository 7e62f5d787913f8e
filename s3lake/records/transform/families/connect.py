"""Kafka Connect's transforms and predicates, as they treat values without a schema.

If Connect silently loses a field, because two would have one name, the record is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from s3lake.records.transform.families.java_regex import compile_java, compile_replacement
from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import (
    Record,
    Step,
    add_constant,
    change_headers,
    change_object,
    change_side,
    get_field,
    later,
    parse_path,
    require_object,
    require_topic,
)
from s3lake.records.transform.step.record_values import (
    Date,
    Float32,
    Instant,
    MicroTime,
    MicroTimestamp,
    NanoTimestamp,
    Side,
    TimeOfDay,
    Timestamp,
    TransformError,
    describe,
    to_header,
)
from s3lake.text.dates.java import DatePattern
from s3lake.text.quantities import format_count

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_EMPTY: dict[type, Any] = {
    **{bool: False, int: 0, float: 0.0, Float32: Float32(0), Decimal: Decimal("0.0"), str: "", list: [], dict: {}},
    **{instant: instant(0) for instant in (Date, TimeOfDay, Timestamp, MicroTime, MicroTimestamp, NanoTimestamp)},
}


def insert_field(options: OptionReader, side: Side) -> Step:
    """Insert topic, partition, offset, timestamp or a constant as fields."""
    sources = ("topic", "partition", "offset", "timestamp", "static")
    written = {source: options.text(f"{source}.field", "") for source in sources}
    # A "!" or "?" at the end (required, optional) makes a difference to schemas only.
    names = {source: re.sub("[!?]$", "", name) for source, name in written.items()}
    required = frozenset(source for source, name in written.items() if name.endswith("!"))
    static = options.text("static.value", "")
    static_name = names.pop("static")
    inserted = [(source, name) for source, name in names.items() if name]
    if not inserted and not static_name:
        raise OptionError(f"no field is inserted; set one of {', '.join(f'{source}.field' for source in sources)}")
    if static_name and "static.value" not in options:
        raise OptionError("static.value is missing; it is the value of static.field", "static.value")

    def apply(record: Record) -> None:
        old = getattr(record, side)
        if old is None:
            return
        value = dict(require_object(old, side))
        for source, name in inserted:
            if (part := getattr(record, source)) is not None:
                value[name] = part
        if static_name:
            value[static_name] = static
        setattr(record, side, value)

    fields = dict(inserted) | ({"static": static_name} if static_name else {})
    typed = later("connect", "insert_field", side, fields, required, static)
    return Step(apply, frozenset({side}), frozenset({side}), typed=typed)


def replace_field(options: OptionReader, side: Side) -> Step:
    """Leave fields out, keep only some, or rename them."""
    exclude = frozenset(_read_names(options, "exclude", "blacklist"))
    include = frozenset(_read_names(options, "include", "whitelist"))
    renames: dict[str, str] = {}
    for renaming in options.names("renames"):
        before, _, after = renaming.partition(":")
        if not before or not after or ":" in after:
            raise OptionError(f"renames: {renaming!r} is not a renaming; write old:new,old2:new2", "renames")
        if before in renames or after in renames.values():
            raise OptionError(f"renames: {renaming!r} names a field for the second time; take one out", "renames")
        renames[before] = after
    if not (exclude or include or renames):
        raise OptionError("nothing is replaced; set exclude, include or renames", "exclude")

    def replace(value: dict[str, Any]) -> dict[str, Any]:
        kept = [
            (renames.get(name, name), inner)
            for name, inner in value.items()
            if name not in exclude and (not include or name in include)
        ]
        return _require_distinct(kept)

    typed = later("connect", "replace_field", side, exclude, include, renames)
    return change_object(side, replace, typed=typed)


def _read_names(options: OptionReader, name: str, old_name: str) -> tuple[str, ...]:
    if old_name not in options:
        return options.names(name)
    if name in options:
        raise OptionError(f"{old_name} is the old name of {name}: take one of them out", old_name)
    options.notices.append(f"{old_name} is called {name} today")
    return options.names(old_name)


def _require_distinct(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(fields)
    if len(value) != len(fields):
        names = [name for name, _ in fields]
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise TransformError(f"two fields would be called {twice!r}: rename or leave out one of them before")
    return value


def mask_field(options: OptionReader, side: Side) -> Step:
    """Empty fields (0, false, empty text), or replace them by a constant of the same type."""
    fields = options.names("fields", example="phone,address")
    replacement = options.text("replacement", example="***") if "replacement" in options else None
    return change_object(
        side,
        lambda value: value | {name: replace_value(name, value.get(name), replacement) for name in fields},
        nulls=True,
        typed=later("connect", "mask_field", side, fields, replacement),
    )


def replace_value(name: str, value: Any, replacement: str | None) -> Any:
    """Return the value in place of another one.

    Raises:
        TransformError: there is none of its kind.
    """
    if value is None:
        return None
    described = f"field {name!r} is {describe(value, 'secret')}"
    if replacement is None:
        if type(value) in _EMPTY:
            return _EMPTY[type(value)]
        raise TransformError(f"{described}, which cannot be masked")
    if isinstance(value, str):
        return replacement
    if not isinstance(value, (int, float, Decimal)) or isinstance(value, (bool, Instant)):
        raise TransformError(f"{described}, which takes no replacement: only numbers and texts do")
    try:
        number = Decimal(replacement)
        # An integer gets the number without its fraction, in 64 bits, as in Connect.
        if number.is_finite() and (isinstance(value, (float, Decimal)) or -(2**63) <= number < 2**63):
            return type(value)(number)
    except ArithmeticError:
        pass
    raise TransformError(f"{described}, but replacement {replacement!r} is not")


def value_to_key(options: OptionReader) -> Step:
    """Make a key of some of the value's fields."""
    fields = options.names("fields", example="id")

    def apply(record: Record) -> None:
        value = require_object(record.value, "value")
        record.key = {name: value.get(name) for name in fields}

    typed = later("connect", "value_to_key", fields)
    return Step(apply, reads=frozenset({"value"}), writes=frozenset({"key"}), typed=typed)


def extract_field(options: OptionReader, side: Side) -> Step:
    """Take one field instead of the whole; null if it is missing."""
    nested = options.choice("field.syntax.version", ("V1", "V2"), "V1") == "V2"
    path = options.parse("field", lambda text: parse_path(text, nested=nested), example="id")
    typed = later("connect", "extract_field", side, path)
    return change_object(side, lambda value: get_field(value, path), typed=typed)


def hoist_field(options: OptionReader, side: Side) -> Step:
    """Make an object with one field that has the whole, of any kind, also null."""
    field = options.text("field", example="line")
    return change_side(
        side, lambda value: {field: value}, nulls=True, typed=later("connect", "hoist_field", side, field)
    )


def flatten(options: OptionReader, side: Side) -> Step:
    """Put the fields of nested objects at the top, named after their path; lists stay as they are."""
    delimiter = options.text("delimiter", ".")

    def list_leaves(value: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
        leaves: list[tuple[str, Any]] = []
        for name, inner in value.items():
            path = f"{prefix}{delimiter}{name}" if prefix else name
            leaves += list_leaves(inner, path) if isinstance(inner, dict) else [(path, inner)]
        return leaves

    typed = later("connect", "flatten", side, delimiter)
    return change_object(side, lambda value: _require_distinct(list_leaves(value, "")), typed=typed)


def header_from(options: OptionReader, side: Side) -> Step:
    """Move or copy fields to headers."""
    fields = options.names("fields", example="id")
    headers = options.names("headers", example="record_id")
    move = options.choice("operation", ("move", "copy")) == "move"
    if len(fields) != len(headers):
        counts = f"{format_count(len(headers), 'names')} for {format_count(len(fields), 'fields')}"
        message = f"headers: {counts}; each field needs the name of its header"
        raise OptionError(message, "headers")

    def apply(record: Record) -> None:
        value = require_object(getattr(record, side), side)
        record.headers += [(name, to_header(value.get(field))) for field, name in zip(fields, headers, strict=True)]
        if move:
            setattr(record, side, {name: inner for name, inner in value.items() if name not in fields})

    typed = later("connect", "header_from", side, fields, headers, move)
    return Step(apply, frozenset({side}), frozenset({"headers", side} if move else {"headers"}), typed=typed)


def set_schema_metadata(options: OptionReader, side: Side) -> Step:
    """Set name and version of a schema; a key or value without one stays as it is."""
    name = options.text("schema.name", "")
    version = options.parse("schema.version", int, "0") if "schema.version" in options else None
    if not name and version is None:
        raise OptionError("nothing is set; give schema.name or schema.version", "schema.name")
    typed = later("connect", "set_schema_metadata", side, name, version)
    return Step(lambda _: None, frozenset({side}), frozenset({side}), typed=typed, schema_only=True)


def insert_header(options: OptionReader) -> Step:
    """Add a constant header."""
    name, text = options.text("header", example="source"), options.text("value.literal", example="kafka").strip()
    time = text.replace("\\:", ":")  # Connect reads times with escaped colons
    value = None if text == "null" else (time if _TIME.fullmatch(time) else text).encode()
    return add_constant(lambda _: [(name, value)])


def drop_headers(options: OptionReader) -> Step:
    """Leave the headers of some names out."""
    names = frozenset(options.names("headers", example="trace_id"))
    return change_headers(lambda headers: [header for header in headers if header[0] not in names])


def drop_record(_: OptionReader) -> Step:
    """Drop the records that its predicate selects (Filter)."""
    return Step(lambda _: True)


def regex_router(options: OptionReader) -> Step:
    """Rename topics that match as a whole."""
    regex = options.text("regex", example="(.*)-raw")
    options.parse("regex", compile_java)
    default = "" if options.raw("replacement") == "" else None
    rename = options.parse("replacement", lambda text: compile_replacement(regex, text), default, example="$1")
    rename = lru_cache(maxsize=1024)(rename)
    return _rename_topic(lambda record: rename(record.topic))


def timestamp_router(options: OptionReader) -> Step:
    """Put the record's time into the topic's name."""
    template = options.text("topic.format", "${topic}-${timestamp}")
    format_time = options.parse("timestamp.format", lambda text: DatePattern(text, "simple").formatter(), "yyyyMMdd")

    def rename(record: Record) -> str:
        if record.timestamp is None:
            raise TransformError("the record has no timestamp")
        return template.replace("${topic}", record.topic).replace("${timestamp}", format_time(record.timestamp))

    return _rename_topic(rename)


def _rename_topic(rename: Callable[[Record], str]) -> Step:
    """Return the step that renames the topic in the object key, where slashes make directories, never in the index."""

    def apply(record: Record) -> None:
        record.topic = require_topic(rename(record))

    return Step(apply, writes=frozenset({"topic"}))


def topic_name_matches(options: OptionReader) -> Step:
    """Select records whose topic, as routers named it, matches as a whole."""
    pattern = options.parse("pattern", compile_java, example="orders-.*")
    matches = lru_cache(maxsize=1024)(pattern.matches)
    return Step(lambda record: matches(record.topic))


def has_header_key(options: OptionReader) -> Step:
    """Select records with a header of this name."""
    name = options.text("name", example="trace_id")
    return Step(lambda record: any(header[0] == name for header in record.headers), reads=frozenset({"headers"}))


def record_is_tombstone(_: OptionReader) -> Step:
    """Select records without a value."""
    return Step(lambda record: record.value is None, reads=frozenset({"tombstone"}))
