"""The IO manager of a sink: what its assets return is landed, and read back for the assets downstream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.errors import ConfigurationError
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.connections import open_topic, s3_connection, spark_session
from s3lake.orchestration.landing_run import LandingRun, as_dagster_errors
from s3lake.orchestration.tables import land_tables, read_tables, table_name
from s3lake.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.land.observer import LandedHour


@dataclass
class KafkaHours:
    """Hours of a topic in Kafka: the value of a sink's asset. Nothing is read until the sink's IO manager lands them.

    Attributes:
        context: of the asset's run; it names the asset, and with it the topic.
        hours: the hours to land, in order; without them the run's partitions.
        rewrite: land complete hours again, in place of what was landed.
        landed: what was landed, once the IO manager is done; each hour has its tile, its sums and its manifests.
    """

    context: dg.AssetExecutionContext
    hours: Sequence[str] | None = None
    rewrite: bool = False
    landed: "list[LandedHour]" = field(default_factory=list)


class SinkIOManager(dg.IOManager):
    """Lands what assets return in one sink, and reads back what it holds. `s3lake.resources` makes it."""

    def __init__(self, catalog: Catalog, sink: Sink, resources: Any = None) -> None:
        """Serve `sink` with the project's `resources` if it has them in place of ours."""
        self._catalog, self._sink, self._resources = catalog, sink, resources

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Land hours of Kafka, each of which is materialised as soon as it is done, or any table in place of an hour.

        Raises:
            RetryRequested: something transient is in the way; what was committed stays.
            Failure: an hour cannot be landed, or the value cannot.
        """
        if not isinstance(obj, KafkaHours):
            context.add_output_metadata(as_dagster_errors(lambda: self._land_tables(context, obj), self._sink.errors))
            return
        topic = self._find_topic(context.asset_key)
        hours = list(obj.context.partition_keys if obj.hours is None else obj.hours)
        obj.landed = self._run(obj.context).land(topic, hours, rewrite=obj.rewrite)
        context.add_output_metadata(_sum_up(obj.landed))

    def load_input(self, context: dg.InputContext) -> Any:
        """Read the committed records of the hours that the downstream asset asks for.

        An hour that is not complete is refused, unless the input's metadata say `allow_incomplete`.

        Returns:
            What the input is annotated as: a `Dataset` or `Table` of pyarrow, a `LazyFrame` or `DataFrame` of polars, a
            relation of DuckDB, a `DataFrame` of pandas; else one of Spark. Annotated as a `dict` of one of them it gets
            one an hour. Without a JVM only `columns` of the input's metadata are read, where it says them. Avro,
            Parquet and CSV: the sink's columns; text formats: one column `value`, a record each; with an envelope its
            parts, as Kafka had them.
        """

        def read() -> Any:
            connection = s3_connection(self._resources, self._catalog, self._sink)
            topic = self._find_name(context.asset_key)
            return read_tables(context, self._sink, topic, connection, self._session)

        return as_dagster_errors(read, self._sink.errors)

    def check(self, context: dg.AssetExecutionContext) -> None:
        """Make the checks that a run selects without their asset, of its hours, or of all hours if it names none."""
        chosen = sorted(context.selected_asset_check_keys)
        topic = self._find_topic(chosen[0].asset_key)
        self._run(context).check(topic, [key.name for key in chosen])

    def _run(self, context: dg.AssetExecutionContext) -> LandingRun:
        return LandingRun(context, self._resources, self._catalog, self._sink)

    def _session(self) -> "SparkSession":
        from s3lake.spark.installation import fit

        return fit(spark_session(self._resources, self._catalog))

    def _land_tables(self, context: dg.OutputContext, value: object) -> dict[str, int]:
        name = self._find_name(context.asset_key)
        return land_tables(context, open_topic(self._resources, self._catalog, self._sink, name).target, value)

    def _find_name(self, key: dg.AssetKey) -> str:
        """Return the name in the sink: the topic of an asset of ours, else the name of the tables of an asset."""
        return self._find_topic(key) if self._catalog.route(key) is not None else table_name(key)

    def _find_topic(self, key: dg.AssetKey) -> str:
        """Return the topic of an asset of the sink."""
        route = self._catalog.route(key)
        if route is None or route[0].name != self._sink.name:
            raise dg.Failure(
                f"{key.to_user_string()} is not an asset of sink {self._sink.name} of this configuration: give the "
                "resources the translator that the asset has",
                allow_retries=False,
                metadata={"error": ConfigurationError.__name__},
            )
        return route[1]


def _sum_up(landed: "Sequence[LandedHour]") -> dict[str, int]:
    """Return what hours hold together."""
    sums = [hour.sums for hour in landed]
    return {
        "hours": len(landed),
        "rows": sum(each.landed for each in sums),
        "size_bytes": sum(each.bytes for each in sums),
        "files": sum(each.files for each in sums),
        "dead_letters": sum(each.dead for each in sums),
        "new_commits": sum(hour.new for hour in landed),
    }
