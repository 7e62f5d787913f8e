"""The offsets of a topic at one moment, which are all that planning needs to know, and the questions to a source."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from s3lake.errors import ConfigurationError
from s3lake.text import expressions


@dataclass(frozen=True)
class LogRange:
    """One topic-partition's offsets.

    Attributes:
        log_start: log start offset, the first one that Kafka still has.
        log_end: last stable offset: what a read_committed reader may read up to.
        hour_start: first offset stamped in the hour or later, `log_end` if there is none.
        hour_end: first offset stamped in the following hour or later, `log_end` if there is none.
        epoch: the epoch of the leader that answered: every record below `log_end` was written in it or in an earlier
            one. None if brokers do not report it.
        next_stamp_ms: timestamp of the record at `hour_end`, epoch milliseconds. None if no record below `log_end` is
            stamped so late, or if the source does not report it.
    """

    log_start: int
    log_end: int
    hour_start: int
    hour_end: int
    epoch: int | None = field(default=None, compare=False)
    next_stamp_ms: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TopicOffsets:
    """A topic's offsets around one hour.

    Attributes:
        topic_id: Kafka's own id of the topic: another one after it was deleted and created again.
        partitions: the range of each topic-partition; empty while the topic does not exist.
    """

    topic_id: str
    partitions: Mapping[int, LogRange]

    @property
    def exists(self) -> bool:
        return bool(self.partitions)


@dataclass(frozen=True)
class Lag:
    """The lag of a topic behind some offsets.

    Attributes:
        records: how many there are beyond them.
        seconds: the least age of the oldest of these.
        ends: last stable offset per topic-partition.
    """

    records: int
    seconds: float
    ends: Mapping[int, int] = field(default_factory=dict, compare=False)


class Offsets(Protocol):
    """The questions to a source. Each raises SourceUnavailableError if it is not answered in time."""

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        """Return the topic's offsets around `hour`.

        Args:
            existed: the topic existed before. A broker that has just started reports any topic as missing; for
                a topic that existed it is asked again until the question's time is over.
        """
        ...

    def snapshots(self, topics: Collection[str], hour: str) -> Mapping[str, TopicOffsets]:
        """Return the offsets of many topics around `hour`, by one question.

        Topics that do not exist are left out, and topics of which a broker does not answer for all just now.
        """
        ...

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Return log start and last stable offset per topic-partition; empty while the topic does not exist."""
        ...

    def log_ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        """Return the last stable offset per topic-partition of many topics.

        Topics that do not exist are left out, and topics of which a broker does not answer for all just now.
        """
        ...

    def find_truncations(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Return where logs were cut below an offset that they had reached; only topic-partitions that were.

        Brokers cut a log if a replica that lacks its end becomes the leader (an unclean election). Such offsets then
        belong to other records, if to any.

        Args:
            reached: an offset up to which each topic-partition's log went, and the leader's epoch then.
        """
        ...

    def topics(self) -> list[str]:
        """Return the names of all topics but Kafka's own, in order."""
        ...

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """Return the first offset stamped `epoch_ms` or later per topic-partition, at most the last stable offset."""
        ...

    def lag(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Lag:
        """Return the lag behind the offsets that were reached; if none were, behind those stamped `begin_ms`.

        A topic-partition of which nothing is reached begins at the log start.
        """
        ...


def match_topics(offsets: Offsets, regex: str) -> list[str]:
    """Return the names of the topics that the whole of `regex` matches, in order.

    Raises:
        SourceUnavailableError: the source did not answer in time.
        ConfigurationError: the source refuses to answer, or the expression does not come to an end.
    """
    expression = expressions.compile_pattern(regex)
    try:
        return [topic for topic in offsets.topics() if expression.matches(topic)]
    except expressions.PatternTimeoutError as error:
        raise ConfigurationError(f"topics_regex: {error}") from None
