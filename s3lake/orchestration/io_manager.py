"""The sink IO manager: `land` materialises hours, `load_input` gives back exactly what was committed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_origin

import dagster as dg

from s3lake.errors import ConfigurationError
from s3lake.orchestration.names import sealed_key, sink_key
from s3lake.orchestration.progress import AssetReporter, Progress
from s3lake.orchestration.resources import stores
from s3lake.orchestration.retries import retried
from s3lake.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from s3lake.land.landing import Landing
    from s3lake.land.observer import LandedHour


@dataclass(frozen=True)
class Landed:
    """What a sink asset returns: hours that are landed and materialised already."""

    hours: Sequence["LandedHour"]


class SinkIOManager(dg.ConfigurableIOManager):
    """Formats, lays out and commits the hours of a sink; reads them back as Spark DataFrames.

    Attributes:
        sinks: the sinks in JSON, because Dagster's config knows no null; they hold no secrets.
        s3: `s3lake`'s own resource, or a `dagster_aws.s3.S3Resource`.
        spark: anything with a `spark_session`.
    """

    sinks: list[str]
    s3: dg.ResourceDependency[Any]
    spark: dg.ResourceDependency[Any]

    def land(
        self, context: dg.AssetExecutionContext, landing: "Landing", hours: Sequence[str], *, rewrite: bool = False
    ) -> Landed:
        """Land one hour or a range of hours; each is materialised as soon as it is done.

        The op calls it and not Dagster, after the op: an op's output is in the log before it is handled, so a run would
        look finished when it begins.

        Args:
            context: of the sink asset.
            landing: the sink and the topic.
            hours: the hours.
            rewrite: land complete hours once more, in place of what was landed.
        """
        landing.observer = progress = Progress(AssetReporter(context), landing, hours)

        def work() -> Landed:
            return Landed([landing.rewrite(hour) for hour in hours] if rewrite else landing.land(hours))

        try:
            return retried(work, landing.sink.errors)
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

    def load_input(self, context: dg.InputContext) -> "DataFrame | dict[str, DataFrame]":
        """The committed records of the hours that the downstream asset asks for, of a sink or of its sealed hours.

        An hour that is not complete is refused, unless the input's metadata say `allow_incomplete`.

        Returns:
            Avro, Parquet and CSV: the sink's columns; text formats: one column `value`, a record each; with an envelope
            its parts, as Kafka had them (`readback.frame`). An input annotated as a `dict` gets one of these an hour.
        """
        from s3lake import readback

        sink, topic = self._route(context.asset_key)
        hours = context.asset_partition_keys if context.has_asset_partitions else None

        def read() -> "DataFrame | dict[str, DataFrame]":
            allowed, opened = _allows_incomplete(context), stores(self.s3)
            if hours is not None and _is_by_hour(context):
                return readback.frames(self._session, sink, topic, opened, hours, allow_incomplete=allowed)
            return readback.frame(self._session, sink, topic, opened, hours, allow_incomplete=allowed)

        return retried(read, sink.errors)

    def _session(self) -> Any:
        return self.spark.spark_session

    def _route(self, key: dg.AssetKey) -> tuple[Sink, str]:
        topic = key.path[2] if len(key.path) in (3, 4) else ""
        for sink in map(Sink.model_validate_json, self.sinks):
            if sink.reads(topic) and key in (sink_key(sink, topic), sealed_key(sink, topic)):
                return sink, topic
        raise dg.Failure(f"{key.to_user_string()} is no asset of a sink of this code location")


def _is_by_hour(context: dg.InputContext) -> bool:
    try:
        return get_origin(context.dagster_type.typing_type) is dict
    except dg.DagsterInvariantViolationError:  # a context that was built for a test need not have a type
        return False


def _allows_incomplete(context: dg.InputContext) -> bool:
    allowed = (context.definition_metadata or {}).get("allow_incomplete", False)
    if not isinstance(allowed, bool):
        raise ConfigurationError(f"metadata allow_incomplete of an input is {allowed!r}: write True or False")
    return allowed
