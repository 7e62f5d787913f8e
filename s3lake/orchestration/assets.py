"""The assets of a sink, one for each topic: their body is ours, or the user's own."""

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from s3lake.config.model import Config, Sink
from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.hour_checks import build_check_specs
from s3lake.orchestration.io_manager import KafkaHours
from s3lake.orchestration.resource_connections import resource_object
from s3lake.orchestration.translator import SinkTranslator


class LandConfig(dg.Config):
    """Run config of a sink asset.

    Attributes:
        rewrite: land complete hours again, in place of what was landed.
    """

    rewrite: bool = False


AssetBody = Callable[..., Iterator[Any]]
"""A generator that yields the hours of Kafka to land in a run."""


class SinkAssets(list[dg.AssetsDefinition]):
    """The assets of one sink.

    Attributes:
        sink: the tag of the sink's runs.
    """

    sink: str


def sink_assets(
    config: Config, sink: str, *, translator: SinkTranslator | None = None
) -> Callable[[AssetBody], SinkAssets]:
    """Decorate a function that lands the hours of a sink: it is the body of its assets, one for each topic.

    The function is a generator. It gets a context, and if it has such a parameter a `config: s3lake.LandConfig`, and
    resources of the project. It yields `s3lake.KafkaHours(context)`: before it goes on, the hours of the run are
    landed, and are in `landed` of the yielded object. Give the decorated function to `build_definitions` as one of its
    `assets`, or its assets with `s3lake.resources` to definitions of your own.

    Args:
        config: the configuration.
        sink: the name of the sink.
        translator: names and describes the assets.

    Raises:
        KeyError: no sink is called so.
    """
    catalog = Catalog(config, translator)
    return lambda body: define_assets(catalog, config.sink(sink), body)


def land_asset_hours(context: dg.AssetExecutionContext, config: LandConfig) -> Iterator[KafkaHours]:
    """Yield the hours of a run: the body that assets have by themselves."""
    yield KafkaHours(context, rewrite=config.rewrite)


def define_assets(catalog: Catalog, sink: Sink, body: AssetBody) -> SinkAssets:
    """Define the assets of a sink's topics, with their checks, landed by `body`."""
    assets = SinkAssets(_define_asset(catalog, sink, topic, body) for topic in catalog.topics[sink.name])
    assets.sink = catalog.tag(sink)
    return assets


def _define_asset(catalog: Catalog, sink: Sink, topic: str, body: AssetBody) -> dg.AssetsDefinition:
    key, spec = catalog.io_manager_key(sink), catalog.specs(sink, topic).landed
    name = spec.key.to_python_identifier()

    @functools.wraps(body)  # Dagster sees its parameters
    def run(context: dg.AssetExecutionContext, **parameters: Any) -> Iterator[Any]:
        if not context.selected_asset_keys:
            resource_object(context.resources, key).check(context)
        else:
            for output in body(context, **parameters):
                kafka_hours = isinstance(output, KafkaHours)
                yield dg.Output(output, name, metadata=dagster_names.MATERIALISED_BY_US) if kafka_hours else output
        for check in sorted(context.op_execution_context.selected_output_names - {name}):
            yield dg.Output(None, check)  # its evaluations are stored, without an output Dagster would miss them

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill policies, which hours_per_run is made of
        return dg.multi_asset(
            name=name,
            specs=[spec.with_io_manager_key(key)],
            check_specs=build_check_specs(sink, spec),
            can_subset=True,
            backfill_policy=backfill_policy(sink),
            pool=catalog.own_name(sink.name, topic),
            op_tags={dagster_names.SINK: catalog.tag(sink)},
        )(run)


def backfill_policy(sink: Sink) -> dg.BackfillPolicy:
    """Return how many hours one run lands: `hours_per_run`, or all if it is null."""
    if sink.hours_per_run is None:
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(sink.hours_per_run)
