"""Finds the values that msgspec has to judge: with `json_check.c` the few that may not be JSON, else all.

The verdicts are the same (`s3lake_tests/records/convert/read/test_json_check.py`). A value costs msgspec twice the CPU.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from s3lake.records.convert.read.compiled_library import load_compiled_library

LIBRARY = Path(__file__).with_name("libjson_check.so")
"""What `hatch_build.py` compiles."""

_log = logging.getLogger(__name__)

Find = Callable[[pa.BinaryArray], Sequence[int]]
"""Returns rows in ascending order. Each row that it leaves out is null, or exactly one JSON value in UTF-8."""


@functools.cache
def choose_find_names() -> Find:
    """Return what finds the values of which an object may have two members of one name: all of them without C."""
    try:
        return CompiledFind(LIBRARY, "find_doubtful_names")
    except OSError:
        return find_all_rows


@functools.cache
def choose_find() -> Find:
    """Return the faster of the two that works here, and log once which one that is."""
    try:
        find = CompiledFind(LIBRARY)
    except OSError as error:
        _log.warning(
            "JSON is checked value by value, which takes more CPU than json_check.c: %s. Install s3lake's wheel for "
            "this platform, or have a C compiler where it is built",
            error,
        )
        return find_all_rows
    _log.info("JSON is checked by json_check.c")
    return find


def find_all_rows(values: pa.BinaryArray) -> Sequence[int]:
    """`Find` without a look at the values."""
    return range(len(values))


class CompiledFind:
    """`Find` by `json_check.c`.

    Args:
        path: the path of the compiled library.
        function: the name of its function.

    Raises:
        OSError: it is missing, or not compiled of this json_check.c for this platform.
    """

    def __init__(self, path: Path, function: str = "find_doubtful_json") -> None:
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        signature = (number, pointer, pointer, pointer, number, number, pointer)
        self._find = getattr(load_compiled_library(path, {function: signature}), function)

    def __call__(self, values: pa.BinaryArray) -> Sequence[int]:
        if values.type not in (pa.binary(), pa.string()):  # other types have no offsets of 32 bits
            return find_all_rows(values)
        valid, offsets, data = values.buffers()
        if data is None or offsets is None:  # no value has a byte
            return find_all_rows(values)
        rows = np.empty(len(values), np.int64)
        bitmap = None if valid is None else valid.address
        count = self._find(data.address, offsets.address, bitmap, values.offset, len(values), rows.ctypes.data)
        doubtful: list[int] = rows[:count].tolist()
        return doubtful
