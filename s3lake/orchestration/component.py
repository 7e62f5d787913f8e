"""The configuration as a Dagster component: what stands in `defs.yaml` is the native configuration."""

import json
import re
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.scaffold.scaffold import Scaffolder, ScaffoldRequest, scaffold_with
from pydantic import BaseModel, ConfigDict, Field

from s3lake.errors import ConfigurationError
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.templated import settings, templated
from s3lake.orchestration.topics import matching
from s3lake.sink import Config

_FIRST = {
    "kafka": {"bootstrap_servers": "{{ env.KAFKA_BOOTSTRAP }}"},
    "sinks": [{"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-11-20T00"}],
}


class Source(BaseModel):
    """What `dg scaffold defs s3lake.SinkComponent` may be given."""

    model_config = ConfigDict(populate_by_name=True)  # Dagster reads what was given, writes it out, and reads it again

    source: str | None = Field(default=None, alias="from", description="File or address of a connector's configuration")


class SinkScaffolder(Scaffolder[Source]):
    """Writes `defs.yaml`: one sink to begin with, or what a connector's file says."""

    @classmethod
    def get_scaffold_params(cls) -> type[Source]:
        """See `Scaffolder.get_scaffold_params`."""
        return Source

    def scaffold(self, request: ScaffoldRequest[Source]) -> None:
        """See `Scaffolder.scaffold`."""
        source = request.params.source
        scaffold_component(request, _FIRST if source is None else _attributes(source))


@scaffold_with(SinkScaffolder)
class SinkComponent(dg.StateBackedComponent, dg.Resolvable, Config):
    """Kafka topics landed in S3 as hourly-partitioned assets, exactly once.

    Settings are those of the native configuration. State is which topics every `topics_regex` matches; a code
    location without one asks nobody when it loads.

    Attributes:
        defs_state: where that state is kept; by default in the code server, which asks Kafka when it starts.
    """

    defs_state: ResolvedDefsStateConfig = Field(default_factory=DefsStateConfigArgs.legacy_code_server_snapshots)

    @classmethod
    def model(cls) -> type[BaseModel]:
        """See `Resolvable.model`."""
        return templated(cls)

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> "SinkComponent":
        """See `Resolvable.resolve_from_model`."""
        return cls(**settings(cls, context, model))

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """See `StateBackedComponent.defs_state_config`."""
        sinks = ",".join(sink.name for sink in self.sinks)
        return DefsStateConfig.from_args(self.defs_state, default_key=f"{type(self).__name__}[{sinks}]")

    def write_state_to_path(self, state_path: Path) -> None:
        """Ask Kafka which topics the expressions match."""
        state_path.write_text(json.dumps(matching(self)))

    def build_defs_from_state(self, context: dg.ComponentLoadContext, state_path: Path | None) -> dg.Definitions:  # noqa: ARG002
        """Assets, sensors, checks, jobs, schedules and resources of the sinks."""
        return build_definitions(self, matching={} if state_path is None else json.loads(state_path.read_text()))


def _attributes(source: str) -> dict[str, Any]:
    """A configuration as attributes of a component; `${NAME}` is Dagster's `{{ env.NAME }}` there."""
    from s3lake.config import load, native

    read = load.loaded(source, to_land=False)
    text, _, _ = native.rewritten(read.config, read.references)
    attributes = yaml.safe_load(re.sub(r"(?<!\$)\$\{(\w+)\}", r"{{ env.\1 }}", text).replace("$${", "${"))
    if not isinstance(attributes, dict):
        raise ConfigurationError(f"{source} is no configuration")
    return attributes
