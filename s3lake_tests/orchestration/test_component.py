"""The component: the configuration in Dagster's own YAML gives the same definitions as its Python twin."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._utils.test.definitions import scoped_definitions_load_context
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox
from dagster.components.testing.test_cases import TestTranslation
from dagster_shared.yaml_utils.sample_yaml import generate_sample_yaml

import s3lake
from s3lake.orchestration.build import build_definitions
from s3lake.sink import Config, Sink

pytestmark = [  # Dagster's own, where it loads components
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

ATTRIBUTES = {
    "kafka": {"bootstrap_servers": "127.0.0.1:1"},
    "sinks": [
        {"name": "events", "topics": ["orders", "clicks"], "bucket": "lake", "start": "2026-11-20T00"},
        {"name": "copies", "topics": ["orders"], "bucket": "copies", "start": "2026-11-20T00"},
    ],
}
CONNECTOR = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "acme-lake",
    "s3.region": "eu-west-1",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "1000",
}
PYPROJECT = """
[project]
name = "shop"
version = "0.1"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
"""
DEFINITIONS = """
import dagster as dg

@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=__import__("pathlib").Path(__file__).parent)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of `dg`'s shape, without definitions."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "shop" / "defs").mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "defs" / "__init__.py").touch()
    (tmp_path / "shop" / "definitions.py").write_text(DEFINITIONS)
    return tmp_path


def dg_cli(project: Path, *arguments: str) -> str:
    """What `dg` prints in a project."""
    path = os.pathsep.join([str(project), str(Path(s3lake.__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "dagster_dg_cli.cli", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path, "DG_CLI_TELEMETRY_ENABLED": "false", "KAFKA_BOOTSTRAP": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def keys(definitions: dg.Definitions) -> Sequence[str]:
    return sorted(key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys())


def graph(definitions: dg.Definitions) -> dict[str, Any]:
    """Every asset as Dagster has it, and the names of all else."""
    built = definitions.get_repository_def()
    return {
        "assets": sorted(map(_said, definitions.resolve_all_asset_specs()), key=lambda spec: spec.key),
        "policies": {key: built.asset_graph.get(key).backfill_policy for key in built.asset_graph.get_all_asset_keys()},
        "checks": sorted(map(str, built.asset_graph.asset_check_keys)),
        "jobs": sorted((job.name, job.executor_def.name) for job in built.get_all_jobs()),
        "sensors": sorted((sensor.name, sensor.default_status.name) for sensor in built.sensor_defs),
        "schedules": sorted((schedule.name, schedule.cron_schedule) for schedule in built.schedule_defs),
        "resources": sorted(definitions.resources or ()),
    }


def _said(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Without what Dagster adds to assets of a component: where that stands."""
    ours = {
        name: value
        for name, value in spec.metadata.items()
        if name != "dagster/code_references" and "component" not in name
    }
    return spec.replace_attributes(metadata=ours)


@pytest.fixture
def loaded() -> Iterator[Callable[..., dg.Definitions]]:
    """Loads a `defs.yaml` as a code location does."""
    with ExitStack() as stack:
        sandbox = stack.enter_context(create_defs_folder_sandbox())
        stack.enter_context(scoped_definitions_load_context())

        def load(**scaffolding: Any) -> dg.Definitions:
            path = sandbox.scaffold_component(s3lake.SinkComponent, **scaffolding)
            return stack.enter_context(sandbox.load_component_and_build_defs(path))[1]

        yield load


class Owned(s3lake.SinkTranslator):
    """In Python what `TRANSLATION` is in YAML."""

    def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
        spec = super().get_asset_spec(sink, topic)
        spec = spec.replace_attributes(key=["lakehouse", *spec.key.path], group_name="lakehouse", owners=["team:data"])
        return spec.merge_attributes(tags={"topic": topic, "format": sink.format.type})


TRANSLATION = {
    "key_prefix": "lakehouse",
    "group_name": "lakehouse",
    "owners": ["team:data"],
    "tags": {"topic": "{{ topic }}", "format": "{{ sink.format.type }}"},
}


@pytest.mark.parametrize(
    ("attributes", "twin"),
    [
        pytest.param({}, {}, id="plain"),
        pytest.param({"prefix": "archive"}, {"translator": s3lake.SinkTranslator("archive")}, id="prefix"),
        pytest.param({"translation": TRANSLATION}, {"translator": Owned()}, id="translation"),
        pytest.param(
            {"topic_assets": False, "sensors_running": True, "examples": True},
            {"topic_assets": False, "sensors_running": True},
            id="switches",
        ),
    ],
)
def test_a_component_has_the_assets_and_all_else_of_its_python_twin(
    attributes: dict[str, Any], twin: dict[str, Any], loaded: Callable[..., dg.Definitions]
) -> None:
    config = Config.model_validate({**ATTRIBUTES, "examples": "examples" in attributes})
    component = loaded(defs_yaml_contents={"type": "s3lake.SinkComponent", "attributes": {**ATTRIBUTES, **attributes}})
    assert graph(component) == graph(build_definitions(config, **twin))


@pytest.mark.filterwarnings("ignore:Accessing `{{automation_condition:DeprecationWarning")
class TestTranslations(TestTranslation):
    """Dagster's own cases for what a component's `translation` may say."""

    def test_is_what_the_asset_has(
        self,
        attributes: dict[str, Any],
        assertion: Callable[[dg.AssetSpec], bool],
        key_modifier: Callable[[dg.AssetKey], dg.AssetKey] | None,
        loaded: Callable[..., dg.Definitions],
    ) -> None:
        contents = {"type": "s3lake.SinkComponent", "attributes": {**ATTRIBUTES, "translation": attributes}}
        if "partitions_def" in attributes:  # of all that it may say the one thing that is not the asset's to choose
            with pytest.raises(ComponentTreeException) as refused:
                loaded(defs_yaml_contents=contents)
            assert "take s3lake.hourly(sink)" in str(refused.value.__cause__)
            return
        key = s3lake.sink_key("events", "orders")
        definitions = loaded(defs_yaml_contents=contents)
        assert assertion(
            definitions.resolve_asset_graph().get((key_modifier or (lambda one: one))(key)).to_asset_spec()
        )


def test_a_component_s_own_class_says_what_assets_are() -> None:
    class Shop(s3lake.SinkComponent):
        def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
            return super().get_asset_spec(sink, topic).replace_attributes(key=["shop", topic, sink.name])

    component = Shop.resolve_from_yaml(yaml.safe_dump(ATTRIBUTES))
    assert "shop/orders/events/sealed" in keys(
        component.build_defs_from_state(dg.ComponentTree.for_test().load_context, None)
    )


def test_topics_of_an_expression_are_the_component_s_state(tmp_path: Path) -> None:
    sink = {"name": "events", "topics_regex": "shop.*", "bucket": "lake", "start": "2026-11-20T00"}
    component = s3lake.SinkComponent.resolve_from_yaml(yaml.safe_dump({**ATTRIBUTES, "sinks": [sink]}))
    state = tmp_path / "state"
    state.write_text(json.dumps({"shop.*": ["shop.orders"]}))
    context = dg.ComponentTree.for_test().load_context
    assert "s3/events/shop.orders" in keys(component.build_defs_from_state(context, state))
    assert keys(component.build_defs_from_state(context, None)) == []


def test_without_an_expression_kafka_is_not_asked_for_state(tmp_path: Path) -> None:
    component = s3lake.SinkComponent.resolve_from_yaml(yaml.safe_dump(ATTRIBUTES))
    component.write_state_to_path(tmp_path / "state")
    assert json.loads((tmp_path / "state").read_text()) == {}


def test_without_a_file_one_sink_is_scaffolded_to_begin_with(
    loaded: Callable[..., dg.Definitions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "127.0.0.1:1")
    assert "s3/events/orders" in keys(loaded())


def test_secrets_of_a_connector_s_file_are_scaffolded_as_variables(
    loaded: Callable[..., dg.Definitions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {"aws.access.key.id": "AKIA", "aws.secret.access.key": "hunter2"}
    (tmp_path / "connector.json").write_text(json.dumps({"name": "c", "config": {**CONNECTOR, **secret}}))
    monkeypatch.setenv("S3LAKE_SECRET_S3_CREDENTIALS_SECRET_ACCESS_KEY", "hunter3")
    definitions = loaded(scaffold_params={"from": str(tmp_path / "connector.json")})
    assert definitions.resources is not None
    assert definitions.resources["s3lake_s3"].connection.secret_access_key == "hunter3"


@pytest.mark.ui
def test_dg_lists_scaffolds_and_checks_it(project: Path) -> None:
    connector = {"name": "shop-sink", "config": CONNECTOR}
    (project / "connector.json").write_text(json.dumps(connector))
    assert "s3lake.SinkComponent" in dg_cli(project, "list", "components", "--json")
    described = dg_cli(project, "utils", "inspect-component", "s3lake.SinkComponent")
    assert "what is said of assets otherwise" in described
    assert "how long after its end an hour is left open" in described
    dg_cli(project, "scaffold", "defs", "s3lake.SinkComponent", "lake", "--from", "connector.json")
    written = yaml.safe_load((project / "shop" / "defs" / "lake" / "defs.yaml").read_text())
    assert written["type"] == "s3lake.SinkComponent"
    assert written["attributes"]["sinks"][0]["bucket"] == "acme-lake"
    dg_cli(project, "check", "yaml")
    dg_cli(project, "check", "defs")


def resolved(**kafka: Any) -> s3lake.SinkComponent:
    attributes = {**ATTRIBUTES, "kafka": {**ATTRIBUTES["kafka"], **kafka}}  # type: ignore[dict-item]
    component: s3lake.SinkComponent = s3lake.SinkComponent.resolve_from_yaml(yaml.safe_dump(attributes))
    return component


def test_a_value_from_the_environment_is_the_text_that_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "0123")
    monkeypatch.setenv("KAFKA_TIMEOUT", "1_000")
    component = resolved(
        properties={"sasl.password": "{{ env.KAFKA_PASSWORD }}", "socket.timeout.ms": "{{ env.KAFKA_TIMEOUT }}"}
    )
    assert component.kafka.properties == {"sasl.password": "0123", "socket.timeout.ms": "1_000"}


def test_a_component_is_the_configuration_of_its_python_twin() -> None:
    settings = resolved().model_dump(include=set(Config.model_fields))
    assert Config.model_validate(settings) == Config.model_validate(ATTRIBUTES)


def test_editors_are_told_what_every_setting_of_a_component_means() -> None:
    schema = s3lake.SinkComponent.model().model_json_schema()
    assert schema["$defs"]["Sink"]["properties"]["close_grace"]["description"].startswith("how long after its end")
    assert "from" in schema["$defs"]["Sink"]["properties"]
    assert schema["$defs"]["Kafka"]["required"] == ["bootstrap_servers"]


def test_what_dagster_s_pages_show_of_it_is_short_and_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    component = s3lake.SinkComponent
    assert "Attributes:" not in (component.get_description() or "Attributes:")
    text = generate_sample_yaml("s3lake.SinkComponent", component.model().model_json_schema())
    assert "..." not in text
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "127.0.0.1:1")
    example = component.resolve_from_yaml(yaml.safe_dump(yaml.safe_load(text)["attributes"]))
    spec = example.get_asset_spec(example.sinks[0], "orders")
    assert (spec.group_name, spec.owners, spec.tags["topic"]) == ("lakehouse", ["team:data"], "orders")


def test_templates_are_filled_before_the_rules_are_applied() -> None:
    resolved = s3lake.SinkComponent.resolve_from_yaml(
        """
        kafka: {bootstrap_servers: "{{ servers }}"}
        s3: {credentials: {access_key_id: id, secret_access_key: "{{ password }}"}}
        sinks:
          - name: events
            topics: ["{{ topic }}"]
            bucket: "{{ bucket }}"
            start: "{{ start }}"
            from: "{{ first }}"
            flush: {count: "{{ count }}", size: "{{ size }}"}
            format: {type: parquet, codec: "{{ codec }}"}
            layout: "{{ layout }}"
        """,
        scope={
            "servers": "kafka:9092",
            "password": "hunter2",
            "topic": "clicks",
            "bucket": "lake",
            "start": "2026-11-20T00",
            "first": "earliest",
            "count": 7,
            "size": "7MB",
            "codec": "snappy",
            "layout": {"partition_by": ["type"]},
        },
    )
    made = resolved.sinks[0]
    assert (resolved.kafka.bootstrap_servers, made.topics, made.bucket) == ("kafka:9092", ("clicks",), "lake")
    assert (made.flush.count, made.flush.size, made.format.codec, made.from_) == (7, 7_000_000, "snappy", "earliest")
    assert made.layout.partition_by == ("type",)
    assert resolved.s3.credentials.secret_access_key.get_secret_value() == "hunter2"
