"""The gate: every value is looked at on its own, so an error stays with its record and rows never shift.

`json_check.c` passes a whole batch if it can, and msgspec judges the rest value by value. UTF-8 is checked for a whole
batch at once. A line is one record, so raw newlines,
which JSON allows only between tokens, become spaces; text formats follow the same rule.
"""

import json
from collections import deque
from collections.abc import Callable, Collection
from operator import length_hint
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read import json_check
from s3lake.records.convert.read.foreign_bytes import add_cause, explain_json

Refusals = dict[int, str]
"""Row of a batch -> why its record is refused."""

_decode_json = msgspec.json.Decoder(msgspec.Raw).decode


def check_json(values: pa.BinaryArray) -> Refusals:
    """Return rows that are not exactly one JSON value in UTF-8, and why. A null row is not an error here."""
    rows = json_check.choose_find()(values)
    if not rows:
        return {}
    doubtful = values if len(rows) == len(values) else values.take(pa.array(rows, pa.int64()))
    return {rows[row]: reason for row, reason in check_each_json(doubtful).items()}


def check_each_json(values: pa.BinaryArray) -> Refusals:
    """Return what `check_json` does, by msgspec alone."""
    checked = values.fill_null(b"0") if values.null_count else values
    return _refusals(_decode_json, checked) | check_utf8(values)


def find_repeated_names(values: pa.BinaryArray) -> Refusals:
    """Return rows of JSON of which an object has two members of one name, and why: all but one would be lost."""
    rows = json_check.choose_find_names()(values)
    if not rows:
        return {}
    doubtful = values if len(rows) == len(values) else values.take(pa.array(rows, pa.int64()))
    reasons = zip(rows, map(_find_repeated_name, doubtful.to_pylist()), strict=True)
    return {row: reason for row, reason in reasons if reason is not None}


def _find_repeated_name(text: bytes | None) -> str | None:
    repeated: list[str] = []

    def look(members: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in members}) < len(members):
            names = [name for name, _ in members]
            repeated.append(next(name for at, name in enumerate(names) if name in names[:at]))

    try:
        # Numbers stay texts: Python refuses very long ones.
        json.loads(text or b"0", object_pairs_hook=look, parse_int=str, parse_float=str)
    except RecursionError:
        return "nested too deeply"
    except ValueError:  # not JSON by this parser: another check has the reason
        return None
    return f"an object has the name {repeated[0]!r} twice: only one of its values could land" if repeated else None


def check_utf8(values: pa.BinaryArray) -> Refusals:
    """Return rows that are not UTF-8, and why."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return _refusals(bytes.decode, values.fill_null(b""))
    return {}


EMPTY_JSON = "empty value: expected JSON, or null for no value; for texts use the converter string"
"""The reason of a value without bytes, or of blanks."""

CHECKS = {"json": check_json, "string": check_utf8}
"""Checks of data that is read as it is, by converter."""


def replace_line_breaks(values: pa.BinaryArray) -> pa.BinaryArray:
    """Return the values with every raw newline and carriage return as a space; the same array if it has none."""
    if find_lowest_byte(values) <= ord("\r"):
        for newline in (b"\n", b"\r"):
            if pc.any(pc.match_substring(values, newline)).as_py():
                values = pc.replace_substring(values, newline, b" ")
    return values


def find_lowest_byte(values: pa.BinaryArray) -> int:
    """Return the lowest byte of an array and of what it was cut from; 255 if it is empty."""
    data = values.buffers()[2]
    return 255 if data is None else int(np.frombuffer(data, np.uint8).min(initial=255))


def _refusals(check: Callable[[bytes], Any], values: pa.BinaryArray) -> Refusals:
    """Return rows on which `check` raises. The iterator is past a row that fails, so no other is checked again."""
    rows = values.to_pylist()
    refused: Refusals = {}
    left = iter(rows)
    while length_hint(left):
        try:
            deque(map(check, left), maxlen=0)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            row = len(rows) - length_hint(left) - 1
            reason = _reason(check, rows[row])
            if reason is not None:
                refused[row] = reason
    return refused


def _reason(check: Callable[[bytes], Any], value: bytes) -> str | None:
    try:
        check(value)
    except RecursionError:
        return "nested too deeply"
    except UnicodeDecodeError as error:
        return add_cause(value, f"not UTF-8: byte {error.start} is 0x{value[error.start]:02x}")
    except msgspec.DecodeError as error:
        return explain_json(value, str(error)) if value.strip() else EMPTY_JSON
    return None


def list_others(total: int, without: Collection[int]) -> pa.Int64Array | None:
    """Return the other rows of `total`; None for all."""
    if not without:
        return None
    kept = np.ones(total, np.bool_)
    kept[list(without)] = False
    return pa.array(np.flatnonzero(kept), pa.int64())
