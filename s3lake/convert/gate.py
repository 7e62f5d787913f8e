"""The gate: every value is looked at on its own, so an error stays with its record and rows never shift.

JSON is checked with msgspec value by value, UTF-8 for a whole batch at once. A line is one record, so raw newlines,
which JSON allows only between tokens, become spaces; text formats follow the same rule.
"""

import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
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
_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def json_refusals(values: pa.BinaryArray) -> Refusals:
    """Rows that are not exactly one JSON value in UTF-8. A null row is nobody's error here."""
    checked = values.fill_null(b"0") if values.null_count else values
    return _refusals(_check_json, checked.to_pylist()) | text_refusals(values)


def text_refusals(values: pa.BinaryArray) -> Refusals:
    """Rows that are no UTF-8."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return _refusals(bytes.decode, values.fill_null(b"").to_pylist())
    return {}


def one_line(values: pa.BinaryArray) -> pa.BinaryArray:
    """Values with every raw newline and carriage return as a space; the same array where there is none."""
    data = values.buffers()[2]
    if data is None:
        return values
    block = data.to_pybytes()
    for newline in (b"\n", b"\r"):
        if newline in block:
            values = pc.replace_substring(values, newline, b" ")
    return values


def all_begin_with(values: pa.BinaryArray, mark: bytes) -> bool:
    """Whether the first byte of every value, none of which is null, is this one."""
    if not len(values):
        return True
    starts = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
    if not (np.diff(starts) > 0).all():
        return False
    return bool((np.frombuffer(values.buffers()[2], np.uint8)[starts[:-1]] == ord(mark)).all())


def joined(values: pa.BinaryArray) -> pa.Buffer:
    """Values, none of them null, as one block: each ended by a newline."""
    # Eight times as fast as binary_join over a list of them.
    ended = pc.binary_join_element_wise(values, pa.scalar(b"", values.type), pa.scalar(b"\n", values.type))
    return ended.buffers()[2]


def _refusals(check: Callable[[bytes], Any], rows: Sequence[bytes]) -> Refusals:
    """Rows that `check` raises on. One that fails costs no other a second look: the iterator stands behind it."""
    refused: Refusals = {}
    left = iter(rows)
    while True:
        try:
            deque(map(check, left), maxlen=0)
            return refused
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            row = len(rows) - length_hint(left) - 1
            reason = _reason(check, rows[row])
            if reason is not None:
                refused[row] = reason


def _reason(check: Callable[[bytes], Any], value: bytes) -> str | None:
    try:
        check(value)
    except RecursionError:
        return "nested too deeply"
    except UnicodeDecodeError as error:
        return f"no UTF-8: byte {error.start} is 0x{value[error.start]:02x}"
    except msgspec.DecodeError as error:
        return "empty value" if not value.strip() else _half_a_character(value) or str(error)
    return None


def _half_a_character(value: bytes) -> str | None:
    """What msgspec calls truncated data or a malformed pair: an escape of half a character without the other half."""
    for escape in _ESCAPE.finditer(value):
        if escape[1]:
            half = escape[1].decode()
            return f"\\{half} is a lone surrogate, half a character (byte {escape.start()})"
    return None


def rest(total: int, without: Collection[int]) -> pa.Int64Array | None:
    """Return the other rows of `total`; None for all."""
    if not without:
        return None
    kept = np.ones(total, np.bool_)
    kept[list(without)] = False
    return pa.array(np.flatnonzero(kept), pa.int64())
