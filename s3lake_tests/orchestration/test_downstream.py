"""What follows sealed hours: asked of Dagster's own evaluation of the conditions, tick by tick."""

import dagster as dg
import pytest

import s3lake
from s3lake import hours
from s3lake.orchestration.translator import hourly as hours_of
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.orchestration.automation_ticks import AutomationTicks

TEN, ELEVEN = "2026-01-05T10", "2026-01-05T11"
SINK = make_sink(start="2026-01-04T00")
LANDED, SEALED = sink_key(SINK, "orders"), sealed_key(SINK, "orders")
HOURLY, DAILY = dg.AssetKey("hourly"), dg.AssetKey("daily")


def build_ticks(instance: dg.DagsterInstance) -> AutomationTicks:
    """Build assets downstream of sealed hours, one by the hour and one by the day, and their ticks."""

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

    definitions = dg.Definitions.merge(
        s3lake.build_definitions(make_config(SINK)), dg.Definitions(assets=[hourly, daily])
    )
    return AutomationTicks(instance, definitions, [HOURLY, DAILY], "2026-01-06T01")


@pytest.fixture
def ticks(instance: dg.DagsterInstance) -> AutomationTicks:
    return build_ticks(instance)


def test_an_hour_that_is_landed_in_part_fires_nothing(ticks: AutomationTicks) -> None:
    ticks.materialise(LANDED, TEN)
    assert ticks.tick() == []


def test_a_sealed_hour_fires_once_and_again_when_it_was_rewritten(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, TEN)
    assert ticks.tick() == [("hourly", TEN)]
    ticks.materialise(HOURLY, TEN)
    assert ticks.tick() == []
    assert ticks.tick() == []
    ticks.materialise(SEALED, TEN)
    assert ticks.tick() == [("hourly", TEN)]


def test_several_hours_of_one_tick_fire_each_however_old_they_are(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, "2026-01-04T03", ELEVEN)
    assert ticks.tick() == [("hourly", "2026-01-04T03"), ("hourly", ELEVEN)]


def test_a_day_fires_once_all_its_hours_are_sealed(ticks: AutomationTicks) -> None:
    day = list(hours.span("2026-01-05T00", "2026-01-05T23"))
    ticks.materialise(SEALED, *day[:-1])
    assert ("daily", "2026-01-05") not in ticks.tick()
    ticks.materialise(SEALED, day[-1])
    assert ("daily", "2026-01-05") in ticks.tick()
    ticks.materialise(DAILY, "2026-01-05")
    assert ticks.tick() == []


def test_hours_that_were_sealed_before_the_first_evaluation_fire_nothing(instance: dg.DagsterInstance) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(SEALED, partition=TEN))
    assert build_ticks(instance).tick() == []


def test_an_hour_that_is_rewritten_after_the_asset_between_two_ticks_fires_again(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, TEN)
    assert ticks.tick() == [("hourly", TEN)]
    ticks.materialise(HOURLY, TEN)
    ticks.materialise(SEALED, TEN)
    assert ticks.tick() == [("hourly", TEN)]


def test_an_hour_that_is_rewritten_while_the_asset_is_made_of_it_fires_again(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, TEN)
    assert ticks.tick() == [("hourly", TEN)]
    ticks.materialise(SEALED, TEN)
    ticks.materialise(HOURLY, TEN)  # its run had read what was there before
    assert ticks.tick() == [("hourly", TEN)]
    ticks.materialise(HOURLY, TEN)
    assert ticks.tick() == []


def test_a_day_with_an_hour_that_is_rewritten_while_it_is_made_fires_again(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, *hours.span("2026-01-05T00", "2026-01-05T23"))
    assert ("daily", "2026-01-05") in ticks.tick()
    ticks.materialise(SEALED, TEN)
    ticks.materialise(DAILY, "2026-01-05")
    assert ("daily", "2026-01-05") in ticks.tick()


def test_an_hour_that_is_sealed_and_followed_in_one_run_fires_nothing_more(ticks: AutomationTicks) -> None:
    @dg.asset(key=SEALED, partitions_def=hours_of(SINK))
    def sealed() -> None: ...

    @dg.asset(key=HOURLY, deps=[sealed], partitions_def=hours_of(SINK))
    def hourly() -> None: ...

    job = dg.Definitions(assets=[sealed, hourly], jobs=[dg.define_asset_job("both")]).resolve_job_def("both")
    job.execute_in_process(asset_selection=[SEALED, HOURLY], partition_key=TEN, instance=ticks.instance)
    assert ticks.tick() == []


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
