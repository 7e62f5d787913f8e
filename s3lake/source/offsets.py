"""What planning needs to know of a topic, taken at one moment; the only answer a source ever gives to `plan`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from s3lake.errors import ConfigurationError
from s3lake.text import expressions


@dataclass(frozen=True)
class LogRange:
    """One topic-partition's offsets.

    Attributes:
        low: log start offset, the first one that Kafka still has.
        end: last stable offset: what a read_committed reader may read up to.
        at: first offset whose timestamp is in the hour or later, at most `end` (`end` where there is none).
        next: the same for the following hour.
        epoch: of the leader that answered: every record below `end` was written under it or an earlier one. None where
            brokers do not say.
        next_stamp_ms: timestamp of the record at `next`, epoch milliseconds. None if no record below `end` is stamped
            so late, or if the source does not say.
    """

    low: int
    end: int
    at: int
    next: int
    epoch: int | None = field(default=None, compare=False)
    next_stamp_ms: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Snapshot:
    """A topic's offsets around one hour.

    Attributes:
        topic_id: Kafka's own id of the topic: another one after it was deleted and created again.
        partitions: per topic-partition; empty while the topic does not exist.
    """

    topic_id: str
    partitions: Mapping[int, LogRange]

    @property
    def exists(self) -> bool:
        """Whether Kafka has the topic at all."""
        return bool(self.partitions)


@dataclass(frozen=True)
class Waiting:
    """What of a topic is beyond some offsets.

    Attributes:
        records: how many there are.
        seconds: how old the oldest is at least.
        ends: last stable offset per topic-partition.
    """

    records: int
    seconds: float
    ends: Mapping[int, int] = field(default_factory=dict, compare=False)


class Offsets(Protocol):
    """What is asked of Kafka. Planning asks for a snapshot and nothing else; sensors and checks look at ends."""

    def snapshot(self, topic: str, hour: str, *, known: bool = False) -> Snapshot:
        """The topic's offsets around `hour`.

        Args:
            hour: see `LogRange`.
            known: the topic was there before. A broker that has just started says of any topic that there is none; of
                a known one that is believed only when it is said until the question's time is over.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
        """
        ...

    def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Log start and last stable offset per topic-partition; empty while the topic does not exist."""
        ...

    def ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        """Last stable offset per topic-partition of many topics at once.

        A topic that does not exist is left out, and so is one of which a broker does not tell all just now.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
        """
        ...

    def cut(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Topic-partitions whose log was cut below an offset that it had reached, and where.

        Brokers cut a log where a replica that lacked its end became the leader (an unclean election). What is at such
        offsets now are other records, if there are any.

        Args:
            reached: per topic-partition an offset up to which the log went, and the leader's epoch then.

        Raises:
            KafkaUnavailableError: the brokers did not answer in time.
        """
        ...

    def topics(self) -> list[str]:
        """Names of all topics but Kafka's own, in order."""
        ...

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """First offset stamped `epoch_ms` or later per topic-partition, at most the last stable offset."""
        ...

    def waiting(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Waiting:
        """What is beyond the offsets that were reached; where nothing is, what is stamped `begin_ms` or later.

        A topic-partition of which nothing is reached begins at the log start.
        """
        ...


def matching(offsets: Offsets, regex: str) -> list[str]:
    """Names of the topics that the whole of `regex` fits, in order.

    Raises:
        SourceUnavailableError: nobody answered in time.
        ConfigurationError: the source refuses to answer at all, or the expression does not come to an end.
    """
    expression = expressions.compile_pattern(regex)
    try:
        return [topic for topic in offsets.topics() if expression.matches(topic)]
    except expressions.PatternTimeoutError as error:
        raise ConfigurationError(f"topics_regex: {error}") from None
