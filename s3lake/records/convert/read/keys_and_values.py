"""The keys and values of a batch as its converters have them: texts, the schemas that came with them, refusals."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.records.convert.read import value_checks
from s3lake.records.convert.read.converters import CONVERTERS, ConverterRequest, ConverterSpec
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.encode import json_texts
from s3lake.records.record_timestamps import to_epoch_ms
from s3lake.records.schema.avro import write_schema
from s3lake.records.schema.columns.details import drop_connect_detail
from s3lake.records.schema.columns.time_units import find_time
from s3lake.records.schema.connect_schema import Schema

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schemas:
    """The schemas of some rows.

    Attributes:
        distinct: no two of them are equal.
        codes: the number in `distinct` of each row's schema; -1 if none came with it.
        arrays: the columns of each schema's rows; empty if only texts are read.
        at: where in its schema's array each row is.
    """

    distinct: tuple[Schema, ...]
    codes: Numbers
    arrays: tuple[pa.Array, ...]
    at: Numbers

    def take(self, rows: pa.Int64Array) -> Schemas:
        chosen = rows.to_numpy()
        return Schemas(self.distinct, self.codes[chosen], self.arrays, self.at[chosen])

    def names(self) -> pa.StringArray:
        """Return the name of each row's schema."""
        names = pa.array([schema.name for schema in self.distinct], pa.string())
        return names.take(pa.array(self.codes, mask=self.codes < 0))

    def times(self, path: tuple[str, ...]) -> pa.StringArray:
        """Return what the field at a path is by each row's schema, null where that does not call it a time."""
        types = (find_time(schema.type, schema.detail, path) for schema in self.distinct)
        times = pa.array([None if time is None else str(time) for time in types], pa.string())
        return times.take(pa.array(self.codes, mask=self.codes < 0))

    def to_json(self, *, as_connect: bool = False) -> pa.BinaryArray:
        """Return the JSON of all rows, null for those without a schema; each schema has its columns.

        Args:
            as_connect: whether the values are Connect's payloads, whose maps of other keys than texts are pairs.
        """
        encoders = [
            json_texts.make_payload_encoder(of.type, of.detail) if as_connect else json_texts.make_encoder(of.type)
            for of in self.distinct
        ]
        texts = [encode(array) for encode, array in zip(encoders, self.arrays, strict=True)]
        starts = np.cumsum([0, *map(len, texts)])
        at = starts[self.codes] + self.at
        joined = pa.concat_arrays(texts)
        return joined if np.array_equal(at, np.arange(len(joined))) else joined.take(pa.array(at, mask=self.codes < 0))


class Gathering:
    """Columns of `total` rows as they are found, schema by schema; a row has no schema before it is added."""

    def __init__(self, total: int) -> None:
        self.codes, self.at = np.full(total, -1), np.zeros(total, np.int64)
        self.distinct: list[Schema] = []
        self.arrays: list[list[pa.Array]] = []

    def add(self, schema: Schema, rows: Numbers, array: pa.Array | None, *, keep_nulls: bool = False) -> None:
        """Add rows of a schema with their columns, if these are read; unless nulls are kept, they have no schema."""
        if schema not in self.distinct:
            self.distinct.append(schema)
            self.arrays.append([])
        code = self.distinct.index(schema)
        if array is not None:
            self.at[rows] = sum(map(len, self.arrays[code])) + np.arange(len(rows))
            self.arrays[code].append(array)
            if array.null_count and not keep_nulls:
                rows = rows[array.is_valid().to_numpy(zero_copy_only=False)]
        self.codes[rows] = code

    def finish(self) -> Schemas | None:
        """Return the schemas of the rows. Return None if no row has one."""
        if not (self.codes >= 0).any():
            return None
        arrays = tuple(pa.concat_arrays(arrays) for arrays in self.arrays) if any(self.arrays) else ()
        return Schemas(tuple(self.distinct), self.codes, arrays, self.at)


@dataclass(frozen=True)
class Column:
    """The keys, or the values, of some rows.

    Attributes:
        converter: the name of the converter that has read them.
        data: JSON texts of one line, UTF-8 texts, or bytes; null if it is missing. Of Avro that is not needed as
            texts it is what Kafka has.
        schemas: the schemas of the rows; None if no row has one.
        left_out: path of a field that a row's schema does not name -> of how many rows.
        is_checked: whether JSON has passed the gate.
        units: the schemas that define the unit of times in lines which have no schema themselves.
    """

    converter: str
    data: pa.BinaryArray
    schemas: Schemas | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    is_checked: bool = True
    units: Schemas | None = None

    @classmethod
    def from_columns(cls, converter: str, raw: pa.BinaryArray, gathering: Gathering, *, texts: bool) -> Column:
        """Return rows whose columns are known: with their JSON, or with what Kafka has if that is not read."""
        schemas, has_none = gathering.finish(), gathering.codes < 0
        if schemas is None:
            data = pa.nulls(len(raw), pa.binary())
        elif texts:
            data = schemas.to_json()
        else:
            data = raw.take(pa.array(np.arange(len(raw)), mask=has_none)) if has_none.any() else raw
        return cls(converter, data, schemas)

    @property
    def facts(self) -> ConverterSpec:
        return CONVERTERS[self.converter]

    @property
    def is_json(self) -> bool:
        return self.facts.gives == "json"

    @property
    def schema(self) -> Schema | None:
        """The schema of all rows, which have the same, or none."""
        schemas = self.schemas
        if schemas is None or not len(schemas.codes) or schemas.codes[0] < 0:
            return None
        only: Schema = schemas.distinct[schemas.codes[0]]
        return only

    @property
    def is_plain(self) -> bool:
        """True if rows, all of one schema or of none, have values without a schema."""
        return self.schema is None and self.data.null_count < len(self.data)

    @property
    def array(self) -> pa.Array:
        """The columns of all rows, which have one schema; only a table has them."""
        schemas = self.schemas
        assert schemas is not None, "rows without a schema have texts"
        array = schemas.arrays[schemas.codes[0]]
        return array if np.array_equal(schemas.at, np.arange(len(array))) else array.take(pa.array(schemas.at))

    def take(self, rows: pa.Int64Array) -> Column:
        return replace(
            self,
            data=self.data.take(rows),
            schemas=self.schemas and self.schemas.take(rows),
            units=self.units and self.units.take(rows),
        )

    def times(self, path: tuple[str, ...]) -> pa.StringArray | None:
        """Return what the field at a path is by each row's schema. Return None if no schema defines it."""
        schemas = self.schemas or self.units
        return schemas.times(path) if schemas and path else None

    def finish(self, *, texts: bool, spliced: bool = False) -> tuple[Column, Refusals]:
        """Return what a chain left as a converter would have read it, and why rows without a schema are refused.

        Args:
            texts: whether anybody looks at them as JSON.
            spliced: whether Avro files may hold unchanged values as they are.
        """
        schemas, data = self.schemas, self.data
        if schemas is None:
            lines, refused = check_json_lines(data)
            return replace(self, data=lines, is_checked=True), refused
        described, refused = schemas.codes >= 0, Refusals()
        if not described.all():
            mask = pa.array(described)
            plain, refused = check_json_lines(pc.if_else(mask, pa.scalar(None, pa.binary()), data))
            data = pc.if_else(mask, data, plain)
        if texts:
            is_typed = pc.and_(pa.array(described), data.is_valid())
            data = pc.if_else(is_typed, schemas.to_json(as_connect=self.facts.enveloped), data)
        if not spliced:
            schemas = replace(schemas, distinct=tuple(replace(one, file=None) for one in schemas.distinct))
        return replace(self, data=data, schemas=schemas, is_checked=True), refused

    def without_connect_properties(self) -> Column:
        """Return the column with schemas that lack the properties that only Connect reads."""
        if self.schemas is None:
            return self
        distinct = (
            replace(
                schema,
                file=schema.file and write_schema.drop_connect_properties(schema.file),
                detail=schema.detail and drop_connect_detail(schema.detail),
            )
            for schema in self.schemas.distinct
        )
        return replace(self, schemas=replace(self.schemas, distinct=tuple(distinct)))

    def as_json(self) -> pa.BinaryArray:
        """JSON texts of all rows, `null` if it is missing: a string is quoted, bytes are quoted in base64."""
        if self.is_json:
            return pc.fill_null(self.data, b"null") if self.data.null_count else self.data
        return json_texts.quote_strings(self.data) if self.facts.gives == "text" else json_texts.quote_base64(self.data)


@dataclass(frozen=True)
class RecordEnvelope:
    """`sink.Envelope` for one topic.

    Attributes:
        printed_stream, printed_topic: names in the lines of style iggy.
    """

    style: str
    fields: tuple[str, ...]
    topic: str
    value_encoding: str = "base64"
    bare: bool = False
    printed_stream: str = ""
    printed_topic: str = ""


@dataclass(frozen=True)
class Rows:
    """Some records of a batch: what Kafka has of them, and their values and keys as the converters have them.

    Attributes:
        numbers: their rows in the batch. None if they are all its rows.
        key_stream: their keys as a sidecar has them, if there is one.
    """

    kafka: pa.RecordBatch
    value: Column
    key: Column | None
    numbers: pa.Int64Array | None = None
    key_stream: Any = None

    def __len__(self) -> int:
        return int(self.kafka.num_rows)

    def take(self, rows: pa.Int64Array) -> Rows:
        return Rows(
            self.kafka.take(rows),
            self.value.take(rows),
            self.key and self.key.take(rows),
            rows if self.numbers is None else self.numbers.take(rows),
            None if self.key_stream is None else self.key_stream.take(rows),
        )

    def drop(self, lost: Collection[int]) -> Rows:
        left = value_checks.list_others(len(self), lost)
        return self if left is None else self.take(left)

    def by_batch_row(self, reasons: Refusals) -> Refusals:
        """Return reasons by the row of the batch."""
        return reasons if self.numbers is None else {self.numbers[row].as_py(): why for row, why in reasons.items()}

    def column(self, part: str) -> Column:
        column = self.key if part == "key" else self.value
        assert column is not None, "Conversion.needs contains the keys"
        return column

    @property
    def headers(self) -> pa.ListArray:
        return self.kafka.column("headers")

    @property
    def offsets(self) -> pa.Int64Array:
        return self.kafka.column("offset")

    @property
    def timestamps(self) -> pa.Int64Array:
        """The records' timestamps in epoch milliseconds."""
        return to_epoch_ms(self.kafka.column("timestamp"))


def read_column(converter: str, raw: pa.BinaryArray, request: ConverterRequest) -> tuple[Column, Refusals]:
    """Read keys or values with a converter. Return them, and the refused rows with their reasons.

    Raises:
        TransientError: a Schema Registry did not answer.
        ConfigurationError: it refused the request.
    """
    column, refused = CONVERTERS[converter].read(raw, request)
    return column, refused


def check_json_lines(raw: pa.BinaryArray) -> tuple[pa.BinaryArray, Refusals]:
    """JSON texts of one line."""
    refused = value_checks.check_json(raw)
    return value_checks.replace_line_breaks(null_refused(raw, refused)), refused


def null_refused(values: pa.BinaryArray, refused: Refusals) -> pa.BinaryArray:
    """Return the values with refused ones as null."""
    if not refused:
        return values
    lost = np.zeros(len(values), np.bool_)
    lost[list(refused)] = True
    return values.take(pa.array(np.arange(len(values)), pa.int64(), mask=lost))
