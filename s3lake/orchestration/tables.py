"""Tables of assets as hours of a sink: what assets of a project return is landed, and inputs are read back."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_origin

import dagster as dg

from s3lake import hours
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.land.target import TopicSink
    from s3lake.sink import Sink
    from s3lake.store.connection import S3Connection

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def table_name(key: dg.AssetKey) -> str:
    """Return what the tables of an asset are called in its sink: the steps of its key, with dots between them.

    Raises:
        ConfigurationError: the key has other characters than a name in the bucket.
    """
    name = ".".join(key.path)
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ConfigurationError(
            f"asset {key.to_user_string()}: its tables would be called {name!r}; take letters, digits, '.', '_' and "
            "'-', at most 249"
        )
    return name


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


def land_tables(context: dg.OutputContext, target: "TopicSink", value: object) -> dict[str, int]:
    """Land the table that an asset returned for its partition, or the tables of a dict for the partitions of its range.

    Each replaces the rows that its hour had, one after the other. Returns what the hours hold together.

    Raises:
        ConfigurationError: the asset, its value or the sink does not fit.
    """
    from s3lake.land.value import land_value

    key, requested = context.asset_key, list(context.asset_partition_keys) if context.has_asset_partitions else []
    by_partition = partition_hours(key, context.asset_partitions_def if requested else None, requested)
    tables = value if isinstance(value, dict) else {requested[0]: value}
    if tables.keys() != by_partition.keys():
        asked = requested[0] if len(requested) == 1 else f"{requested[0]} to {requested[-1]}"
        returned = f"tables for {', '.join(map(str, tables))}" if isinstance(value, dict) else "one table"
        raise ConfigurationError(
            f"asset {key.to_user_string()} returned {returned}, and the run is of {asked}: return a dict with a table "
            "for each of its partitions, or run each partition by itself"
        )
    manifests = [land_value(target, hour, tables[partition]) for partition, hour in by_partition.items()]
    files = [file for manifest in manifests for file in manifest.files]
    rows, size = sum(file.records for file in files), sum(file.bytes for file in files)
    return {"hours": len(manifests), "rows": rows, "size_bytes": size, "files": len(files)}


def read_tables(
    context: dg.InputContext,
    sink: "Sink",
    topic: str,
    connection: "S3Connection",
    session: "Callable[[], SparkSession]",
) -> Any:
    """Read the committed records of the hours that a downstream asset asks for, as what its input is annotated as.

    See `SinkIOManager.load_input`.
    """
    from s3lake.land import opening
    from s3lake.readback.arrow import open_dataset, reader_for_annotation
    from s3lake.readback.committed import open_index, read_complete_tiles
    from s3lake.readback.spark import read_frame

    annotation, is_dict = _read_annotation(context)
    form, stores = reader_for_annotation(annotation), opening.open_stores(connection)
    columns, allow_incomplete = _read_metadata(context)

    def read(hours_read: Sequence[str] | None, *, allow_incomplete: bool) -> Any:
        if form is None:
            return read_frame(session, sink, topic, stores, hours_read, allow_incomplete=allow_incomplete)
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
