"""Avro with the id of its schema before it."""

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
    """Texts, or columns, by the schema of each value."""
    from s3lake.convert import cells, framed

    assert wanted.registry is not None, "the sink model asks for one"
    values = framed.avro(raw, wanted.registry, tabular=wanted.tabular, texts=wanted.texts, spliced=wanted.spliced)
    return cells.Column(CONVERTER.name, values.data, values.schemas), values.refused


def unframe(raw: pa.BinaryArray, registry: Connection | None) -> Unframed:
    """The values as JSON."""
    from s3lake.convert import framed

    assert registry is not None, "the sink model asks for one"
    return framed.avro(raw, registry, tabular=False)


CONVERTER = Converter(
    "avro", "json", read, wrapped=True, inferred=False, asks_registry=True, versioned=True, unframe=unframe
)
