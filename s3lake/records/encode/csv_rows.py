"""CSV rows from columns (RFC 4180).

Text is always quoted and null is nothing at all, so that an empty text is not null. The rest needs no quotes.
"""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.encode.column_bytes import ENCODED, base64, uuid_texts, wrap_encoded
from s3lake.records.encode.formats import FileFormat


def encode_lines(batch: pa.RecordBatch | pa.BinaryArray) -> pa.RecordBatch | pa.BinaryArray:
    """Encode the rows of `batch`, without line ends, with the header line that goes with them; lines stay lines."""
    if not isinstance(batch, pa.RecordBatch) or ENCODED in (batch.schema.metadata or {}):
        return batch
    cells = list(map(_cells, batch.columns))
    type = batch.schema.field(0).type
    if len(cells) == 1 and not pa.types.is_string(type) and not pa.types.is_binary(type):
        # A row of nothing is an empty line, which most readers skip; only next to an empty text it has to be one.
        cells = [pc.fill_null(cells[0], '""')]
    rows = pc.binary_join_element_wise(*cells, ",", null_handling="replace")
    return wrap_encoded(rows.cast(pa.binary()), ",".join(map(_name, batch.schema.names)).encode())


def list_headerless_columns(form: FileFormat, schema: pa.Schema | None) -> tuple[str, ...] | None:
    """The columns of a file that does not have them itself, by the schema of its encoded rows; None of all others."""
    if form.type != "csv" or form.header or schema is None:
        return None
    return tuple(next(csv.reader(io.StringIO(schema.metadata[ENCODED].decode(), newline=""))))


def _name(name: str) -> str:
    plain = name and not any(sign in name for sign in '",\r\n')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _cells(column: pa.Array) -> pa.StringArray:
    type = column.type
    if pa.types.is_string(type):
        return _quote(column)
    if pa.types.is_binary(type):
        return _quote(base64(column).cast(pa.string()))
    if pa.types.is_timestamp(type):
        return _in_range(_instants(column), _milliseconds(column))
    if pa.types.is_date(type):
        return _in_range(column.cast(pa.string()), column.cast(pa.int32()))
    if pa.types.is_decimal(type):
        return _decimals(column)
    if type == pa.uuid():
        return uuid_texts(column).cast(pa.string())
    return column.cast(pa.string())


def _instants(column: pa.Array) -> pa.StringArray:
    # Without a zone, whose rules Arrow would look up for each value, in 0.9 of 0.95 µs.
    texts = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise(texts, "", "Z")


def _milliseconds(column: pa.Array) -> pa.StringArray:
    """With as many decimals as the column is finer than that."""
    digits = {"ms": 0, "us": 3, "ns": 6}[column.type.unit]
    units = column.cast(pa.int64()).cast(pa.decimal128(38, 0))
    return _decimals(pa.Array.from_buffers(pa.decimal128(38, digits), len(units), units.buffers(), offset=units.offset))


def _in_range(texts: pa.StringArray, numbers: pa.Array) -> pa.StringArray:
    """The number itself where Arrow has no text for it, which is beyond the years -32768 to 32767."""
    beyond = pc.starts_with(texts, "<")
    return pc.if_else(beyond, numbers.cast(pa.string()), texts) if pc.any(beyond).as_py() else texts


def _quote(texts: pa.StringArray) -> pa.StringArray:
    data = texts.buffers()[2]
    if data is not None and b'"' in data.to_pybytes():
        texts = pc.replace_substring(texts, '"', '""')
    return pc.binary_join_element_wise("", texts, "", '"')


def _decimals(column: pa.Array) -> pa.StringArray:
    """All digits, never an exponent, which Arrow writes for small numbers."""
    scale = column.type.scale
    buffers = column.buffers()
    units = pa.Array.from_buffers(pa.decimal128(38, 0), len(column), buffers, offset=column.offset).cast(pa.string())
    if scale == 0:
        return units
    digits = pc.utf8_lpad(pc.utf8_ltrim(units, "-"), scale + 1, "0")
    digits = pc.utf8_replace_slice(digits, -scale, -scale, ".")
    sign = pc.if_else(pc.starts_with(units, "-"), "-", "")
    return pc.binary_join_element_wise(sign, digits, "")
