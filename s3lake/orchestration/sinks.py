"""The resource that lands hours in the body of an asset, and gives them back to those downstream as its IO manager."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin

import dagster as dg
from dagster._core.definitions.resource_annotation import TreatAsResourceParam  # as Dagster's own resources are
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION

from s3lake.errors import ConfigurationError
from s3lake.orchestration.alive import alive
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.progress import Announced, AssetReporter, Progress
from s3lake.orchestration.resources import (
    S3Resource,
    SparkResource,
    connection,
    landing,
    resource,
    session_of,
    source_of,
    stores,
)
from s3lake.orchestration.retries import retried
from s3lake.orchestration.translator import SinkTranslator
from s3lake.sink import S3, Config, Sink

if TYPE_CHECKING:
    from s3lake.land.observer import LandedHour

# Dagster materialises every hour of a range when the op's output is handled, that is, when the last hour is done, and
# has no other way to leave that out. Ours are materialised one by one before.
_MATERIALISED_BEFORE = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}


@dataclass(frozen=True)
class Landed:
    """The value of a sink asset: hours that are landed and materialised already.

    Attributes:
        topic: of which they are.
        hours: in their order; each has its tile, its sums and its manifests.
    """

    topic: str
    hours: Sequence["LandedHour"]


class SinkResource(dg.IOManager, TreatAsResourceParam):
    """Lands the hours of a run, and reads them back as Spark DataFrames. `resources` makes it."""

    def __init__(self, catalogue: Catalogue, kafka: Any, s3: Any, spark: Any) -> None:
        self._catalogue, self._kafka, self._s3, self._spark = catalogue, kafka, s3, spark

    def land(
        self, context: dg.AssetExecutionContext, *, hours: Sequence[str] | None = None, rewrite: bool = False
    ) -> Iterator[dg.Output[Landed]]:
        """Land the run's hours of the topics that it selects; each hour is materialised as soon as it is done.

        Of several topics those that can be landed are, and then the first failure is raised.

        Args:
            context: of the asset whose body this is.
            hours: those to land; without them the run's partitions.
            rewrite: land complete hours once more, in place of what was landed.

        Yields:
            The output of each topic, for the body to yield on; its value has the hours that are landed.
        """
        wanted = list(context.partition_keys) if hours is None else list(hours)
        failed: list[dg.Failure | dg.RetryRequested] = []
        selected = sorted(context.selected_asset_keys)
        spark = Announced(self._spark, context.log, sql=any(self._route(key)[0].sql for key in selected))
        with alive(context):
            for key in selected:
                try:
                    landed = self._land(context, key, spark, wanted, rewrite=rewrite)
                except (dg.Failure, dg.RetryRequested) as error:  # one topic is no reason to leave the others
                    failed.append(error)
                    continue
                yield dg.Output(landed, output_name=key.to_python_identifier(), metadata=_MATERIALISED_BEFORE)
            if failed:
                raise failed[0]

    # The op calls it and not Dagster, after the op: an op's output is in the log before it is handled, so a run would
    # look finished when it begins.
    def _land(
        self, context: dg.AssetExecutionContext, key: dg.AssetKey, spark: Announced, hours: list[str], *, rewrite: bool
    ) -> Landed:
        sink, topic = self._route(key)
        lander = landing(sink, topic, self._kafka, self._s3, spark)
        reporter = AssetReporter(context, key, self._catalogue.dead_letters_key(sink, topic))
        lander.observer = progress = Progress(reporter, lander, hours)

        def work() -> Landed:
            return Landed(topic, [lander.rewrite(hour) for hour in hours] if rewrite else lander.land(hours))

        try:
            return retried(work, sink.errors)
        except Exception:
            raise  # an hour that failed is to show as failed, whatever of it was committed
        except BaseException:
            progress.interrupted()
            raise

    def handle_output(self, context: dg.OutputContext, obj: Landed) -> None:
        """Say what the run's hours hold together."""
        sums = [hour.sums for hour in obj.hours]
        context.add_output_metadata(
            {
                "hours": len(obj.hours),
                "rows": sum(one.landed for one in sums),
                "size_bytes": sum(one.bytes for one in sums),
                "files": sum(one.files for one in sums),
                "dead_letters": sum(one.dead for one in sums),
                "new_commits": sum(hour.new for hour in obj.hours),
            }
        )

    def load_input(self, context: dg.InputContext) -> Any:
        """The committed records of the hours that the downstream asset asks for, of a sink or of its sealed hours.

        An hour that is not complete is refused, unless the input's metadata say `allow_incomplete`.

        Returns:
            What the input is annotated as: a `Dataset` or `Table` of pyarrow, a `LazyFrame` or `DataFrame` of polars, a
            relation of DuckDB, a `DataFrame` of pandas; else one of Spark. Annotated as a `dict` of one of them it gets
            one an hour. Without a JVM only `columns` of the input's metadata are read, where it says them. Avro,
            Parquet and CSV: the sink's columns; text formats: one column `value`, a record each; with an envelope its
            parts, as Kafka had them.
        """
        from s3lake.objects import readback
        from s3lake.objects.readback import datasets

        sink, topic = self._route(context.asset_key)
        hours = context.asset_partition_keys if context.has_asset_partitions else None
        annotation, by_hour = _annotated(context)

        def read() -> Any:
            allowed, wanted, opened = _allows_incomplete(context), _columns(context), stores(sink, self._s3)
            form = datasets.form_of(annotation)
            if form is None:
                if hours is not None and by_hour:
                    return readback.frames(self._session, sink, topic, opened, hours, allow_incomplete=allowed)
                return readback.frame(self._session, sink, topic, opened, hours, allow_incomplete=allowed)
            dataset = functools.partial(
                datasets.dataset, sink, topic, opened, connection(sink, self._s3), selected=wanted
            )
            if hours is None or not by_hour:
                return form(dataset(hours, allow_incomplete=allowed))
            if not allowed:
                datasets.refuse_incomplete(sink, topic, opened, hours)
            return {hour: form(dataset([hour], allow_incomplete=True)) for hour in hours}

        return retried(read, sink.errors)

    def _session(self) -> Any:
        return session_of(self._spark)

    def _route(self, key: dg.AssetKey) -> tuple[Sink, str]:
        route = self._catalogue.route(key)
        if route is None:
            raise dg.Failure(
                f"{key.to_user_string()} is no asset of a sink of this configuration: give the resource the translator "
                "that the asset has",
                allow_retries=False,
                metadata={"error": ConfigurationError.__name__},
            )
        return route


def resources(
    config: Config, translator: SinkTranslator | None = None, *, stand_ins: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What `sink_assets` and those downstream of them ask for, to be given to `dg.Definitions`.

    Args:
        config: the configuration.
        translator: that of the assets; the keys begin with its prefix, else with `s3lake`.
        stand_ins: for `kafka`, `s3` and `spark`: an object, or the key of a resource that the project has.

    Returns:
        `s3lake`, a `SinkResource` and the IO manager of what is landed, and what it needs: `s3lake_kafka`, `s3lake_s3`
        and `s3lake_spark`.
    """
    return resources_of(Catalogue(config, translator, resources=stand_ins), stand_ins or {})


def resources_of(catalogue: Catalogue, stand_ins: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a catalogue, without those that the project has."""
    config, keys = catalogue.config, catalogue.keys
    if not isinstance(stand_ins.get("s3") or S3Resource(config.s3), S3Resource):
        _asks_nothing_more(config)
    parts = {
        keys.kafka: stand_ins.get("kafka") or source_of(config),
        keys.s3: stand_ins.get("s3") or S3Resource(config.s3),
        keys.spark: stand_ins.get("spark") or SparkResource(config.spark),
    }

    def opened(context: dg.InitResourceContext) -> SinkResource:
        return SinkResource(catalogue, *(resource(context.resources, key) for key in parts))

    ours = {key: part for key, part in parts.items() if not isinstance(part, str)}
    return {keys.sinks: dg.IOManagerDefinition(opened, required_resource_keys=set(parts)), **ours}


def _asks_nothing_more(config: Config) -> None:
    """Refuse what somebody else's resource cannot do: nothing that is asked of S3 is left out without a word."""
    usual = S3()
    lost = ["s3.objects"] if config.s3.objects != usual.objects else []
    if lost:
        raise ConfigurationError(
            f"the resource that stands in for s3 knows nothing of {', '.join(lost)}: take that out, say it at the "
            "sinks (sinks[].s3), or do without the resource"
        )


def _annotated(context: dg.InputContext) -> tuple[Any, bool]:
    """What an input is annotated as, and whether that is a dict with one of them an hour."""
    try:
        annotation = context.dagster_type.typing_type
    except dg.DagsterInvariantViolationError:  # a context that was built for a test need not have a type
        return None, False
    if get_origin(annotation) is dict:
        return get_args(annotation)[-1], True
    return annotation, False


def _columns(context: dg.InputContext) -> list[str] | None:
    columns = (context.definition_metadata or {}).get("columns")
    if columns is None or (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        return columns
    raise ConfigurationError(f"metadata columns of an input is {columns!r}: write a list of names")


def _allows_incomplete(context: dg.InputContext) -> bool:
    allowed = (context.definition_metadata or {}).get("allow_incomplete", False)
    if not isinstance(allowed, bool):
        raise ConfigurationError(f"metadata allow_incomplete of an input is {allowed!r}: write True or False")
    return allowed
