"""The IO manager of a sink: what assets return is landed, and read back for the assets downstream.

Assets of the sink return hours of Kafka, other assets of the project tables for their partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args, get_origin

import dagster as dg

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.landing_run import LandingRun, as_dagster_errors
from s3lake.orchestration.resource_connections import find_sink_connection, open_spark_of_run, open_topic
from s3lake.orchestration.table_names import refuse_shared_names, table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.land.topic.observer import LandedHour


@dataclass
class KafkaHours:
    """Hours of a topic in Kafka: the value of a sink's asset. Nothing is read until the sink's IO manager lands them.

    Attributes:
        context: the context of the asset's run; it names the asset, and with it the topic.
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
        requested = list(obj.context.partition_keys if obj.hours is None else obj.hours)
        obj.landed = self._run(obj.context).land(topic, requested, rewrite=obj.rewrite)

    def load_input(self, context: dg.InputContext) -> Any:
        """Read the committed records of the hours that the downstream asset asks for.

        An hour that is not complete is refused, unless the input's metadata have `allow_incomplete`.

        Returns:
            What the input is annotated as: a `Dataset` or `Table` of pyarrow, a `LazyFrame` or `DataFrame` of polars, a
            relation of DuckDB, a `DataFrame` of pandas; else one of Spark. Annotated as a `dict` of one of them it gets
            one an hour. Without a JVM only `columns` of the input's metadata are read, if they are given. Avro,
            Parquet and CSV: the sink's columns; text formats: one column `value`, a record each; with an envelope its
            parts, as Kafka had them.
        """
        return as_dagster_errors(lambda: self._read_tables(context), self._sink.errors)

    def check(self, context: dg.AssetExecutionContext) -> None:
        """Make the checks that a run selects without their asset, of its hours, or of all hours if it names none."""
        chosen = sorted(context.selected_asset_check_keys)
        topic = self._find_topic(chosen[0].asset_key)
        self._run(context).check(topic, [key.name for key in chosen])

    def _run(self, context: dg.AssetExecutionContext) -> LandingRun:
        return LandingRun(context, self._resources, self._catalog, self._sink)

    def _land_tables(self, context: dg.OutputContext, value: object) -> dict[str, int]:
        """Land the table of an asset's partition, or the tables of a dict for the partitions of its range.

        Each replaces the rows that its hour had, one after the other. Returns what the hours hold together.

        Raises:
            ConfigurationError: the asset, its value or the sink does not fit.
        """
        from s3lake.land.hour.table_landing import land_table

        refuse_shared_names(self._catalog, context.step_context.job_def.asset_layer.asset_graph.assets_defs)
        target = open_topic(self._resources, self._catalog, self._sink, self._find_name(context.asset_key))
        key, requested = context.asset_key, list(context.asset_partition_keys) if context.has_asset_partitions else []
        by_partition = partition_hours(key, context.asset_partitions_def if requested else None, requested)
        tables = value if isinstance(value, dict) else {requested[0]: value}
        if tables.keys() != by_partition.keys():
            asked = requested[0] if len(requested) == 1 else f"{requested[0]} to {requested[-1]}"
            returned = f"tables for {', '.join(map(str, tables))}" if isinstance(value, dict) else "one table"
            raise ConfigurationError(
                f"asset {key.to_user_string()} returned {returned}, and the run is of {asked}: return a dict with a "
                "table for each of its partitions, or run each partition by itself"
            )
        owner = tuple(key.path)
        manifests = [land_table(target, hour, tables[partition], owner) for partition, hour in by_partition.items()]
        files = [file for manifest in manifests for file in manifest.files]
        rows, size = sum(file.records for file in files), sum(file.bytes for file in files)
        return {"hours": len(manifests), "rows": rows, "size_bytes": size, "files": len(files)}

    def _read_tables(self, context: dg.InputContext) -> Any:
        from s3lake.index.commit.open_and_close import require_owner
        from s3lake.lake.readback.arrow_dataset import find_reader, open_dataset
        from s3lake.lake.readback.committed import open_index, read_complete_tiles
        from s3lake.lake.readback.spark_frame import read_frame
        from s3lake.land.topic import open_topic_sink

        connection = find_sink_connection(self._resources, self._catalog, self._sink)
        sink, topic, stores = self._sink, self._find_name(context.asset_key), open_topic_sink.open_stores(connection)
        if self._catalog.route(context.asset_key) is None:
            require_owner(open_index(sink, topic, stores(sink.bucket)), tuple(context.asset_key.path))
        annotation, is_dict = _read_annotation(context)
        form, (columns, allow_incomplete) = find_reader(annotation), _read_metadata(context)

        def read(hours_read: Sequence[str] | None, *, allow_incomplete: bool) -> Any:
            if form is None:
                return read_frame(
                    self._open_session, sink, topic, stores, hours_read, allow_incomplete=allow_incomplete
                )
            return form(
                open_dataset(
                    sink, topic, stores, connection, hours_read, selected=columns, allow_incomplete=allow_incomplete
                )
            )

        if not context.has_asset_partitions:
            return read(None, allow_incomplete=allow_incomplete)
        by_partition = partition_hours(context.asset_key, context.asset_partitions_def, context.asset_partition_keys)
        if not is_dict:
            return read(list(by_partition.values()), allow_incomplete=allow_incomplete)
        if not allow_incomplete:  # one error names all hours that are not complete
            read_complete_tiles(open_index(sink, topic, stores(sink.bucket)), sink, list(by_partition.values()))
        return {partition: read([hour], allow_incomplete=True) for partition, hour in by_partition.items()}

    def _open_session(self) -> "SparkSession":
        from s3lake.land.spark.installation import fit
        from s3lake.land.spark.opened_spark import find_session

        return fit(find_session(open_spark_of_run(self._resources, self._catalog)))

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


def partition_hours(
    key: dg.AssetKey, partitions: dg.PartitionsDefinition | None, requested: Sequence[str]
) -> dict[str, str]:
    """Return the hour of each partition: a day or a week is its first hour.

    Raises:
        ConfigurationError: the partitions are not of time, are shorter than an hour, or do not begin with one in UTC.
    """
    if not isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        raise ConfigurationError(
            f"asset {key.to_user_string()} has no time partitions, and a sink has hours: give it hourly, daily or "
            "weekly partitions"
        )
    by_partition: dict[str, str] = {}
    for partition in requested:
        window = partitions.time_window_for_partition_key(partition)
        start_ms, end_ms = (round(moment.timestamp() * 1000) for moment in (window.start, window.end))
        if start_ms % hours.HOUR_MS or end_ms - start_ms < hours.HOUR_MS:
            raise ConfigurationError(
                f"asset {key.to_user_string()}: partition {partition} is from {window.start.isoformat()} to "
                f"{window.end.isoformat()}, and a sink has whole hours of UTC: take partitions that begin with one"
            )
        by_partition[partition] = hours.key_of_ms(start_ms)
    return by_partition


def _read_annotation(context: dg.InputContext) -> tuple[Any, bool]:
    """Return the type that an input is annotated as, and whether it is a dict with one of them an hour."""
    try:
        annotation = context.dagster_type.typing_type
    except dg.DagsterInvariantViolationError:  # a context that was built for a test need not have a type
        return None, False
    is_dict = get_origin(annotation) is dict
    return get_args(annotation)[-1] if is_dict else annotation, is_dict


def _read_metadata(context: dg.InputContext) -> tuple[list[str] | None, bool]:
    """Return the `columns` and `allow_incomplete` of an input's metadata."""
    metadata = context.definition_metadata or {}
    columns, allow_incomplete = metadata.get("columns"), metadata.get("allow_incomplete", False)
    if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise ConfigurationError(f"metadata columns of an input is {columns!r}: write a list of names")
    if not isinstance(allow_incomplete, bool):
        raise ConfigurationError(f"metadata allow_incomplete of an input is {allow_incomplete!r}: write True or False")
    return columns, allow_incomplete
