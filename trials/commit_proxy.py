"""A proxy in front of an S3 server that knows the commit protocol's requests, and stops at the one that it was told."""

import json
import re
import threading
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Literal
from urllib.parse import unquote

from s3lake_tests.kit.proxy import Answer, ProxiedS3

Step = Literal["head", "tile", "create", "part", "manifest", "pending", "complete", "settle"]
"""Requests that change something: the topic's head, a tile as created or closed, an upload's begin, a part, the
manifest (step 3), the tile with a pending commit (4), an upload's completion (5), the tile with the commit (6).
"""

_HOUR = r"\d{4}-\d{2}-\d{2}T\d{2}"


@dataclass(frozen=True)
class Moment:
    """The `number`-th request of a kind since the proxy was armed; lost on its way, or only its answer."""

    step: Step
    number: int
    answered: bool


class Proxy(ProxiedS3):
    """When the moment has come `reached` is set, and that request waits until `release`."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.reached = threading.Event()
        self.seen: Counter[Step] = Counter()
        self._released = threading.Event()
        self._moment: Moment | None = None
        self._marked: BaseHTTPRequestHandler | None = None
        self._lock = threading.Lock()
        self._under_way = 0

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
        super().__exit__(exc_type, exc, traceback)

    def arm(self, moment: Moment | None) -> None:
        """Count anew, and stop at `moment`; without one nothing is stopped."""
        with self._lock:
            self.seen.clear()
            self._moment = moment
            self.reached.clear()
            self._released.clear()

    def release(self) -> None:
        """Let go of the request that was stopped, whose client is dead."""
        with self._lock:
            self._moment = None
        self._released.set()

    @property
    def idle(self) -> bool:
        """Whether no request is on its way to the server."""
        return self._under_way == 0

    def fault(self, request: BaseHTTPRequestHandler, body: bytes) -> str | None:
        step = step_of(str(request.command), request.path, body)
        if step is None:
            return None
        with self._lock:
            self.seen[step] += 1
            moment = self._moment
            if moment is None or (moment.step, moment.number) != (step, self.seen[step]):
                return None
            if moment.answered:
                self._marked = request
                return "unanswered"
        self._stop()
        return "unsent"

    def passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[Answer, bytes]:
        with self._lock:
            self._under_way += 1
        try:
            answer = super().passed_on(request, body)
        finally:
            with self._lock:
                self._under_way -= 1
        if request is self._marked:
            self._stop()
        return answer

    def _stop(self) -> None:
        self.reached.set()
        self._released.wait()


def step_of(method: str, target: str, body: bytes) -> Step | None:
    """Which request of the protocol this is; None for what changes nothing."""
    path, _, query = unquote(target).partition("?")
    if method == "POST":
        return "create" if "uploads" in query else "complete"
    if method != "PUT":
        return None
    if "partNumber=" in query:
        return "part"
    if path.endswith("/topic.json"):
        return "head"
    if re.search(rf"/{_HOUR}/[0-9a-f]{{32}}\.json$", path):
        return "manifest"
    if re.search(rf"/{_HOUR}\.json$", path):
        tile = json.loads(body)
        return "pending" if tile["pending"] else "settle" if tile["commits"] else "tile"
    return None
