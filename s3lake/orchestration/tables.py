"""Tables that assets of a project return, as hours of a sink."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from s3lake import hours
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.commit.index import Manifest
    from s3lake.land.target import TopicSink

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
    key: dg.AssetKey, partitions: dg.PartitionsDefinition | None, wanted: Sequence[str]
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
    for partition in wanted:
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
    """Land the table that an asset returned for its partition, or those of a dict for the partitions of its range.

    Each replaces the rows that its hour had, one after the other. Returns what the hours hold together.

    Raises:
        ConfigurationError: the asset, its value or the sink does not fit.
    """
    from s3lake.land.value import land_value

    key, wanted = context.asset_key, list(context.asset_partition_keys) if context.has_asset_partitions else []
    by_partition = partition_hours(key, context.asset_partitions_def if wanted else None, wanted)
    tables = value if isinstance(value, dict) else {wanted[0]: value}
    if tables.keys() != by_partition.keys():
        asked = wanted[0] if len(wanted) == 1 else f"{wanted[0]} to {wanted[-1]}"
        returned = f"tables for {', '.join(map(str, tables))}" if isinstance(value, dict) else "one table"
        raise ConfigurationError(
            f"asset {key.to_user_string()} returned {returned}, and the run is of {asked}: return a dict with a table "
            "for each of its partitions, or run each partition by itself"
        )
    return _sum_up([land_value(target, hour, tables[partition]) for partition, hour in by_partition.items()])


def _sum_up(manifests: "Sequence[Manifest]") -> dict[str, int]:
    files = [file for manifest in manifests for file in manifest.files]
    return {
        "hours": len(manifests),
        "rows": sum(file.records for file in files),
        "size_bytes": sum(file.bytes for file in files),
        "files": len(files),
    }
