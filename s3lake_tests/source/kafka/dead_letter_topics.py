"""A topic of dead letters: its settings, and a producer that does what a test asks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError

from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget, Header


@dataclass
class FakeProducer:
    """Takes records, or does what else a test tells it to.

    Attributes:
        refusal: what every delivery reports.
        room: how many records fit into the queue before the next poll.
        silent: nothing is ever delivered.
    """

    refusal: KafkaError | None = None
    room: int = 1_000
    silent: bool = False
    raises: Exception | None = None
    taken: list[dict[str, Any]] = field(default_factory=list)
    queue: list[Callable[[Any, Any], None]] = field(default_factory=list)
    flushes: int = 0

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        headers: list[Header],
        timestamp: int,
        on_delivery: Callable[[Any, Any], None],
    ) -> None:
        if self.raises is not None:
            raise self.raises
        if len(self.queue) >= self.room:
            raise BufferError("Local: Queue full")
        self.queue.append(on_delivery)
        self.taken.append({"topic": topic, "value": value, "key": key, "headers": headers, "timestamp": timestamp})

    def poll(self, timeout: float) -> int:
        if timeout:
            self.flush(timeout)
        return 0

    def flush(self, timeout: float) -> int:  # noqa: ARG002
        self.flushes += 1
        if not self.silent:
            for deliver in self.queue:
                deliver(self.refusal, None)
            self.queue.clear()
        return len(self.queue)


DEAD_LETTER_TARGET = DeadLetterTarget(name="dead", topic="orders", connector="events", bootstrap_servers="broker:9092")
