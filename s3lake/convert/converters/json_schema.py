"""JSON with the id of its JSON Schema before it: rows of a table have its columns, lines need nobody to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.convert.converters.converter import Converter, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.convert.cells import Column
    from s3lake.convert.framed import Read as Unframed
    from s3lake.convert.gate import Refusals
    from s3lake.schema.registry import Connection


def read(raw: pa.BinaryArray, wanted: Wanted) -> tuple[Column, Refusals]:
    """Texts of one line; for a table, where there is a registry, what the schema of each says of it."""
    from s3lake.convert import cells, framed, json_schema

    if wanted.tabular and wanted.registry is not None:
        return json_schema.read(CONVERTER.name, raw, wanted.registry)
    data, wrong = framed.unframed(raw)
    lines, refused = cells.json_lines(data)
    return cells.Column(CONVERTER.name, lines), refused | wrong


def unframe(raw: pa.BinaryArray, _registry: Connection | None) -> Unframed:
    """The data without what stands before it."""
    from s3lake.convert import framed

    data, refused = framed.unframed(raw)
    return framed.Read(data, None, refused)


CONVERTER = Converter("json_schema", "json", read, wrapped=True, versioned=True, unframe=unframe)
