"""The sink IO manager: `handle_output` lands hours, `load_input` gives back exactly what was committed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.errors import ConfigurationError
from s3lake.orchestration import metadata
from s3lake.orchestration.names import sink_key
from s3lake.orchestration.resources import stores
from s3lake.orchestration.retries import retried
from s3lake.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from s3lake.landing import LandedHour, Landing


@dataclass(frozen=True)
class Request:
    """What a sink asset returns: hours still to be landed. Nothing has been read yet.

    Attributes:
        rewrite: land complete hours once more, in place of what was landed.
    """

    landing: "Landing"
    hours: Sequence[str]
    rewrite: bool = False


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

    def handle_output(self, context: dg.OutputContext, obj: Request) -> None:
        """Land one hour or a range of hours; each gets its own metadata."""
        landed = retried(lambda: _land(obj), obj.landing.sink.errors)
        lags = _lags(obj.landing, landed)
        for hour in landed:
            found = metadata.of_hour(hour, obj.landing.index, lags.get(hour.tile.hour))
            _add(context, hour.tile.hour, found, alone=len(landed) == 1)
            context.log.info(
                f"{obj.landing.topic} {hour.tile.hour}: {found['rows']} rows in {found['files']} files"
                + ("" if hour.new else "; nothing new to land")
            )

    def load_input(self, context: dg.InputContext) -> "DataFrame":
        """The committed records of the hours that the downstream asset asks for.

        An hour that is not complete is refused, unless the input's metadata say `allow_incomplete`.

        Returns:
            Avro, Parquet and CSV: the sink's columns; text formats: one column `value`, a record each; with an envelope
            its parts, as Kafka had them (`readback.frame`).
        """
        from s3lake import readback

        sink, topic = self._route(context.asset_key)
        hours = context.asset_partition_keys if context.has_asset_partitions else None

        def read() -> "DataFrame":
            return readback.frame(
                lambda: self.spark.spark_session,
                *(sink, topic, stores(self.s3), hours),
                allow_incomplete=_allows_incomplete(context),
            )

        return retried(read)

    def _route(self, key: dg.AssetKey) -> tuple[Sink, str]:
        for sink in map(Sink.model_validate_json, self.sinks):
            if sink.reads(key.path[-1]) and sink_key(sink, key.path[-1]) == key:
                return sink, key.path[-1]
        raise dg.Failure(f"{key.to_user_string()} is no asset of a sink of this code location")


def _allows_incomplete(context: dg.InputContext) -> bool:
    allowed = (context.definition_metadata or {}).get("allow_incomplete", False)
    if not isinstance(allowed, bool):
        raise ConfigurationError(f"metadata allow_incomplete of an input is {allowed!r}: write True or False")
    return allowed


def _land(request: Request) -> list["LandedHour"]:
    if request.rewrite:
        return [request.landing.rewrite(hour) for hour in request.hours]
    return request.landing.land(request.hours)


def _lags(landing: "Landing", landed: Sequence["LandedHour"]) -> dict[str, int]:
    """Offsets not landed yet, of the hours still open."""
    still_open = [hour.tile for hour in landed if hour.tile.partitions and not hour.tile.closed]
    ends = {one: end for one, (_, end) in landing.offsets.ranges(landing.topic).items()} if still_open else {}
    return {
        tile.hour: sum(max(0, ends.get(one, span.committed) - span.committed) for one, span in tile.partitions.items())
        for tile in still_open
    }


def _add(context: dg.OutputContext, hour: str, found: dict[str, Any], *, alone: bool) -> None:
    # The step context is the only way to give each hour of a range its own metadata, and not marked public.
    if alone:
        context.add_output_metadata(found)
    else:
        context.step_context.add_asset_metadata(found, asset_key=context.asset_key, partition_key=hour)
