"""The bytes of one committed object as record batches: the pure part of reading back."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

import pyarrow as pa

from s3lake.errors import ConfigurationError, DataLossError
from s3lake.readback import envelopes, tables
from s3lake.readback.shape import LINES, Frame, Shape

_ROWS = 10_000
_SPACE = re.compile(r"[ \t\r\n]*")


def batches(body: bytes, key: str, shape: Shape, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of an object, in the columns of `schema` (see `Shape.schema`).

    Raises:
        DataLossError: it is no file of its shape.
        ConfigurationError: its columns do not go together with the sink's.
    """
    if shape.format in ("avro", "parquet"):
        try:
            yield from (tables.parquet if shape.format == "parquet" else tables.avro)(body, schema)
        except tables.Unlike as problem:
            raise ConfigurationError(
                f"{key}: {problem}: files whose schemas have nothing in common cannot be one table; read this file by "
                "itself, or rewrite its hour with columns that the configuration gives"
            ) from None
    elif shape.frame is None:
        yield _values(list(texts(body, key, shape)), schema)
    elif shape.in_columns:
        text = _inner(decompressed(body, shape.codec or codec_of(key)), shape.frame, key)
        yield from tables.csv(text, shape.header, shape.columns, shape.frame or LINES, schema)
    else:
        for some in _parts(texts(body, key, shape)):
            if shape.style in ("", "iggy"):
                yield _values(some, schema)
            elif shape.format == "csv":
                yield envelopes.flat_rows(shape, some, schema)
            else:
                yield envelopes.json_rows(shape, some, schema)


def texts(body: bytes, key: str, shape: Shape) -> Iterable[bytes]:
    """What stands for each record in an object of a text format; all of it where an object is one record.

    Raises:
        DataLossError: it is no file of its shape.
    """
    text = decompressed(body, shape.codec or codec_of(key))
    return [text] if shape.frame is None else _records(_inner(text, shape.frame, key), shape, key)


def codec_of(key: str) -> str:
    """By the file's own name, where its commit recorded no codec: the sink's may have changed since."""
    return {".gz": "gzip", ".zst": "zstd"}.get(PurePosixPath(key).suffix, "none")


def decompressed(body: bytes, codec: str) -> bytes:
    """A file may hold several gzip members or zstd frames, one after the other; an empty one holds none."""
    if codec == "none" or not body:
        return body
    if codec == "gzip":
        return gzip.decompress(body)
    if codec == "snappy_framed":
        import cramjam

        return bytes(cramjam.snappy.decompress(body))
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
        return reader.read()


def _inner(text: bytes, frame: Frame, key: str) -> bytes:
    opening, _, closing = frame
    if len(text) < len(opening) + len(closing) or not (text.startswith(opening) and text.endswith(closing)):
        raise DataLossError(f"{key} does not begin with {opening!r} and end with {closing!r}: it is not whole")
    return text[len(opening) : len(text) - len(closing)]


def _records(text: bytes, shape: Shape, key: str) -> Iterable[bytes]:
    assert shape.frame is not None
    between = shape.frame.between
    if not between and not shape.format.startswith("json"):
        return [text]  # nothing tells where a record ends
    # A value in JSON holds no newline, so a separator with one stands nowhere else.
    if b"\n" in between or not shape.format.startswith("json"):
        return text.split(between)
    return _json_values(text.decode(), between.decode(), key)


def _json_values(text: str, between: str, key: str) -> Iterator[bytes]:
    scan = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    at = _space(text, 0)
    while at < len(text):
        _, end = scan(text, at)
        yield text[at:end].encode()
        after = _space(text, end)
        if after == len(text):
            return
        found = next((one for one in range(end, after + 1) if text.startswith(between, one)), None)
        if found is None:
            raise DataLossError(f"{key}: {text[end : end + 10]!r} stands where {between!r} must")
        at = _space(text, found + len(between))


def _space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _parts(records: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    every = records if isinstance(records, list) else list(records)
    for at in range(0, len(every), _ROWS):
        yield every[at : at + _ROWS]


def _values(texts: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    values = pa.array(texts, pa.binary())
    return pa.record_batch([values.cast(schema.field("value").type)], schema=schema)
