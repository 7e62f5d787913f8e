"""The component: a file that `defs.yaml` names gives the same definitions as its Python twin, in any process."""

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

import s3lake
from s3lake.config.model import Config, Sink
from s3lake.errors import ConfigurationError
from s3lake.orchestration.build import build_definitions
from s3lake_tests.kit.cost import PATIENCE_S

pytestmark = [  # Dagster's own, where it loads components
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

CONFIG = {
    "kafka": {"bootstrap_servers": "127.0.0.1:1"},
    "sinks": [
        {"name": "events", "topics": ["orders", "clicks"], "bucket": "lake", "start": "2026-11-20T00"},
        {
            "name": "copies",
            "topics": ["orders"],
            "bucket": "copies",
            "start": "2026-11-20T00",
            "forwards": [{"to": "stdout"}],
        },
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


def run_python(project: Path, *arguments: str, **environment: str) -> str:
    """Run Python in a project and return what it prints."""
    path = os.pathsep.join([str(project), str(Path(s3lake.__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path, "DG_CLI_TELEMETRY_ENABLED": "false", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def keys(definitions: dg.Definitions) -> Sequence[str]:
    return sorted(key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys())


def graph(definitions: dg.Definitions) -> dict[str, Any]:
    """Every asset as Dagster has it, and the names of all else."""
    built = definitions.get_repository_def()
    return {
        "assets": sorted(map(_describe, definitions.resolve_all_asset_specs()), key=lambda spec: spec.key),
        "policies": {key: built.asset_graph.get(key).backfill_policy for key in built.asset_graph.get_all_asset_keys()},
        "checks": sorted(map(str, built.asset_graph.asset_check_keys)),
        "jobs": sorted((job.name, job.executor_def.name) for job in built.get_all_jobs()),
        "sensors": sorted((sensor.name, sensor.default_status.name) for sensor in built.sensor_defs),
        "schedules": sorted((schedule.name, schedule.cron_schedule) for schedule in built.schedule_defs),
        "resources": sorted(definitions.resources or ()),
    }


def _describe(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Without what Dagster adds to assets of a component: the place of its file."""
    ours = {
        name: value
        for name, value in spec.metadata.items()
        if name != "dagster/code_references" and "component" not in name
    }
    return spec.replace_attributes(metadata=ours)


@pytest.fixture
def loaded() -> Iterator[Callable[..., dg.Definitions]]:
    """Loads a component as a code location does: its `sinks.yaml` holds `config`, and `defs.yaml` the attributes."""
    with ExitStack() as stack:
        sandbox = stack.enter_context(create_defs_folder_sandbox())
        stack.enter_context(scoped_definitions_load_context())

        def load(config: dict[str, Any] | None = None, **attributes: Any) -> dg.Definitions:
            contents = {"type": "s3lake.SinkComponent", "attributes": {"config": "sinks.yaml", **attributes}}
            path = sandbox.scaffold_component(s3lake.SinkComponent, defs_yaml_contents=contents)
            if config is not None:
                (path / "sinks.yaml").write_text(yaml.safe_dump(config))
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

SWITCHES = {"topic_assets": False, "sensors_running": True}


@pytest.mark.parametrize(
    ("attributes", "twin", "examples"),
    [
        pytest.param({}, {}, False, id="plain"),
        pytest.param({"prefix": "archive"}, {"translator": s3lake.SinkTranslator("archive")}, False, id="prefix"),
        pytest.param({"translation": TRANSLATION}, {"translator": Owned()}, False, id="translation"),
        pytest.param(SWITCHES, SWITCHES, True, id="switches"),
    ],
)
def test_a_component_has_the_assets_and_all_else_of_its_python_twin(
    attributes: dict[str, Any], twin: dict[str, Any], examples: bool, loaded: Callable[..., dg.Definitions]
) -> None:
    config = Config.model_validate({**CONFIG, "examples": examples})
    assert any(key.startswith("forward/stdout") for key in keys(build_definitions(config)))
    component = loaded(config.model_dump(mode="json", include={"examples"}) | CONFIG, **attributes)
    assert graph(component) == graph(build_definitions(config, **twin))


def test_a_mistake_in_the_file_is_named_with_its_place(loaded: Callable[..., dg.Definitions]) -> None:
    with pytest.raises(ComponentTreeException) as refused:
        loaded({**CONFIG, "sinks": [{**CONFIG["sinks"][0], "bukket": "lake"}]})  # type: ignore[dict-item]
    assert "did you mean bucket?" in str(refused.value.__cause__)


def test_a_component_scaffolded_without_a_file_loads_and_has_one_sink(
    loaded: Callable[..., dg.Definitions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "127.0.0.1:1")
    assert "s3/events/orders" in keys(loaded())


def test_a_file_is_copied_as_it_is_and_its_notices_and_secrets_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = {"aws.access.key.id": "AKIA", "aws.secret.access.key": "hunter2"}
    text = json.dumps({"name": "c", "config": {**CONNECTOR, **secret}})
    (tmp_path / "connector.json").write_text(text)
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            s3lake.SinkComponent, scaffold_params={"from": str(tmp_path / "connector.json")}
        )
        assert (path / "connector.json").read_text() == text
        assert yaml.safe_load((path / "defs.yaml").read_text())["attributes"] == {"config": "connector.json"}
    printed = capsys.readouterr().out
    assert (
        "S3LAKE_BOOTSTRAP_SERVERS: is not set, and the file does not have it: localhost:9092 is used as a placeholder"
        in printed
    )
    assert "s3.credentials.secret_access_key: " in printed
    assert "hunter2" not in printed


def test_a_contradictory_file_is_not_scaffolded(tmp_path: Path) -> None:
    (tmp_path / "connector.json").write_text("{")
    with create_defs_folder_sandbox() as sandbox, pytest.raises(ConfigurationError):
        sandbox.scaffold_component(
            s3lake.SinkComponent, defs_path="lake", scaffold_params={"from": str(tmp_path / "connector.json")}
        )
    assert not (sandbox.defs_folder_path / "lake" / "defs.yaml").exists()


PLAIN = """
from shop.definitions import defs
print(sorted(key.to_user_string() for key in defs().resolve_asset_graph().get_all_asset_keys()))
"""


@pytest.mark.long
def test_a_project_s_definitions_load_in_a_plain_process(project: Path) -> None:
    lake = project / "shop" / "defs" / "lake"
    lake.mkdir()
    (lake / "sinks.yaml").write_text(yaml.safe_dump(CONFIG))
    (lake / "defs.yaml").write_text("type: s3lake.SinkComponent\nattributes: {config: sinks.yaml}\n")
    assert "s3/events/orders" in run_python(project, "-c", PLAIN)


@pytest.mark.slow("runs the commands of dg")
@pytest.mark.long
def test_dg_lists_scaffolds_and_checks_it(project: Path) -> None:
    def dg_cli(*arguments: str) -> str:
        there = {"S3LAKE_BOOTSTRAP_SERVERS": "127.0.0.1:1", "S3LAKE_START": "2026-11-20T00"}
        return run_python(project, "-m", "dagster_dg_cli.cli", *arguments, **there)

    (project / "connector.json").write_text(json.dumps({"name": "shop-sink", "config": CONNECTOR}))
    assert "s3lake.SinkComponent" in dg_cli("list", "components", "--json")
    assert "a path next to `defs.yaml`, or an http(s) address" in dg_cli(
        "utils", "inspect-component", "s3lake.SinkComponent"
    )
    dg_cli("scaffold", "defs", "s3lake.SinkComponent", "lake", "--from", "connector.json")
    lake = project / "shop" / "defs" / "lake"
    assert yaml.safe_load((lake / "defs.yaml").read_text())["attributes"] == {"config": "connector.json"}
    dg_cli("check", "yaml")
    dg_cli("check", "defs")


def test_dagster_s_pages_show_the_component_and_its_settings() -> None:
    component = s3lake.SinkComponent
    assert (component.get_description() or "").startswith("Kafka topics landed in S3")
    schema = component.model().model_json_schema()
    assert schema["required"] == ["config"]
    assert all(setting["description"] for setting in schema["properties"].values())
