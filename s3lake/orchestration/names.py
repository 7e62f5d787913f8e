"""Names in Dagster: asset keys, op and sensor names, and hours as partitions."""

import re
from collections.abc import Iterable

import dagster as dg

from s3lake import hours
from s3lake.errors import ConfigurationError
from s3lake.sink import Sink

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PARTITION = "dagster/partition"
SINK = "s3lake/sink"
TOPIC = "s3lake/topic"
STATE = "s3lake/state"
BEAT = "s3lake/beat"
REFUSED = "s3lake/refused"
SEALED = "s3lake/sealed"
FLEET = "s3lake/topics"


def topic_key(topic: str) -> dg.AssetKey:
    """The external asset of a topic: `kafka/<topic>`."""
    return dg.AssetKey(["kafka", topic])


def sink_key(sink: Sink, topic: str) -> dg.AssetKey:
    """The asset of what `sink` lands of `topic`: `s3/<sink>/<topic>`."""
    return dg.AssetKey(["s3", sink.name, topic])


def sealed_key(sink: Sink, topic: str) -> dg.AssetKey:
    """The asset of the sealed hours of `topic`: `s3/<sink>/<topic>/sealed`."""
    return dg.AssetKey([*sink_key(sink, topic).path, "sealed"])


def example_key(sink: Sink, topic: str) -> dg.AssetKey:
    """The asset of the example on what `sink` lands of `topic`."""
    return dg.AssetKey(["example", sink.name, f"{topic}_by_type"])


def identifier(*parts: str) -> str:
    """A name that ops and sensors may have: letters, digits and underscores."""
    return re.sub(r"\W", "_", "_".join(parts))


def refuse_clashes(names: Iterable[tuple[str, str]]) -> None:
    """Refuse two things that would get one name in Dagster.

    Args:
        names: (what it is called, what it is called in Dagster).

    Raises:
        ConfigurationError: two have the same.
    """
    names_taken: dict[str, str] = {}
    for name, dagster_name in names:
        other = names_taken.setdefault(dagster_name, name)
        if other != name:
            raise ConfigurationError(
                f"{other!r} and {name!r} would both be called {dagster_name!r} in Dagster, which knows only letters, "
                "digits and underscores: land them in two code locations"
            )


def hourly(sink: Sink) -> dg.HourlyPartitionsDefinition:
    """The hours of a sink, UTC, the one under way included."""
    return dg.HourlyPartitionsDefinition(start_date=sink.start, fmt=hours.FORMAT, timezone="UTC", end_offset=1)


def hourly_over(sink: Sink) -> dg.HourlyPartitionsDefinition:
    """The same hours without the one under way: only an hour that is over can be sealed, or be late."""
    return dg.HourlyPartitionsDefinition(start_date=sink.start, fmt=hours.FORMAT, timezone="UTC")
