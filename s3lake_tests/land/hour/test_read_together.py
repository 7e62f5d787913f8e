"""Hours of producers whose schemas differ are read together, whatever came first: nothing is rounded, nothing lost."""

import json
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from s3lake.index.commit.documents import Recorded
from s3lake.lake.objects.spark_columns import build_read_schema
from s3lake.lake.readback.committed import open_input, read_object, read_recorded_columns
from s3lake.land.hour.landing import land
from s3lake.records.schema.columns.types import to_document
from s3lake_tests.kit.avro_messages import record
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD, TOPIC, TopicInMemory
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed, serving

LARGE = 2**53 + 1


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with serving() as found:
        yield found


def values(registry: SchemaRegistry, type: str, *cells: Any) -> list[bytes]:
    schema = record(("n", ["null", type]))
    number = registry.add(schema)
    return [framed(number, datum(schema, {"n": cell})) for cell in cells]


def world(registry: SchemaRegistry, format: str = "parquet", partitions: int = 1) -> TopicInMemory:
    converter = {"value": "avro", "registry": {"url": registry.url}}
    return TopicInMemory(partitions, format={"type": format}, converter=converter, errors={"tolerance": "all"})


def read_all(made: TopicInMemory) -> list[Any]:
    """What the reader of committed objects has of all hours, and, of Parquet, what Arrow's own scanner has."""
    committed = open_input(made.sink, TOPIC, made.store, None, allow_incomplete=True)
    schema = build_read_schema(committed.form, committed.recorded)
    batches = [
        batch for file, shape in committed.files for batch in read_object(made.store, "lake", file.key, shape, schema)
    ]
    cells = pa.Table.from_batches(batches, schema).column("n").to_pylist()
    if committed.form.format == "parquet":
        bodies = [pa.BufferReader(made.store.objects[file.key][0]) for file, _ in committed.files]
        tables = [ds.ParquetFileFormat().make_fragment(body).to_table(schema=schema) for body in bodies]
        assert pa.concat_tables(tables).column("n").to_pylist() == cells
    return cells


def dead_letters(made: TopicInMemory) -> list[str]:
    lines = [
        json.loads(line)
        for key, (body, *_) in made.store.objects.items()
        if "_dead_letters" in key
        for line in body.splitlines()
    ]
    return [line["message"] for line in lines]


OF_INTEGERS = "its column stays one of integers"
OF_FRACTIONS = "is an integer beyond 2^53, and its column, double"
HOURS = [("long", [LARGE, 1, None]), ("double", [0.5, None]), ("float", [0.25])]


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("order", list(permutations(HOURS)))
def test_hours_of_integers_and_of_fractions_are_read_together(
    registry: SchemaRegistry, format: str, order: list[tuple[str, list[Any]]]
) -> None:
    made = world(registry, format)
    for hour, (type, cells) in enumerate(order):
        made.produce(hour, *values(registry, type, *cells))
    land(made.target(), [FIRST, SECOND, THIRD])
    refused = dead_letters(made)
    if order[0][0] == "long":
        assert read_all(made) == [LARGE, 1, *(None for _, cells in order for cell in cells if cell is None)]
        assert len(refused) == 2
        assert all(OF_INTEGERS in reason for reason in refused)
        return
    expected = [cell for _, cells in order for cell in cells if cell != LARGE]
    assert read_all(made) == expected
    assert len(refused) == 1
    assert OF_FRACTIONS in refused[0]


def test_a_micro_batch_of_integers_and_fractions_keeps_the_integers(registry: SchemaRegistry) -> None:
    made = world(registry, partitions=2)
    made.produce(0, *values(registry, "double", 0.5, None), partition=0)
    made.produce(0, *values(registry, "long", LARGE, 1), partition=1)
    land(made.target(), [FIRST])
    assert sorted(read_all(made), key=str) == [1, LARGE, None]
    (reason,) = dead_letters(made)
    assert OF_INTEGERS in reason


def test_integers_that_doubles_hold_and_fractions_are_one_column_of_doubles(registry: SchemaRegistry) -> None:
    made = world(registry)
    for hour, (type, cell) in enumerate([("long", 2**53), ("float", 0.25), ("int", 7)]):
        made.produce(hour, *values(registry, type, cell))
    land(made.target(), [FIRST, SECOND, THIRD])
    assert read_all(made) == [2.0**53, 0.25, 7.0]
    assert to_document(read_recorded_columns(made.target().index)) == {"n": "double"}
    assert dead_letters(made) == []


@pytest.mark.parametrize("type", ["long", "double"])
def test_columns_that_another_hour_records_meanwhile_are_kept_to(registry: SchemaRegistry, type: str) -> None:
    """Another run records the other type while this one's tasks work."""
    made = world(registry)
    made.produce(0, *values(registry, type, *({"long": [LARGE, 1], "double": [0.5, None]}[type])))
    target, read = made.target(), made.read
    other = Recorded({"n": "double"}) if type == "long" else Recorded({"n": "int64"}, exact=("n",))

    def read_late(ranges: Any) -> Iterator[pa.RecordBatch]:
        if made.tries == 1:  # after the first look
            index = target.index
            have, etag = index.columns() or (None, None)
            if have is None:
                index.create(index.columns_key, other)
            else:
                assert etag is not None
                index.swap(index.columns_key, other, etag)
        made.tries += 1
        yield from read(ranges)

    made.tries = 0
    made.read = read_late
    land(target, [FIRST])
    assert made.tries > 2
    assert read_all(made) == ([1.0] if type == "long" else [None])
    (reason,) = dead_letters(made)
    assert (OF_FRACTIONS if type == "long" else OF_INTEGERS) in reason


def test_a_plain_key_with_a_dot_does_not_loosen_a_nested_column() -> None:
    made = TopicInMemory(format={"type": "parquet"}, errors={"tolerance": "all"})
    made.produce(0, b'{"a.b": 0.5, "n": 1}')
    made.produce(1, b'{"a": {"b": %d}, "n": 2}' % LARGE)
    made.produce(2, b'{"a": {"b": 0.5}, "n": 3}', b'{"a.b": 1.5, "n": 4}')
    land(made.target(), [FIRST, SECOND, THIRD])
    assert read_all(made) == [1, 2, 4]
    (reason,) = dead_letters(made)
    assert "field 'a.b' is double, and its column stays one of integers" in reason
    recorded = made.target().index.columns()
    assert recorded is not None
    assert (recorded[0].columns, recorded[0].exact) == (
        {"a.b": "double", "n": "int64", "a": {"struct": {"b": "int64"}}},
        ("a.b",),
    )
