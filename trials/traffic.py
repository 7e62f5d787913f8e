"""Records that arrive steadily by a clock, and when each of them was written."""

import random
import threading
from collections.abc import Callable, Sequence

import numpy as np
from confluent_kafka import Producer

from benchmarks.records import events
from s3lake import hours

_STEP_S = 0.02


class Traffic:
    """So many records of about 200 bytes an hour in each topic, in turns over its partitions, until told to end.

    Every topic gets the same: record `n` is written `n` equal parts of an hour after the beginning, into partition
    `n % partitions`. So offset and partition say when a record was written.
    """

    def __init__(
        self, servers: str, topics: Sequence[str], partitions: int, an_hour: int, now: Callable[[], float]
    ) -> None:
        self.topics, self.partitions, self.an_hour = topics, partitions, an_hour
        self.records = self.bytes = 0
        self._now = now
        self._pool = [
            b'"type":"%s","user":"%s","city":"%s","quantity":%d,"referrer":"%s"}'
            % (*(event[name].encode() for name in ("type", "user", "city")), event["quantity"], b"shop.example/" * 6)
            for event in events(random.Random(7))
        ]
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, begin: float, count: int | None = None) -> None:
        """From a moment of the clock on; `count` records in each topic, or until `stop`."""
        self.begin_ms, self._count = int(begin * 1000), count
        self._thread.start()

    @property
    def behind_s(self) -> float:
        """How much later than it should be a record is written."""
        over = self._count is not None and self.records >= self._count
        return 0.0 if over else max(0.0, self._now() - self._stamp(self.records) / 1000)

    def stamps(self, partition: int, first: int, end: int, step: int = 1) -> "np.ndarray":
        """When the records at these offsets of a partition were written, in milliseconds."""
        numbers = np.arange(first, end, step) * self.partitions + partition
        return self.begin_ms + numbers * hours.HOUR_MS // self.an_hour

    def stop(self) -> None:
        """All records are in Kafka then."""
        self._over.set()
        self._thread.join()
        if left := self._producer.flush(60):
            raise SystemExit(f"Kafka did not take {left} records")

    def _stamp(self, number: int) -> int:
        return self.begin_ms + number * hours.HOUR_MS // self.an_hour

    def _run(self) -> None:
        while not self._over.wait(_STEP_S):
            due = int((self._now() * 1000 - self.begin_ms) * self.an_hour / hours.HOUR_MS) + 1
            for number in range(self.records, max(0, due if self._count is None else min(due, self._count))):
                self._produce(number)
            self._producer.poll(0)

    def _produce(self, number: int) -> None:
        stamp = self._stamp(number)
        value = b'{"id":%d,"ms":%d,%b' % (number, stamp, self._pool[number % len(self._pool)])
        for topic in self.topics:
            while True:
                try:
                    self._producer.produce(topic, value, partition=number % self.partitions, timestamp=stamp)
                    break
                except BufferError:
                    self._producer.poll(0.02)
        self.records += 1
        self.bytes += len(value) * len(self.topics)
