"""CSV files (RFC 4180) as Arrow batches of texts, and texts as values: an empty field is null, a quoted one is not."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import UnreadableError
from s3lake.lake.objects.content import ROWS, Body, decompress_blocks, strip_framing
from s3lake.lake.objects.shape import BYTES, LINE_FRAMING, STRING, ObjectShape
from s3lake.lake.objects.spark_columns import RoundedError

_ZONE = r"(Z|[+-]\d\d:?\d\d)$"
_MILLIS, _MICROS, _NANOS = (pa.timestamp(unit, "UTC") for unit in ("ms", "us", "ns"))


def open_csv(
    shape: ObjectShape, body: Body, key: str, columns: Collection[str] | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of a file, and its rows; `columns` are their names if neither it nor its commit has them.

    Raises:
        UnreadableError: it is not a CSV file; also while it is read.
    """
    from pyarrow import csv

    frame = shape.frame or LINE_FRAMING
    text = strip_framing(decompress_blocks(body, key, shape.codec), frame, key)
    if frame.between not in (b"\n", b"\r\n"):
        text = b"\n".join(split_csv_records(text, frame.between))
    parsing = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    try:
        names = list(shape.columns.fields if shape.columns else columns or ())
        if shape.header or not names:
            first = next(split_csv_records(text, b"\n"))
            line = csv.ReadOptions(use_threads=False)
            fields = csv.read_csv(io.BytesIO(first + b"\n"), read_options=line, parse_options=parsing).column_names
            if shape.header:
                names, text = fields, text[len(first) :].removeprefix(b"\r").removeprefix(b"\n")
            else:
                alone = shape.value in (STRING, BYTES)
                names = ["value"] if alone else [f"column {number}" for number in range(len(fields))]
        schema = pa.schema(dict.fromkeys(names, pa.string()))
        if not text and shape.header and len(names) > 1:
            return schema, iter(())
        table = csv.read_csv(
            io.BytesIO(text + b"\n"),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=parsing,
            convert_options=csv.ConvertOptions(
                column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
            ),
        )
    except pa.ArrowInvalid as error:
        raise UnreadableError(f"{key} is not a CSV file: {error}") from None
    return schema, iter(table.to_batches(max_chunksize=ROWS))


def cast_texts(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a column of texts to a type."""
    of = pa.types
    if of.is_string(target):
        return texts
    if of.is_binary(target):
        cells = [None if cell is None else base64.b64decode(cell, validate=True) for cell in texts.to_pylist()]
        return pa.array(cells, pa.binary())
    texts = pc.if_else(pc.equal(texts, ""), None, texts)  # null in a row of one column, which is not an empty line
    if of.is_floating(target):
        numbers = texts.cast(target)
        integers = texts.filter(pc.fill_null(pc.match_substring_regex(texts, r"^-?\d{8,}$"), False))
        if any(int(text) != pa.scalar(text).cast(target).as_py() for text in integers.unique().to_pylist()):
            raise RoundedError
        return numbers
    if not of.is_timestamp(target):
        is_moment = of.is_integer(target) and pc.any(pc.match_substring_regex(texts, _ZONE)).as_py()
        return (texts.cast(_NANOS) if is_moment else texts).cast(target)
    numbers = pc.match_substring_regex(texts, r"^-?\d+$")  # years that have no text
    finer = pc.match_substring_regex(texts, r"^-?\d+\.\d{3}$")
    zoned = pc.match_substring_regex(texts, _ZONE)
    moments = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
    moments = pc.if_else(pc.or_(numbers, finer), None, moments)
    millis = pc.if_else(numbers, texts, None).cast(pa.int64()).cast(_MILLIS)
    micros = pc.replace_substring(pc.if_else(finer, texts, None), ".", "").cast(pa.int64()).cast(_MICROS)
    return pc.coalesce(millis.cast(target), micros.cast(target), moments.cast(_MICROS).cast(target))


def split_csv_records(text: bytes, between: bytes) -> Iterator[bytes]:
    """Yield the records of a file: inside of quotes the separator is text."""
    pieces: list[bytes] = []
    quotes = 0
    for piece in text.split(between):
        pieces.append(piece)
        quotes += piece.count(b'"')
        if quotes % 2 == 0:
            yield between.join(pieces)
            pieces, quotes = [], 0
