"""The Dagster component: `defs.yaml` names a configuration file and what else `build_definitions` takes."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, ConfigDict, Field

from s3lake.config import load as configuration
from s3lake.config import native
from s3lake.config.model import Sink
from s3lake.config.model.descriptions import field_descriptions
from s3lake.orchestration.assets import LandConfig, define_assets, land_asset_hours
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.catalog import Catalog, Route
from s3lake.orchestration.sink_topics import find_matching_topics, find_topics_of_sinks
from s3lake.orchestration.translator import SinkTranslator

_FIRST = """\
kafka: {bootstrap_servers: "${KAFKA_BOOTSTRAP}"}
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-11-20T00}
"""


class ScaffoldParameters(BaseModel):
    """Parameters of `dg scaffold defs s3lake.SinkComponent`."""

    model_config = ConfigDict(populate_by_name=True)  # Dagster reads what was given, writes it out, and reads it again

    source: str | None = Field(default=None, alias="from", description="File or address of a configuration")


class SinkScaffolder(dg.Scaffolder[ScaffoldParameters]):
    """Writes `defs.yaml` and the configuration next to it: one sink to begin with, or a copy of a file."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParameters]:
        return ScaffoldParameters

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParameters]) -> None:
        source, folder = request.params.source, request.target_path
        if source is None:
            (folder / "sinks.yaml").write_text(_FIRST)
            dg.scaffold_component(request, {"config": "sinks.yaml"})
            return
        loaded = configuration.load_configuration(source, to_land=False)
        _, secrets = native.write_native(loaded.config, loaded.references)
        if not _is_address(source):
            (shutil.copytree if Path(source).is_dir() else shutil.copy)(source, folder / Path(source).name)
        dg.scaffold_component(request, {"config": source if _is_address(source) else Path(source).name})
        for notice in loaded.notices:
            print(notice)
        for setting in secrets.values():
            print(f"{setting}: {source} has this secret in clear; write a variable in its place")


Translation = Annotated[
    TranslationFn[Route] | None,
    TranslationFnResolver[Route](lambda route: {"sink": route.sink, "topic": route.topic}),
]


@dg.scaffold_with(SinkScaffolder)
class SinkComponent(dg.Component, dg.Resolvable, dg.Model):
    """Kafka topics landed in S3 as hourly-partitioned assets, exactly once.

    Override `get_asset_spec` to change assets more than a translation can, and `execute` to do more in their runs than
    to land.

    Attributes:
        config: the configuration, in any dialect: a path next to `defs.yaml`, or an http(s) address.
        prefix: the first part of all keys and names in Dagster; a second component in a project needs one.
        translation: changes of asset specs: key, group, owners, tags and the like; its templates can use `sink`,
            `topic` and `spec`.
        resources: keys of resources of the project that are used for `s3` and `spark`.
        topic_assets: false if the project has the external assets of topics itself.
        sensors_running: start the sensors, and the nightly clean, when the code location is first loaded.
    """

    config: str
    prefix: str = ""
    translation: Translation = None
    resources: dict[str, str] = Field(default_factory=dict)
    topic_assets: bool = True
    sensors_running: bool = False

    @classmethod
    def model(cls) -> type[BaseModel]:
        """Return the model of `attributes`, with the description of each."""
        model = super().model()
        for name, meaning in field_descriptions(cls).items():
            model.model_fields[name].description = meaning
        model.model_rebuild(force=True)
        return model

    def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """Return the spec of the asset of what `sink` lands of `topic`."""
        spec = SinkTranslator(self.prefix).get_asset_spec(sink, topic)
        return spec if self.translation is None else self.translation(spec, Route(sink, topic))

    def execute(self, context: dg.AssetExecutionContext, config: LandConfig) -> Iterator[Any]:
        """Yield the hours of a run, which are landed before it continues.

        In a component that overrides it each topic is landed by runs of its own.
        """
        yield from land_asset_hours(context, config)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build assets, sensors, checks, jobs, schedules and resources of the sinks."""
        folder = context.path if context.path.is_dir() else context.path.parent
        config = configuration.load(self.config if _is_address(self.config) else folder / self.config)
        translator, matching = SinkTranslator(self.prefix), find_matching_topics(config)
        translator.get_asset_spec = self.get_asset_spec  # type: ignore[method-assign]
        assets = []
        if type(self).execute is not SinkComponent.execute:
            catalog = Catalog(config, translator, topics=find_topics_of_sinks(config, matching))
            assets = [define_assets(catalog, sink, self.execute) for sink in config.sinks]
        return build_definitions(
            config,
            translator=translator,
            assets=assets,
            topic_assets=self.topic_assets,
            resources=self.resources,
            sensors_running=self.sensors_running,
            matching=matching,
        )


def _is_address(location: str) -> bool:
    return "://" in location
