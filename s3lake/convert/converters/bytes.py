"""Bytes, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.convert.converters.converter import Converter, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.convert.cells import Column
    from s3lake.convert.gate import Refusals


def read(raw: pa.BinaryArray, _wanted: Wanted) -> tuple[Column, Refusals]:
    """The bytes themselves."""
    from s3lake.convert import cells

    return cells.Column(CONVERTER.name, raw), {}


CONVERTER = Converter("bytes", "bytes", read)
