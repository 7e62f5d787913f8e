"""Iggy's transforms of JSON objects, which leave all other values as they are.

Integers are compared as numbers, unlike in Iggy's own filter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import (
    MISSING,
    Record,
    Step,
    Typed,
    find_field,
    later,
    remove_field,
    resolve_key,
    set_field,
)
from s3lake.records.transform.step.record_values import NULL, decode_side, encode
from s3lake.text.expressions import compile_pattern

_EXAMPLE = "{key: service, value: {static: api}}"
_CONDITIONS = ("always", "key_exists", "key_not_exists")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_KEY = b"s3lake.transform"
_48_BITS = (1 << 48) - 1

Compute = Callable[[Record, str], Any]
"""Returns a value for a record and for the place of the field in the chain."""


def _print_date_time(record: Record, _: str) -> str:
    milliseconds = "milliseconds" if record.wallclock_ms % 1000 else "seconds"
    return (_EPOCH + timedelta(milliseconds=record.wallclock_ms)).isoformat(timespec=milliseconds)


def _hash_place(record: Record, place: str) -> int:
    """Return 128 bits that are the same when a micro-batch is tried again."""
    seed = f"{record.origin}\0{record.partition}\0{record.offset}\0{place}"
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=16, key=_KEY).digest(), "big")


def _to_uuid(bits: int, version: int) -> str:
    bits = (bits & ~(0xF << 76)) | (version << 76)
    return str(UUID(int=(bits & ~(0x3 << 62)) | (0x2 << 62)))


def _make_uuid_v7(record: Record, place: str) -> str:
    bits = _hash_place(record, place) & ((1 << 80) - 1)
    return _to_uuid(bits | ((record.wallclock_ms & _48_BITS) << 80), 7)


_COMPUTED: dict[str, Compute] = {
    "date_time": _print_date_time,
    "timestamp_nanos": lambda record, _: record.wallclock_ms * 1_000_000,
    "timestamp_micros": lambda record, _: record.wallclock_ms * 1000,
    "timestamp_millis": lambda record, _: record.wallclock_ms,
    "timestamp_seconds": lambda record, _: record.wallclock_ms // 1000,
    "uuid_v4": lambda record, place: _to_uuid(_hash_place(record, place), 4),
    "uuid_v7": _make_uuid_v7,
}


class FieldSetting(NamedTuple):
    """A field that is set.

    Attributes:
        place: the place of the field in the chain.
        compute: None if the field gets the constant.
    """

    key: str
    place: str
    compute: Compute | None
    constant: Any
    condition: str

    def value(self, record: Record) -> Any:
        """Return the field's value for a record."""
        return self.compute(record, self.place) if self.compute else self.constant


def add_fields(options: OptionReader) -> Step:
    """Set fields in the order given, also fields that an object has."""
    fields = _read_fields(options, ("key", "value"))

    def add(value: dict[str, Any], record: Record) -> dict[str, Any]:
        value = dict(value)
        for field in fields:
            if "." in field.key:
                value = set_field(value, resolve_key(value, field.key), field.value(record))
            else:
                value[field.key] = field.value(record)
        return value

    return _change_objects(options, add, later("iggy", "set_fields", fields))


def update_fields(options: OptionReader) -> Step:
    """Set fields whose condition is true."""
    fields = _read_fields(options, ("key", "value", "condition"))

    def update(value: dict[str, Any], record: Record) -> dict[str, Any]:
        for field in fields:
            path = resolve_key(value, field.key)
            exists = find_field(value, path) is not MISSING
            if field.condition == "always" or (field.condition == "key_exists") == exists:
                value = set_field(value, path, field.value(record))
        return value

    return _change_objects(options, update, later("iggy", "set_fields", fields))


def delete_fields(options: OptionReader) -> Step:
    """Leave fields out."""
    fields = options.names("fields")

    def delete(value: dict[str, Any], _: Record) -> dict[str, Any]:
        kept = dict(value)
        for key in fields:
            if "." not in key:
                kept.pop(key, None)
            elif find_field(kept, path := resolve_key(kept, key)) is not MISSING:
                kept = remove_field(kept, path)
        return value if kept == value else kept

    return _change_objects(options, delete, later("iggy", "delete_fields", fields))


def unwrap_envelope(options: OptionReader) -> Step:
    """Take one field instead of the whole, also a null, which is JSON's; without that field the whole."""
    envelope = options.text("field", example="data")

    def unwrap(value: dict[str, Any], _: Record) -> Any:
        inner = find_field(value, resolve_key(value, envelope))
        return value if inner is MISSING else NULL if inner is None else inner

    return _change_objects(options, unwrap, later("iggy", "unwrap_envelope", envelope))


def filter_fields(options: OptionReader) -> Step:
    """Keep the fields that are named, or that a pattern selects (or with `include_matching` false, that none does)."""
    setting = options.raw("patterns") or ()
    if not isinstance(setting, (list, tuple)):
        message = f"patterns: {setting!r} is not a list of tables with key_pattern and value_pattern"
        raise OptionError(message, "patterns")
    patterns = [_read_pattern(pattern, f"patterns[{number}]") for number, pattern in enumerate(setting)]
    include = options.flag("include_matching")
    keep = options.names("keep_fields")

    def select(value: dict[str, Any], _: Record) -> dict[str, Any]:
        if not (keep or patterns):
            return value
        nested = [path for key in keep if len(path := resolve_key(value, key)) > 1]
        kept: dict[str, Any] = {}
        for name, inner in value.items():
            if name in keep or any(matches(name, inner) for matches in patterns) is include:
                kept[name] = inner
            elif below := [path[1:] for path in nested if path[0] == name]:
                kept[name] = _keep_only(inner, below)
        return value if kept == value else kept

    return _change_objects(options, select, later("iggy", "filter_fields", keep, patterns, include))


def _keep_only(value: dict[str, Any], paths: list[tuple[str, ...]]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        if (name,) in paths:
            kept[name] = inner
        elif below := [path[1:] for path in paths if path[0] == name]:
            kept[name] = _keep_only(inner, below)
    return kept


def _change_objects(options: OptionReader, change: Callable[[dict[str, Any], Record], Any], typed: Typed) -> Step:
    """Return the step that replaces values that are objects, unless the transform is switched off."""

    def apply(record: Record) -> None:
        if isinstance(record.value, dict):
            record.value = change(record.value, record)

    def leave(_: Record) -> None:
        """Leave the record as it is."""

    value = frozenset({"value"})
    if not options.flag("enabled"):
        return Step(leave)
    return Step(apply, value, value, json_only=True, typed=typed)


def _read_fields(options: OptionReader, allowed: Sequence[str]) -> list[FieldSetting]:
    setting = options.raw("fields") or ()
    if not isinstance(setting, (list, tuple)):
        raise OptionError(f"fields: {setting!r} is not a list; write [{_EXAMPLE}]", "fields")
    return [
        _read_field(entry, f"fields[{number}]", f"{options.position}\0{number}", allowed)
        for number, entry in enumerate(setting)
    ]


def _read_field(entry: Any, where: str, place: str, allowed: Sequence[str]) -> FieldSetting:
    if not isinstance(entry, Mapping):
        raise OptionError(f"{where}: {entry!r} is not allowed; write {_EXAMPLE}", "fields")
    _require_known(entry, allowed, where, "fields")
    key, value, condition = entry.get("key"), entry.get("value"), entry.get("condition") or "always"
    if not isinstance(key, str) or not key:
        raise OptionError(f"{where}: key is missing; write {_EXAMPLE}", "fields")
    if condition not in _CONDITIONS:
        message = f"{where}: condition {condition!r} is not allowed; use one of: {', '.join(_CONDITIONS)}"
        raise OptionError(message, "fields")
    if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= {"static", "computed"}:
        raise OptionError(f"{where}: value {value!r} is not allowed; give static or computed: {_EXAMPLE}", "fields")
    computed = value.get("computed")
    if "computed" in value and computed not in _COMPUTED:
        message = f"{where}: computed {computed!r} is not allowed; use one of: {', '.join(_COMPUTED)}"
        raise OptionError(message, "fields")
    try:
        constant = decode_side(encode(value.get("static")), "json")  # as if it came in a value
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{where}: static {value['static']!r} is not a JSON value", "fields") from None
    return FieldSetting(key, place, _COMPUTED.get(computed or ""), constant, condition)


def _require_known(entry: Mapping[str, Any], allowed: Sequence[str], where: str, option: str) -> None:
    if unknown := [name for name in entry if name not in allowed]:
        raise OptionError(f"{where}: {unknown[0]!r} is not a name; allowed here: {', '.join(allowed)}", option)


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "exact": lambda value, text: bool(value == text),
    "starts_with": lambda value, text: isinstance(value, str) and value.startswith(text),
    "ends_with": lambda value, text: isinstance(value, str) and value.endswith(text),
    "contains": lambda value, text: isinstance(value, str) and text in value,
    "regex": lambda value, pattern: isinstance(value, str) and pattern.search(value) is not None,
    "equals": lambda value, other: _are_equal(value, other),
    "greater_than": lambda value, number: _is_number(value) and value > number,
    "less_than": lambda value, number: _is_number(value) and value < number,
    "between": lambda value, bounds: _is_number(value) and bounds[0] <= value <= bounds[1],
}
_OF_KEYS = ("exact", "starts_with", "ends_with", "contains", "regex")
_OF_VALUES = ("equals", "contains", "regex", "greater_than", "less_than", "between")
_TYPE_TESTS: dict[str, Callable[[Any], bool]] = {
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "is_string": lambda value: isinstance(value, str),
    "is_number": lambda value: _is_number(value),
    "is_boolean": lambda value: isinstance(value, bool),
    "is_object": lambda value: isinstance(value, dict),
    "is_array": lambda value: isinstance(value, list),
}


def _read_pattern(setting: Any, where: str) -> Callable[[str, Any], bool]:
    """Read one entry of `patterns`. Return whether it selects a field; a missing part selects all."""
    if not isinstance(setting, Mapping):
        raise OptionError(
            f"{where}: {setting!r} is not allowed; write {{key_pattern: …, value_pattern: …}}", "patterns"
        )
    _require_known(setting, ("key_pattern", "value_pattern"), where, "patterns")
    selects_name = _read_test(setting.get("key_pattern"), _OF_KEYS, (), f"{where}.key_pattern")
    selects_value = _read_test(setting.get("value_pattern"), _OF_VALUES, tuple(_TYPE_TESTS), f"{where}.value_pattern")
    return lambda name, value: selects_name(name) and selects_value(value)


def _read_test(setting: Any, tests: Sequence[str], type_tests: Sequence[str], where: str) -> Callable[[Any], bool]:
    if setting is None:
        return lambda _: True
    if isinstance(setting, str) and setting in type_tests:
        return _TYPE_TESTS[setting]
    name, operand = next(iter(setting.items())) if isinstance(setting, Mapping) and len(setting) == 1 else ("", None)
    if name not in tests:
        allowed = ", ".join((*(f"{test}: …" for test in tests), *type_tests))
        raise OptionError(f"{where}: {name or setting!r} is not allowed; use one of: {allowed}", "patterns")
    test, operand = _TESTS[name], _read_operand(name, operand, where)
    return lambda value: test(value, operand)


def _read_operand(name: str, operand: Any, where: str) -> Any:
    if name == "equals":
        return operand
    if name == "between":
        if not isinstance(operand, (list, tuple)) or len(operand) != 2:
            raise OptionError(f"{where}: between needs two numbers, [low, high]; not {operand!r}", "patterns")
        return [_read_number(bound, f"{where}: between") for bound in operand]
    if name in ("greater_than", "less_than"):
        return _read_number(operand, f"{where}: {name}")
    if not isinstance(operand, str):
        raise OptionError(f"{where}: {name} needs a text, not {operand!r}", "patterns")
    if name != "regex":
        return operand
    try:
        # Rust's \z is Python's \Z, and its groups need no P.
        return compile_pattern(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", operand).replace(r"\z", r"\Z"))
    except re.error as error:
        raise OptionError(f"{where}: {operand!r} is not a regular expression: {error}", "patterns") from None


def _read_number(value: Any, where: str) -> Decimal:
    if _is_number(value) and (number := Decimal(str(value))).is_finite():
        return number
    raise OptionError(f"{where} needs a number, not {value!r}", "patterns")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _are_equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: numbers by their value, and true is not a number."""
    if _is_number(left) and _is_number(right):
        return Decimal(str(left)) == Decimal(str(right))
    if isinstance(left, dict) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_are_equal(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    return type(left) is type(right) and bool(left == right)
