"""Plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.convert.converters.converter import Converter, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.convert.cells import Column
    from s3lake.convert.gate import Refusals


def read(raw: pa.BinaryArray, _wanted: Wanted) -> tuple[Column, Refusals]:
    """Texts of one line."""
    from s3lake.convert import cells

    lines, refused = cells.json_lines(raw)
    return cells.Column(CONVERTER.name, lines), refused


CONVERTER = Converter("json", "json", read)
