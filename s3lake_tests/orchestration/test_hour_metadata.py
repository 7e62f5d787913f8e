"""The events of a landed hour and of its dead letters."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import dagster as dg
import msgspec
import pytest

from s3lake.errors import StoreUnavailableError
from s3lake.index.commit.documents import File, Manifest, Read
from s3lake.index.commit.sums import Commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, TileRange, Wait
from s3lake.index.store import Document, Store
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.land.topic.observer import LandedHour
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.hour_metadata import dead_letters_metadata, hour_metadata, offset_tables
from s3lake.orchestration.landing_run import TopicReport
from s3lake.orchestration.translator import dead_letters_key, sink_key
from s3lake.records.schema.columns.grammar import parse_type
from s3lake.records.schema.columns.types import Primitive, to_document
from s3lake.source.offsets import Lag
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.refused import GOOD, MENDED, LakeWithRefusals
from s3lake_tests.orchestration.world import catalog

DEAD_LETTERS = dead_letters_key("events", TOPIC)
INDEX = TopicIndex(MemoryStore("lake"), ".indexes/events", "orders")
TYPES = (
    *map(str, Primitive),
    "decimal(38,9)",
    "map<string, list<decimal(10,2)>>",
    "struct<a: int64, b: list<map<string, struct<c: timestamp>>>>",
    'struct<"a b": uuid>',
)


def rows(table: dg.TableMetadataValue) -> list[dict[str, Any]]:
    return [dict(record.data) for record in table.records]


class TestHour:
    """An hour of 100 offsets with one commit."""

    def metadata(
        self, *files: File, store: Store | None = None, columns: Any = None, words: Any = None, **sums: Any
    ) -> dict[str, Any]:
        tile = Tile(HOUR, {0: TileRange(0, 100, 100)}, commits=("c",), sums=Sums(**sums))
        manifest = Manifest("c", "orders", HOUR, {0: Read(0, 100, read=100, landed=100)}, files, columns=columns)
        index = TopicIndex(store, ".indexes/events", "orders") if store else INDEX
        return hour_metadata(LandedHour(tile, (manifest,), 1), index, None, words or {})

    @pytest.mark.parametrize("written", TYPES)
    def test_has_a_schema_with_columns_of_every_type(self, written: str) -> None:
        event = dg.AssetMaterialization(
            "orders", metadata=self.metadata(columns=to_document({"a": parse_type(written)}))
        )
        (column,) = event.metadata["dagster/column_schema"].value.columns  # type: ignore[union-attr]
        assert (column.name, column.type) == ("a", written)
        assert dg.deserialize_value(dg.serialize_value(event), dg.AssetMaterialization) == event

    @pytest.mark.parametrize(
        ("document", "written"),
        [(None, "unknown"), ({"list": None}, "list<unknown>"), ({"struct": {}}, "struct<>")],
    )
    def test_has_columns_whose_type_is_not_known_yet(self, document: Any, written: str) -> None:
        columns = self.metadata(columns={"a": document})["dagster/column_schema"].columns
        assert [column.type for column in columns] == [written]

    def test_has_numbers_of_what_there_is(self) -> None:
        def numbers(metadata: dict[str, Any]) -> dict[str, float]:
            return {name: value for name, value in metadata.items() if type(value) in (int, float)}

        assert numbers(self.metadata(read=100, landed=100, files=4)) == {
            "dagster/row_count": 100,
            "dagster/size_bytes": 0,
            "files": 4,
        }
        some = numbers(self.metadata(read=100, landed=97, dead=3, late=2))
        assert (some["dead_letters"], some["late"]) == (3, 2)

    def test_has_the_seconds_from_record_timestamp_to_commit(self) -> None:
        metadata = self.metadata(waits=(Wait(100, 0, 10_000),))
        shown = {name: metadata[name] for name in metadata if name.startswith("freshness")}
        assert shown == {
            "freshness": "half of the records within 5 s, 95 of 100 within 9.5 s, all within 10 s",
            "freshness_median_s": 5.0,
            "freshness_p95_s": 9.5,
            "freshness_max_s": 10.0,
        }

    def test_has_the_freshness_of_a_backfill_in_units_that_people_read(self) -> None:
        metadata = self.metadata(waits=(Wait(100, 7_500_000, 273_600_000),))
        assert metadata["freshness"].endswith("all within 3 d 4 h")

    def test_has_the_number_of_rows_once_if_each_offset_is_a_row(self) -> None:
        assert "records" not in self.metadata(read=100, landed=100)

    def test_has_records_that_add_up_to_its_offsets(self) -> None:
        lines = [tuple(row.values()) for row in rows(self.metadata(read=90, landed=80, dead=7, skipped=3)["records"])]
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
    def test_has_the_uri_of_the_directory_that_its_objects_share(self, keys: list[str], directory: str) -> None:
        dead_letters = self.file("raw/_dead_letters/orders/0/x.jsonl", "dead_letters")
        assert self.metadata(*map(self.file, keys), dead_letters)["dagster/uri"] == f"s3://lake/{directory}"

    def test_links_to_the_console_of_its_store(self) -> None:
        store = S3Store(S3Connection(region="eu-west-1", access_key_id="k", secret_access_key="s"), "lake")
        link = self.metadata(self.file("raw/orders/0/a.parquet"), store=store)["console"]
        page = "https://eu-west-1.console.aws.amazon.com/s3/buckets/lake?region=eu-west-1&prefix=raw/orders/0/"
        assert link.url == page

    def test_names_at_most_ten_objects(self) -> None:
        files = [self.file(f"raw/orders/{number:02}.parquet") for number in range(12)]
        objects = rows(self.metadata(*files)["newest_objects"])
        assert [one["object"] for one in objects] == [f"{number:02}.parquet" for number in range(10)]
        sizes = {"rows": 10, "bytes": 1_000, "first_offset": 0, "last_offset": 9}
        assert objects[0] == {"object": "00.parquet", **sizes}
        assert {"dagster/uri", "newest_objects", "console"}.isdisjoint(self.metadata(read=100))

    def file(self, key: str, kind: str = "data") -> File:
        return File(key, "u", ("p",), 0, 0, 9, 10, 1_000, kind)


def test_offsets_are_a_table_with_a_row_for_each_topic_partition() -> None:
    tile = Tile(HOUR, {1: TileRange(3, 4), 0: TileRange(0, 10, 12)})
    metadata = hour_metadata(LandedHour(tile, (), 0), INDEX, Lag(2, 3.04, {0: 20, 1: 9}))
    assert metadata["lag_s"] == 3.0
    assert rows(metadata["offsets"]) == [
        {"topic-partition": "orders-0", "start": 0, "landed": 10, "end": 12, "lag": 2},
        {"topic-partition": "orders-1", "start": 3, "landed": 4, "end": 9, "lag": 5},
    ]


def test_notices_state_what_timestamps_do_not_show() -> None:
    tile = Tile(HOUR, {0: TileRange(5, 9, 9)}, stamped_ahead={0: (9, 7_226_582_400_000)}, before_start={0: 5})
    before, ahead = offset_tables(tile, Sums(), INDEX)["notices"].text.splitlines()
    assert before.startswith(f"5 offsets are before {HOUR}")
    assert ahead.startswith("offset 9 of partition 0 is stamped 2199-01-01T00:00:00Z")


def landed(lake: LakeWithRefusals) -> LandedHour:
    (tile,) = lake.index.tiles()
    return LandedHour(tile, Commits(lake.index, HOUR, tile.commits), 1)


class TestDeadLetters:
    @pytest.fixture
    def lake(self) -> LakeWithRefusals:
        return LakeWithRefusals().landed(7, 4)

    def metadata(self, lake: LakeWithRefusals) -> dict[str, Any]:
        metadata = dead_letters_metadata(landed(lake), lake.target())
        assert metadata is not None
        return metadata

    def test_are_counted_by_stage_and_reason_with_the_places_of_some(self, lake: LakeWithRefusals) -> None:
        metadata = self.metadata(lake)
        assert (metadata["dead_letters"], metadata["share"]) == (5, round(5 / 11, 6))
        assert [(one["stage"], one["count"], one["first"]) for one in rows(metadata["reasons"])] == [
            ("layout", 3, "0@2"),
            ("convert", 2, "0@6"),
        ]
        places = [(one["topic-partition"], one["offset"]) for one in rows(metadata["samples"])]
        assert places == [("verified-0", offset) for offset in (2, 5, 6, 9, 10)]
        assert all("_dead_letters" in one for one in metadata["objects"].value)

    def test_show_contents_only_if_the_sink_allows_it(self) -> None:
        lake = LakeWithRefusals().land(b'{"password":"hunter2","who":"eva"}', b'{"at":"eva"}')
        assert "eva" not in str(self.metadata(lake))
        lake.mended(errors={"tolerance": "all", "samples": "contents"})
        values = [one["value"] for one in rows(self.metadata(lake)["samples"])]
        assert values == ['{"password":"********","who":"eva"}', '{"at":"eva"}']

    def test_are_zero_in_a_complete_hour_without_any_and_nothing_in_an_open_one(self) -> None:
        lake = LakeWithRefusals().land(GOOD % 1)
        hour = landed(lake)
        assert dead_letters_metadata(hour, lake.target()) == {"dead_letters": 0, "share": 0.0}
        span = msgspec.structs.replace(hour.tile.partitions[0], end=None)
        opened = replace(hour, tile=hour.tile.revise(partitions={0: span}))
        assert dead_letters_metadata(opened, lake.target()) is None

    def test_that_were_all_replayed_name_the_replay(self) -> None:
        lake = LakeWithRefusals().land(GOOD % 1, b'{"id":2}')
        lake.mended(**MENDED)
        lake.replay()
        metadata = self.metadata(lake)
        assert (metadata["dead_letters"], metadata["replayed"]) == (0, 1)
        assert [(one["commit"], one["dead_letters"]) for one in rows(metadata["replays"])] == [(lake.commits[0].id, 1)]

    def test_dead_letters_are_counted_if_their_objects_cannot_be_read(
        self, lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def get(key: str, span: tuple[int, int] | None = None) -> Document | None:
            if "_dead_letters" in key:
                raise StoreUnavailableError("the store does not answer")
            return MemoryStore.get(lake.store, key, span)

        monkeypatch.setattr(lake.store, "get", get)
        metadata = self.metadata(lake)
        assert metadata["dead_letters"] == 5
        assert metadata["not_read"] == "the store does not answer"

    def test_have_an_asset_only_if_the_sink_tolerates_them(self) -> None:
        for tolerance in ("none", "all"):
            sink = make_sink(topics=[TOPIC], errors={"tolerance": tolerance})
            definitions = build_definitions(make_config(sink))
            assert (DEAD_LETTERS in definitions.resolve_asset_graph().get_all_asset_keys()) is (tolerance == "all")


class RecordingRun:
    """A run that remembers the events that it is to store."""

    def __init__(self, lake: LakeWithRefusals, attempt: int = 0) -> None:
        self.catalog, self.attempt = catalog(lake.target().sink, TOPIC), attempt
        self.materialised: dict[str, set[str]] = defaultdict(set)
        self.events: list[dg.AssetMaterialization] = []
        self.log_event = self.events.append

    def log_line(self, line: str) -> None: ...

    def metadata(self, key: dg.AssetKey) -> dict[str, Any]:
        (event,) = [event for event in self.events if event.asset_key == key]
        return {name: value.value for name, value in event.metadata.items()}


@pytest.mark.parametrize("poison", [[b"{"], []], ids=["one", "none"])
def test_a_run_stores_how_many_dead_letters_a_complete_hour_has(poison: list[bytes]) -> None:
    lake = LakeWithRefusals().land(GOOD % 1, *poison)
    run: Any = RecordingRun(lake)
    TopicReport(run, lake.target(), [HOUR]).hour_landed(landed(lake))
    assert run.metadata(DEAD_LETTERS)["dead_letters"] == len(poison)


def test_a_run_counts_what_it_had_to_try_again_if_it_had_to() -> None:
    lake, key = LakeWithRefusals().landed(7, 4), sink_key("events", TOPIC)
    for retries, attempt, counts in ((0, 0, {}), (4, 2, {"retried_requests": 4, "retried_attempts": 2})):
        run: Any = RecordingRun(lake, attempt)
        target = lake.target()
        target.task_requests.retries = retries
        TopicReport(run, target, [HOUR]).hour_landed(landed(lake))
        metadata = run.metadata(key)
        assert {name: value for name, value in metadata.items() if name.startswith("retried")} == counts
