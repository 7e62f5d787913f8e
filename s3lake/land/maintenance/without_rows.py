"""A file without some of its rows: the others as they are, in text files and Avro byte by byte."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake.encode import FileFormat, Out
from s3lake.encode.avro import AvroEncoder
from s3lake.encode.buffers import wrap_encoded
from s3lake.encode.text import TextEncoder
from s3lake.objects import avro, content, csv
from s3lake.objects.shape import LINE_FRAMING, Shape

if TYPE_CHECKING:
    from s3lake.encode import Disk

_AVRO_CODECS = {"null": "none", "zstandard": "zstd"}
_PARQUET_CODECS = {"uncompressed": "none"}


def write(shape: Shape, body: bytes, key: str, gone: Set[int], out: Out, disk: Disk) -> None:
    """Write a file again.

    Args:
        shape: of the file.
        body: of the object.
        key: its name.
        gone: rows that are left out, counted from 0.
        out: takes the bytes of the new file.
        disk: where rows wait that memory has no room for.

    Raises:
        UnreadableError: it is not a file of its shape.
    """
    if shape.format == "parquet":
        _parquet(body, gone, out, disk)
    elif shape.format == "avro":
        _avro(body, gone, out, disk)
    else:
        _text(shape, body, key, gone, out)


def _text(shape: Shape, body: bytes, key: str, gone: Set[int], out: Out) -> None:
    frame = shape.frame or LINE_FRAMING
    framing = (frame.opening.decode(), frame.between.decode(), frame.closing.decode())
    encoder = TextEncoder(FileFormat(shape.format, shape.codec, header=False, framing=framing), out)
    row = 0
    for texts in _records(shape, body, key):
        kept = [text for number, text in enumerate(texts, row) if number not in gone]
        row += len(texts)
        if shape.header and shape.in_columns:
            kept, row = texts[:1] + [one for number, one in enumerate(texts[1:]) if number not in gone], row - 1
        encoder.write(pa.array(kept, pa.binary()))
    encoder.close()


def _records(shape: Shape, body: bytes, key: str) -> Iterator[list[bytes]]:
    if not shape.in_columns:
        yield from content.split_records(shape, body, key)
        return
    frame = shape.frame or LINE_FRAMING
    yield list(
        csv.split_rows(content.strip_framing(content.decompress(body, key, shape.codec), frame, key), frame.between)
    )


def _avro(body: bytes, gone: Set[int], out: Out, disk: Disk) -> None:
    import fastavro

    blocks: Any = fastavro.block_reader(io.BytesIO(body))
    codec, schema = blocks.codec or "null", blocks.metadata["avro.schema"]
    plain = fastavro.parse_schema(avro.mark_logical_types(json.loads(schema)))
    encoder = AvroEncoder(FileFormat("avro", _AVRO_CODECS.get(codec, codec)), out, disk)
    row = 0
    for block in blocks:
        data, kept = block.bytes_.getbuffer(), []
        stream = io.BytesIO(data)
        for number in range(row, row + block.num_records):
            start = stream.tell()
            fastavro.schemaless_reader(stream, plain, None)
            if number not in gone:
                kept.append(bytes(data[start : stream.tell()]))
        row += block.num_records
        encoder.write(wrap_encoded(pa.array(kept, pa.binary()), schema.encode()))
    encoder.close()


def _parquet(body: bytes, gone: Set[int], out: Out, disk: Disk) -> None:
    import pyarrow.parquet as pq

    from s3lake.encode.parquet import ParquetEncoder

    file = pq.ParquetFile(pa.BufferReader(body))
    codec = file.metadata.row_group(0).column(0).compression.lower()
    encoder = ParquetEncoder(FileFormat("parquet", _PARQUET_CODECS.get(codec, codec)), out, disk, sys.maxsize)
    row = 0
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, use_threads=False).replace_schema_metadata(None)
        kept = [at for at in range(table.num_rows) if row + at not in gone]
        row += table.num_rows
        for batch in table.take(pa.array(kept, pa.int64())).combine_chunks().to_batches():
            encoder.write(batch)
        encoder.drain()
    encoder.close()
