"""What an hour's materialisation says of itself."""

from typing import Any

import dagster as dg
import pytest

from s3lake.commit.index import Manifest, Read, TopicIndex
from s3lake.land.observer import LandedHour
from s3lake.orchestration import metadata
from s3lake.plan.freshness import Wait
from s3lake.plan.tile import Span, Sums, Tile
from s3lake.schema.grammar import parse
from s3lake.schema.types import Primitive, to_document
from s3lake.store.memory import MemoryStore

HOUR = "2026-01-05T10"
WRITTEN = (
    *map(str, Primitive),
    "decimal(38,9)",
    "list<string>",
    "map<string, int64>",
    "map<string, list<decimal(10,2)>>",
    "struct<a: int64, b: list<map<string, struct<c: timestamp>>>>",
    'struct<"a b": uuid>',
)


def of_columns(columns: dict[str, Any]) -> dict[str, Any]:
    tile = Tile(HOUR, {0: Span(0, 10, 10)}, commits=("c",))
    manifest = Manifest("c", "orders", HOUR, {0: Read(0, 10, 10, 10)}, columns=columns)
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    return metadata.of_hour(LandedHour(tile, (manifest,), 1), index, None)


@pytest.mark.parametrize("written", WRITTEN)
def test_a_column_of_every_type_is_in_the_schema_of_the_materialisation(written: str) -> None:
    found = of_columns(to_document({"a": parse(written)}))
    event = dg.AssetMaterialization("orders", metadata=found)
    schema = event.metadata["dagster/column_schema"].value
    assert isinstance(schema, dg.TableSchema)
    assert [(column.name, column.type) for column in schema.columns] == [("a", written)]
    assert dg.deserialize_value(dg.serialize_value(event), dg.AssetMaterialization) == event


@pytest.mark.parametrize(
    ("kind", "written"), [(None, "unknown"), ({"list": None}, "list<unknown>"), ({"struct": {}}, "struct<>")]
)
def test_a_column_in_which_nothing_was_seen_yet_is_there_too(kind: Any, written: str) -> None:
    assert [column.type for column in of_columns({"a": kind})["dagster/column_schema"].columns] == [written]


def test_freshness_is_seconds_from_record_timestamp_to_commit() -> None:
    sums = Sums(waits=(Wait(100, 0, 10_000),))
    tile = Tile(HOUR, {0: Span(0, 100, 100)}, commits=("c",), sums=sums)
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    found = metadata.of_hour(LandedHour(tile, (), 1), index, None)
    shown = {name: found[name] for name in found if name.startswith("freshness")}
    assert shown == {"freshness_median_s": 5.0, "freshness_p95_s": 9.5, "freshness_max_s": 10.0}


def test_offsets_are_a_table_with_a_row_for_each_topic_partition() -> None:
    tile = Tile(HOUR, {1: Span(3, 4), 0: Span(0, 10, 12)})
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    table = metadata.of_hour(LandedHour(tile, (), 0), index, 0)["offsets"]
    assert [record.data for record in table.records] == [
        {"partition": 0, "start": 0, "landed": 10, "end": "12"},
        {"partition": 1, "start": 3, "landed": 4, "end": "open"},
    ]
