"""What stood in Kafka, as a consumer saw it from each topic's first record on: no code of the product's."""

import json
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

Poison = tuple[str, int, int, str]
"""Topic, topic-partition, offset, value: a topic that was created again has the first three anew."""
Identity = str | Poison
"""The id of a good record, or where a poisoned one stood."""


class Seen(NamedTuple):
    """Of which topic a record is, and when it could be read.

    Attributes:
        times: how often it is in Kafka: an idempotent producer that outlives a broker's death may have sent it twice.
    """

    topic: str
    at: float
    times: int = 1


class Place(NamedTuple):
    """Where a record stood; `life` counts how often its topic had been created again."""

    life: int
    partition: int
    offset: int


@dataclass
class Truth:
    """What readers of committed data saw of the topics, however much of it Kafka has deleted since.

    Attributes:
        seen: by the id of each good record; its timestamp may be hours older.
        poison: records that nothing can convert.
        reached: by topic and topic-partition that there are now, the offset after the last record.
        gone: records that Kafka has compacted away, whether or not anybody had read them.
        mortal: topics that are created again; of their records `places` says where they stood.
    """

    servers: str
    topics: tuple[str, ...]
    mortal: frozenset[str] = frozenset()
    seen: dict[str, Seen] = field(default_factory=dict)
    poison: set[Poison] = field(default_factory=set)
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    gone: set[Identity] = field(default_factory=set)
    places: dict[Identity, Place] = field(default_factory=dict)
    tombstones: int = 0
    _lives: dict[str, int] = field(default_factory=dict)
    _ends: dict[tuple[str, int], int] = field(default_factory=dict)
    _followers: dict[str, tuple[threading.Thread, threading.Event]] = field(default_factory=dict)

    def start(self) -> None:
        for topic in self.topics:
            self.follow(topic)

    def follow(self, topic: str) -> None:
        """Read a topic that is there now, from its first record on."""
        over = threading.Event()
        thread = threading.Thread(target=self._follow, args=(topic, over), daemon=True)
        self._followers[topic] = thread, over
        thread.start()

    def is_whole(self, topic: str, within_s: float) -> bool:
        """Whether all of a topic, to which nothing is sent any more, was seen in time."""
        end = time.monotonic() + within_s
        while not self._at_end(topic):
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def leave(self, topic: str) -> None:
        """A topic is about to be deleted, and all of it was seen."""
        self._end(topic)
        self._lives[topic] = self._lives.get(topic, 0) + 1
        self.reached = {place: offset for place, offset in self.reached.items() if place[0] != topic}
        self._ends = {place: offset for place, offset in self._ends.items() if place[0] != topic}

    def stop(self) -> None:
        for topic in [*self._followers]:
            self._end(topic)

    def compacted(self, topic: str) -> None:
        """Note what of a topic Kafka has no more, now that nothing is sent any more."""
        consumer = self._consumer()
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        kept: set[Identity] = set()
        for number in partitions:
            at = TopicPartition(topic, number, OFFSET_BEGINNING)
            consumer.assign([at])
            end = self.reached.get((topic, number), 0)
            _, high = consumer.get_watermark_offsets(at, timeout=30)
            position = 0
            while position < min(end, high):
                for message in consumer.consume(1000, 5):
                    position = int(message.offset() or 0) + 1
                    if message.error() is None and (identity := _identity(message)) is not None:
                        kept.add(identity)
        consumer.close()
        held = {one for one, seen in self.seen.items() if seen.topic == topic}
        self.gone = (held | {one for one in self.poison if one[0] == topic}) - kept

    def _end(self, topic: str) -> None:
        thread, over = self._followers.pop(topic)
        over.set()
        thread.join()

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "the-checker-follows",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )

    def _follow(self, topic: str, over: threading.Event) -> None:
        consumer = self._consumer()
        assigned: set[int] = set()
        looked = 0.0
        while not over.is_set():
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                assigned |= _assign_new(consumer, topic, assigned)
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    self._see(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._ends[topic, int(message.partition() or 0)] = int(message.offset() or 0)
        consumer.close()

    def _at_end(self, topic: str) -> bool:
        consumer = self._consumer()
        try:
            for number in consumer.list_topics(topic, timeout=5).topics[topic].partitions:
                _, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=5)
                if self._ends.get((topic, number), -1) < high:
                    return False
        except KafkaException:  # the broker is away just now
            return False
        finally:
            consumer.close()
        return True

    def _see(self, message: Message) -> None:
        topic, partition, offset = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
        self.reached[topic, partition] = offset + 1
        identity = _identity(message)
        if identity is None:
            self.tombstones += 1
        elif isinstance(identity, str):
            times = self.seen[identity].times if identity in self.seen else 0
            self.seen[identity] = Seen(topic, time.time(), times + 1)
        else:
            self.poison.add(identity)
        if identity is not None and topic in self.mortal:
            self.places[identity] = Place(self._lives.get(topic, 0), partition, offset)


def _assign_new(consumer: Consumer, topic: str, assigned: set[int]) -> set[int]:
    try:
        new = set(consumer.list_topics(topic, timeout=2).topics[topic].partitions) - assigned
    except KafkaException:  # the broker is stopped just now: the next second asks again
        return set()
    if new:
        consumer.incremental_assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in sorted(new)])
    return new


def _identity(message: Message) -> Identity | None:
    """None for a tombstone."""
    value = message.value()
    if value is None:
        return None
    if value.startswith(b"{"):
        return str(json.loads(value)["id"])
    place = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
    return *place, value.decode()
