"""A proxy in front of an S3 server that spoils a share of what passes."""

import random
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler

from trials.s3_proxy import FAULTS, ProxiedS3


class FaultyS3(ProxiedS3):
    """Spoils a share of all requests while `share` is above zero."""

    def __init__(self, upstream: str, seed: int) -> None:
        super().__init__(upstream)
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self.share = 0.0
        self.spoilt: Counter[str] = Counter()

    def fault(self, request: BaseHTTPRequestHandler, _: bytes) -> str | None:
        with self._lock:
            if self._rng.random() >= self.share:
                return None
            completes = request.command == "POST" and "uploadId=" in request.path
            fault = self._rng.choice([name for name in FAULTS if completes or name != "200 with an error"])
            self.spoilt[fault] += 1
            return fault

    def delay_s(self) -> float:
        return self._rng.uniform(0.5, 5)
