"""How refused records and failed micro-batches are handled."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from s3lake.config.model.base import ConfigModel, Duration, RuleError, Topic, at_least, lasts_at_least


class DeadLetterTopic(ConfigModel):
    """A Kafka topic that also gets every refused record, as it was read, at least once.

    Attributes:
        name: a topic that the sink does not read.
        context_headers: add Kafka Connect's `__connect.errors.*` headers, with the place and the reason.
        replication_factor: used only if the topic has to be created; -1 is the brokers' own.
    """

    name: Topic = Field(examples=["events-dead-letters"])
    context_headers: bool = False
    replication_factor: int = 3

    @field_validator("replication_factor")
    @classmethod
    def _check_replicas(cls, value: int) -> int:
        if value != -1 and value < 1:
            raise ValueError(f"{value} is out of range: at least 1, or -1 for the brokers' own")
        return value


class Threshold(ConfigModel):
    """How many records of an hour may be dead letters before its check fails.

    Attributes:
        number: the number of dead letters; 0 unless a share is given.
        share: the share of the records that were read, from 0 to 1.
    """

    number: Annotated[int, at_least(0)] | None = None
    share: Annotated[float, at_least(0, 1)] | None = None

    def is_exceeded(self, dead: int, read: int) -> bool:
        """Return whether `dead` of `read` records exceed the threshold's number or share."""
        most = 0 if self.number is None and self.share is None else self.number
        return (most is not None and dead > most) or (self.share is not None and dead > self.share * read)


class Errors(ConfigModel):
    """The effect of a refused record: it fails its micro-batch, or becomes a dead letter in the same commit.

    Attributes:
        tolerance: `none`: a refused record fails its micro-batch; `all`: it becomes a dead letter.
        dead_letter_topic: a Kafka topic that gets dead letters too.
        max_retries: how often a micro-batch is tried again after a transient error.
        retry_interval: seconds before each.
        retry_timeout: the time in seconds for which an unanswered request to the Schema Registry is repeated before
            its micro-batch fails; None for no end.
        retry_delay: seconds between two of them, at most.
        log: the line that the worker's log gets for each refused record. `none`: no line. `reason`: its topic-partition
            and offset, the stage that refused it, and why. `place`: the same with its timestamp.
        threshold: the threshold above which the check `dead_letters` of an hour fails.
        samples: what Dagster gets of some dead letters: their `places`, or some of their `contents` too, without the
            values of fields with a secret's name.
    """

    tolerance: Literal["none", "all"] = "none"
    dead_letter_topic: DeadLetterTopic | None = None
    max_retries: Annotated[int, at_least(0)] = 3
    retry_interval: Annotated[Duration, lasts_at_least(0)] = 10.0
    retry_timeout: Annotated[Duration, lasts_at_least(0)] | None = 0.0
    retry_delay: Annotated[Duration, lasts_at_least(0)] = 60.0
    log: Literal["none", "reason", "place"] = "none"
    threshold: Threshold = Field(default_factory=Threshold)
    samples: Literal["places", "contents"] = "places"

    @model_validator(mode="after")
    def _check_tolerance(self) -> "Errors":
        if self.dead_letter_topic is not None and self.tolerance == "none":
            raise RuleError(
                "a dead letter topic needs errors.tolerance: all, because with none a refused record fails its "
                "micro-batch: set it, or take the topic out",
                *("dead_letter_topic", "name"),
            )
        return self
