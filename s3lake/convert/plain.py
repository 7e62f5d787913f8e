"""Plain keys and values: JSON, UTF-8 texts, and bytes as they are."""

from __future__ import annotations

import pyarrow as pa

from s3lake.convert import cells, gate
from s3lake.convert.cells import Column
from s3lake.convert.converters import Wanted
from s3lake.convert.gate import Refusals


def read_json(raw: pa.BinaryArray, wanted: Wanted) -> tuple[Column, Refusals]:
    """Return texts of one line, or the values as they are if they need not be checked."""
    if wanted.unchecked:
        return Column("json", raw, is_checked=False), {}
    lines, refused = cells.json_lines(raw)
    return Column("json", lines), refused


def read_string(raw: pa.BinaryArray, _wanted: Wanted) -> tuple[Column, Refusals]:
    """Return texts as they are."""
    refused = gate.text_refusals(raw)
    return Column("string", cells.without(raw, refused)), refused


def read_bytes(raw: pa.BinaryArray, _wanted: Wanted) -> tuple[Column, Refusals]:
    """Return the bytes themselves."""
    return Column("bytes", raw), {}
