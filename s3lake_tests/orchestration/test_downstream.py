"""What follows sealed hours: asked of Dagster's own evaluation of the conditions, tick by tick."""

import dagster as dg
import pytest

import s3lake
from s3lake import hours
from s3lake.orchestration.translator import hourly as hours_of
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake_tests.kit.sinks import make_config, make_sink

TEN, ELEVEN = "2026-01-05T10", "2026-01-05T11"
SINK = make_sink(start="2026-01-04T00")
LANDED, SEALED = sink_key(SINK, "orders"), sealed_key(SINK, "orders")
HOURLY, DAILY = dg.AssetKey("hourly"), dg.AssetKey("daily")


class DownstreamAssets:
    """Assets downstream of sealed hours, one by the hour and one by the day, and ticks of what materialises them."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        definitions = s3lake.build_definitions(make_config(SINK))

        @dg.asset(
            key=HOURLY,
            deps=[LANDED, SEALED],
            partitions_def=hours_of(SINK, over=True),
            automation_condition=s3lake.on_sealed_hours(),
        )
        def hourly() -> None: ...

        @dg.asset(
            key=DAILY,
            deps=[SEALED],
            partitions_def=dg.DailyPartitionsDefinition("2026-01-04", timezone="UTC"),
            automation_condition=s3lake.on_sealed_hours(),
        )
        def daily() -> None: ...

        self.definitions = dg.Definitions.merge(definitions, dg.Definitions(assets=[hourly, daily]))
        self.instance = instance
        self.cursor = None
        self.tick()

    def tick(self) -> list[tuple[str, str | None]]:
        """What is asked for now: asset and partition."""
        result = dg.evaluate_automation_conditions(
            self.definitions,
            self.instance,
            cursor=self.cursor,
            asset_selection=dg.AssetSelection.assets(HOURLY, DAILY),
            evaluation_time=hours.parse_hour("2026-01-06T01"),
        )
        self.cursor = result.cursor  # type: ignore[assignment]
        return [
            (key.to_user_string(), partition)
            for key in (HOURLY, DAILY)
            for partition in sorted(result.get_requested_partitions(key))  # type: ignore[type-var]
        ]

    def happens(self, key: dg.AssetKey, *partitions: str) -> None:
        """A materialisation of each."""
        for partition in partitions:
            self.instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition))


@pytest.fixture
def world(instance: dg.DagsterInstance) -> DownstreamAssets:
    return DownstreamAssets(instance)


def test_an_hour_that_is_landed_in_part_fires_nothing(world: DownstreamAssets) -> None:
    world.happens(LANDED, TEN)
    assert world.tick() == []


def test_a_sealed_hour_fires_once_and_again_when_it_was_rewritten(world: DownstreamAssets) -> None:
    world.happens(SEALED, TEN)
    assert world.tick() == [("hourly", TEN)]
    world.happens(HOURLY, TEN)
    assert world.tick() == []
    assert world.tick() == []
    world.happens(SEALED, TEN)
    assert world.tick() == [("hourly", TEN)]


def test_several_hours_of_one_tick_fire_each_however_old_they_are(world: DownstreamAssets) -> None:
    world.happens(SEALED, "2026-01-04T03", ELEVEN)
    assert world.tick() == [("hourly", "2026-01-04T03"), ("hourly", ELEVEN)]


def test_a_day_fires_once_all_its_hours_are_sealed(world: DownstreamAssets) -> None:
    day = list(hours.span("2026-01-05T00", "2026-01-05T23"))
    world.happens(SEALED, *day[:-1])
    assert ("daily", "2026-01-05") not in world.tick()
    world.happens(SEALED, day[-1])
    assert ("daily", "2026-01-05") in world.tick()
    world.happens(DAILY, "2026-01-05")
    assert world.tick() == []


def test_hours_that_were_sealed_before_the_first_evaluation_fire_nothing(instance: dg.DagsterInstance) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(SEALED, partition=TEN))
    assert DownstreamAssets(instance).tick() == []


def test_an_hour_that_is_rewritten_after_the_asset_between_two_ticks_fires_again(world: DownstreamAssets) -> None:
    world.happens(SEALED, TEN)
    assert world.tick() == [("hourly", TEN)]
    world.happens(HOURLY, TEN)
    world.happens(SEALED, TEN)
    assert world.tick() == [("hourly", TEN)]


def test_an_hour_that_is_rewritten_while_the_asset_is_made_of_it_fires_again(world: DownstreamAssets) -> None:
    world.happens(SEALED, TEN)
    assert world.tick() == [("hourly", TEN)]
    world.happens(SEALED, TEN)
    world.happens(HOURLY, TEN)  # its run had read what was there before
    assert world.tick() == [("hourly", TEN)]
    world.happens(HOURLY, TEN)
    assert world.tick() == []


def test_a_day_with_an_hour_that_is_rewritten_while_it_is_made_fires_again(world: DownstreamAssets) -> None:
    world.happens(SEALED, *hours.span("2026-01-05T00", "2026-01-05T23"))
    assert ("daily", "2026-01-05") in world.tick()
    world.happens(SEALED, TEN)
    world.happens(DAILY, "2026-01-05")
    assert ("daily", "2026-01-05") in world.tick()


def test_an_hour_that_is_sealed_and_followed_in_one_run_fires_nothing_more(world: DownstreamAssets) -> None:
    @dg.asset(key=SEALED, partitions_def=hours_of(SINK))
    def sealed() -> None: ...

    @dg.asset(key=HOURLY, deps=[sealed], partitions_def=hours_of(SINK))
    def hourly() -> None: ...

    job = dg.Definitions(assets=[sealed, hourly], jobs=[dg.define_asset_job("both")]).resolve_job_def("both")
    job.execute_in_process(asset_selection=[SEALED, HOURLY], partition_key=TEN, instance=world.instance)
    assert world.tick() == []


def test_an_asset_without_partitions_fires_once_all_ended_hours_are_sealed(instance: dg.DagsterInstance) -> None:
    @dg.asset(deps=[SEALED], automation_condition=s3lake.on_sealed_hours())
    def whole() -> None: ...

    definitions = dg.Definitions.merge(s3lake.build_definitions(make_config(SINK)), dg.Definitions(assets=[whole]))
    cursor, requests = None, []
    for sealed in ([], list(hours.span("2026-01-04T00", "2026-01-05T23")), ["2026-01-06T00"], []):
        for hour in sealed:
            instance.report_runless_asset_event(dg.AssetMaterialization(SEALED, partition=hour))
        now = hours.parse_hour("2026-01-06T01")
        selection = dg.AssetSelection.assets(whole)
        result = dg.evaluate_automation_conditions(
            definitions, instance, cursor=cursor, asset_selection=selection, evaluation_time=now
        )
        cursor = result.cursor
        requests.append(result.total_requested)
    assert requests == [0, 0, 1, 0]
