"""Records that never stop: with and without transactions, late, skewed, poisoned, of columns that come and go."""

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from confluent_kafka import KafkaException, Producer

from s3lake import hours

FORGOTTEN = "forget-"
"""How the ids of some records begin, which `erase` takes out."""


class Sender:
    """Records of one topic, about so many a second, until told to end: what becomes of each, only Kafka knows.

    Args:
        now: the clock that stamps them.
    """

    def __init__(self, servers: str, topic: str, seed: int, a_second: int, now: Callable[[], float]) -> None:
        self.topic, self.rolled_back = topic, 0
        self._servers, self._a_second, self._now = servers, a_second, now
        self._rng = random.Random(f"{seed} {topic}")
        self._numbers = count()
        self._begun = time.monotonic()
        self._over, self._going, self._paused = threading.Event(), threading.Event(), threading.Event()
        self._going.set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(120)

    def pause(self) -> bool:
        """Whether all that was sent is in Kafka now, or has failed; nothing is sent until `go_on`."""
        self._paused.clear()
        self._going.clear()
        return self._paused.wait(120)

    def go_on(self) -> None:
        self._going.set()

    def _run(self) -> None:
        base = {"bootstrap.servers": self._servers, "linger.ms": 20, "log_level": 0, "delivery.timeout.ms": 60_000}
        plain = Producer({**base, "enable.idempotence": True})
        held: Producer | None = None
        while not self._over.is_set():
            if not self._going.is_set():
                plain.flush(60)
                self._paused.set()
                self._going.wait()
                # Another topic may have the name now, which knows nothing of the old one's numbers.
                plain, held = Producer({**base, "enable.idempotence": True}), None
            elif self._rng.random() < 0.3:
                held = self._transaction(held, base)
            else:
                self._send(plain)
                plain.poll(0)
        plain.flush(60)

    def _transaction(self, held: Producer | None, base: dict[str, Any]) -> Producer | None:
        keep = self._rng.random() < 0.7
        timeouts = {"transaction.timeout.ms": 20_000, "delivery.timeout.ms": 20_000}
        fresh = held is None
        held = held or Producer({**base, "transactional.id": f"soak-{self.topic}", **timeouts})
        try:
            if fresh:
                held.init_transactions(30)
            held.begin_transaction()
            self._send(held)
            held.commit_transaction(30) if keep else held.abort_transaction(30)
            self.rolled_back += not keep
        except KafkaException:  # the broker was away: whether it was committed is asked of Kafka, by whoever reads
            return None
        return held

    def _send(self, producer: Producer) -> None:
        for _ in range(max(1, self._a_second // 4)):
            key, value, stamp = self._record()
            # Without a partition the key decides, and most keys are one: a topic-partition has most of the records.
            with contextlib.suppress(BufferError):
                producer.produce(self.topic, value, key, timestamp=stamp)
        self._over.wait(0.25)

    def _record(self) -> tuple[bytes, bytes | None, int]:
        number, now = next(self._numbers), int(self._now() * 1000)
        key = b"most" if self._rng.random() < 0.6 else b"%d" % (number % 50)
        drawn = self._rng.random()
        stamp = now - self._rng.randrange(2 * hours.HOUR_MS) if drawn > 0.95 else now
        if drawn < 0.02:
            return key, None, stamp
        if drawn < 0.04:
            return key, b"no json: %d" % number, stamp
        begins = FORGOTTEN if drawn < 0.06 else ""
        value = {"id": f"{begins}{self.topic}-{number}", "amount": number, "note": "x" * self._rng.randrange(200)}
        if time.monotonic() - self._begun > 60:
            value["later"] = "a field that came later"
        return key, json.dumps(value).encode(), stamp
