"""The assets of a sink: their body is ours, or the user's own."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dagster as dg
from dagster._utils.warnings import disable_dagster_warnings

from s3lake.orchestration import names
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.resources import resource
from s3lake.orchestration.sinks import Landed, SinkResource
from s3lake.orchestration.translator import SinkTranslator
from s3lake.sink import Config, Sink


class LandConfig(dg.Config):
    """Run config of a sink asset.

    Attributes:
        rewrite: land complete hours once more, in place of what was landed.
    """

    rewrite: bool = False


Body = Callable[[dg.AssetExecutionContext, SinkResource, LandConfig], Iterator[Any]]
"""What an asset does in a run: yields an output for each topic."""


def sink_assets(
    config: Config, sink: str, *, translator: SinkTranslator | None = None, name: str | None = None
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorates a function that lands the hours of a sink: the body of its assets, one for each topic.

    The function gets a context and, under its key (`s3lake`, or the translator's prefix), a `SinkResource`; its `land`
    lands what the run asks for and yields what the function has to yield. Give what is made of it to
    `build_definitions` as one of its `assets`, or with `resources` to definitions of your own.

    Args:
        config: the configuration.
        sink: the name of the sink.
        translator: what the assets are called and what is said of them.
        name: of the op; that of the function where it is not given.

    Raises:
        KeyError: no sink is called so.
    """
    catalogue = Catalogue(config, translator)
    return defined(catalogue, config.sink(sink), catalogue.topics[sink], name, catalogue.pool(sink))


def sink_asset(catalogue: Catalogue, sink: Sink, topic: str, body: Body) -> dg.AssetsDefinition:
    """The hours of `topic` in the bucket, landed by `body`."""
    key = catalogue.keys.sinks

    def run(context: dg.AssetExecutionContext, config: LandConfig) -> Iterator[Any]:
        yield from body(context, resource(context.resources, key), config)

    name, pool = catalogue.key(sink, topic).to_python_identifier(), catalogue.pool(sink.name, topic)
    return defined(catalogue, sink, [topic], name, pool, {key})(run)


def land(context: dg.AssetExecutionContext, sinks: SinkResource, config: LandConfig) -> Iterator[dg.Output[Landed]]:
    """The body that assets have by themselves."""
    yield from sinks.land(context, rewrite=config.rewrite)


def defined(
    catalogue: Catalogue,
    sink: Sink,
    topics: Sequence[str],
    name: str | None,
    pool: str,
    required_resource_keys: set[str] | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Makes assets of a function, as Dagster's own decorators do."""

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        with disable_dagster_warnings():  # backfill policies are beta, and what hours_per_run is made of
            return dg.multi_asset(
                name=name or function.__name__,
                specs=[catalogue.landed(sink, topic).with_io_manager_key(catalogue.keys.sinks) for topic in topics],
                can_subset=True,
                backfill_policy=backfill_policy(sink),
                pool=pool,
                op_tags={names.SINK: catalogue.tag(sink)},
                required_resource_keys=required_resource_keys,
            )(function)

    return decorate


def backfill_policy(sink: Sink) -> dg.BackfillPolicy:
    """How many hours one run lands; null is one run for all."""
    if sink.hours_per_run is None:
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(sink.hours_per_run)
