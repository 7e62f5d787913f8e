"""A file without some of its rows: the others as they are, in text files and Avro byte by byte."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from s3lake.encode import FileFormat, Out
from s3lake.encode.avro import AvroEncoder
from s3lake.encode.buffers import wrap_encoded
from s3lake.encode.text import TextEncoder
from s3lake.objects import avro, content, csv
from s3lake.objects.shape import LINE_FRAMING, Shape

if TYPE_CHECKING:
    from s3lake.encode import Disk


def write_without(rows: Set[int], shape: Shape, body: BinaryIO, key: str, out: Out, disk: Disk) -> None:
    """Write a file again without some rows.

    Args:
        rows: their numbers, counted from 0.
        shape: of the file.
        body: the object.
        key: its name.
        out: takes the bytes of the new file.
        disk: where rows wait that memory has no room for.

    Raises:
        UnreadableError: it is not a file of its shape.
    """
    if shape.format == "parquet":
        _write_parquet(rows, shape, body, out, disk)
    elif shape.format == "avro":
        _write_avro(rows, shape, body, out, disk)
    else:
        _write_text(rows, shape, body, key, out)


def _write_text(rows: Set[int], shape: Shape, body: BinaryIO, key: str, out: Out) -> None:
    frame = shape.frame or LINE_FRAMING
    framing = (frame.opening.decode(), frame.between.decode(), frame.closing.decode())
    encoder = TextEncoder(FileFormat(shape.format, shape.codec, header=False, framing=framing), out)
    first = -1 if shape.header and shape.in_columns else 0  # the header line is not a row
    for texts in _records(shape, body, key):
        kept = [text for number, text in enumerate(texts, first) if number not in rows]
        encoder.write(pa.array(kept, pa.binary()))
        first += len(texts)
    encoder.close()


def _records(shape: Shape, body: BinaryIO, key: str) -> Iterator[list[bytes]]:
    if not shape.in_columns:
        yield from content.split_records(shape, body, key)
        return
    frame = shape.frame or LINE_FRAMING
    yield list(
        csv.split_rows(content.strip_framing(content.decompress(body, key, shape.codec), frame, key), frame.between)
    )


def _write_avro(rows: Set[int], shape: Shape, body: BinaryIO, out: Out, disk: Disk) -> None:
    import fastavro

    blocks: Any = fastavro.block_reader(body)
    schema = blocks.metadata["avro.schema"]
    plain = fastavro.parse_schema(avro.mark_logical_types(json.loads(schema)))
    encoder = AvroEncoder(FileFormat("avro", shape.codec), out, disk)
    first = 0
    for block in blocks:
        data, kept = block.bytes_.getbuffer(), []
        stream = io.BytesIO(data)
        for number in range(first, first + block.num_records):
            start = stream.tell()
            fastavro.schemaless_reader(stream, plain, None)
            if number not in rows:
                kept.append(bytes(data[start : stream.tell()]))
        first += block.num_records
        encoder.write(wrap_encoded(pa.array(kept, pa.binary()), schema.encode()))
    encoder.close()


def _write_parquet(rows: Set[int], shape: Shape, body: BinaryIO, out: Out, disk: Disk) -> None:
    import pyarrow.parquet as pq

    from s3lake.encode.parquet import ParquetEncoder

    file = pq.ParquetFile(body)
    encoder = ParquetEncoder(FileFormat("parquet", shape.codec), out, disk, sys.maxsize)
    first = 0
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, use_threads=False).replace_schema_metadata(None)
        kept = [row for row in range(table.num_rows) if first + row not in rows]
        first += table.num_rows
        for batch in table.take(pa.array(kept, pa.int64())).combine_chunks().to_batches():
            encoder.write(batch)
        encoder.drain()
    encoder.close()
