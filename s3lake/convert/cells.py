"""The keys and values of a batch as its converters have them: texts, the schemas that came with them, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import gate, json_text
from s3lake.convert.converters import CONVERTERS, Converter
from s3lake.convert.gate import Refusals
from s3lake.convert.schemas import Gathering, Schemas
from s3lake.schema.connect import Schema


@dataclass(frozen=True)
class Column:
    """The keys, or the values, of some rows.

    Attributes:
        converter: of `sink.Converter`.
        data: JSON texts of one line, UTF-8 texts, or bytes; null where there is none. Of Avro that nobody wants as
            texts it is what Kafka has.
        schemas: those that came with the rows; None where no row has one.
        left_out: path of a field that a row's schema does not name -> of how many rows.
        is_checked: whether JSON has passed the gate.
    """

    converter: str
    data: pa.BinaryArray
    schemas: Schemas | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    is_checked: bool = True

    @classmethod
    def from_columns(cls, converter: str, raw: pa.BinaryArray, gathering: Gathering, *, texts: bool) -> Column:
        """Return rows whose columns are known: with their JSON, or with what Kafka has if nobody looks at that."""
        schemas, has_none = gathering.gathered(), gathering.codes < 0
        if schemas is None:
            data = pa.nulls(len(raw), pa.binary())
        elif texts:
            data = schemas.to_json()
        else:
            data = raw.take(pa.array(np.arange(len(raw)), mask=has_none)) if has_none.any() else raw
        return cls(converter, data, schemas)

    @property
    def of(self) -> Converter:
        """What the converter says of itself."""
        return CONVERTERS[self.converter]

    @property
    def is_json(self) -> bool:
        """Whether the data is JSON texts."""
        return self.of.gives == "json"

    @property
    def schema(self) -> Schema | None:
        """The schema of all rows."""
        return self.schemas.only if self.schemas else None

    @property
    def is_plain(self) -> bool:
        """Whether rows, all of one schema or of none, have values that came without a schema."""
        return self.schema is None and self.data.null_count < len(self.data)

    @property
    def array(self) -> pa.Array:
        """The columns of all rows, which have one schema; those of a table alone are read."""
        assert self.schemas is not None, "rows without a schema have texts"
        return self.schemas.array

    def take(self, rows: pa.Int64Array) -> Column:
        """Some of the rows."""
        return replace(self, data=self.data.take(rows), schemas=self.schemas and self.schemas.take(rows))

    def as_json(self) -> pa.BinaryArray:
        """JSON texts of all rows, `null` where there is none: a string is quoted, bytes are quoted in base64."""
        if self.is_json:
            return pc.fill_null(self.data, b"null") if self.data.null_count else self.data
        return json_text.quoted(self.data) if self.of.gives == "text" else json_text.quoted_base64(self.data)


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


def json_lines(raw: pa.BinaryArray) -> tuple[pa.BinaryArray, Refusals]:
    """JSON texts of one line."""
    refused = gate.json_refusals(raw)
    return gate.one_line(without(raw, refused)), refused


def without(values: pa.BinaryArray, refused: Refusals) -> pa.BinaryArray:
    """The values without those that are refused, so that whole columns can be worked on."""
    if not refused:
        return values
    lost = np.zeros(len(values), np.bool_)
    lost[list(refused)] = True
    return values.take(pa.array(np.arange(len(values)), pa.int64(), mask=lost))
