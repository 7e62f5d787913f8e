"""Keys and values with the id of their schema before them: Confluent's wire format.

A zero byte, the id in four bytes, the data. Whatever a record's data does to its reader is that record's error; a
registry that does not answer is nobody's, and stops the batch.
"""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import arrays, avro_columns, avro_cursor, avro_text, json_text
from s3lake.convert.cells import Column
from s3lake.convert.converters import CONVERTERS, Wanted
from s3lake.convert.gate import Refusals
from s3lake.convert.schemas import Gathering, Numbers, Schemas
from s3lake.schema import avro as avro_schemas
from s3lake.schema import avro_spliced
from s3lake.schema.connect import Schema, SchemaError
from s3lake.schema.registry import Connection, Registered, UnknownSchema, client

HEADER = 5
_STREAM = re.compile(r" from <_io\.BytesIO object at \w+>")
"""fastavro says where in memory it reads: a record that is tried again has another reason then."""


_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=json_text.shortest).encode
"""Makes JSON of what was read: only a `Single` is nothing that msgspec knows."""


@dataclass(frozen=True)
class Read:
    """Keys or values that were read.

    Attributes:
        data: as JSON, in one line, or, where nobody asks for texts, as Kafka has it; null for null and where refused.
        schemas: those that came with them, with their columns if they become rows of a table.
    """

    data: pa.BinaryArray
    schemas: Schemas | None
    refused: Refusals


@dataclass(frozen=True)
class Unframing:
    """Makes keys and values of a batch plain JSON, for what has to look at them before conversion does.

    Attributes:
        converters: column -> converter of values with a schema's id before them.
    """

    converters: tuple[tuple[str, str], ...]
    registry: Connection | None

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, Schemas], Refusals]:
        """The batch, the schemas that came with its keys and values, and the rows that cannot be read."""
        refused: Refusals = {}
        schemas: dict[str, Schemas] = {}
        for name, converter in self.converters:
            raw = batch.column(name)
            unframe = CONVERTERS[converter].unframe
            assert unframe is not None, "the chain asks only for those"
            read = unframe(raw, self.registry)
            refused |= {row: reason if name == "value" else f"{name}: {reason}" for row, reason in read.refused.items()}
            batch = batch.set_column(batch.schema.get_field_index(name), name, read.data)
            schemas |= {} if read.schemas is None else {name: read.schemas}
        return batch, schemas, refused


@dataclass(frozen=True)
class _Reader:
    """How the data of one schema is read.

    Attributes:
        file: the schema of files that hold the data as it is, None where they cannot.
    """

    schema: Schema
    file: bytes | None
    node: avro_schemas.Node
    parsed: Any
    columns: avro_columns.Decode | None
    texts: avro_text.Texts | None


def unframed(raw: pa.BinaryArray) -> tuple[pa.BinaryArray, Refusals]:
    """The data without what stands before it; refused rows are null."""
    data: list[bytes | None] = []
    refused: Refusals = {}
    for row, value in enumerate(raw.to_pylist()):
        reason = _not_framed(value) if value is not None else None
        if reason:
            refused[row] = reason
        data.append(None if reason or value is None else value[HEADER:])
    return pa.array(data, pa.binary()), refused


def read(raw: pa.BinaryArray, wanted: Wanted) -> tuple[Column, Refusals]:
    """Return Avro as texts, or as columns, by the schema of each value."""
    values = avro(raw, wanted.schemas, tabular=wanted.tabular, texts=wanted.texts, spliced=wanted.spliced)
    return Column("avro", values.data, values.schemas), values.refused


def unframe(raw: pa.BinaryArray, registry: Connection | None) -> Read:
    """Return Avro as JSON."""
    assert registry is not None, "the sink model asks for one"
    return avro(raw, registry, tabular=False)


def avro(
    raw: pa.BinaryArray, registry: Connection, *, tabular: bool, texts: bool = True, spliced: bool = False
) -> Read:
    """Avro of a batch.

    Args:
        raw: as Kafka has it.
        registry: where the schemas are.
        tabular: whether it becomes rows of a table.
        texts: whether anybody looks at it as JSON; a table alone needs none.
        spliced: whether files may hold the data as it is; schemas then say so.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    if not len(raw):
        return Read(raw, None, {})
    if registry.avro:
        raw, spliced = pc.binary_join_element_wise(bytes(HEADER), raw, b""), False
    numbers, refused = numbers_of(raw)
    gathering, lines = Gathering.of(len(raw)), Lines.of(len(raw)) if texts else None
    for number, rows in by_number(numbers):
        reader = _reader(registry, number, tabular)
        if isinstance(reader, str):
            refused |= dict.fromkeys(rows.tolist(), reader)
            continue
        if spliced and reader.file is not None:
            reader = replace(reader, schema=replace(reader.schema, file=reader.file))
        rows = _at_once(raw, rows, reader, gathering, lines, tabular)
        refused |= _one_by_one(raw, rows, reader, gathering, lines, tabular)
    data = lines.texts() if lines is not None else kept_where(gathering.codes >= 0, raw)
    return Read(data, gathering.gathered(), refused)


@dataclass
class Lines:
    """JSON texts as they are found."""

    at: Numbers
    texts_of: list[pa.BinaryArray]

    @classmethod
    def of(cls, total: int) -> Lines:
        """Of so many rows, none of which has a text yet."""
        return cls(np.full(total, -1), [])

    def add(self, rows: Numbers, texts: pa.BinaryArray) -> None:
        """The texts of rows."""
        self.at[rows] = sum(map(len, self.texts_of)) + np.arange(len(rows))
        self.texts_of.append(texts)

    def texts(self) -> pa.BinaryArray:
        """Those of all rows, null where there is none."""
        found = pa.concat_arrays([pa.array([], pa.binary()), *self.texts_of])
        return (
            found if np.array_equal(self.at, np.arange(len(found))) else found.take(pa.array(self.at, mask=self.at < 0))
        )


def kept_where(kept: npt.NDArray[np.bool_], raw: pa.BinaryArray) -> pa.BinaryArray:
    return raw if kept.all() else raw.take(pa.array(np.arange(len(raw)), mask=~kept))


def _at_once(
    raw: pa.BinaryArray, rows: Numbers, reader: _Reader, gathering: Gathering, lines: Lines | None, tabular: bool
) -> Numbers:
    """Read rows of one schema together: those that must be read one by one; the others are added to what is found."""
    wanted = [reader.columns] if tabular else []
    if lines is not None:
        wanted.append(reader.texts.decode if reader.texts else None)
    found = [avro_columns.decoded(one, raw, rows, HEADER) for one in wanted if one is not None]
    if len(found) < len(wanted):
        return rows
    plain = np.logical_and.reduce([sound for _, sound in found])
    arrays = [array if plain.all() else array.filter(pa.array(plain[sound])) for array, sound in found]
    sound_rows: Numbers = rows[plain]
    present = sound_rows[arrays[0].is_valid().to_numpy(zero_copy_only=False)]
    if lines is not None and reader.texts is not None:
        lines.add(present, reader.texts.spell(arrays[-1].drop_null()))
    if tabular:
        gathering.add(reader.schema, sound_rows, arrays[0])
    else:
        gathering.add(reader.schema, present, None)
    odd: Numbers = rows[~plain]
    return odd


def numbers_of(raw: pa.BinaryArray) -> tuple[Numbers, Refusals]:
    """The id before each value, -1 where there is none, and the rows that should have one."""
    offsets = np.frombuffer(raw.buffers()[1], np.int32, len(raw) + 1, raw.offset * 4).astype(np.int64)
    block = raw.buffers()[2]
    data = np.frombuffer(block, np.uint8) if block is not None and block.size else np.zeros(1, np.uint8)
    starts, present = offsets[:-1], raw.is_valid().to_numpy(zero_copy_only=False)
    first, *rest = (data.take(starts + at, mode="clip").astype(np.int64) for at in range(HEADER))
    framed = present & (np.diff(offsets) >= HEADER) & (first == 0)
    numbers = functools.reduce(lambda high, low: high << 8 | low, rest)
    wrong = np.flatnonzero(present & ~framed).tolist()
    return np.where(framed, numbers, -1), {row: _not_framed(raw[row].as_py()) or "" for row in wrong}


def by_number(numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Ids in the order in which they come, with their rows."""
    if len(numbers) and numbers[0] >= 0 and (numbers == numbers[0]).all():
        yield int(numbers[0]), np.arange(len(numbers))
        return
    found, first = np.unique(numbers, return_index=True)
    for number in found[np.argsort(first)].tolist():
        if number >= 0:
            yield number, np.flatnonzero(numbers == number)


def _one_by_one(
    raw: pa.BinaryArray,
    rows: Numbers,
    reader: _Reader,
    gathering: Gathering,
    lines: Lines | None,
    tabular: bool,
) -> Refusals:
    """Read rows of one schema with fastavro: those that are refused; the others are added to what is gathered."""
    from fastavro import schemaless_reader

    if not len(rows):
        return {}
    refused: Refusals = {}
    found: list[int] = []
    objects: list[Any] = []
    texts: list[bytes] = []
    for row, value in zip(rows.tolist(), raw.take(pa.array(rows)).to_pylist(), strict=True):
        stream = io.BytesIO(value)
        stream.seek(HEADER)
        try:
            datum = schemaless_reader(stream, reader.parsed, None)
            if left := len(value) - stream.tell():
                raise ValueError(f"{left} bytes are left after it")
            if reader.node.mend is not None:
                datum = reader.node.mend(datum)
            text = _text(datum, reader.node) if lines is not None else b""
        except Exception as error:  # of whichever kind: fastavro has no error of its own for what it cannot read
            refused[row] = _misfit(value, error)
            continue
        if datum is not None:
            found.append(row)
            objects.append(datum)
            texts.append(text)
    if lines is not None:
        lines.add(np.array(found, np.int64), pa.array(texts, pa.binary()))
    array = None
    if tabular and reader.columns is not None:
        array, wrong = arrays.build_each(arrays.of_dictionaries(reader.schema.type), objects)
        refused |= {found[at]: reason for at, reason in wrong.items()}
        found = [row for row in found if row not in refused]
    gathering.add(reader.schema, np.array(found, np.int64), array)
    return refused


def _text(datum: Any, node: avro_schemas.Node) -> bytes:
    return _encode(_named_numbers(datum) if node.is_odd is not None and node.is_odd(datum) else datum)


def datums(raw: pa.BinaryArray) -> pa.BinaryArray:
    """The data of values that were read."""
    return avro_cursor.behind(raw, HEADER)


def _not_framed(value: bytes) -> str | None:
    if len(value) < HEADER:
        return f"{len(value)} bytes are too few: a zero byte and the schema's id in four are expected"
    if value[0]:
        return (
            f"the first byte is 0x{value[0]:02x}, not 0x00, so it was not written with a Schema Registry's serializer: "
            "look which converter fits"
        )
    return None


def _misfit(value: bytes, error: Exception) -> str:
    number = int.from_bytes(value[1:HEADER], "big")
    said = str(error) or "it ends too early" if isinstance(error, EOFError) else f"{type(error).__name__}: {error}"
    said = _STREAM.sub("", said)
    return f"the data does not fit schema id {number}: {said[:200]}"


def _reader(registry: Connection, number: int, tabular: bool) -> _Reader | str:
    try:
        registered = client(registry).schema(number)
    except UnknownSchema as error:
        return str(error)
    references = tuple(registered.references.items())
    found = _compiled(registered.kind, registered.text, references, tabular, registry.exact)
    return f"schema id {number}: {found}" if isinstance(found, str) else found


@functools.lru_cache(maxsize=4096)
def _compiled(
    kind: str, text: str, references: tuple[tuple[str, str], ...], tabular: bool, exact: bool
) -> _Reader | str:
    from fastavro import parse_schema

    registered = Registered(kind, text, dict(references))
    if registered.kind != "AVRO":
        return f"it is a schema of {registered.kind}, not of AVRO: set the converter that fits"
    try:
        name, node = avro_schemas.compiled(registered.text, registered.references, tabular=tabular, exact=exact)
        schema = Schema(name, node.type, detail=node.detail)
        return _Reader(
            schema,
            avro_spliced.schema_of(node.written),
            node,
            parse_schema(node.plain),
            avro_columns.compiled(node.plain, schema.type),
            avro_text.compiled(node.plain, schema.type),
        )
    except SchemaError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    except Exception as error:  # fastavro's several kinds for what is no schema
        return f"it is none of Avro: {type(error).__name__}: {error}"[:300]


def _named_numbers(value: Any) -> Any:
    """Numbers that JSON does not have as texts, as Connect's JSON converter writes them."""
    match value:
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
        case dict():
            return {name: _named_numbers(one) for name, one in value.items()}
        case list():
            return list(map(_named_numbers, value))
    return value
