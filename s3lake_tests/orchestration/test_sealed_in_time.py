"""Whether every hour was sealed in time: red once its time is over, green as soon as a run seals it."""

import dagster as dg
import pytest

from s3lake import hours
from s3lake.orchestration import dagster_names, sealed_in_time
from s3lake.orchestration.translator import hourly, sealed_key
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.orchestration.world import catalog

EIGHT, NINE, TEN = "2026-01-05T08", "2026-01-05T09", "2026-01-05T10"
TOPICS = ("orders", "clicks")
SINK = make_sink(topics=TOPICS, start=EIGHT)


class SealedHoursSensor:
    """The sensor of a sink, its clock, and the event log."""

    def __init__(self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.instance = instance
        self.at(EIGHT, 0)
        patch.setattr(hours, "now_ms", lambda: self.now)
        self.checks = sealed_in_time.in_time_checks(catalog(SINK), SINK)
        self.sensor = sealed_in_time.in_time_sensor(catalog(SINK), SINK, dg.DefaultSensorStatus.STOPPED)
        self.cursor: str | None = None
        self.tick()

    def at(self, hour: str, minutes: float) -> None:
        self.now = hours.start_ms(hour) + int(minutes * 60_000)

    def sealed(self, topic: str, *sealed: str) -> None:
        for hour in sealed:
            event = dg.AssetMaterialization(
                sealed_key(SINK, topic), partition=hour, tags={dagster_names.DATA_VERSION: "v"}
            )
            self.instance.report_runless_asset_event(event)

    def tick(self) -> list[tuple[str, str | None, bool]]:
        """Return topic, hour and whether it passed of each event, all of which Dagster has taken."""
        definitions = self.definitions()
        repository = definitions.get_repository_def()
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, repository_def=repository) as context:
            result = self.sensor.evaluate_tick(context)
        self.cursor = result.cursor
        for evaluation in result.asset_events:
            self.instance.report_runless_asset_event(evaluation)
        self.message = result.skip_message
        assert not result.run_requests
        return [
            (one.asset_key.path[2].removesuffix("_sealed"), one.partition, one.passed) for one in result.asset_events
        ]

    def late(self, topic: str, *sealed: str) -> list[tuple[str | None, bool]]:
        """Return hour and outcome of the evaluations of a run that seals these hours now."""
        events = [dg.AssetMaterialization(sealed_key(SINK, topic), partition=hour) for hour in sealed]
        return [(one.partition, one.passed) for one in sealed_in_time.report_late_hours(self.instance, SINK, events)]

    def definitions(self) -> dg.Definitions:
        assets = [dg.AssetSpec(sealed_key(SINK, topic), partitions_def=hourly(SINK, over=True)) for topic in TOPICS]
        job = dg.define_asset_job("look", selection=dg.AssetSelection.all_asset_checks())
        return dg.Definitions(assets=assets, asset_checks=[self.checks], jobs=[job], sensors=[self.sensor])


@pytest.fixture
def world(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> SealedHoursSensor:
    return SealedHoursSensor(instance, monkeypatch)


def test_nothing_is_expected_before_a_sink_s_first_hour_is_over_and_its_time(world: SealedHoursSensor) -> None:
    world.at(NINE, 14.9)
    assert world.tick() == []


def test_an_hour_that_is_not_is_red_once_and_the_run_that_seals_it_turns_it_green(world: SealedHoursSensor) -> None:
    world.sealed("clicks", EIGHT)
    world.at(NINE, 15)
    assert world.tick() == [("orders", EIGHT, False), ("clicks", EIGHT, True)]
    assert world.message == "evaluated 2 hours of topics, 1 of them not sealed in time"
    world.at(NINE, 30)
    assert world.tick() == []
    assert world.message == "no hour is new since 2026-01-05T08: each is evaluated 15m after its end"
    assert world.late("orders", EIGHT, NINE) == [(EIGHT, True)]
    assert world.late("clicks", EIGHT) == []  # it was sealed in time


def test_results_of_a_tick_are_not_repeated_if_its_cursor_was_lost(world: SealedHoursSensor) -> None:
    world.sealed("clicks", EIGHT)
    world.at(NINE, 15)
    world.tick()
    world.cursor = None
    assert (world.tick(), world.tick()) == ([], [])


def test_the_first_tick_waits_until_hours_that_landed_before_are_announced(world: SealedHoursSensor) -> None:
    world.cursor = None
    world.at(TEN, 15)
    assert world.tick() == []
    assert world.message == "the first tick evaluates nothing, the next one 2 past hours"
    world.sealed("orders", EIGHT, NINE)
    world.sealed("clicks", EIGHT, NINE)
    world.at(TEN, 20)
    assert {passed for _, _, passed in world.tick()} == {True}


def test_a_later_hour_that_is_sealed_hides_no_earlier_one(world: SealedHoursSensor) -> None:
    for topic in TOPICS:
        world.sealed(topic, NINE)
    world.at(TEN, 15)
    assert {outcome for outcome in world.tick() if not outcome[2]} == {
        ("orders", EIGHT, False),
        ("clicks", EIGHT, False),
    }


def test_a_sensor_that_was_off_for_long_looks_at_the_last_two_days(world: SealedHoursSensor) -> None:
    world.cursor = None
    world.at("2026-03-05T10", 20)
    world.tick()
    found = world.tick()
    assert len(found) == 2 * 48
    assert {one[1] for one in found} == set(hours.span("2026-03-03T10", "2026-03-05T09"))


def test_a_run_of_the_check_has_the_same_results_for_the_requested_hours(world: SealedHoursSensor) -> None:
    world.sealed("orders", EIGHT)
    world.at(TEN, 20)
    tags = dagster_names.range_tags(EIGHT, NINE)
    result = world.definitions().resolve_job_def("look").execute_in_process(tags=tags, instance=world.instance)
    found = {
        (one.asset_key.path[2].removesuffix("_sealed"), one.partition): one.passed
        for one in result.get_asset_check_evaluations()
    }
    assert found == {
        ("orders", EIGHT): True,
        ("orders", NINE): False,
        ("clicks", EIGHT): False,
        ("clicks", NINE): False,
    }
