"""One topic of a Kafka without a broker, and the hours that its records lie in."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from s3lake import hours
from s3lake.source.offsets import Lag, LogRange, TopicOffsets

TOPIC = "orders"
FIRST_HOUR = "2026-11-20T00"
MINUTE = 60_000
Record = tuple[str, int, int]
"""Id of the topic, topic-partition and offset."""


def hour(number: int) -> str:
    """The world's hours are numbered from 0."""
    return hours.shift(FIRST_HOUR, number)


def ms(minute: float) -> int:
    """Minutes since hour 0 as epoch milliseconds."""
    return hours.start_ms(FIRST_HOUR) + int(minute * MINUTE)


class ExpiredError(Exception):
    """The stage's read failed, as Spark's does: the offsets have expired, or are another topic's."""


@dataclass
class PartitionLog:
    """One topic-partition: the timestamps of its records (the offset is the position), and where it begins."""

    stamps: list[int] = field(default_factory=list)
    low: int = 0
    unstable: int | None = None  # first offset of an open transaction
    epochs: list[int] = field(default_factory=lambda: [0])  # where each leader's records begin

    @property
    def end(self) -> int:
        """The last stable offset."""
        return len(self.stamps) if self.unstable is None else self.unstable

    def find_offset_since(self, stamp: int) -> int:
        """offsets_for_times, at most the last stable offset."""
        found = (offset for offset in range(self.low, self.end) if self.stamps[offset] >= stamp)
        return next(found, self.end)

    def stamp_at(self, offset: int) -> int | None:
        """The timestamp that ListOffsets returns with an offset; None at the end."""
        return self.stamps[offset] if offset < self.end else None


class FakeKafka:
    """One topic. What it ever answered, and what it ever had expired, is kept for the invariants."""

    def __init__(self, partitions: int) -> None:
        self._ids = itertools.count(1)
        self.answered: dict[int, set[int]] = {}
        self.expired: dict[tuple[str, int], int] = {}
        self.former_ids: set[str] = set()
        self.compacted: set[tuple[str, int, int]] = set()
        self.unseen: set[int] = set()  # topic-partitions that a broker with old metadata does not name
        self.group: dict[int, int] = {}  # where a connector stopped
        self.elected = False  # a leader, at some time
        self.waited_for = False  # the last who asked knew that there is a topic
        self.topic_id = f"topic-{next(self._ids)}"
        self.name = TOPIC
        self.logs = [PartitionLog() for _ in range(partitions)]

    def produce(self, partition: int, *minutes: float) -> None:
        """Append one record per timestamp."""
        self.logs[partition].stamps += [ms(minute) for minute in minutes]

    def retain(self, partition: int, low: int) -> None:
        """Retention moves the log start, never beyond the last stable offset."""
        log = self.logs[partition]
        log.low = max(log.low, min(low, log.end))
        self.expired[self.topic_id, partition] = log.low

    def compact(self, partition: int, *offsets: int) -> None:
        """The log cleaner takes records out of a log; their offsets stay."""
        log = self.logs[partition]
        self.compacted |= {(self.topic_id, partition, offset) for offset in offsets if log.low <= offset < log.end}

    def elect(self, partition: int, end: int | None = None) -> None:
        """Another leader; one that has the log up to `end` only cuts it."""
        log = self.logs[partition]
        del log.stamps[len(log.stamps) if end is None else end :]
        self.elected = True
        log.epochs = [*(min(at, len(log.stamps)) for at in log.epochs), len(log.stamps)]

    def find_truncations(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """See `Offsets.find_truncations`."""
        assert topic == self.name
        logs = {one: [*self.logs[one].epochs, len(self.logs[one].stamps)] for one in reached}
        cut = {one: logs[one][epoch + 1] for one, (at, epoch) in reached.items() if logs[one][epoch + 1] < at}
        for partition, end in cut.items():
            self.answered.setdefault(partition, {0}).add(end)
        return cut

    def delete_topic(self) -> None:
        """Delete the topic."""
        self.former_ids.add(self.topic_id)
        self.topic_id, self.logs = "", []

    def create_topic(self, partitions: int = 1) -> None:
        """A topic of the same name, with another id."""
        if self.topic_id:
            self.delete_topic()
        self.topic_id, self.logs = f"topic-{next(self._ids)}", [PartitionLog() for _ in range(partitions)]

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        """See `Offsets.snapshot`."""
        assert topic == self.name
        self.waited_for = existed
        ranges = {
            partition: LogRange(
                log.low,
                log.end,
                log.find_offset_since(hours.start_ms(hour)),
                log.find_offset_since(hours.end_ms(hour)),
                epoch=len(log.epochs) - 1,
                next_stamp_ms=log.stamp_at(log.find_offset_since(hours.end_ms(hour))),
            )
            for partition, log in enumerate(self.logs)
            if partition not in self.unseen
        }
        for partition, log_range in ranges.items():
            answered = self.answered.setdefault(partition, {0})
            answered |= {log_range.log_start, log_range.log_end, log_range.hour_start, log_range.hour_end}
        return TopicOffsets(self.topic_id, ranges)

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """See `Offsets.log_ranges`."""
        assert topic == self.name
        return {
            partition: (log.low, log.end) for partition, log in enumerate(self.logs) if partition not in self.unseen
        }

    def lag(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Lag:  # noqa: ARG002
        """See `Offsets.lag`."""
        ends = {partition: end for partition, (_, end) in self.log_ranges(topic).items()}
        stamps = [self.logs[partition].stamps[at:end] for partition, end in ends.items() for at in [reached[partition]]]
        ages_s = [(now_ms - stamp) / 1000 for some in stamps for stamp in some]
        return Lag(len(ages_s), max(ages_s, default=0.0), ends)

    def connector(self) -> Mapping[int, int]:
        """What the consumer group of a connector committed."""
        for partition, offset in self.group.items():
            self.answered.setdefault(partition, {0}).add(offset)
        return self.group

    def read(self, topic_id: str, partition: int, start: int, end: int) -> list[Record]:
        """Records of `[start, end)`."""
        log = self.logs[partition] if partition < len(self.logs) else PartitionLog()
        if topic_id != self.topic_id or start < log.low or end > log.end:
            raise ExpiredError(f"{partition}: [{start}, {end}) is not in [{log.low}, {log.end})")
        records = [(topic_id, partition, offset) for offset in range(start, end)]
        return [record for record in records if record not in self.compacted]
