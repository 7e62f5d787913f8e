"""Proxies in front of S3 and Kafka that count what passes, and strike at the request that they were told."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from types import TracebackType

from s3lake_tests.proxy import Answer, ProxiedS3

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
            self.requests, self.struck_at, self._over = 0, "", False
            self._at, self._answered, self._strike = at, answered, strike
            self._marked: BaseHTTPRequestHandler | None = None
            self._sort, self._spoil, self._often, self._spoilt = "", "", False, ""

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


class ArmedKafka:
    """Passes frames of Kafka's protocol on, and puts its own port where answers name the broker's.

    Attributes:
        requests: how many there were since `arm`.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.split(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        own = self._listener.getsockname()[1]
        self.bootstrap_servers = f"127.0.0.1:{own}"
        # Brokers name themselves by host and port, the one after the other, in every version of every answer.
        self._theirs, self._ours = (host.encode() + at.to_bytes(4, "big") for at in (int(port), own))
        self._lock = threading.Lock()
        self._at, self._answered = 0, False
        self._strike: Callable[[], object] = _nothing
        self.requests = 0

    def __enter__(self) -> "ArmedKafka":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()

    def arm(self, at: int = 0, *, answered: bool = False, strike: "Callable[[], object] | None" = None) -> None:
        """Count anew; at request `at` call `strike` and lose the request or, where it was `answered`, its answer."""
        with self._lock:
            self._at, self._answered, self._strike, self.requests = at, answered, strike or _nothing, 0

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        lost: set[bytes] = set()  # ids of requests whose answers are not passed back
        with client, contextlib.suppress(OSError), socket.create_connection(self._upstream) as broker:
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._answer, args=(client, broker, lost), daemon=True).start()
            while (frame := _frame(client)) is not None:
                with self._lock:
                    self.requests += 1
                    now = self.requests == self._at
                if now and not self._answered:
                    self._strike()
                    return
                if now:
                    lost.add(frame[8:12])
                broker.sendall(frame)

    def _answer(self, client: socket.socket, broker: socket.socket, lost: set[bytes]) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(broker)) is not None:
                if frame[4:8] in lost:
                    self._strike()
                    break
                client.sendall(frame.replace(self._theirs, self._ours))
        for each in (client, broker):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _sort_of(request: BaseHTTPRequestHandler) -> str | None:
    if request.command == "POST":
        return "Complete" if "uploadId=" in request.path else None
    if request.command == "DELETE":
        return "DELETE" if "uploadId=" not in request.path else None
    named = [name for name in ("If-None-Match", "If-Match") if request.command == "PUT" and name in request.headers]
    return f"PUT {named[0]}" if named else None


def _frame(source: socket.socket) -> bytes | None:
    """A length of 4 bytes and what it counts; None at the end of the stream."""
    head = _exactly(source, 4)
    body = head and _exactly(source, int.from_bytes(head, "big"))
    return head + body if head and body else None


def _exactly(source: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _nothing() -> None: ...
