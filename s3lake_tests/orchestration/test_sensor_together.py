"""What the sensor of a fleet asks for, and what its ticks cost, from offsets and the index alone."""

import functools
import time
from collections.abc import Mapping
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from s3lake import hours
from s3lake.config.model import Config
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake.orchestration import dagster_names, heartbeat, runs, sensor, tick
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.jobs import group_job, land_job
from s3lake_tests.kit.cost import count_calls
from s3lake_tests.orchestration.world import (
    HOUR,
    MINUTE_MS,
    START,
    TICK_MS,
    KafkaEnds,
    Ticks,
    add_run,
    at,
    catalog,
    config,
)


@functools.cache
def sink_of(settings: str, *topics: str) -> tuple[Config, Catalog]:
    """Nobody changes them, and a thousand topics take a third of a second."""
    made = config(settings)
    return made, catalog(made.sink("events"), *topics)


class TogetherTicks(Ticks):
    """The topics of a sink, one topic-partition each, and its index."""

    def __init__(self, patch: pytest.MonkeyPatch, topics: int, settings: str = "") -> None:
        kafka = KafkaEnds({f"t{number:04}": {0: 100} for number in range(topics)})
        named = settings if "topics_regex" in settings else f"topics: [{', '.join(kafka.logs)}]"
        config, self.catalog = sink_of(f"{{name: events, {named}, together: true}}", *kafka.logs)
        super().__init__(patch, config, kafka)
        jobs = [group_job(self.catalog, self.sink), land_job(self.catalog, self.sink)]
        self.sensor = sensor.group_sensor(self.catalog, self.sink, jobs, (), dg.DefaultSensorStatus.STOPPED)
        self.definitions = dg.Definitions(sensors=[self.sensor], jobs=jobs)
        self.now = at(HOUR, 10)

    @property
    def sink(self) -> Any:
        return self.config.sink("events")

    def land_all(self, began_ms: int = 0, each_ms: int = 0) -> None:
        """As if everything that there is were landed, one topic after another."""
        for number, (topic, ends) in enumerate(self.kafka.logs.items()):
            landed, sums = {0: TileRange(0, ends[0])}, Sums(landed_ms=began_ms + number * each_ms)
            found = self.index(topic=topic).tile(HOUR)
            tile = found[0] if found else Tile(HOUR, landed)
            self.write(tile.revise(partitions=landed, sums=sums), topic=topic)

    def append(self, records: int, *topics: str) -> None:
        """To each of these topics, or to all."""
        for topic in topics or self.kafka.logs:
            self.kafka.logs[topic][0] += records

    def tick(self, later_ms: int = TICK_MS) -> Any:
        return super().tick(later_ms)

    def settle(self) -> None:
        """Tick until everything is known."""
        for _ in range(1 + len(self.kafka.logs) // tick.LOOKS_PER_TICK):
            self.tick(0)

    def run(self, spans: Mapping[str, list[str]], status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
        """A run of these topics."""
        config = runs.group_config(self.catalog, self.sink, spans)
        tags = {dagster_names.SINK: "events", **tags}
        return add_run(self.instance, "land_together_events", status, run_config=config, tags=tags)


def spans(result: Any) -> dict[str, list[str]]:
    requests = result.run_requests or []
    assert len(requests) <= 1
    found: dict[str, list[str]] = {}
    for request in requests:
        found = request.run_config["ops"]["land_together_events_op"]["config"]["hours"]
    return found


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> TogetherTicks:
    made = TogetherTicks(monkeypatch, 3)
    made.land_all()
    made.settle()
    return made


class TestHoursWithoutARecord:
    """An hour is over, and the index was read when nothing waited in it: the memory is enough to request a run."""

    FOLLOWING = hours.shift(HOUR, 1)
    SPAN = f"{HOUR}..{FOLLOWING}"

    def end_hour(self, world: TogetherTicks) -> Any:
        world.now = at(HOUR, 65)
        world.store.requests.clear()
        return world.tick(0)

    def end_run(self, world: TogetherTicks, status: dg.DagsterRunStatus) -> None:
        """End the requested run, and tick."""
        world.run({self.SPAN: [*world.kafka.logs]}, status)
        world.store.requests.clear()
        world.tick()

    def test_a_run_is_requested_without_reading_the_index(self, world: TogetherTicks) -> None:
        assert spans(self.end_hour(world)) == {self.SPAN: ["t0000", "t0001", "t0002"]}
        assert world.store.requests == {}

    def test_the_index_is_read_of_a_topic_in_which_a_record_waits(self, world: TogetherTicks) -> None:
        world.append(1, "t0001")
        assert spans(self.end_hour(world)) == {self.SPAN: ["t0000", "t0001", "t0002"]}
        assert {key.split("/")[2] for _, key in world.store.calls[-2:]} == {"t0001"}
        assert world.store.requests == {"get": 2}

    def test_after_a_run_that_succeeded_the_index_is_read_of_a_topic_in_turn_only(self, world: TogetherTicks) -> None:
        self.end_hour(world)
        self.end_run(world, dg.DagsterRunStatus.SUCCESS)
        assert len({key.split("/")[2] for _, key in world.store.calls[-world.store.requests.total() :]}) == 1

    def test_after_a_run_that_failed_the_index_is_read_of_all_topics(self, world: TogetherTicks) -> None:
        self.end_hour(world)
        self.end_run(world, dg.DagsterRunStatus.FAILURE)
        assert len({key.split("/")[2] for _, key in world.store.calls[-world.store.requests.total() :]}) == 3

    def test_a_record_that_comes_after_the_run_is_due_after_the_interval(self, world: TogetherTicks) -> None:
        self.end_hour(world)
        self.end_run(world, dg.DagsterRunStatus.SUCCESS)
        for topic in world.kafka.logs:
            world.write(
                Tile(HOUR, {0: TileRange(0, 100, 100)}), Tile(self.FOLLOWING, {0: TileRange(100, 100)}), topic=topic
            )
        world.append(1, "t0001")
        waited = 0
        while not (requested := spans(world.tick())):
            waited += TICK_MS
        assert requested == {f"{self.FOLLOWING}..{self.FOLLOWING}": ["t0001"]}
        assert waited <= 5 * MINUTE_MS


class TestRequests:
    def test_one_run_is_for_all_topics_that_are_due(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = TogetherTicks(monkeypatch, 3)
        result = world.tick()
        assert spans(result) == {f"{START}..{HOUR}": ["t0000", "t0001", "t0002"]}
        (request,) = result.run_requests
        assert request.job_name == "land_together_events"
        assert request.tags[dagster_names.GROUP] == "3"
        assert request.tags["s3lake/reason"] == "hour_over"

    def test_topics_have_their_own_hours(self, world: TogetherTicks) -> None:
        world.write(
            Tile("2026-01-05T09", {0: TileRange(0, 20, 50)}), Tile(HOUR, {0: TileRange(50, 100)}), topic="t0001"
        )
        world.cursor = None
        assert spans(world.tick()) == {"2026-01-05T09..2026-01-05T09": ["t0001"]}

    def test_records_that_would_wait_for_longer_than_the_interval_with_the_next_tick_are_due(
        self, world: TogetherTicks
    ) -> None:
        world.append(10, "t0001")
        waited = 0
        while not (found := spans(world.tick())):
            waited += TICK_MS
        assert found == {f"{HOUR}..{HOUR}": ["t0001"]}
        assert waited == 5 * MINUTE_MS - 2 * TICK_MS  # they came before the first, at most a tick before

    def test_others_that_have_waited_for_half_of_it_come_along(self, world: TogetherTicks) -> None:
        for topic, minutes in (("t0000", 2), ("t0001", 2), ("t0002", 0)):
            world.append(10, topic)
            world.tick(minutes * MINUTE_MS)
        while not (found := spans(world.tick())):
            pass
        assert found == {f"{HOUR}..{HOUR}": ["t0000", "t0001"]}

    def test_the_rest_of_an_hour_waits_for_the_run_that_closes_it_if_that_comes_soon(
        self, world: TogetherTicks
    ) -> None:
        world.now = at(HOUR, 58)
        world.tick(0)
        world.append(10)
        assert spans(world.tick()) == {}
        world.store.requests.clear()
        world.now = at(HOUR, 63)
        world.tick()
        assert world.store.requests["get"] <= 4  # the look in turn
        while not (found := spans(world.tick())):
            pass
        assert world.now == at(HOUR, 65)
        assert found == {f"{HOUR}..2026-01-05T11": ["t0000", "t0001", "t0002"]}

    def test_the_rest_of_an_hour_does_not_wait_for_long(self, world: TogetherTicks) -> None:
        world.now = at(HOUR, 57)
        world.tick(0)
        world.append(10)
        assert spans(world.tick()) == {}
        world.now = at(HOUR, 62.5)
        assert spans(world.tick()) == {f"{HOUR}..{HOUR}": ["t0000", "t0001", "t0002"]}

    def test_a_topic_that_does_not_exist_or_whose_index_cannot_be_read_keeps_no_other_waiting(
        self, world: TogetherTicks
    ) -> None:
        world.store.put(world.index(topic="t0000").head_key, b"{ no index")
        del world.kafka.logs["t0001"]
        world.cursor = None
        world.write(
            Tile("2026-01-05T09", {0: TileRange(0, 20, 50)}), Tile(HOUR, {0: TileRange(50, 100)}), topic="t0002"
        )
        assert spans(world.tick()) == {"2026-01-05T09..2026-01-05T09": ["t0002"]}

    def test_a_look_in_turn_at_a_topic_whose_index_cannot_be_read_does_not_stop_the_sensor(
        self, world: TogetherTicks
    ) -> None:
        world.store.put(world.index(topic="t0000").head_key, b"{ no index")
        for _ in range(4):
            assert spans(world.tick()) == {}
        world.append(10, "t0001")
        for _ in range(10):
            world.tick()
        assert spans(world.tick()) == {f"{HOUR}..{HOUR}": ["t0001"]}


class TestRuns:
    SPAN = f"{HOUR}..{HOUR}"

    @pytest.fixture(autouse=True)
    def _due(self, world: TogetherTicks) -> None:
        world.now = int(time.time() * 1000)
        current = hours.key_of_ms(world.now)
        world.store.objects.clear()
        for topic in world.kafka.logs:
            world.write(Tile(current, {0: TileRange(0, 10)}, pending="c"), topic=topic)
        self.SPAN = f"{current}..{current}"
        world.cursor = None

    def test_topics_of_a_run_under_way_are_left_to_it(self, world: TogetherTicks) -> None:
        world.run({self.SPAN: ["t0000", "t0001"]}, dg.DagsterRunStatus.STARTED)
        assert spans(world.tick(0)) == {self.SPAN: ["t0002"]}

    def test_nothing_is_asked_for_while_a_run_waits_to_begin(self, world: TogetherTicks) -> None:
        world.run({self.SPAN: ["t0000"]}, dg.DagsterRunStatus.QUEUED)
        result = world.tick(0)
        assert spans(result) == {}
        assert result.skip_message == "a run of this sink waits to begin"

    def test_a_topic_that_a_backfill_lands_is_left_to_it(self, world: TogetherTicks) -> None:
        key = dg.AssetKey(["s3", "events", "t0001"])
        selected = frozenset({key})
        create_run_for_test(world.instance, asset_selection=selected, status=dg.DagsterRunStatus.STARTED)
        assert spans(world.tick(0)) == {self.SPAN: ["t0000", "t0002"]}

    def test_a_silent_run_is_ended_and_all_its_topics_are_asked_for_again(self, world: TogetherTicks) -> None:
        run = world.run({self.SPAN: sorted(world.kafka.logs)}, dg.DagsterRunStatus.STARTED)
        world.now += 5_000  # after its start
        world.instance.add_run_tags(run.run_id, {dagster_names.HEARTBEAT: str(world.now)})
        assert spans(world.tick(0)) == {}
        assert spans(world.tick(heartbeat.SILENT_MS - 1_000)) == {}
        assert spans(world.tick(1_000)) == {self.SPAN: ["t0000", "t0001", "t0002"]}
        ended = world.instance.get_run_by_id(run.run_id)
        assert ended is not None
        assert ended.status == dg.DagsterRunStatus.FAILURE

    def fail(self, world: TogetherTicks, *failed: str) -> None:
        """End a run of all topics that has failed some of them; without any, its process crashed."""
        run = world.run({self.SPAN: sorted(world.kafka.logs)}, dg.DagsterRunStatus.STARTED)
        if failed:
            world.instance.add_run_tags(run.run_id, {dagster_names.FAILED: " ".join(failed)})
        world.instance.report_run_failed(run)

    def test_a_topic_that_failed_is_requested_alone_after_a_minute_and_the_others_at_once(
        self, world: TogetherTicks
    ) -> None:
        self.fail(world, "t0001")
        assert spans(world.tick(0)) == {self.SPAN: ["t0000", "t0002"]}
        together, alone = world.tick(2 * runs.SOON_MS).run_requests
        assert together.run_config["ops"]["land_together_events_op"]["config"]["hours"] == {
            self.SPAN: ["t0000", "t0002"]
        }
        assert (alone.job_name, alone.tags["s3lake/topic"]) == ("land_events", "t0001")
        assert alone.asset_selection == [dg.AssetKey(["s3", "events", "t0001"])]

    def test_a_few_of_many_failed_topics_are_requested_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = TogetherTicks(monkeypatch, 30)
        world.now = int(time.time() * 1000)
        run = world.run({f"{START}..{HOUR}": sorted(world.kafka.logs)}, dg.DagsterRunStatus.STARTED)
        world.instance.add_run_tags(run.run_id, {dagster_names.FAILED: " ".join(world.kafka.logs)})
        world.instance.report_run_failed(run)
        assert len(world.tick(2 * runs.SOON_MS).run_requests) == 10

    def test_after_a_run_that_crashed_all_topics_are_requested_together_after_a_minute(
        self, world: TogetherTicks
    ) -> None:
        self.fail(world)
        assert spans(world.tick(0)) == {}
        assert spans(world.tick(2 * runs.SOON_MS)) == {self.SPAN: ["t0000", "t0001", "t0002"]}


class TestAfterARun:
    def request_and_land(self, world: TogetherTicks, each_ms: int = 0) -> None:
        """Records wait until they are due, and a run lands them."""
        world.append(10)
        while not spans(world.tick()):
            pass
        world.land_all(world.now + 5_000, each_ms)
        world.kafka.asked.clear()

    def wait_until_due(self, world: TogetherTicks) -> dict[str, list[str]]:
        world.append(10)
        while not (found := spans(world.tick())):
            pass
        return found

    def test_the_index_is_read_once_before_records_are_due_again(self, world: TogetherTicks) -> None:
        self.request_and_land(world)
        world.tick()
        world.store.requests.clear()
        world.append(10)
        world.tick()
        assert world.store.requests["get"] <= 3  # the look in turn

    def test_records_that_came_meanwhile_are_due_an_interval_after_it_began(self, world: TogetherTicks) -> None:
        self.request_and_land(world)
        began_ms = world.now + 1_000
        self.wait_until_due(world)
        assert world.now - began_ms == pytest.approx(5 * MINUTE_MS - TICK_MS, abs=TICK_MS)

    def test_all_topics_are_due_together_although_they_were_committed_one_after_another(
        self, world: TogetherTicks
    ) -> None:
        self.request_and_land(world, each_ms=20_000)
        assert self.wait_until_due(world) == {f"{HOUR}..{HOUR}": ["t0000", "t0001", "t0002"]}

    def test_kafka_is_asked_for_nothing_but_ends(self, world: TogetherTicks) -> None:
        self.request_and_land(world)
        self.wait_until_due(world)
        assert set(world.kafka.asked) == {"ends"}

    def test_a_run_that_never_began_is_requested_again(self, world: TogetherTicks) -> None:
        requested = self.wait_until_due(world)
        assert spans(world.tick()) == requested


class TestNewTopics:
    @pytest.fixture
    def matching(self, monkeypatch: pytest.MonkeyPatch) -> TogetherTicks:
        world = TogetherTicks(monkeypatch, 1, "topics_regex: 't.*'")
        world.land_all()
        world.settle()
        return world

    def test_that_match_are_announced_once_and_landed(
        self, matching: TogetherTicks, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
    ) -> None:
        matching.kafka.logs["t0001"] = {0: 5}
        assert spans(matching.tick()) == {f"{START}..{HOUR}": ["t0001"]}
        warning = "topic t0001 matches topics_regex of sink events and is landed from now on"
        assert warning in caplog.text + "".join(capsys.readouterr())
        caplog.clear()
        matching.tick()
        assert warning not in caplog.text + "".join(capsys.readouterr())


class TestAThousandTopics:
    """A tick costs what is due, and not what there is."""

    @pytest.fixture
    def world(self, monkeypatch: pytest.MonkeyPatch) -> TogetherTicks:
        world = TogetherTicks(monkeypatch, 1_000)
        world.land_all()
        return world

    def test_a_steady_tick_asks_kafka_once_and_reads_next_to_nothing_also_if_all_wait(
        self, world: TogetherTicks
    ) -> None:
        world.settle()
        world.store.requests.clear()
        world.kafka.asked.clear()
        requested: list[Any] = []
        calls = count_calls(lambda: requested.append(spans(world.tick())))
        assert requested == [{}]
        assert world.kafka.asked == {"ends": 1}
        assert sum(world.store.requests.values()) <= 3 * (1 + 1_000 // tick.ROUND_TICKS)
        assert calls <= 70 * 1_000
        assert 0 < len(world.cursor or "") < 60_000
        world.append(10)
        world.store.requests.clear()
        world.tick()
        world.tick()
        assert sum(world.store.requests.values()) <= 8 * (1 + 1_000 // tick.ROUND_TICKS)

    def test_a_lost_cursor_costs_ticks_that_are_bounded(self, world: TogetherTicks) -> None:
        asked = []
        for _ in range(4):
            world.store.requests.clear()
            world.tick(0)
            asked.append(world.store.requests["get"])
        assert max(asked) <= 4 * tick.LOOKS_PER_TICK
        world.store.requests.clear()
        world.tick()
        assert world.store.requests["get"] <= 4 * (1 + 1_000 // tick.ROUND_TICKS)

    def test_every_topic_is_looked_at_within_the_hour(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = TogetherTicks(monkeypatch, 250)
        world.land_all()
        world.settle()
        world.write(Tile(HOUR, {0: TileRange(0, 100)}, pending="c"), topic="t0125")
        for _ in range(tick.ROUND_TICKS):
            if spans(world.tick(1)):
                return
        raise AssertionError("the index is read")

    def test_observations_come_in_turns(self, world: TogetherTicks) -> None:
        events = [event for _ in range(4) for event in world.tick().asset_events]
        observed = {event.asset_key for event in events if isinstance(event, dg.AssetObservation)}
        assert len(observed) == len(events) == 4 * sensor.OBSERVED_PER_TICK
