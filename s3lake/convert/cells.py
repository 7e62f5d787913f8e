"""The keys and values of a batch as its converters have them: texts, the schemas that came with them, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import gate, json_text
from s3lake.convert.gate import Refusals
from s3lake.convert.schemas import Schemas
from s3lake.schema import connect
from s3lake.schema.connect import Schema

if TYPE_CHECKING:
    from s3lake.registry.client import Connection

FRAMED = ("avro", "json_schema")
"""Converters of values with the id of their schema before them."""

UNWRAPPED = ("connect_json", *FRAMED)
"""Converters that give JSON which is not what Kafka has."""

JSON = ("json", *UNWRAPPED)
"""Converters that give JSON."""


@dataclass(frozen=True)
class Column:
    """The keys, or the values, of some rows.

    Attributes:
        converter: of `sink.Converter`.
        data: JSON texts of one line, UTF-8 texts, or bytes; null where there is none. Of Avro that nobody wants as
            texts it is what Kafka has.
        schemas: those that came with the rows; None where no row has one.
    """

    converter: str
    data: pa.BinaryArray
    schemas: Schemas | None = None

    @property
    def is_json(self) -> bool:
        """Whether the data is JSON texts."""
        return self.converter in JSON

    @property
    def schema(self) -> Schema | None:
        """The schema of all rows."""
        return self.schemas.only if self.schemas else None

    @property
    def array(self) -> pa.Array | None:
        """All rows, of one schema, as its columns; None where only texts are known."""
        return self.schemas.array if self.schemas else None

    def take(self, rows: pa.Int64Array) -> Column:
        """Some of the rows."""
        return Column(self.converter, self.data.take(rows), self.schemas and self.schemas.take(rows))

    def as_json(self) -> pa.BinaryArray:
        """JSON texts of all rows, `null` where there is none: a string is quoted, bytes are quoted in base64."""
        if self.is_json:
            return pc.fill_null(self.data, b"null") if self.data.null_count else self.data
        return json_text.quoted(self.data) if self.converter == "string" else json_text.quoted_base64(self.data)


@dataclass(frozen=True)
class Rows:
    """Some records of a batch: what Kafka has of them, and their values and keys as the converters have them."""

    kafka: pa.RecordBatch
    value: Column
    key: Column | None

    def __len__(self) -> int:
        """How many records."""
        return int(self.kafka.num_rows)

    def take(self, rows: pa.Int64Array) -> Rows:
        """Some of the records."""
        return Rows(self.kafka.take(rows), self.value.take(rows), self.key and self.key.take(rows))

    def column(self, part: str) -> Column:
        """The keys or the values."""
        column = self.key if part == "key" else self.value
        assert column is not None, "Conversion.needs says that keys are needed"
        return column

    @property
    def headers(self) -> pa.ListArray:
        """The headers as Kafka has them."""
        return self.kafka.column("headers")

    @property
    def offsets(self) -> pa.Int64Array:
        """The records' offsets."""
        return self.kafka.column("offset")

    @property
    def timestamps(self) -> pa.Int64Array:
        """The records' timestamps in epoch milliseconds; Spark gives microseconds."""
        return pc.divide(self.kafka.column("timestamp").cast(pa.int64()), 1000)


def read(
    converter: str,
    raw: pa.BinaryArray,
    *,
    tabular: bool,
    texts: bool = True,
    spliced: bool = False,
    registry: Connection | None = None,
) -> tuple[Column, Refusals]:
    """Keys or values as `converter` has them; refused rows hold anything.

    Args:
        converter: of `sink.Converter`.
        raw: the bytes as Kafka has them.
        tabular: whether they become rows of a table.
        texts: whether anybody looks at them as JSON.
        spliced: whether Avro files may hold them as they are.
        registry: where schemas are.
    """
    if converter == "bytes":
        return Column(converter, raw), {}
    if converter in FRAMED:
        return _framed(converter, raw, tabular, texts, spliced, registry)
    if converter == "string":
        refused = gate.text_refusals(raw)
        return Column(converter, _without(raw, refused)), refused
    lines, refused = _json(raw)
    return (Column(converter, lines), refused) if converter == "json" else _with_schemas(lines, refused, tabular)


def _json(raw: pa.BinaryArray) -> tuple[pa.BinaryArray, Refusals]:
    refused = gate.json_refusals(raw)
    return gate.one_line(_without(raw, refused)), refused


def _framed(
    converter: str, raw: pa.BinaryArray, tabular: bool, texts: bool, spliced: bool, registry: Connection | None
) -> tuple[Column, Refusals]:
    from s3lake.convert import framed  # few sinks have such values, and every worker imports this module

    if converter == "json_schema":
        data, wrong = framed.unframed(raw)
        lines, refused = _json(data)
        return Column(converter, lines), refused | wrong
    assert registry is not None, "the sink model asks for one"
    found = framed.avro(raw, registry, tabular=tabular, texts=texts, spliced=spliced)
    return Column(converter, found.data, found.schemas), found.refused


def _with_schemas(lines: pa.BinaryArray, refused: Refusals, tabular: bool) -> tuple[Column, Refusals]:
    texts = lines.to_pylist()
    schemas: list[Schema | None] = [None] * len(lines)
    known: dict[bytes, tuple[Schema, connect.Read] | str] = {}
    for row, text in enumerate(texts):
        parts = connect.split(text) if text is not None else None
        if parts is None:
            continue
        schema, payload = parts
        if schema == b"null":
            texts[row] = None if payload == b"null" else payload
            continue
        found = known.get(schema)
        if found is None:
            found = known[schema] = connect.compiled(schema, tabular=tabular)
        if isinstance(found, str):
            refused[row] = found
            continue
        schemas[row], read_payload = found
        try:
            texts[row] = read_payload(payload)
        except msgspec.DecodeError as error:
            refused[row] = f"the payload does not fit its schema: {error}"
        else:
            texts[row] = None if texts[row] == b"null" else texts[row]
    return Column("connect_json", pa.array(texts, pa.binary()), Schemas.of(schemas)), refused


def _without(values: pa.BinaryArray, refused: Refusals) -> pa.BinaryArray:
    """The values without those that are refused, so that whole columns can be worked on."""
    if not refused:
        return values
    rows = [None if row in refused else row for row in range(len(values))]
    return values.take(pa.array(rows, pa.int64()))
