"""The gate: every value is looked at on its own, so an error stays with its record and rows never shift.

JSON is checked with msgspec value by value, UTF-8 for a whole batch at once. A line is one record, so raw newlines,
which JSON allows only between tokens, become spaces; text formats follow the same rule.
"""

import re
from collections import deque
from collections.abc import Callable, Collection
from operator import length_hint
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Refusals = dict[int, str]
"""Row of a batch -> why its record is refused."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_decode_json = msgspec.json.Decoder(msgspec.Raw).decode


def check_json(values: pa.BinaryArray) -> Refusals:
    """Return rows that are not exactly one JSON value in UTF-8, and why. A null row is not an error here."""
    checked = values.fill_null(b"0") if values.null_count else values
    return _refusals(_decode_json, checked) | check_utf8(values)


def are_objects(values: pa.BinaryArray) -> bool:
    """Return whether every value, none of which is null, begins with a brace and ends with one.

    No such line can begin within another value: `}` and, on the next line, `{` are only between objects.
    So if there are as many objects as lines, each line is one.
    """
    return _all_have(values, b"{", first=True) and _all_have(values, b"}", first=False)


def check_utf8(values: pa.BinaryArray) -> Refusals:
    """Return rows that are not UTF-8, and why."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return _refusals(bytes.decode, values.fill_null(b""))
    return {}


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


def all_begin_with(values: pa.BinaryArray, mark: bytes) -> bool:
    """Return whether the first byte of every value, none of which is null, is this one."""
    return _all_have(values, mark, first=True)


def _all_have(values: pa.BinaryArray, mark: bytes, *, first: bool) -> bool:
    if not len(values):
        return True
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
    if not (np.diff(offsets) > 0).all():
        return False
    at = offsets[:-1] if first else offsets[1:] - 1
    return bool((np.frombuffer(values.buffers()[2], np.uint8)[at] == ord(mark)).all())


def join_lines(values: pa.BinaryArray) -> pa.Buffer:
    """Values, none of them null, as one block: each ended by a newline."""
    # Eight times as fast as binary_join over a list of them.
    ended = pc.binary_join_element_wise(values, pa.scalar(b"", values.type), pa.scalar(b"\n", values.type))
    return ended.buffers()[2]


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
        return f"not UTF-8: byte {error.start} is 0x{value[error.start]:02x}"
    except msgspec.DecodeError as error:
        return "empty value" if not value.strip() else _half_a_character(value) or str(error)
    return None


def _half_a_character(value: bytes) -> str | None:
    """Explain an escape of half a character without the other half, which msgspec calls truncated data."""
    for escape in _ESCAPE.finditer(value):
        if escape[1]:
            half = escape[1].decode()
            return f"\\{half} is a lone surrogate, half a character (byte {escape.start()})"
    return None


def list_others(total: int, without: Collection[int]) -> pa.Int64Array | None:
    """Return the other rows of `total`; None for all."""
    if not without:
        return None
    kept = np.ones(total, np.bool_)
    kept[list(without)] = False
    return pa.array(np.flatnonzero(kept), pa.int64())
