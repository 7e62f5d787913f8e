"""The asset specs of sinks and their topics. Users subclass the translator to change them."""

import re

import dagster as dg

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError
from s3lake.orchestration import dagster_names
from s3lake.text.quantities import format_duration

_TAG_CHARACTERS = 63
"""Dagster's tags are shorter than names of sinks may be."""


def topic_key(topic: str, prefix: str = "") -> dg.AssetKey:
    """Return the key of a topic's external asset: `kafka/<topic>`."""
    return _key(prefix, "kafka", topic)


def sink_key(sink: Sink | str, topic: str, prefix: str = "") -> dg.AssetKey:
    """Return the key of a sink's asset of a topic, `s3/<sink>/<topic>`, unless a translator of your own names it.

    Args:
        sink: the sink, or its name.
        topic: the topic.
        prefix: the prefix of the translator.
    """
    return _key(prefix, "s3", sink if isinstance(sink, str) else sink.name, topic)


def sealed_key(sink: Sink | str, topic: str, prefix: str = "") -> dg.AssetKey:
    """Return the key of a topic's sealed hours, `s3/<sink>/<topic>_sealed`, which assets downstream follow."""
    return _with_suffix(sink_key(sink, topic, prefix), "sealed")


def dead_letters_key(sink: Sink | str, topic: str, prefix: str = "") -> dg.AssetKey:
    """Return the key of a topic's dead letters, `s3/<sink>/<topic>_dead_letters`."""
    return _with_suffix(sink_key(sink, topic, prefix), "dead_letters")


def hourly(sink: Sink, *, over: bool = False) -> dg.HourlyPartitionsDefinition:
    """Return the hours of a sink as Dagster's partitions, UTC, from its `start`.

    Args:
        sink: the sink.
        over: True to leave out the current hour: only an hour that is over can be sealed.
    """
    return dg.HourlyPartitionsDefinition(
        start_date=sink.start, fmt=hours.FORMAT, timezone="UTC", end_offset=0 if over else 1
    )


class SinkTranslator:
    """Builds the asset specs of sinks and their topics.

    Override a method to change a spec, beginning with what `super()` returns. Keys, groups, owners, tags, descriptions,
    automation conditions, freshness policies and partitions of an asset spec are all taken as they are.

    Attributes:
        prefix: the begin of all keys and names of a configuration in Dagster: of assets, resources, jobs, schedules,
            sensors and pools. A second configuration in the same project needs one.
    """

    def __init__(self, prefix: str = "") -> None:
        if not re.fullmatch(r"\w*", prefix, re.ASCII):
            raise ConfigurationError(f"prefix {prefix!r}: letters, digits and underscores, as Dagster's names are")
        self.prefix = prefix

    def get_asset_spec(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """Return the asset of what `sink` lands of `topic`."""
        guarantee = "exactly once" if sink.exactly_once else "at least once"
        return dg.AssetSpec(
            sink_key(sink, topic, self.prefix),
            deps=[self.get_topic_spec(topic).key],
            description=f"Topic {topic} in s3://{sink.bucket}/{sink.root}, hour by hour, {guarantee}, as "
            f"{sink.format.type}. A record waits for {format_duration(sink.flush.interval)} at most; an hour is closed "
            f"{format_duration(sink.close_grace)} after its end.",
            partitions_def=hourly(sink),
            kinds={"s3", "pyspark", sink.format.type},
            tags={dagster_names.SINK: sink.name} if len(sink.name) <= _TAG_CHARACTERS else {},
            group_name=dagster_names.identifier(sink.name),
            owners=list(sink.owners),
            metadata={"topic": topic, "bucket": sink.bucket, "prefix": sink.prefix, "format": sink.format.type},
        )

    def get_sealed_spec(self, sink: Sink, topic: str, landed: dg.AssetSpec) -> dg.AssetSpec:
        """Return the external asset of its sealed hours, with the group, owners and tags of `landed`."""
        return dg.AssetSpec(
            _with_suffix(landed.key, "sealed"),
            deps=[landed.key],
            description=f"Sealed hours of {topic} in s3://{sink.bucket}/{sink.root}: complete, and their offsets and "
            "counts are checked. Assets downstream follow them.",
            partitions_def=_without_current_hour(landed.partitions_def),
            group_name=landed.group_name,
            owners=landed.owners,
            kinds={"s3"},
            tags=_tags_of(landed),
        )

    def get_dead_letters_spec(self, sink: Sink, topic: str, landed: dg.AssetSpec) -> dg.AssetSpec:
        """Return the external asset of its dead letters, with the partitions, group, owners and tags of `landed`."""
        return dg.AssetSpec(
            _with_suffix(landed.key, "dead_letters"),
            deps=[landed.key],
            description=f"Records of {topic} that sink {sink.name} has refused, hour by hour; a complete hour "
            "without any has 0. `s3lake dead-letters` shows them, and lands them after all, as the "
            "job `s3lake_replay` does.",
            partitions_def=landed.partitions_def,
            group_name=landed.group_name,
            owners=landed.owners,
            kinds={"s3", "json"},
            tags=_tags_of(landed),
        )

    def get_topic_spec(self, topic: str) -> dg.AssetSpec:
        """Return the external asset of a topic, which its sensor observes."""
        return dg.AssetSpec(
            topic_key(topic, self.prefix),
            kinds={"kafka"},
            group_name="kafka",
            description=f"Kafka topic {topic}, observed by its sensor.",
        )


def _tags_of(landed: dg.AssetSpec) -> dict[str, str]:
    return {tag: value for tag, value in landed.tags.items() if not tag.startswith("dagster/kind/")}


def _without_current_hour(partitions: dg.PartitionsDefinition[str] | None) -> dg.PartitionsDefinition[str] | None:
    assert isinstance(partitions, dg.TimeWindowPartitionsDefinition)
    return dg.HourlyPartitionsDefinition(
        start_date=partitions.start,
        end_date=partitions.end,
        timezone=partitions.timezone,
        fmt=partitions.fmt,
        end_offset=min(0, partitions.end_offset),
    )


def _with_suffix(key: dg.AssetKey, suffix: str) -> dg.AssetKey:
    """Return the key with a suffix at its last step: the UI shows the last step alone."""
    return dg.AssetKey([*key.path[:-1], f"{key.path[-1]}_{suffix}"])


def _key(prefix: str, *path: str) -> dg.AssetKey:
    return dg.AssetKey([prefix, *path] if prefix else path)
