"""Connect's JSON with its schema: `{"schema": …, "payload": …}` per value; one without that is plain JSON."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from s3lake.convert import cells
from s3lake.convert.cells import Column
from s3lake.convert.converters import ReadRequest
from s3lake.convert.gate import Refusals
from s3lake.convert.schemas import Schemas
from s3lake.schema import connect


def read(raw: pa.BinaryArray, request: ReadRequest) -> tuple[Column, Refusals]:
    """Return payloads as texts of one line, and the schemas that came with them."""
    lines, refused = cells.json_lines(raw)
    texts = lines.to_pylist()
    schemas: list[connect.Schema | None] = [None] * len(lines)
    known: dict[bytes, tuple[connect.Schema, connect.Read] | str] = {}
    for row, text in enumerate(texts):
        envelope = connect.split(text) if text is not None else None
        if envelope is None:
            continue
        schema, payload = envelope
        if schema == b"null":
            texts[row] = None if payload == b"null" else payload
            continue
        compiled = known.get(schema)
        if compiled is None:
            compiled = known[schema] = connect.compiled(schema, tabular=request.tabular)
        if isinstance(compiled, str):
            refused[row] = compiled
            continue
        schemas[row], read_payload = compiled
        try:
            texts[row] = read_payload(payload)
        except msgspec.DecodeError as error:
            refused[row] = f"the payload does not fit its schema: {error}"
        else:
            texts[row] = None if texts[row] == b"null" else texts[row]
    return Column("connect_json", pa.array(texts, pa.binary()), Schemas.of(schemas)), refused
