"""A whole native configuration, and what holds between its sinks."""

from itertools import combinations
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from s3lake.config.model.base import ConfigModel, Duration, RuleError, lasts_at_least
from s3lake.config.model.connections import Kafka, Source, Spark
from s3lake.config.model.key_space import can_share_key
from s3lake.config.model.rules_between_sinks import check_forwards, check_table_names
from s3lake.config.model.s3 import S3
from s3lake.config.model.sink import Sink


class Config(ConfigModel):
    """A whole native configuration.

    Attributes:
        kafka: where the topics are; either this or `source`, unless no sink has topics.
        source: where the topics are, if not in Kafka.
        s3: how the buckets are reached; a sink may have `s3` of its own.
        spark: the session of the runs.
        sinks: routes from topics to buckets, at least one.
        run_history: the shortest time that Dagster's runs of this configuration are kept, in seconds; None for ever.
        examples: example assets downstream of Parquet sinks of JSON, to look at.
    """

    kafka: Kafka | None = None
    source: Source | None = None
    s3: S3 = Field(default_factory=S3)
    spark: Spark = Field(default_factory=Spark)
    sinks: tuple[Sink, ...]
    run_history: Annotated[Duration, lasts_at_least(3600)] | None = None
    examples: bool = False

    @field_validator("sinks")
    @classmethod
    def _check_number(cls, value: tuple[Sink, ...]) -> tuple[Sink, ...]:
        if not value:
            raise ValueError("at least one sink is needed, with name, topics, bucket and start")
        return value

    @field_validator("sinks")
    @classmethod
    def _add_other_indexes(cls, value: tuple[Sink, ...]) -> tuple[Sink, ...]:
        return tuple(sink.with_other_indexes(value) for sink in value)

    @model_validator(mode="after")
    def _check_source(self) -> "Config":
        reads = any(sink.topics or sink.topics_regex for sink in self.sinks)
        if reads and self.kafka is None and self.source is None:
            raise RuleError(
                "is missing: write kafka: {bootstrap_servers: HOST:PORT}, or source: {type: iggy, ...}", "kafka"
            )
        if self.source is None:
            return self
        if self.kafka is not None:
            raise RuleError("topics are in one place: take out source, or kafka", "source")
        for position, sink in enumerate(self.sinks):
            if sink.errors.dead_letter_topic is not None:
                message = "a dead letter topic needs Kafka: take it out; dead letters are in the bucket anyway"
                raise RuleError(message, "sinks", position, "errors", "dead_letter_topic")
            for place, topic in enumerate(sink.topics if self.source.type == "iggy" else ()):
                if "." not in topic.strip("."):
                    raise RuleError(
                        f"{topic!r} does not name a stream of Iggy: write STREAM.TOPIC",
                        "sinks",
                        position,
                        "topics",
                        place,
                    )
        return self

    @model_validator(mode="after")
    def _check_sinks(self) -> "Config":
        for (_, sink), (position, other) in combinations(enumerate(self.sinks), 2):
            if sink.name == other.name:
                message = f"two sinks are called {sink.name!r}: they would share an index; rename one"
                raise RuleError(message, "sinks", position, "name")
            if sink.name.replace("-", "_") == other.name.replace("-", "_"):
                message = f"sinks {sink.name!r} and {other.name!r} get one name in Dagster: rename one"
                raise RuleError(message, "sinks", position, "name")
            if self._share_bucket(sink, other) and sink.index_root == other.index_root:
                raise RuleError(
                    f"sinks {sink.name!r} and {other.name!r} would share the index {sink.index_root}: give one of them "
                    "another index.name",
                    *("sinks", position, "index", "name"),
                )
            if self._share_bucket(sink, other) and can_share_key(sink, other):
                raise RuleError(
                    f"sinks {sink.name!r} and {other.name!r} can write the same object keys in bucket {sink.bucket!r}: "
                    "give one of them another prefix, layout.suffix or another beginning of layout.template",
                    *("sinks", position),
                )
        for position, sink in enumerate(self.sinks):
            for other in self.sinks:
                if self._share_bucket(sink, other) and sink.root.startswith(f"{other.index.prefix}/"):
                    raise RuleError(
                        f"{sink.prefix!r} is in the index of sink {other.name!r}: give another prefix, or another "
                        "index.prefix",
                        *("sinks", position, "prefix"),
                    )
        check_forwards(self.sinks)
        check_table_names(self.sinks)
        for position, sink in enumerate(self.sinks):
            if sink.table is not None and self.s3_of(sink).objects.customer_key is not None:
                message = "readers of a table do not have the key of s3.objects.customer_key: take one of them out"
                raise RuleError(message, "sinks", position, "table")
        return self

    def s3_of(self, sink: Sink) -> S3:
        """Return the settings of S3 for the sink's bucket."""
        return sink.s3 or self.s3

    def _share_bucket(self, sink: Sink, other: Sink) -> bool:
        return sink.bucket == other.bucket and self.s3_of(sink).endpoint_url == self.s3_of(other).endpoint_url

    def sink(self, name: str) -> Sink:
        """Return the sink called `name`.

        Raises:
            KeyError: no sink has this name.
        """
        for sink in self.sinks:
            if sink.name == name:
                return sink
        raise KeyError(f"no sink is called {name!r}; there are {', '.join(sink.name for sink in self.sinks)}")
