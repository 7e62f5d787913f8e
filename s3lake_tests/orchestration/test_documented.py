"""What docs/downstream.md and docs/project.md show, done as it is shown there."""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import s3lake
from s3lake import hours
from s3lake.orchestration.translator import hourly
from s3lake_tests.kit.sinks import make_sink

DOCS = Path(s3lake.__file__).parent.parent / "docs"
DOCUMENT = (DOCS / "downstream.md").read_text(encoding="utf-8")
PROJECT = (DOCS / "project.md").read_text(encoding="utf-8")
MODULES = re.findall(r"```python\n(.*?)```", PROJECT, re.DOTALL)


def shown(heading: str) -> list[str]:
    """The Python of a section."""
    section = DOCUMENT.partition(f"# {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


class Reader(dg.IOManager):
    """Remembers which hours were asked for."""

    def __init__(self) -> None:
        self.hours: list[str] = []
        self.metadata: dict[str, Any] = {}

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Nothing is kept."""

    def load_input(self, context: dg.InputContext) -> Any:
        self.hours = list(context.asset_partition_keys)
        self.metadata = dict(context.definition_metadata)
        return self

    def __getattr__(self, _: str) -> Any:
        return lambda *_: self  # any DataFrame


@pytest.mark.filterwarnings("ignore:Parameter `allow_nonexistent_upstream_partitions`:dagster.BetaWarning")
@pytest.mark.parametrize("start", ["2026-11-20T00", "2026-11-20T07"])
def test_a_daily_asset_gets_the_hours_of_its_day_the_first_one_too(start: str) -> None:
    scope: dict[str, Any] = {"__name__": "shown"}
    exec(shown("Assets downstream")[0], scope)
    sink = make_sink(start=start)
    landed = dg.AssetSpec(["s3", "events", "orders"], partitions_def=hourly(sink)).with_io_manager_key(
        "s3lake_events_io_manager"
    )
    reader = Reader()
    definitions = dg.Definitions(
        assets=[landed, scope["revenue"]],
        resources={"s3lake_events_io_manager": reader},
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        for day in ("2026-11-20", "2026-11-21"):
            result = job.execute_in_process(
                asset_selection=[scope["revenue"].key], partition_key=day, instance=instance, raise_on_error=False
            )
            assert result.success
            assert reader.hours == list(hours.span(max(start, f"{day}T00"), f"{day}T23"))


def test_an_input_that_takes_what_there_is() -> None:
    scope: dict[str, Any] = {"dg": dg}
    exec(shown("Assets downstream")[1], scope)
    assert scope["orders"].metadata == {"allow_incomplete": True}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configurations that modules of a project load."""
    [text] = re.findall(r'```yaml title="sinks.yaml"\n(.*?)```', PROJECT, re.DOTALL)
    (tmp_path / "sinks.yaml").write_text(text)
    (tmp_path / "archive.yaml").write_text(text)
    monkeypatch.setenv("S3LAKE_START", "2026-11-20T00")
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("module", [module for module in MODULES if "def defs()" in module])
def test_a_module_of_a_project_is_a_code_location(module: str) -> None:
    scope: dict[str, Any] = {"__name__": "shown"}
    exec(module, scope)
    definitions = scope["defs"]()
    assert definitions.get_repository_def().asset_graph.get_all_asset_keys()


@pytest.mark.usefixtures("files")
def test_a_component_of_a_project_has_the_description_that_its_page_shows() -> None:
    [module] = [module for module in MODULES if "SinkComponent" in module]
    scope: dict[str, Any] = {"__name__": "shown"}
    exec(module, scope)
    component = scope["Lake"](config=str(Path("sinks.yaml").absolute()))
    definitions = component.build_defs(dg.ComponentTree.for_test().load_context)
    landed = definitions.resolve_asset_graph().get(s3lake.sink_key("events", "orders"))
    assert landed.to_asset_spec().description == "The orders of the shop."
