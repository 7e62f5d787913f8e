"""A whole native configuration, and what holds between its sinks."""

from collections.abc import Sequence
from itertools import combinations

from pydantic import Field, field_serializer, field_validator, model_validator

from s3lake.sink.connections import S3, Kafka, Spark
from s3lake.sink.forwards import check_forwards
from s3lake.sink.part import Misfit, Part, at_least
from s3lake.sink.sink import Sink
from s3lake.sink.source import Source
from s3lake.text.quantities import duration_text, seconds_of


class Config(Part):
    """A whole native configuration.

    Attributes:
        kafka: where the topics are; either this or `source`.
        source: where the topics are, if not in Kafka.
        s3: where the buckets are, but of sinks that say it themselves.
        spark: the session that runs work in.
        sinks: routes from topics to buckets, at least one.
        run_history: how long Dagster's runs of this configuration are kept at least, in seconds; None: for ever.
        examples: example assets downstream of Parquet sinks of JSON, to look at.
    """

    kafka: Kafka | None = None
    source: Source | None = None
    s3: S3 = Field(default_factory=S3)
    spark: Spark = Field(default_factory=Spark)
    sinks: tuple[Sink, ...]
    run_history: float | None = None
    examples: bool = False

    _seconds = field_validator("run_history", mode="before")(seconds_of)
    _an_hour = field_validator("run_history")(at_least(3600))
    _shown = field_serializer("run_history", when_used="unless-none")(duration_text)

    @field_validator("sinks")
    @classmethod
    def _some_sink(cls, value: tuple[Sink, ...]) -> tuple[Sink, ...]:
        if not value:
            raise ValueError("at least one sink is needed, with name, topics, bucket and start")
        return value

    @model_validator(mode="after")
    def _one_source(self) -> "Config":
        if self.kafka is None and self.source is None:
            raise Misfit(
                "is missing: write kafka: {bootstrap_servers: HOST:PORT}, or source: {type: iggy, ...}", "kafka"
            )
        if self.source is None:
            return self
        if self.kafka is not None:
            raise Misfit("topics are in one place: take out source, or kafka", "source")
        for position, sink in enumerate(self.sinks):
            if sink.errors.dead_letter_topic is not None:
                message = "dead letters go to a topic of Kafka, and source is none: take it out; they are in the bucket"
                raise Misfit(message, "sinks", position, "errors", "dead_letter_topic")
            for place, topic in enumerate(sink.topics if self.source.type == "iggy" else ()):
                if "." not in topic.strip("."):
                    raise Misfit(
                        f"{topic!r} names no stream of Iggy: write STREAM.TOPIC", "sinks", position, "topics", place
                    )
        return self

    @model_validator(mode="after")
    def _sinks_apart(self) -> "Config":
        for (_, one), (position, other) in combinations(enumerate(self.sinks), 2):
            if one.name == other.name:
                raise Misfit(f"two sinks are called {one.name!r}: their index would be one", "sinks", position, "name")
            if one.name.replace("-", "_") == other.name.replace("-", "_"):
                message = f"sinks {one.name!r} and {other.name!r} get one name in Dagster: rename one"
                raise Misfit(message, "sinks", position, "name")
            if self._one_bucket(one, other) and may_collide(one, other):
                raise Misfit(
                    f"sinks {one.name!r} and {other.name!r} can write the same object keys in bucket {one.bucket!r}: "
                    "give one of them another prefix, layout.suffix or another beginning of layout.template",
                    *("sinks", position),
                )
        for position, sink in enumerate(self.sinks):
            for other in self.sinks:
                if self._one_bucket(sink, other) and sink.root.startswith(f"{other.index.prefix}/"):
                    raise Misfit(
                        f"{sink.prefix!r} lies in the index of sink {other.name!r}: give another prefix, or another "
                        "index.prefix",
                        *("sinks", position, "prefix"),
                    )
        check_forwards(self.sinks)
        for position, sink in enumerate(self.sinks):
            sink.beside(self.sinks)
            if sink.table is not None and self.s3_of(sink).objects.customer_key is not None:
                message = "readers of a table have no key of s3.objects.customer_key: take one of them out"
                raise Misfit(message, "sinks", position, "table")
        return self

    def s3_of(self, sink: Sink) -> S3:
        """How the sink's bucket is reached."""
        return sink.s3 or self.s3

    def _one_bucket(self, one: Sink, other: Sink) -> bool:
        return one.bucket == other.bucket and self.s3_of(one).endpoint_url == self.s3_of(other).endpoint_url

    def sink(self, name: str) -> Sink:
        """The sink called `name`.

        Raises:
            KeyError: there is none.
        """
        for sink in self.sinks:
            if sink.name == name:
                return sink
        raise KeyError(f"no sink is called {name!r}; there are {', '.join(sink.name for sink in self.sinks)}")


def may_collide(one: Sink, other: Sink) -> bool:
    """Whether two sinks can give two objects the same key."""
    from s3lake.sink import collisions

    return one.bucket == other.bucket and collisions.may_collide(one, other)


def sinks_of(topic: str, sinks: Sequence[Sink]) -> list[Sink]:
    """The sinks that land `topic`, in their order."""
    return [sink for sink in sinks if sink.reads(topic)]
