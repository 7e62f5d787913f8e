"""What becomes of records that are refused, and of micro-batches that fail."""

from typing import Literal

from pydantic import Field, field_serializer, field_validator, model_validator

from s3lake.sink.part import Misfit, Part, at_least, matching
from s3lake.text.quantities import duration_text, seconds_of


class DeadLetterTopic(Part):
    """A Kafka topic that gets every refused record too, as it was read, at least once.

    Attributes:
        name: no topic that the sink reads.
        context_headers: add Kafka Connect's `__connect.errors.*` headers, which say where and why.
        replication_factor: used only where the topic has to be created; -1 is the brokers' own.
    """

    name: str = Field(examples=["events-dead-letters"])
    context_headers: bool = False
    replication_factor: int = 3

    _called = field_validator("name")(
        matching(r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}", "a topic has letters, digits, '.', '_' and '-', at most 249")
    )

    @field_validator("replication_factor")
    @classmethod
    def _some_replica(cls, value: int) -> int:
        if value != -1 and value < 1:
            raise ValueError(f"{value} is out of range: at least 1, or -1 for the brokers' own")
        return value


class Threshold(Part):
    """How many records of an hour may be dead letters before its check fails.

    Attributes:
        number: of dead letters; 0 unless a share is given.
        share: of the records that were read, from 0 to 1.
    """

    number: int | None = None
    share: float | None = None

    _some = field_validator("number")(at_least(0))

    @field_validator("share")
    @classmethod
    def _part(cls, value: float | None) -> float | None:
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"{value} is out of range: from 0 to 1, 0.01 is one of a hundred")
        return value

    def exceeded(self, dead: int, read: int) -> bool:
        """Whether so many of so many records are more than either."""
        most = 0 if self.number is None and self.share is None else self.number
        return (most is not None and dead > most) or (self.share is not None and dead > self.share * read)


class Errors(Part):
    """What a refused record does: fail its micro-batch, or become a dead letter in the same commit.

    Attributes:
        tolerance: `none`: a refused record fails its micro-batch; `all`: it becomes a dead letter.
        dead_letter_topic: a Kafka topic that gets dead letters too.
        max_retries: how often a micro-batch is tried again after an error that may pass.
        retry_interval: seconds before each.
        retry_timeout: for how long a question to the Schema Registry is asked again that gets no answer, before its
            micro-batch fails; null without end.
        retry_delay: seconds between two of them, at most.
        log: a line for each refused record in the log of the worker that read it: its stage and `reason`, its `place`
            too, or `none`.
        threshold: above it the check `dead_letters` of an hour fails.
        samples: what Dagster is told of some dead letters: their `places`, or some of their `contents` too, without
            what names in them call a secret.
    """

    tolerance: Literal["none", "all"] = "none"
    dead_letter_topic: DeadLetterTopic | None = None
    max_retries: int = 3
    retry_interval: float = 10.0
    retry_timeout: float | None = 0.0
    retry_delay: float = 60.0
    log: Literal["none", "reason", "place"] = "none"
    threshold: Threshold = Field(default_factory=Threshold)
    samples: Literal["places", "contents"] = "places"

    _seconds = field_validator("retry_interval", "retry_timeout", "retry_delay", mode="before")(seconds_of)
    _forward = field_validator("max_retries", "retry_interval", "retry_timeout", "retry_delay")(at_least(0))
    _shown = field_serializer("retry_interval", "retry_timeout", "retry_delay", when_used="unless-none")(duration_text)

    @model_validator(mode="after")
    def _letters_are_tolerated(self) -> "Errors":
        if self.dead_letter_topic is not None and self.tolerance == "none":
            raise Misfit(
                "a dead letter topic needs errors.tolerance: all, because with none a refused record fails its "
                "micro-batch: set it, or take the topic out",
                *("dead_letter_topic", "name"),
            )
        return self
