"""What a topic's sensor asks for, from offsets and the index alone."""

import time
from typing import Any

import dagster as dg
import msgspec
import pytest
from dagster._core.test_utils import create_run_for_test

from s3lake import hours
from s3lake.index.commit import sealing
from s3lake.index.commit.documents import TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration import dagster_names, due_hours, runs, sealed_hours, sensor, sensor_memory, tick
from s3lake.orchestration.sensor_memory import Memory, RouteMemory
from s3lake.source import sources as sources
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.orchestration.sensor_ticks import SensorTicks
from s3lake_tests.orchestration.world import (
    FOR_EVER,
    HOUR,
    MINUTE_MS,
    START,
    TICK_MS,
    add_run,
    at,
)

TICK_MOST_S = 60
"""Dagster gives up on a tick then."""
OPEN_STORES, OPENED = open_topic_sink.open_stores, sources.open_source


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SensorTicks:
    return SensorTicks(monkeypatch, "{name: events, flush: {count: 100, size: 10kB, interval: 10m}}")


def cursor(route: dict[str, Any]) -> str:
    """What the sensor keeps if it remembers this of the topic."""
    return sensor_memory.encode_memory(Memory(routes={"events/orders": RouteMemory(**route)}))


def ranges(result: Any) -> list[tuple[str, str] | None]:
    return [dagster_names.find_range(request.tags) for request in result.run_requests]


class TestHoursOfTheIndex:
    """Whatever the index calls incomplete, and what it does not have yet."""

    @pytest.fixture
    def few_a_tick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An index of days is as long for a tick as one of weeks."""
        monkeypatch.setattr(due_hours, "TILES_PER_TICK", 24)
        monkeypatch.setattr(sealed_hours, "HOURS_PER_TICK", 8)
        monkeypatch.setattr(sealing, "WATERMARK_TILES", 6)

    def test_many_hours_are_landed_in_runs_of_hours_per_run_the_oldest_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = SensorTicks(monkeypatch, "{name: events, hours_per_run: 2}")
        assert ranges(world.tick()) == [(START, "2026-01-05T09")]
        world.write(
            Tile(START, {0: TileRange(0, 10, 10)}),
            Tile("2026-01-05T09", {0: TileRange(10, 20)}),
        )
        assert ranges(world.tick()) == [("2026-01-05T09", HOUR)]

    def test_when_everything_is_landed_nothing_is_asked_for(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 100)}))
        result = world.tick()
        assert ranges(result) == []
        assert result.skip_message == "events: no offsets wait"
        assert world.kafka.asked == {"ends": 1}

    def test_after_the_grace_of_an_hour_it_and_the_next_one_are_one_range(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 100)}))
        world.now = at(HOUR, 64.9)
        assert ranges(world.tick()) == []
        world.now = at(HOUR, 65)
        assert ranges(world.tick()) == [(HOUR, "2026-01-05T11")]

    def test_an_hour_that_a_run_left_behind_is_asked_for_again(self, world: SensorTicks) -> None:
        world.write(
            Tile("2026-01-05T09", {0: TileRange(0, 50, 50)}, garbage=("c",)), Tile(HOUR, {0: TileRange(50, 100)})
        )
        (request,) = world.tick().run_requests
        assert dagster_names.find_range(request.tags) == ("2026-01-05T09", "2026-01-05T09")
        assert request.tags["s3lake/reason"] == "incomplete"

    def test_an_hour_that_waits_for_the_catalog_of_its_table_is_asked_for_once_an_hour(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is left of it but objects that the table may list; the others do not wait for that."""
        table = "table: {name: lake.orders, catalog: {type: sql, uri: 'sqlite:////nowhere/at/all.db'}}"
        world = SensorTicks(monkeypatch, f"{{name: events, format: {{type: parquet}}, {table}}}")
        unswept = Tile("2026-01-05T05", {0: TileRange(0, 20, 20)}, garbage=("c",))
        world.write(unswept, Tile("2026-01-05T09", {0: TileRange(20, 40, 50)}), Tile(HOUR, {0: TileRange(50, 100)}))
        first, others = ("2026-01-05T05", "2026-01-05T05"), ("2026-01-05T09", "2026-01-05T09")
        assert [ranges(world.tick(60_000)) for _ in range(3)] == [[first], [others], [others]]
        world.now += hours.HOUR_MS
        assert ranges(world.tick())[0] == first

    @pytest.mark.usefixtures("few_a_tick")
    def test_an_hour_that_was_complete_and_is_no_more_is_found_before_long(self, world: SensorTicks) -> None:
        """A rewrite crashed: the cursor knows better, and is wrong."""
        past = list(hours.span("2026-01-04T00", "2026-01-05T09"))
        world.write(*(Tile(hour, {0: TileRange(0, 0, 0)}) for hour in past), Tile(HOUR, {0: TileRange(0, 100)}))
        for _ in range(len(past) // due_hours.TILES_PER_TICK + 1):
            assert ranges(world.tick()) == []
        world.write(Tile(past[20], {0: TileRange(0, 0, 0)}, pending="c"))
        ticks = 0
        while not (found := ranges(world.tick())):
            ticks += 1
            assert ticks <= len(past) / due_hours.SECOND_LOOKS_PER_TICK + 1
        assert found == [(past[20], past[20])]

    @pytest.mark.usefixtures("few_a_tick")
    def test_a_tick_reads_few_documents_however_long_the_index_is(
        self, world: SensorTicks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        past = list(hours.span("2026-01-02T10", "2026-01-05T09"))
        world.write(*(Tile(hour, {0: TileRange(0, 0, 0)}) for hour in past), Tile(HOUR, {0: TileRange(0, 100)}))
        read: list[str] = []
        tile = TopicIndex.tile

        def counted(self: TopicIndex, hour: str) -> Any:
            read.append(hour)
            return tile(self, hour)

        monkeypatch.setattr(TopicIndex, "tile", counted)
        world.tick()
        assert len(read) <= due_hours.TILES_PER_TICK + due_hours.SECOND_LOOKS_PER_TICK + 1 + sealing.WATERMARK_TILES
        while world.remembered.announced != [(past[0], past[-1])]:
            read.clear()
            world.tick()
            assert len(read) <= due_hours.TILES_PER_TICK + sealed_hours.HOURS_PER_TICK + sealing.WATERMARK_TILES
        read.clear()
        world.tick()
        assert len(read) <= due_hours.SECOND_LOOKS_PER_TICK + 1

    @pytest.mark.usefixtures("few_a_tick")
    def test_hours_whose_tiles_are_missing_do_not_delay_others(self, world: SensorTicks) -> None:
        """A lifecycle rule that expires objects expires the index too."""
        past = list(hours.span("2026-01-01T10", "2026-01-05T09"))
        world.write(*(Tile(hour, {0: TileRange(0, 0, 0)}) for hour in past), Tile(HOUR, {0: TileRange(0, 100)}))
        for hour in past[:-10]:
            world.store.delete(world.index().tile_key(hour))
        left = past[-5]
        world.write(Tile(left, {0: TileRange(0, 0, 9)}))
        assert ranges(world.tick()) == [(left, left)]
        for _ in range(len(past) // due_hours.TILES_PER_TICK + 1):
            world.tick()
        assert world.remembered.complete[0][0] == past[0]

    def test_however_many_hours_are_incomplete_the_newest_are_looked_at_first(self, world: SensorTicks) -> None:
        past = list(hours.span("2025-12-01T00", "2026-01-05T09"))
        world.write(*(Tile(hour, {0: TileRange(0, 0, 9)}) for hour in past), Tile(HOUR, {0: TileRange(0, 100)}))
        oldest = past[-due_hours.TILES_PER_TICK + 1]
        assert ranges(world.tick()) == [(oldest, hours.shift(oldest, 23))]

    def test_a_tile_that_was_announced_and_never_written_is_asked_for(self, world: SensorTicks) -> None:
        """Who opened the hour crashed in between; the next run writes the tile."""
        tile = Tile(HOUR, {0: TileRange(0, 0)})
        head = TopicHead(hours=((HOUR, HOUR),), new=tile)
        world.store.put(world.index().head_key, msgspec.json.encode(head))
        world.kafka.logs["orders"] = {0: 500}
        assert ranges(world.tick()) == [(HOUR, HOUR)]


class TestBacklog:
    """The hour under way, sooner or later."""

    def test_a_tick_reports_when_waiting_offsets_are_due_and_lands_them_then(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 58)}))
        assert world.tick().skip_message == "events: 42 offsets wait; due at 10:40:00 UTC at the latest"
        assert ranges(world.tick(10 * MINUTE_MS)) == [(HOUR, HOUR)]

    def reason(self, world: SensorTicks) -> str | None:
        requests = world.tick().run_requests
        assert all(dagster_names.find_range(one.tags) == (HOUR, HOUR) for one in requests)
        return requests[0].tags["s3lake/reason"] if requests else None

    def test_enough_bytes_by_the_size_of_what_was_landed_before(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 10)}, commits=("c",)))
        world.write_commit(HOUR, "c", size=2_000, records=10)
        world.kafka.logs["orders"] = {0: 59}
        assert self.reason(world) is None
        world.kafka.logs["orders"] = {0: 60}
        assert self.reason(world) == "size"

    def test_a_record_that_would_wait_for_longer_than_the_flush_interval_with_the_next_tick(
        self, world: SensorTicks
    ) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 99)}, commits=("c",)))
        world.write_commit(HOUR, "c", at_ms=world.now - 10 * MINUTE_MS + TICK_MS + 1)
        world.kafka.since = {0: 100}
        assert self.reason(world) is None
        world.now += 1
        assert self.reason(world) == "interval"

    def test_within_the_grace_only_what_comes_before_the_next_hour_s_first_record(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 100)}))
        world.kafka.logs["orders"], world.now = {0: 500}, at(HOUR, 61)
        world.kafka.since = {0: 100}
        assert self.reason(world) is None
        world.kafka.since = {0: 250}
        assert self.reason(world) == "count"

    def test_a_topic_partition_where_nothing_waits_makes_nothing_overdue(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 100), 1: TileRange(0, 99)}))
        world.kafka.logs["orders"], world.kafka.since = {0: 100, 1: 100}, {0: 101, 1: 99}
        assert self.reason(world) is None


class TestRequests:
    def test_name_the_sink_the_topic_and_the_reason(self, world: SensorTicks) -> None:
        (request,) = world.tick().run_requests
        assert request.job_name == "land_events"
        assert request.asset_selection == [dg.AssetKey(["s3", "events", "orders"])]
        assert request.asset_check_keys == []  # the run makes them by itself
        assert request.tags["s3lake/sink"] == "events"
        assert request.tags["s3lake/topic"] == "orders"

    def run(self, world: SensorTicks, status: dg.DagsterRunStatus) -> None:
        tags = {"s3lake/sink": "events", "s3lake/topic": "orders"}
        add_run(world.instance, "land_events", status, tags=tags)

    @pytest.mark.parametrize("status", ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
    def test_there_is_no_second_one_while_a_run_is_under_way(self, status: str, world: SensorTicks) -> None:
        self.run(world, dg.DagsterRunStatus[status])
        result = world.tick()
        assert result.run_requests == []
        assert "has not ended" in result.skip_message

    def test_hours_of_a_canceled_run_are_requested_again_ten_minutes_later(self, world: SensorTicks) -> None:
        world.now = ended = int(time.time() * 1000)
        current = hours.key_of_ms(world.now)
        world.write(Tile(current, {0: TileRange(0, 10)}, pending="c"))
        assert len(world.tick().run_requests) == 1
        self.run(world, dg.DagsterRunStatus.CANCELED)
        world.kafka.logs["orders"] = {0: 200}
        world.now = ended + runs.LATE_MS - 20_000
        result = world.tick()
        assert result.run_requests == []
        assert "was canceled; the next request is 10 min after its end" in result.skip_message
        world.now = ended + runs.LATE_MS + 60_000
        assert len(world.tick().run_requests) == 1

    def test_runs_of_other_topics_and_sinks_are_none_of_its_business(self, world: SensorTicks) -> None:
        for tags in ({"s3lake/sink": "events", "s3lake/topic": "clicks"}, {"s3lake/topic": "orders"}):
            create_run_for_test(world.instance, tags=tags, status=dg.DagsterRunStatus.STARTED)
        assert len(world.tick().run_requests) == 1


class TestSinksOfOneTopic:
    @pytest.fixture
    def two(self, monkeypatch: pytest.MonkeyPatch) -> SensorTicks:
        return SensorTicks(monkeypatch, "{name: events}", "{name: copy, prefix: copy, hours_per_run: null}")

    def test_each_gets_what_its_own_index_lacks(self, two: SensorTicks) -> None:
        two.write(Tile(HOUR, {0: TileRange(0, 100)}), sink="copy")
        two.write(Tile("2026-01-05T09", {0: TileRange(0, 10)}), sink="events")
        (request,) = two.tick().run_requests
        assert request.job_name == "land_events"
        assert dagster_names.find_range(request.tags) == ("2026-01-05T09", HOUR)

    def test_a_run_of_one_does_not_hold_up_the_other(self, two: SensorTicks) -> None:
        tags = {"s3lake/sink": "events", "s3lake/topic": "orders"}
        create_run_for_test(two.instance, tags=tags, status=dg.DagsterRunStatus.STARTED)
        assert [one.job_name for one in two.tick().run_requests] == ["land_copy"]


class TestCursor:
    """It is advice; the index is the truth."""

    @pytest.mark.parametrize(
        "cursor",
        [
            *(None, "{", "eJw=", "e30=", "é"),
            cursor({"complete": [("2020-01-01T00", "2030-01-01T00")]}),
        ],
    )
    def test_lost_damaged_or_claiming_too_much_it_changes_nothing(self, cursor: str | None, world: SensorTicks) -> None:
        world.write(Tile("2026-01-05T09", {0: TileRange(0, 20, 50)}), Tile(HOUR, {0: TileRange(50, 100)}))
        world.cursor = cursor
        assert ranges(world.tick()) == [("2026-01-05T09", "2026-01-05T09")]

    def test_is_short_however_many_hours_there_are(self, world: SensorTicks) -> None:
        past = list(hours.span("2025-12-28T00", "2026-01-05T09"))
        world.write(*(Tile(hour, {0: TileRange(0, 0, 0)}) for hour in past), Tile(HOUR, {0: TileRange(0, 100)}))
        world.tick()
        assert world.cursor is not None
        assert len(world.cursor) < 300


class TestObservations:
    @pytest.fixture(autouse=True)
    def _idle(self, world: SensorTicks) -> None:
        world.write(Tile(HOUR, {0: TileRange(0, 60)}))

    def test_have_offsets_rate_and_lag(self, world: SensorTicks) -> None:
        world.tick()
        world.kafka.logs["orders"] = {0: 100, 1: 50}
        world.now += 500_000
        (event,) = world.tick().asset_events
        assert event.asset_key == dg.AssetKey(["kafka", "orders"])
        assert event.metadata["end_offsets"].value == {"0": 100, "1": 50}
        assert event.metadata["offsets"].value == 150
        assert event.metadata["records_per_second"].value == 0.1
        assert event.metadata["lag"].value == 90

    def test_are_throttled_because_events_are_kept_for_ever(self, world: SensorTicks) -> None:
        assert len(world.tick().asset_events) == 1
        world.kafka.logs["orders"] = {0: 101}
        assert world.tick(sensor.OBSERVE_EVERY_MS - 1).asset_events == []
        assert len(world.tick(1).asset_events) == 1

    def test_are_left_out_while_nothing_changes(self, world: SensorTicks) -> None:
        assert len(world.tick().asset_events) == 1
        assert world.tick(sensor.OBSERVE_EVERY_MS).asset_events == []

    def test_have_the_new_lag_after_a_landing(self, world: SensorTicks) -> None:
        world.tick()
        world.write(Tile(HOUR, {0: TileRange(0, 100)}))
        (event,) = world.tick(sensor.OBSERVE_EVERY_MS).asset_events
        assert event.metadata["lag"].value == 0

    def test_have_a_data_version_of_the_end_offsets(self, world: SensorTicks) -> None:
        def version() -> str:
            (event,) = world.tick(sensor.OBSERVE_EVERY_MS).asset_events
            return str(event.tags["dagster/data_version"])

        first = version()
        world.kafka.logs["orders"] = {0: 101}
        assert version() != first
        world.kafka.logs["orders"] = {0: 100}
        assert version() == first


class TestOutages:
    def test_a_topic_that_does_not_exist_fails_the_tick(self, world: SensorTicks) -> None:
        world.kafka.logs["orders"] = {}
        with pytest.raises(dg.Failure, match="sink events: topic 'orders' does not exist, so there is nothing to land"):
            world.tick()

    def test_a_topic_that_its_sink_waits_for_is_skipped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = SensorTicks(monkeypatch, "{name: events, missing_topic: wait}")
        world.kafka.logs["orders"] = {}
        assert world.tick().skip_message == "events: topic orders does not exist yet"

    @pytest.mark.parametrize("setting", ["fail", "wait"])
    def test_a_topic_that_was_deleted_after_it_was_landed_fails_the_tick(
        self, setting: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = SensorTicks(monkeypatch, f"{{name: events, missing_topic: {setting}}}")
        world.write(Tile(HOUR, {0: TileRange(0, 100)}))
        head, etag = world.index().head()  # type: ignore[misc]
        world.index().swap(world.index().head_key, head.revise(topic_id="id"), etag)
        world.kafka.logs["orders"] = {}
        with pytest.raises(dg.Failure, match=r"'orders' was deleted.*; create it again, or take it out of topics"):
            world.tick()

    def test_kafka_down_fails_the_tick_with_a_reason_and_keeps_the_cursor(self, world: SensorTicks) -> None:
        world.tick()
        cursor = world.cursor
        world.kafka.outages = FOR_EVER
        with pytest.raises(dg.Failure, match="Kafka at nowhere did not answer"):
            world.tick()
        assert world.cursor == cursor

    def test_a_broker_that_does_not_answer_takes_bounded_time(self, world: SensorTicks) -> None:
        assert world.config.kafka is not None
        properties = {"socket.timeout.ms": "300000", "socket.connection.setup.timeout.ms": "300000"}
        kafka = world.config.kafka.model_copy(update={"properties": properties})
        world.kafka = OPENED(world.config.model_copy(update={"kafka": kafka}), 0.1)
        began = time.monotonic()
        with pytest.raises(dg.Failure, match=r"Kafka at 127\.0\.0\.1:1 did not tell .* within 0\.1 s"):
            world.tick()
        assert time.monotonic() - began < PATIENCE_S, "a timeout"

    def test_s3_down_fails_the_tick_with_a_reason(self, world: SensorTicks, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(open_topic_sink, "open_stores", OPEN_STORES)
        with pytest.raises(dg.Failure, match=r"http://127\.0\.0\.1:1"):
            world.tick()

    def test_a_tick_gives_up_on_s3_before_dagster_gives_up_on_the_tick(
        self, world: SensorTicks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has a minute, and a store may take requests and never answer."""
        monkeypatch.setattr(open_topic_sink, "open_stores", OPEN_STORES)
        asked = open_topic_sink.open_stores(S3Connection.from_settings(world.config.s3), fail_fast=True)("lake")
        assert isinstance(asked, S3Store)
        patient = open_topic_sink.open_stores(S3Connection.from_settings(world.config.s3))("lake")
        assert isinstance(patient, S3Store)
        longest = asked.connection.max_attempts * (asked.connection.connect_timeout_s + asked.connection.read_timeout_s)
        assert tick.TICK_S + longest < TICK_MOST_S
        assert (patient.connection.read_timeout_s, patient.connection.patience_s) == (45, 90)
