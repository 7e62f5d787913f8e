"""UTF-8 texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.convert.converters.converter import Converter, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.convert.cells import Column
    from s3lake.convert.gate import Refusals


def read(raw: pa.BinaryArray, _wanted: Wanted) -> tuple[Column, Refusals]:
    """Texts as they are."""
    from s3lake.convert import cells, gate

    refused = gate.text_refusals(raw)
    return cells.Column(CONVERTER.name, cells.without(raw, refused)), refused


CONVERTER = Converter("string", "text", read)
