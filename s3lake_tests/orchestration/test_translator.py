"""Everything follows the names and metadata of a user's translator."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

import s3lake
from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError
from s3lake.index.store.memory import MemoryStore
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.dagster_names import find_range
from s3lake.orchestration.runs import find_topics_of_run
from s3lake.source import sources as sources
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.orchestration.world import KafkaEnds

START, NOON = "2026-01-05T08", "2026-01-05T12"
SINK = make_sink(topics=("orders", "clicks"), start=START)
OWN, OWN_SEALED = dg.AssetKey(["own", "orders"]), dg.AssetKey(["own", "orders_sealed"])
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=2))


class Own(s3lake.SinkTranslator):
    """Assets as a project has them."""

    def __init__(self, prefix: str = "", **attributes: Any) -> None:
        super().__init__(prefix)
        self.attributes = attributes

    def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
        spec = super().get_asset_spec(sink, topic)
        return spec.replace_attributes(key=["own", topic], **self.attributes)


def definitions(translator: s3lake.SinkTranslator | None = None, sink: Sink = SINK, **more: Any) -> dg.Definitions:
    return build_definitions(make_config(sink), translator=translator or Own(), **more)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("group_name", "lakehouse"),
        ("owners", ["team:data"]),
        ("tags", {"tier": "gold"}),
        ("description", "Orders, hour by hour."),
        ("automation_condition", dg.AutomationCondition.on_missing()),
        ("freshness_policy", FRESH),
        ("kinds", {"s3", "parquet"}),
        ("code_version", "7"),
        ("deps", [dg.AssetDep("shop")]),
        ("partitions_def", dg.HourlyPartitionsDefinition(START, fmt=hours.FORMAT, timezone="UTC", end_offset=0)),
    ],
)
def test_attributes_of_a_translator_are_those_that_dagster_has(attribute: str, value: Any) -> None:
    graph = definitions(Own(**{attribute: value})).resolve_asset_graph()
    spec = graph.get(OWN).to_asset_spec()
    kept = getattr(spec, attribute)
    assert (list(kept) if attribute == "deps" else kept) == value or value.items() <= kept.items()


def test_owners_that_a_sink_names_are_those_of_its_assets_and_a_translator_has_the_last_word() -> None:
    sink = SINK.model_copy(update={"owners": ("team:data", "ann@example.com")})
    for translator, owners in (
        (s3lake.SinkTranslator(), ["team:data", "ann@example.com"]),
        (Own(owners=["team:shop"]), ["team:shop"]),
    ):
        graph = definitions(translator, sink).resolve_asset_graph()
        keys = [key for key in graph.get_all_asset_keys() if "kafka" not in key.path]
        assert [graph.get(key).owners for key in keys] == [owners] * 4


def test_sealed_hours_have_the_key_the_group_the_owners_and_the_tags_of_what_is_landed() -> None:
    own = Own(group_name="lakehouse", owners=["team:data"], tags={"tier": "gold"})
    sealed = definitions(own).resolve_asset_graph().get(OWN_SEALED)
    assert (sealed.group_name, sealed.owners, sealed.parent_keys) == ("lakehouse", ["team:data"], {OWN})
    assert sealed.tags == {"tier": "gold", "s3lake/sealed": "true", "dagster/kind/s3": ""}


def test_checks_jobs_and_runs_go_by_the_key() -> None:
    built = definitions().get_repository_def()
    assert built.asset_graph.get_check_keys_for_assets({OWN, OWN_SEALED}) == {
        dg.AssetCheckKey(OWN, "offsets_contiguous"),
        dg.AssetCheckKey(OWN, "rows_equal_offsets"),
        dg.AssetCheckKey(OWN, "lag"),
        dg.AssetCheckKey(OWN, "dead_letters"),
        dg.AssetCheckKey(OWN_SEALED, "sealed_in_time"),
    }
    landed = built.get_job("land_events").asset_layer.selected_asset_keys
    assert landed == {OWN, dg.AssetKey(["own", "clicks"])}
    run = dg.DagsterRun("land_events", asset_selection=frozenset([OWN, dg.AssetKey(["s3", "events", "clicks"])]))
    assert find_topics_of_run(Catalog(make_config(SINK), Own()), SINK, run) == {"orders"}


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> Callable[..., Sequence[dg.RunRequest]]:
    """A tick of the sensor at twelve o'clock and ten minutes, with records and without an index."""
    store = MemoryStore("lake")
    monkeypatch.setattr(open_topic_sink, "open_stores", lambda *_, **__: lambda _: store)
    monkeypatch.setattr(sources, "open_source", lambda *_: KafkaEnds())
    monkeypatch.setattr(hours, "now_ms", lambda: hours.start_ms(NOON) + 600_000)

    def evaluate(name: str, built: dg.Definitions) -> Sequence[dg.RunRequest]:
        sensor = built.get_repository_def().get_sensor_def(name)
        with dg.build_sensor_context(instance=instance, definitions=built) as context:
            return sensor.evaluate_tick(context).run_requests or ()

    return evaluate


def test_a_sensor_asks_for_the_asset_under_its_key(tick: Callable[..., Sequence[dg.RunRequest]]) -> None:
    (request,) = tick("kafka_orders", definitions())
    assert request.asset_selection == [OWN]
    assert find_range(request.tags) == (START, NOON)


def test_an_asset_that_ends_is_asked_for_up_to_its_end(tick: Callable[..., Sequence[dg.RunRequest]]) -> None:
    until = dg.HourlyPartitionsDefinition(START, "2026-01-05T11", fmt=hours.FORMAT, timezone="UTC")
    built = definitions(Own(partitions_def=until))
    (request,) = tick("kafka_orders", built)
    assert find_range(request.tags) == (START, "2026-01-05T10")


@pytest.mark.parametrize(
    "partitions",
    [
        None,
        dg.StaticPartitionsDefinition(["a"]),
        dg.DailyPartitionsDefinition("2026-01-05"),
        dg.HourlyPartitionsDefinition("2026-01-05-08:00"),
        dg.HourlyPartitionsDefinition(START, fmt=hours.FORMAT, timezone="Europe/Rome"),
        dg.HourlyPartitionsDefinition("2026-01-05T09", fmt=hours.FORMAT, timezone="UTC"),
    ],
)
def test_other_partitions_than_the_hours_of_the_index_are_refused(partitions: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"partitions of own/clicks: .* take s3lake\.hourly\(sink\)"):
        definitions(Own(partitions_def=partitions))


def test_two_topics_of_one_key_are_refused() -> None:
    class Same(s3lake.SinkTranslator):
        def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
            return super().get_asset_spec(sink, topic).replace_attributes(key="same")

    with pytest.raises(ConfigurationError, match=r"clicks of sink events and orders of sink events would both be"):
        definitions(Same())


class TestPrefix:
    """Everything begins with it."""

    def built(self, **settings: Any) -> dg.Definitions:
        return definitions(s3lake.SinkTranslator("archive"), SINK.model_copy(update=settings))

    def test_keys_of_assets_and_resources_do(self) -> None:
        built = self.built()
        assert set(built.resources or ()) == {"archive_events_io_manager", "archive_s3", "archive_spark"}
        keys = built.resolve_asset_graph().get_all_asset_keys()
        assert {key.path[0] for key in keys} == {"archive"}
        assert s3lake.sink_key("events", "orders", "archive") in keys
        assert s3lake.sealed_key("events", "orders", "archive") in keys

    @pytest.mark.parametrize("together", [True, False])
    def test_names_pools_and_tags_do(self, together: bool) -> None:
        built = self.built(together=together).get_repository_def()
        names = [
            *(job.name for job in built.get_all_jobs() if job.name != "__ASSET_JOB"),
            *(sensor.name for sensor in built.sensor_defs),
            *(schedule.name for schedule in built.schedule_defs),
            *(node.name for job in built.get_all_jobs() for node in job.nodes),
            *(pool for job in built.get_all_jobs() for node in job.nodes for pool in node.definition.pools),
        ]
        assert {name for name in names if not name.startswith("archive_")} == set()
        ops = built.get_job("__ASSET_JOB").nodes
        assert {op.tags["s3lake/sink"] for op in ops if "s3lake/sink" in op.tags} == {"archive/events"}

    @pytest.mark.parametrize("prefix", ["a-b", "a/b", "ä", " "])
    def test_others_than_names_of_dagster_are_refused(self, prefix: str) -> None:
        with pytest.raises(ConfigurationError, match="letters, digits and underscores"):
            s3lake.SinkTranslator(prefix)


class TestResources:
    """The project can have external assets of its own in place of ours."""

    def test_a_key_is_that_of_the_project_s_own(self) -> None:
        built = definitions(resources={"spark": "cluster"})
        assert set(built.resources or ()) == {"s3lake_events_io_manager", "s3lake_s3"}
        project = dg.Definitions(resources={"cluster": object()})
        assert dg.Definitions.merge(built, project).get_repository_def().has_job("land_events")
        missing = "'cluster' required by resource with key 's3lake_events_io_manager'"
        with pytest.raises(dg.DagsterInvalidDefinitionError, match=missing):
            built.get_repository_def()

    def test_a_name_that_nothing_has_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="'s4' is not one of s3, spark"):
            definitions(resources={"s4": object()})


def test_external_assets_of_topics_can_be_the_projects_own() -> None:
    own = dg.Definitions(assets=[dg.AssetSpec(["kafka", "orders"], owners=["team:shop"])])
    graph = dg.Definitions.merge(definitions(topic_assets=False), own).resolve_asset_graph()
    assert graph.get(dg.AssetKey(["kafka", "orders"])).owners == ["team:shop"]
    assert graph.get(OWN).parent_keys == {dg.AssetKey(["kafka", "orders"])}
