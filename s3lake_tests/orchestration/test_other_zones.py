"""Assets of other time zones that follow sealed hours: when they fire, which sensor does it, and what is refused."""

from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import deserialize_value, serialize_value

import s3lake
from s3lake import hours
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.orchestration.automation_ticks import AutomationTicks

SINK = make_sink(start="2026-10-25T00")
SEALED, LANDED = sealed_key(SINK, "orders"), sink_key(SINK, "orders")
NEW_YORK = dg.DailyPartitionsDefinition("2026-10-26", timezone="America/New_York")
UTC = dg.DailyPartitionsDefinition("2026-10-26", timezone="UTC")
MAPPED = dg.AssetDep(SEALED, partition_mapping=s3lake.OverlappingHours())


def report(name: str, dependency: Any, partitions: dg.PartitionsDefinition, *, follows: bool = True) -> Any:
    """An asset that reads hours, and follows them or not."""

    @dg.asset(
        key=name,
        deps=[dependency],
        partitions_def=partitions,
        automation_condition=s3lake.on_sealed_hours() if follows else None,
    )
    def daily() -> None: ...

    return daily


def project(*assets: Any) -> dg.Definitions:
    return dg.Definitions.merge(s3lake.build_definitions(make_config(SINK)), dg.Definitions(assets=assets))


@pytest.fixture
def ticks(instance: dg.DagsterInstance) -> AutomationTicks:
    """A daily report of New York next to one in UTC."""
    definitions = project(report("local", MAPPED, NEW_YORK), report("utc", SEALED, UTC))
    return AutomationTicks(instance, definitions, [dg.AssetKey("local"), dg.AssetKey("utc")], "2026-11-03T06")


def test_a_local_day_of_25_hours_fires_once_all_of_them_are_sealed(ticks: AutomationTicks) -> None:
    of_day = list(hours.span("2026-11-01T04", "2026-11-02T04"))
    ticks.materialise(SEALED, *of_day[:-1])
    assert ("local", "2026-11-01") not in ticks.tick()
    ticks.materialise(SEALED, of_day[-1])
    assert ticks.tick() == [("local", "2026-11-01")]
    ticks.materialise(dg.AssetKey("local"), "2026-11-01")
    assert ticks.tick() == []


def test_a_local_day_fires_again_when_one_of_its_hours_is_rewritten(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, *hours.span("2026-11-01T04", "2026-11-02T04"))
    assert ticks.tick() == [("local", "2026-11-01")]
    ticks.materialise(dg.AssetKey("local"), "2026-11-01")
    assert ticks.tick() == []
    ticks.materialise(SEALED, "2026-11-02T04")
    assert ticks.tick() == [("local", "2026-11-01")]


def test_a_local_day_fires_next_to_one_in_utc(ticks: AutomationTicks) -> None:
    ticks.materialise(SEALED, *hours.span("2026-11-01T00", "2026-11-02T04"))
    assert ticks.tick() == [("local", "2026-11-01"), ("utc", "2026-11-01")]


def targets(definitions: dg.Definitions) -> dict[str, set[str]]:
    """The assets of each automation sensor of a project."""
    repository = definitions.get_repository_def()
    return {
        sensor.name: {key.to_user_string() for key in sensor.asset_selection.resolve(repository.asset_graph)}
        for sensor in repository.sensor_defs
        if sensor.asset_selection is not None and sensor.name.endswith(("follow_other_zones", _DEFAULT))
    }


_DEFAULT = "default_automation_condition_sensor"


def test_the_code_server_evaluates_the_assets_of_other_zones_and_the_daemon_the_others() -> None:
    of = targets(project(report("local", MAPPED, NEW_YORK), report("utc", SEALED, UTC)))
    assert of["follow_other_zones"] == {"local"}
    assert "utc" in of[_DEFAULT]
    assert "local" not in of[_DEFAULT]


def test_an_asset_that_follows_nothing_is_of_no_sensor() -> None:
    assert targets(project(report("local", MAPPED, NEW_YORK, follows=False)))["follow_other_zones"] == set()


def test_the_sensor_ticks_in_the_code_server(ticks: AutomationTicks) -> None:
    repository = ticks.definitions.get_repository_def()
    sensor = repository.get_sensor_def("follow_other_zones")

    def tick(cursor: str | None) -> Any:
        context = dg.build_sensor_context(ticks.instance, cursor=cursor, repository_def=repository)
        return sensor.evaluate_tick(context)

    first = tick(None)
    ticks.materialise(SEALED, *hours.span("2026-11-01T04", "2026-11-02T04"))
    requested = [request.partition_key for request in tick(first.cursor).run_requests]
    assert requested == ["2026-11-01"]


def test_an_asset_whose_zone_has_no_mapping_is_refused_when_the_project_is_loaded() -> None:
    definitions = project(report("local", SEALED, NEW_YORK), report("utc", SEALED, UTC))
    with pytest.raises(dg.DagsterInvalidDefinitionError) as refused:
        definitions.get_repository_def()
    assert str(refused.value) == (
        "asset local cannot read the hours of s3/events/orders_sealed: Timezones UTC and America/New_York don't match. "
        "Give the dependency partition_mapping=s3lake.OverlappingHours(), and the asset partitions of time"
    )


def test_a_mapping_on_partitions_that_are_not_of_time_is_refused_when_the_project_is_loaded() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="hourly, daily, weekly or monthly partitions"):
        project(report("regions", MAPPED, dg.StaticPartitionsDefinition(["eu"]))).get_repository_def()


def test_an_asset_without_a_condition_whose_zone_has_no_mapping_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="asset local cannot read the hours of s3/"):
        project(report("local", LANDED, NEW_YORK, follows=False)).get_repository_def()


def test_an_asset_that_reads_hours_of_two_configurations_has_one_sensor() -> None:
    archive = s3lake.SinkTranslator("archive")
    sealed = dg.AssetKey(["archive", *SEALED.path])
    both = dg.asset(
        name="both",
        deps=[MAPPED, dg.AssetDep(sealed, partition_mapping=s3lake.OverlappingHours())],
        partitions_def=NEW_YORK,
        automation_condition=s3lake.on_sealed_hours(),
    )(lambda: None)
    ours = [s3lake.build_definitions(make_config(SINK), translator=each) for each in (None, archive)]
    definitions = dg.Definitions.merge(*ours, dg.Definitions(assets=[both]))
    of = targets(definitions)
    assert (of["follow_other_zones"], of["archive_follow_other_zones"]) == (set(), {"both"})


@pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition:DeprecationWarning")  # how Dagster reads its own
def test_the_daemon_gets_a_mapping_that_it_knows_and_that_waits_for_all_hours() -> None:
    repository = project(report("local", MAPPED, NEW_YORK)).get_repository_def()
    sent = deserialize_value(serialize_value(RepositorySnap.from_def(repository)), RepositorySnap)
    [node] = [node for node in sent.asset_nodes if node.asset_key == dg.AssetKey("local")]
    [edge] = node.parent_edges
    assert type(edge.partition_mapping) is dg.AllPartitionMapping
