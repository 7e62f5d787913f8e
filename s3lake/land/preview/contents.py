"""What a previewed object holds, as values that JSON and YAML can say."""

from __future__ import annotations

import base64
import io
import json
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID

from s3lake.land import binding
from s3lake.objects import content
from s3lake.objects.shape import LINES, Shape

if TYPE_CHECKING:
    from s3lake.sink import Sink


def rows(sink: Sink, key: str, body: bytes) -> list[Any]:
    """The rows of an object: those of a table by column, of JSON as they are, of other texts as they stand there.

    Bytes are text where they are UTF-8, else `{"base64": …}`, as in records that are written down.
    """
    shape = _shape(sink, key)
    match shape.format:
        case "parquet":
            import pyarrow.parquet as pq

            return [_plain(row) for row in pq.read_table(io.BytesIO(body)).to_pylist()]
        case "avro":
            import fastavro

            rows = map(_plain, fastavro.reader(io.BytesIO(body)))
            return [{shape.alone: row} for row in rows] if shape.alone else list(rows)
    read = json.loads if shape.format in ("json", "json_array") else _plain
    return list(map(read, chain.from_iterable(content.records(shape, body, key))))


def _shape(sink: Sink, key: str) -> Shape:
    for stream, type in sink.sidecars.types.items():
        if key.endswith(sink.sidecars.by_stream[stream]):
            alone = binding.shape_of(sink).sidecar(stream).alone
            return Shape(type, "json", codec=sink.sidecars.codecs.get(type, "none"), frame=LINES, alone=alone)
    return binding.shape_of(sink.after_transforms)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
    return value
