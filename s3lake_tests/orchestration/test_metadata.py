"""What an hour's materialisation says of itself."""

from typing import Any

import dagster as dg
import pytest

from s3lake.commit.index import File, Manifest, Read, TopicIndex
from s3lake.land.observer import LandedHour
from s3lake.orchestration import metadata
from s3lake.plan.freshness import Wait
from s3lake.plan.tile import Span, Sums, Tile
from s3lake.schema.grammar import parse
from s3lake.schema.types import Primitive, to_document
from s3lake.store import Store
from s3lake.store.connection import S3Connection
from s3lake.store.memory import MemoryStore
from s3lake.store.s3 import S3Store

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


def test_a_column_says_in_words_what_its_schema_says() -> None:
    tile = Tile(HOUR, {0: Span(0, 10, 10)}, commits=("c",))
    manifest = Manifest("c", "orders", HOUR, {0: Read(0, 10, 10, 10)}, columns={"id": "int64", "city": "string"})
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    shown = metadata.of_hour(LandedHour(tile, (manifest,), 1), index, None, {"id": "the order's key", "gone": "x"})
    columns = shown["dagster/column_schema"].columns
    assert [(column.name, column.description) for column in columns] == [("id", "the order's key"), ("city", None)]


def test_freshness_is_seconds_from_record_timestamp_to_commit() -> None:
    sums = Sums(waits=(Wait(100, 0, 10_000),))
    tile = Tile(HOUR, {0: Span(0, 100, 100)}, commits=("c",), sums=sums)
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    found = metadata.of_hour(LandedHour(tile, (), 1), index, None)
    shown = {name: found[name] for name in found if name.startswith("freshness")}
    assert shown == {"freshness_median_s": 5.0, "freshness_p95_s": 9.5, "freshness_max_s": 10.0}


def test_notices_of_an_hour_and_of_its_seal_say_what_timestamps_do_not_tell() -> None:
    tile = Tile(HOUR, {0: Span(5, 9, 9)}, stamped_ahead={0: (9, 7_226_582_400_000)}, before_start={0: 5})
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    before, ahead = metadata.tables(tile, Sums(), index)["notices"].text.splitlines()
    assert before.startswith(f"5 offsets are before {HOUR}")
    assert ahead.startswith("offset 9 of partition 0 is stamped 2199-01-01T00:00:00Z")


def test_offsets_are_a_table_with_a_row_for_each_topic_partition() -> None:
    tile = Tile(HOUR, {1: Span(3, 4), 0: Span(0, 10, 12)})
    index = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
    table = metadata.of_hour(LandedHour(tile, (), 0), index, metadata.Lag(3.04, {0: 20, 1: 9}))
    assert table["lag_s"] == 3.0
    assert [record.data for record in table["offsets"].records] == [
        {"topic-partition": "orders-0", "start": 0, "landed": 10, "end": 12, "lag": 2},
        {"topic-partition": "orders-1", "start": 3, "landed": 4, "end": 9, "lag": 5},
    ]


def shown(*files: File, store: Store | None = None, **sums: int) -> dict[str, Any]:
    """The metadata of an hour of 100 offsets, whose one commit has these files."""
    tile = Tile(HOUR, {0: Span(0, 100, 100)}, commits=("c",), sums=Sums(**sums))
    manifest = Manifest("c", "orders", HOUR, {0: Read(0, 100, 100, 100)}, files)
    index = TopicIndex(store or MemoryStore("lake"), ".indexes/events", "orders")
    return metadata.of_hour(LandedHour(tile, (manifest,), 1), index, None)


def numbers(metadata_of_hour: dict[str, Any]) -> dict[str, float]:
    """What Dagster plots."""
    return {name: value for name, value in metadata_of_hour.items() if type(value) in (int, float)}


def file(key: str, kind: str = "data") -> File:
    return File(key, "u", ("p",), 0, 0, 9, 10, 1_000, kind)


def test_what_mostly_is_nothing_is_a_number_only_where_it_is_something() -> None:
    assert numbers(shown(read=100, landed=100, files=4)) == {
        "dagster/row_count": 100,
        "dagster/size_bytes": 0,
        "files": 4,
    }
    some = numbers(shown(read=100, landed=97, dead=3, late=2))
    assert (some["dead_letters"], some["late"]) == (3, 2)


def test_what_became_of_the_offsets_adds_up() -> None:
    lines = [tuple(line.data.values()) for line in shown(read=90, landed=80, dead=7, skipped=3)["records"].records]
    assert lines == [
        ("landed offsets", 100),
        ("rows", 80),
        ("dead letters", 7),
        ("skipped nulls", 3),
        ("without a record: markers, aborted or compacted", 10),
    ]


@pytest.mark.parametrize(
    ("keys", "directory"),
    [
        (["raw/orders/1/a.parquet", "raw/orders/10/b.parquet"], "raw/orders/"),
        (["raw/orders/0/a.parquet"], "raw/orders/0/"),
        (["a.parquet", "b.parquet"], ""),
    ],
)
def test_its_uri_is_the_directory_that_its_objects_share(keys: list[str], directory: str) -> None:
    letters = file("raw/_dead_letters/orders/0/x.jsonl", "dead_letters")
    assert shown(*map(file, keys), letters)["dagster/uri"] == f"s3://lake/{directory}"


def test_a_store_with_a_console_is_linked_to() -> None:
    store = S3Store(S3Connection(region="eu-west-1", access_key_id="k", secret_access_key="s"), "lake")
    link = shown(file("raw/orders/0/a.parquet"), store=store)["console"]
    assert isinstance(link, dg.UrlMetadataValue)
    page = "https://eu-west-1.console.aws.amazon.com/s3/buckets/lake?region=eu-west-1&prefix=raw/orders/0/"
    assert link.url == page


def test_at_most_ten_objects_are_named() -> None:
    objects = shown(*(file(f"raw/orders/{number:02}.parquet") for number in range(12)))["newest_objects"].records
    assert [line.data["object"] for line in objects] == [f"{number:02}.parquet" for number in range(10)]
    assert objects[0].data == {
        "object": "00.parquet",
        "rows": 10,
        "bytes": 1_000,
        "first_offset": 0,
        "last_offset": 9,
    }


def test_an_hour_without_a_file_names_none() -> None:
    assert {"dagster/uri", "newest_objects", "console"}.isdisjoint(shown(read=100))


def test_what_was_tried_again_is_counted_where_something_was() -> None:
    assert metadata.retried(0, 0) == {}
    assert metadata.retried(3, 1) == {"retried_requests": 3, "retried_attempts": 1}
