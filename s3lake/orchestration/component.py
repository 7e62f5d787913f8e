"""The configuration as a Dagster component: what stands in `defs.yaml` is the native configuration."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import dagster as dg
import yaml
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.scaffold.scaffold import Scaffolder, ScaffoldRequest, scaffold_with
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, ConfigDict, Field

from s3lake.errors import ConfigurationError
from s3lake.orchestration.assets import LandConfig, land
from s3lake.orchestration.build import definitions_of
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.sinks import SinkResource
from s3lake.orchestration.templated import settings, templated
from s3lake.orchestration.topics import matching, topics_of
from s3lake.orchestration.translator import SinkTranslator
from s3lake.sink import Config, Sink
from s3lake.sink.schema import summary

_FIRST: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "{{ env.KAFKA_BOOTSTRAP }}"},
    "sinks": [{"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-11-20T00"}],
}


_EXAMPLE: dict[str, Any] = {
    **_FIRST,
    "s3": {"region": "eu-central-1"},
    "sinks": [
        {
            **_FIRST["sinks"][0],
            "prefix": "raw",
            "converter": {"value": "avro", "registry": {"url": "http://registry:8081"}},
            "format": {"type": "parquet"},
            "errors": {"tolerance": "all"},
            "owners": ["team:data"],
        }
    ],
    "translation": {"group_name": "lakehouse", "tags": {"topic": "{{ topic }}"}},
}


class Source(BaseModel):
    """What `dg scaffold defs s3lake.SinkComponent` may be given."""

    model_config = ConfigDict(populate_by_name=True)  # Dagster reads what was given, writes it out, and reads it again

    source: str | None = Field(default=None, alias="from", description="File or address of a connector's configuration")


class SinkScaffolder(Scaffolder[Source]):
    """Writes `defs.yaml`: one sink to begin with, or what a connector's file says."""

    @classmethod
    def get_scaffold_params(cls) -> type[Source]:
        return Source

    def scaffold(self, request: ScaffoldRequest[Source]) -> None:
        source = request.params.source
        scaffold_component(request, _FIRST if source is None else _attributes(source))


class Route(NamedTuple):
    """What a translation is of."""

    sink: Sink
    topic: str


Translation = Annotated[
    TranslationFn[Route] | None,
    TranslationFnResolver[Route](lambda route: {"sink": route.sink, "topic": route.topic}),
]


@scaffold_with(SinkScaffolder)
class SinkComponent(dg.StateBackedComponent, dg.Resolvable, Config):
    """Kafka topics landed in S3 as hourly-partitioned assets, exactly once.

    Settings are those of the native configuration, and what `build_definitions` takes beside it. State is which topics
    every `topics_regex` matches; a code location without one asks nobody when it loads. Override `get_asset_spec` to
    say more of assets than a translation can, and `execute` to do more in their runs than to land.

    Attributes:
        prefix: what everything of the component begins with in Dagster; a second one in a project needs it.
        translation: what is said of assets otherwise: key, group, owners, tags and the like; `sink`, `topic` and `spec`
            are known to its templates.
        resources: keys of resources of the project that stand in for `kafka`, `s3` and `spark`.
        topic_assets: false where the project has the external assets of topics itself.
        sensors_running: start the sensors, and the nightly clean, when the code location is first loaded.
        defs_state: where that state is kept; by default in the code server, which asks Kafka when it starts.
    """

    # What Dagster's pages show; without it they make one up, of all settings that there are.
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    prefix: str = ""
    translation: Translation = None
    resources: dict[str, str] = Field(default_factory=dict)
    topic_assets: bool = True
    sensors_running: bool = False
    defs_state: ResolvedDefsStateConfig = Field(default_factory=DefsStateConfigArgs.legacy_code_server_snapshots)

    def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
        spec = SinkTranslator(self.prefix).get_asset_spec(sink, topic)
        return spec if self.translation is None else self.translation(spec, Route(sink, topic))

    def execute(self, context: dg.AssetExecutionContext, sinks: SinkResource, config: LandConfig) -> Iterator[Any]:
        """The body of every asset. A component that overrides it has no fleets: each topic has runs of its own.

        Args:
            context: of the run.
            sinks: what lands; what its `land` yields is to be yielded on.
            config: of the run.
        """
        yield from land(context, sinks, config)

    @classmethod
    def model(cls) -> type[BaseModel]:
        return templated(cls)

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """See `Component.get_spec`; the settings are described in the schema."""
        return dg.ComponentTypeSpec(description=summary(cls), tags=["kafka", "s3", "spark"])

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> "SinkComponent":
        return cls(**settings(cls, context, model))

    @property
    def defs_state_config(self) -> DefsStateConfig:
        sinks = ",".join([*filter(None, [self.prefix]), *(sink.name for sink in self.sinks)])
        return DefsStateConfig.from_args(self.defs_state, default_key=f"{type(self).__name__}[{sinks}]")

    def write_state_to_path(self, state_path: Path) -> None:
        """Ask Kafka which topics the expressions match."""
        state_path.write_text(json.dumps(matching(self)))

    def build_defs_from_state(self, context: dg.ComponentLoadContext, state_path: Path | None) -> dg.Definitions:  # noqa: ARG002
        """Assets, sensors, checks, jobs, schedules and resources of the sinks."""
        topics = topics_of(self, {} if state_path is None else json.loads(state_path.read_text()))
        catalogue = Catalogue(self, _Translator(self), topics=topics, resources=self.resources)
        return definitions_of(
            catalogue,
            self.resources,
            topic_assets=self.topic_assets,
            sensors_running=self.sensors_running,
            body=land if type(self).execute is SinkComponent.execute else self.execute,
        )


class _Translator(SinkTranslator):
    """Says what a component says."""

    def __init__(self, component: SinkComponent) -> None:
        super().__init__(component.prefix)
        self.get_asset_spec = component.get_asset_spec  # type: ignore[method-assign]


def _attributes(source: str) -> dict[str, Any]:
    """A configuration as attributes of a component; `${NAME}` is Dagster's `{{ env.NAME }}` there."""
    from s3lake.config import load, native

    read = load.loaded(source, to_land=False)
    text, _, _ = native.rewritten(read.config, read.references)
    attributes = yaml.safe_load(re.sub(r"(?<!\$)\$\{(\w+)\}", r"{{ env.\1 }}", text).replace("$${", "${"))
    if not isinstance(attributes, dict):
        raise ConfigurationError(f"{source} is no configuration")
    return attributes
