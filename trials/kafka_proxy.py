"""A proxy in front of a Kafka broker that spoils requests at random."""

import random
import threading
from collections import Counter

from s3lake_tests.kit.kafka_proxy import ProxiedKafka


class FaultyKafka(ProxiedKafka):
    """Spoils a share of all requests while `share` is above zero."""

    def __init__(self, bootstrap_servers: str, seed: int) -> None:
        super().__init__(bootstrap_servers)
        self._rng, self._lock = random.Random(seed), threading.Lock()
        self.share = 0.0
        self.spoilt: Counter[str] = Counter()

    def fault(self, api_key: int) -> str | None:  # noqa: ARG002 (every kind)
        with self._lock:
            if self._rng.random() >= self.share:
                return None
            fault = self._rng.choice(("slow", "unsent", "unanswered"))
            self.spoilt[f"Kafka: {fault}"] += 1
            return fault

    def delay_s(self) -> float:
        return self._rng.uniform(0.5, 5)
