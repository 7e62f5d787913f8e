"""Random Avro through Apache Avro's own Java and fastavro: what is landed is what they read, and they read our files.

What ours do otherwise on purpose is listed in docs/schemas.md.
"""

import base64
import io
import json
import struct
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.encode import FileFormat
from s3lake.records.encode.column_bytes import ENCODED
from s3lake.records.schema.columns.types import PLACEHOLDER
from s3lake_tests.kit.avro_records import Avro, AvroCase, is_valid, random_cases, start_avro, write_datum
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.avro.one_by_one import to_numbers
from s3lake_tests.records.encode.written_files import written
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

EXACT = Context(prec=200)
MISSING = object()
"""A field of null, which does not become a column."""
REFUSED = "does not fit decimal(38,"
"""Why ours refuse a value that Avro has: a column has 38 digits."""


class AvroFloat(float):
    """A number of 32 bits."""


class Values:
    """What cells and lines are made of: values as Java shows them, by their schema.

    Attributes:
        named: the types that a schema names so far, by their full names.
    """

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def cell(self, schema: Any, shown: Any, space: str = "") -> Any:
        """Return what a cell holds."""
        if isinstance(schema, list):
            return self._branch(schema, shown, space)
        if isinstance(schema, str):
            full = schema if "." in schema or not space else f"{space}.{schema}"
            if full in self.named:
                return self.cell(*self.named[full][:1], shown, self.named[full][1])
            schema = {"type": schema}
        if "name" in schema:
            space, full = self.name(schema, space)
            self.named[full] = schema, space
        of, logical = schema["type"], schema.get("logicalType")
        match of:
            case "null":
                return MISSING
            case "record":
                fields = {one["name"]: self.cell(one["type"], shown[one["name"]], space) for one in schema["fields"]}
                return {name: one for name, one in fields.items() if one is not MISSING and name != PLACEHOLDER}
            case "array":
                return [self.item(schema["items"], one, space) for one in shown]
            case "map":
                return {name: self.item(schema["values"], one, space) for name, one in shown.items()}
            case "bytes" | "fixed":
                data = shown.encode("latin-1")
                if logical == "decimal" and is_valid(schema):
                    unscaled = Decimal(int.from_bytes(data, "big", signed=True))
                    return unscaled.scaleb(-schema["scale"], EXACT)
                return UUID(bytes=data) if logical == "uuid" and len(data) == 16 else data
            case "string":
                return UUID(shown) if logical == "uuid" else shown
            case "float":
                return AvroFloat(struct.unpack("<f", struct.pack("<i", shown))[0])
            case "double":
                return struct.unpack("<d", struct.pack("<q", shown))[0]
        return shown

    def item(self, schema: Any, shown: Any, space: str) -> Any:
        cell = self.cell(schema, shown, space)
        return None if cell is MISSING else cell

    def name(self, schema: Any, space: str) -> tuple[str, str]:
        """Return the namespace in a type, and its full name."""
        if "." in schema["name"]:
            return schema["name"].rpartition(".")[0], schema["name"]
        space = schema.get("namespace", space)
        return space, f"{space}.{schema['name']}" if space else schema["name"]

    def _branch(self, schema: list[Any], shown: Any, space: str) -> Any:
        present = [one for one in schema if one != "null"]
        for one in present:
            self._define(one, space)
        if not present:
            return MISSING
        chosen = schema[shown["branch"]]
        if chosen == "null":
            return None
        cell = self.cell(chosen, shown["value"], space)
        if len(present) == 1:
            return cell
        names = [one if isinstance(one, str) else one.get("name", one["type"]) for one in present]
        short = [name.rpartition(".")[2] for name in names]
        own = [
            long.replace(".", "_") if short.count(name) > 1 else name for name, long in zip(short, names, strict=True)
        ]
        return dict.fromkeys(own) | {own[present.index(chosen)]: cell}

    def _define(self, schema: Any, space: str) -> None:
        """Remember the types that a branch defines, also one that is not chosen."""
        if isinstance(schema, list):
            for one in schema:
                self._define(one, space)
        elif isinstance(schema, dict):
            if "name" in schema:
                space, full = self.name(schema, space)
                self.named[full] = schema, space
            for one in schema.get("fields", ()):
                self._define(one["type"], space)
            self._define(schema.get("items"), space)
            self._define(schema.get("values"), space)


def cell_of(schema: Any, shown: Any) -> Any:
    values = Values()
    values._define(schema, "")
    return values.cell(schema, shown)


# What was landed, as the same


def plain(cell: Any) -> Any:
    """Return a cell in which equal values are equal: NaN too, and 0.0 is not -0.0 or 0."""
    match cell:
        case dict():
            return {name: plain(one) for name, one in cell.items() if name != PLACEHOLDER}
        case list():
            return list(map(plain, cell))
        case float():
            return f"{np.float32(cell)!r}" if isinstance(cell, AvroFloat) else f"{cell!r} double"
        case Decimal():
            return f"{EXACT.normalize(cell) + 0}" if cell else "0"
        case UUID():
            return str(cell)
        case bytes():
            return cell.hex()
    return cell


def from_arrow(type: pa.DataType, cell: Any) -> Any:
    if cell is None:
        return None
    if pa.types.is_struct(type):
        return {one.name: from_arrow(one.type, cell[one.name]) for one in type}
    if pa.types.is_map(type):
        return {name: from_arrow(type.item_type, one) for name, one in cell}
    if pa.types.is_list(type):
        return [from_arrow(type.value_type, one) for one in cell]
    if pa.types.is_float32(type):
        return AvroFloat(cell)
    return UUID(bytes=cell) if type == pa.uuid() and isinstance(cell, bytes) else cell


def same_json(cell: Any, found: Any) -> bool:
    """Return whether JSON has the value of a cell; its numbers are decimals."""
    match cell:
        case dict():
            return (
                isinstance(found, dict)
                and cell.keys() == found.keys()
                and all(same_json(one, found[name]) for name, one in cell.items())
            )
        case list():
            return isinstance(found, list) and len(cell) == len(found) and all(map(same_json, cell, found))
        case bytes():
            return bool(found == base64.b64encode(cell).decode())
        case float() if not np.isfinite(cell):
            return bool(found == {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(float(cell))])
        case AvroFloat():
            return bool(np.float32(str(found)) == np.float32(cell))
        case float():
            return float(found) == cell
        case bool() | None:
            return found is cell
        case int() | Decimal():
            return isinstance(found, Decimal) and found == cell
    return bool(found == str(cell))


def without_invalid(schema: Any) -> Any:
    """Return a schema as files have it: without invalid logical types, and with a point in the default of a double."""
    if isinstance(schema, list):
        return list(map(without_invalid, schema))
    if not isinstance(schema, dict):
        return schema
    kept = {name: without_invalid(one) for name, one in schema.items()}
    if "logicalType" in kept and not is_valid(schema):
        del kept["logicalType"]
    return kept | ({"default": float(kept["default"])} if schema.get("type") == "double" and "default" in kept else {})


class Landing:
    """Lands datums of a schema that a registry has."""

    def __init__(self, registry: SchemaRegistry, schema: Any, datums: list[bytes]) -> None:
        number = registry.add(schema)
        self._connection, self._batch = registry.connection, batch(*(framed(number, data) for data in datums))

    def __call__(self, format: str) -> ConvertedBatch:
        return convert_batch(Conversion("string", "avro", format, "write", registry=self._connection), self._batch, {})


def compare(seed: int, count: int, avro: Avro, registry: SchemaRegistry) -> Counter[str]:
    """Compare as many cases, and count what was compared."""
    counts, random = Counter[str](), Random(seed)
    for case in random_cases(seed, count):
        by_fastavro = [write_datum(case, value) for value in case.values]
        answers = avro.read(case.schema, by_fastavro, blocks=random.random() < 0.5)
        assert [one for one in answers if "refused" in one] == [], case.schema
        by_java = [one["datum"].encode("latin-1") for one in answers]
        cells = [plain(cell_of(case.schema, one["value"])) for one in answers]
        counts["cases"] += 1
        for datums in (by_fastavro, by_java):
            landing = Landing(registry, case.schema, datums)
            _compare_lines(case, landing("json"), answers, counts)
            _compare_columns(case, landing("parquet"), cells, counts)
            _compare_files(case, landing("avro"), cells, avro, counts)
    return counts


def _compare_lines(case: AvroCase, found: ConvertedBatch, answers: list[dict[str, Any]], counts: Counter[str]) -> None:
    assert found.refused == {}, case.schema
    (part,) = found.parts
    for line, answer in zip(part.streams["data"].to_pylist(), answers, strict=True):
        expected = cell_of(case.schema, answer["value"])
        text = json.loads(line, parse_float=Decimal, parse_int=Decimal)
        assert same_json(expected, text), (case.schema, expected, line)
        counts["lines"] += 1


def _compare_columns(case: AvroCase, found: ConvertedBatch, cells: list[Any], counts: Counter[str]) -> None:
    assert all(REFUSED in reason for reason in found.refused.values()), (case.schema, found.refused)
    counts["refused for 38 digits"] += len(found.refused)
    kept = [cell for row, cell in enumerate(cells) if row not in found.refused]
    for part in found.parts:
        table = pq.read_table(io.BytesIO(written(FileFormat("parquet", "none"), [part.streams["data"]])))
        numbers = pa.schema([field.with_type(to_numbers(field.type)) for field in table.schema])
        rows = [
            {field.name: from_arrow(field.type, row[field.name]) for field in table.schema}
            for row in table.cast(numbers).to_pylist()
        ]
        own = kept if part.rows is None else [cells[row] for row in part.rows.to_pylist()]
        assert list(map(plain, rows)) == own, case.schema
        counts["rows of Parquet"] += len(rows)


def _compare_files(case: AvroCase, found: ConvertedBatch, cells: list[Any], avro: Avro, counts: Counter[str]) -> None:
    assert all(REFUSED in reason for reason in found.refused.values()), (case.schema, found.refused)
    kept = [cell for row, cell in enumerate(cells) if row not in found.refused]
    for part in found.parts:
        body = written(FileFormat("avro", "none"), [part.streams["data"]])
        is_spliced = ENCODED in (part.streams["data"].schema.metadata or {})
        answer = avro.read_file(body, without_invalid(case.schema))
        assert "refused" not in answer, (case.schema, answer)
        own = kept if part.rows is None else [cells[row] for row in part.rows.to_pylist()]
        schema = json.loads(answer["schema"])
        assert [plain(cell_of(schema, row)) for row in answer["rows"]] == own, (case.schema, schema)
        assert sum(1 for _ in fastavro.block_reader(io.BytesIO(body))) > 0
        counts["rows of Avro"] += len(own)
        assert answer["equal"] or not is_spliced, (case.schema, schema)
        counts["files"] += 1
        counts["files with the producer's schema"] += answer["equal"]


@pytest.fixture(scope="module")
def avro(jvm: Path) -> Iterator[Avro]:  # noqa: ARG001 (it needs Java)
    with start_avro() as avro:
        yield avro


def test_some_random_values_are_what_avro_reads(avro: Avro, registry: SchemaRegistry) -> None:
    counts = compare(1, 50, avro, registry)
    print(counts)
    assert counts["cases"] == 50


@pytest.mark.slow("2,000 random schemas; `make test` compares 50")
@pytest.mark.parametrize("seed", range(2, 6))
def test_random_values_are_what_avro_reads(avro: Avro, registry: SchemaRegistry, seed: int) -> None:
    counts = compare(seed, 500, avro, registry)
    print(counts)
    assert counts["cases"] == 500
