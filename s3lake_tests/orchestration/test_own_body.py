"""Assets whose body is the user's own: it lands with the resource, and can do more."""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest

import s3lake
from s3lake.config import load as configuration
from s3lake.errors import ConfigurationError
from s3lake.orchestration import dagster_names
from s3lake.orchestration.assets import land_asset_hours
from s3lake.orchestration.build import build_definitions
from s3lake_tests.land.unstaged import FIRST, THIRD
from s3lake_tests.orchestration import unstaged_runs
from s3lake_tests.orchestration.unstaged_runs import ALL
from s3lake_tests.orchestration.world import STAND_INS

TOPICS = ("one", "two")


class RunsWithBody(unstaged_runs.Runs):
    """Runs of a sink of two topics; `body` is what its assets do."""

    def land(self, body: Callable[..., Any], *selected: str, rewrite: bool = False) -> dg.ExecuteInProcessResult:
        assets = s3lake.sink_assets(self.config, self.sink.name)(body)
        ops = [s3lake.sink_key(self.sink, topic).to_python_identifier() for topic in selected or TOPICS]
        definitions = build_definitions(self.config, assets=[assets], resources=STAND_INS)
        return definitions.resolve_job_def(f"land_{self.sink.name}").execute_in_process(
            asset_selection=[s3lake.sink_key(self.sink, topic) for topic in selected or TOPICS],
            tags=dagster_names.range_tags(FIRST, THIRD),
            run_config={"ops": {op: {"config": {"rewrite": True}} for op in ops}} if rewrite else {},
            instance=self.instance,
            raise_on_error=False,
        )


@pytest.fixture
def runs(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> RunsWithBody:
    return RunsWithBody(instance, monkeypatch, *TOPICS, errors={"retry_interval": 0, "max_retries": 1})


def plain(context: dg.AssetExecutionContext) -> Iterator[Any]:
    yield s3lake.KafkaHours(context)


def test_the_body_sees_what_was_landed_of_each_topic(runs: RunsWithBody) -> None:
    rows: dict[str, list[int]] = {}

    def counted(context: dg.AssetExecutionContext) -> Iterator[Any]:
        kafka_hours = s3lake.KafkaHours(context)
        yield kafka_hours
        rows[context.asset_key.path[-1]] = [hour.sums.landed for hour in kafka_hours.landed]

    assert runs.land(counted).success
    assert rows == {topic: [10, 10, 10] for topic in TOPICS}
    assert runs.hours() == dict.fromkeys(TOPICS, ALL)


def test_the_body_may_land_fewer_hours_than_it_is_asked_for(runs: RunsWithBody) -> None:
    def first(context: dg.AssetExecutionContext) -> Iterator[Any]:
        yield s3lake.KafkaHours(context, hours=context.partition_keys[:1])

    runs.land(first)
    assert runs.hours() == {topic: [FIRST] for topic in TOPICS}


def test_a_run_s_config_sets_whether_to_rewrite(runs: RunsWithBody) -> None:
    def again(context: dg.AssetExecutionContext, config: s3lake.LandConfig) -> Iterator[Any]:
        yield s3lake.KafkaHours(context, rewrite=config.rewrite)

    assert runs.land(again).success
    before = runs.targets["one"].index.tiles()
    commits = {tile.hour: tile.commits for tile in before}
    assert runs.land(again, rewrite=True).success
    after = {tile.hour: tile.commits for tile in runs.targets["one"].index.tiles()}
    assert after.keys() == commits.keys()
    assert all(after[hour] != commits[hour] for hour in ALL)


def test_the_assets_are_those_of_the_configuration_with_their_checks_and_sensors(runs: RunsWithBody) -> None:
    assets = s3lake.sink_assets(runs.config, runs.sink.name)(plain)
    own, ours = build_definitions(runs.config, assets=[assets]), build_definitions(runs.config)
    keys = own.resolve_asset_graph().get_all_asset_keys()
    assert keys == ours.resolve_asset_graph().get_all_asset_keys()
    assert own.resolve_asset_graph().asset_check_keys == ours.resolve_asset_graph().asset_check_keys
    assert [one.name for one in own.sensors or ()] == [one.name for one in ours.sensors or ()]
    assert own.resolve_asset_graph().get(s3lake.sink_key(runs.sink, "one")).backfill_policy is not None


def test_a_sink_of_many_topics_that_has_a_body_is_no_fleet(runs: RunsWithBody) -> None:
    config = runs.config.model_copy(update={"sinks": (runs.sink.model_copy(update={"together": True}),)})
    assets = s3lake.sink_assets(config, runs.sink.name)(plain)
    sensors = {one.name for one in build_definitions(config, assets=[assets]).sensors or ()}
    assert {"kafka_one", "kafka_two"} < sensors
    assert "sink_events" not in sensors


def test_the_resources_are_enough_if_there_are_no_sensors_and_schedules(runs: RunsWithBody) -> None:
    assets = s3lake.sink_assets(runs.config, runs.sink.name)(plain)
    result = dg.materialize(
        assets,
        resources=s3lake.resources(runs.config, **STAND_INS),
        partition_key=FIRST,
        instance=runs.instance,
    )
    assert result.success
    assert runs.hours() == {topic: [FIRST] for topic in TOPICS}


def test_assets_of_another_configuration_or_translator_are_refused(runs: RunsWithBody) -> None:
    assets = s3lake.sink_assets(runs.config, runs.sink.name, translator=s3lake.SinkTranslator("other"))(plain)
    with pytest.raises(ConfigurationError, match="other/s3/events/one is not an asset of a sink of this configuration"):
        build_definitions(runs.config, assets=[assets])


class NotingComponent(s3lake.SinkComponent):
    """A component that does something after each landing."""

    def execute(self, context: dg.AssetExecutionContext, config: s3lake.LandConfig) -> Iterator[Any]:
        yield from land_asset_hours(context, config)
        context.log.info(f"noted {context.asset_key.path[-1]}")


def test_a_component_s_execute_is_the_body_of_its_assets(runs: RunsWithBody, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "load", lambda _: runs.config)
    definitions = NotingComponent(config="sinks.yaml").build_defs(dg.ComponentTree.for_test().load_context)
    result = definitions.resolve_job_def("land_events").execute_in_process(
        asset_selection=[s3lake.sink_key(runs.sink, "one")], partition_key=FIRST, instance=runs.instance
    )
    assert result.success
    assert runs.hours() == {"one": [FIRST], "two": []}
    assert "noted one" in [record.user_message for record in runs.instance.all_logs(result.run_id)]
