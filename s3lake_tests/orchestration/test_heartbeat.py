"""Runs that crashed or failed: when they are requested again."""

import threading
import time
from typing import Any

import dagster as dg
import pytest

from s3lake import hours
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake.orchestration import dagster_names, heartbeat, runs
from s3lake.orchestration.heartbeat import FIRST_MS, SILENT_MS
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until
from s3lake_tests.land.unstaged import FIRST, Landed
from s3lake_tests.orchestration import instances
from s3lake_tests.orchestration.sensor_ticks import SensorTicks
from s3lake_tests.orchestration.unstaged_runs import OneTopic
from s3lake_tests.orchestration.world import add_run

KEY = dg.AssetKey(["s3", "events", "orders"])
OURS = {"s3lake/sink": "events", "s3lake/topic": "orders"}
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE
MAKING_MS = 20_000


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SensorTicks:
    made = SensorTicks(monkeypatch, "{name: events}")
    made.now = int(time.time() * 1000)
    made.write(Tile(hours.key_of_ms(made.now), {0: TileRange(0, 10)}, pending="c"))
    return made


def run(world: SensorTicks, status: dg.DagsterRunStatus, tags: dict[str, str], **more: Any) -> str:
    return add_run(world.instance, "land_events", status, tags=tags, **more).run_id


def beaten(world: SensorTicks) -> dict[str, str]:
    """A last beat, after the run was made, however long that takes."""
    return {dagster_names.HEARTBEAT: str(world.now + MAKING_MS)}


def status_of(world: SensorTicks, run_id: str) -> dg.DagsterRunStatus:
    found = world.instance.get_run_by_id(run_id)
    assert found is not None
    return found.status


class TestSilence:
    def test_a_run_whose_heartbeat_stops_is_ended_and_asked_for_again_in_the_same_tick(
        self, world: SensorTicks
    ) -> None:
        dead = run(world, STARTED, OURS | beaten(world))
        assert "has not ended" in world.tick(MAKING_MS + SILENT_MS - 1).skip_message
        assert status_of(world, dead) == STARTED
        assert len(world.tick(1).run_requests) == 1
        assert status_of(world, dead) == FAILURE

    def test_a_backfill_that_died_is_ended_too_for_it_has_the_pool(self, world: SensorTicks) -> None:
        dead = run(world, STARTED, beaten(world), asset_selection=frozenset({KEY}))
        other = run(world, STARTED, beaten(world), asset_selection=frozenset({dg.AssetKey(["s3", "events", "clicks"])}))
        world.now += MAKING_MS + SILENT_MS
        assert len(world.tick().run_requests) == 1
        assert (status_of(world, dead), status_of(world, other)) == (FAILURE, STARTED)

    def test_a_run_that_goes_on_with_steps_that_are_not_ours_is_left_alone(self, world: SensorTicks) -> None:
        busy = run(world, STARTED, {dagster_names.HEARTBEAT: "ended"}, asset_selection=frozenset({KEY}))
        world.now += 10 * SILENT_MS
        world.tick()
        assert status_of(world, busy) == STARTED

    def test_a_run_without_any_heartbeat_is_ended_only_if_a_sensor_asked_for_it(self, world: SensorTicks) -> None:
        asked, foreign = run(world, STARTED, OURS), run(world, STARTED, {}, asset_selection=frozenset({KEY}))
        world.now += FIRST_MS + 5000
        assert len(world.tick().run_requests) == 1
        assert (status_of(world, asked), status_of(world, foreign)) == (FAILURE, STARTED)

    def test_the_beat_of_the_run_that_it_is_a_retry_of_is_not_its_own(self, world: SensorTicks) -> None:
        retry = run(world, STARTED, OURS | {dagster_names.HEARTBEAT: str(world.now - 100_000)})
        world.now += FIRST_MS - 1
        assert "has not ended" in world.tick().skip_message
        assert status_of(world, retry) == STARTED

    def test_a_run_is_not_requested_if_dagster_starts_it_again_itself(self, world: SensorTicks) -> None:
        retries = {"run_retries": {"enabled": True, "max_retries": 1}}
        with dg.DagsterInstance.ephemeral(settings=retries) as instance:
            world.instance, world.now = instance, int(time.time() * 1000)
            run(world, STARTED, OURS | beaten(world))
            world.now += MAKING_MS + SILENT_MS
            assert "Dagster starts it again" in world.tick().skip_message

    def test_it_no_longer_holds_slots_of_a_pool(self, world: SensorTicks) -> None:
        with instances.in_files(concurrency={"pools": {"granularity": "op"}}) as instance:
            world.instance, world.now = instance, int(time.time() * 1000)
            storage = instance.event_log_storage
            storage.set_concurrency_slots("s3lake_events_orders", 1)
            dead = run(world, STARTED, OURS | beaten(world))
            assert storage.claim_concurrency_slot("s3lake_events_orders", dead, "land").is_claimed
            world.now += MAKING_MS + SILENT_MS
            assert len(world.tick().run_requests) == 1
            assert storage.claim_concurrency_slot("s3lake_events_orders", "another", "land").is_claimed


class TestFailures:
    @pytest.mark.parametrize(("failures", "minutes"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (9, 10)])
    def test_each_failed_run_makes_the_next_one_wait_twice_as_long_up_to_ten_minutes(
        self, failures: int, minutes: int, world: SensorTicks
    ) -> None:
        for _ in range(failures):
            run(world, FAILURE, OURS)
        ended = int(time.time() * 1000)
        world.now = ended + minutes * runs.SOON_MS - 5_000
        assert f"the next request is {minutes} min after its end" in world.tick().skip_message
        world.now = ended + minutes * runs.SOON_MS + 1_000
        assert len(world.tick().run_requests) == 1

    def test_runs_that_failed_before_the_topic_was_landed_last_count_no_more(self, world: SensorTicks) -> None:
        run(world, FAILURE, OURS)
        hour = hours.key_of_ms(world.now)
        world.write(Tile(hour, {0: TileRange(0, 10)}, pending="c", sums=Sums(landed_ms=int(time.time() * 1000) + 1)))
        assert len(world.tick().run_requests) == 1


def test_a_run_sends_a_heartbeat_when_it_begins_and_again_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.01)
    beats: list[int] = []

    def beat() -> int:
        (found,) = instance.get_runs(limit=1)
        return int(found.tags[dagster_names.HEARTBEAT])

    def slow(*_: object) -> None:
        beats.append(beat())
        until(lambda: beat() != beats[0])
        beats.append(beat())

    monkeypatch.setattr(Landed, "publish", slow)
    began = int(time.time() * 1000)
    with instances.in_files() as instance:
        OneTopic(instance, monkeypatch).land(FIRST, FIRST)
        assert began <= beats[0] < beats[1]
        for beating in (thread for thread in threading.enumerate() if thread.name == "s3lake-heartbeat"):
            beating.join(PATIENCE_S)
            assert not beating.is_alive()
        assert instance.get_runs(limit=1)[0].run_id not in heartbeat.beating_runs
