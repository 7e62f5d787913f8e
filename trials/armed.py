"""Proxies in front of S3 and Kafka that count what passes, and strike at the request that they were told."""

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from s3lake_tests.kit.kafka_proxy import ProxiedKafka
from trials.s3_proxy import Answer, ProxiedS3

SLOW_S = 50.0
"""Longer than one attempt of ours waits for an answer."""


class ArmedS3(ProxiedS3):
    """Counts requests; at one of them it strikes, and from then on nobody is answered. Or it spoils one of a sort."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self._lock = threading.Lock()
        self.under_way = 0
        self.arm()

    def arm(self, at: int = 0, *, answered: bool = False, strike: Callable[[], object] | None = None) -> None:
        """Count anew, and strike at request `at`, or when it has been `answered`."""
        with self._lock:
            self._notify_at, self._notify = 0, _nothing
            self.requests, self.struck_at, self._over = 0, "", False
            self._at, self._answered, self._strike = at, answered, strike
            self._marked: BaseHTTPRequestHandler | None = None
            self._sort, self._spoil, self._often, self._spoilt = "", "", False, ""

    def notify(self, at: int, call: Callable[[], object]) -> None:
        """Call `call` when request `at` has come, before it is sent on."""
        self._notify_at, self._notify = at, call

    def spoil(self, sort: str, fault: str, *, often: bool) -> None:
        """Count anew, and let `fault` become of the first request of this sort, and as `often` as it is repeated."""
        self.arm()
        self._sort, self._spoil, self._often = sort, fault, often

    @property
    def spoilt(self) -> str:
        """The request that was."""
        return self._spoilt

    def end(self) -> None:
        """Nobody is answered any more; what is under way ends."""
        self._over = True
        while self.under_way:
            time.sleep(0.01)

    def fault(self, request: BaseHTTPRequestHandler, _: bytes) -> str | None:
        what = f"{request.command} {request.path}"
        with self._lock:
            if self._over:
                return "unsent"
            self.requests += 1
            if self.requests == self._notify_at:
                self._notify()
            if self.requests == self._at:
                self.struck_at, self._over = what, True
                if self._answered:
                    self._marked = request
                    return "unanswered"
            elif self._sort and _sort_of(request) == self._sort and (not self._spoilt or self._is_repeated(what)):
                self._spoilt = what
                return self._spoil
            else:
                return None
        self._struck()
        return "unsent"

    def passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[Answer, bytes]:
        with self._lock:
            self.under_way += 1
        try:
            answer = super().passed_on(request, body)
        finally:
            with self._lock:
                self.under_way -= 1
        if request is self._marked:
            self._struck()
        return answer

    def delay_s(self) -> float:
        return SLOW_S

    def _is_repeated(self, what: str) -> bool:
        return self._often and what == self._spoilt

    def _struck(self) -> None:
        if self._strike is not None:
            self._strike()


class ArmedKafka(ProxiedKafka):
    """Counts requests; at one of them it strikes, and the request, or its answer, is lost.

    Attributes:
        requests: how many there were since `arm`.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._lock = threading.Lock()
        self.arm()

    def arm(self, at: int = 0, *, answered: bool = False, strike: "Callable[[], object] | None" = None) -> None:
        """Count anew; at request `at` call `strike` and lose the request or, where it was `answered`, its answer."""
        with self._lock:
            self._at, self._answered, self._strike, self.requests = at, answered, strike or _nothing, 0

    def fault(self, api_key: int) -> str | None:  # noqa: ARG002 (every kind)
        with self._lock:
            self.requests += 1
            if self.requests != self._at:
                return None
            if self._answered:
                return "unanswered"
        self._strike()
        return "unsent"

    def unanswered(self) -> None:
        self._strike()


def _sort_of(request: BaseHTTPRequestHandler) -> str | None:
    if request.command == "POST":
        return "Complete" if "uploadId=" in request.path else None
    if request.command == "DELETE":
        return "DELETE" if "uploadId=" not in request.path else None
    named = [name for name in ("If-None-Match", "If-Match") if request.command == "PUT" and name in request.headers]
    return f"PUT {named[0]}" if named else None


def _nothing() -> object: ...
