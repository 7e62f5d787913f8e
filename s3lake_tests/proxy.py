"""A proxy in front of an S3 server that knows the commit protocol's requests, and stops at the one it was told."""

import contextlib
import http.client
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Literal
from urllib.parse import unquote, urlsplit

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


class Proxy:
    """Passes requests on. When the moment has come `reached` is set, and that request waits until `release`.

    With `capitals` it spells the names of headers in its own way, as Go's net/http does.
    """

    def __init__(self, upstream: str, *, capitals: bool = False) -> None:
        self.capitals = capitals
        self.upstream = str(urlsplit(upstream).netloc)
        self.reached = threading.Event()
        self.seen: Counter[Step] = Counter()
        self._released = threading.Event()
        self._moment: Moment | None = None
        self._lock = threading.Lock()
        self._under_way = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

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

    def _stops(self, step: Step | None) -> Moment | None:
        with self._lock:
            if step is None:
                return None
            self.seen[step] += 1
            moment = self._moment
            if moment and (moment.step, moment.number) == (step, self.seen[step]):
                return moment
            return None

    def _passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        with self._lock:
            self._under_way += 1
        upstream = http.client.HTTPConnection(self.upstream, timeout=60)
        try:
            upstream.request(request.command, request.path, body, dict(request.headers))
            answer = upstream.getresponse()
            return answer, answer.read()
        finally:
            upstream.close()
            with self._lock:
                self._under_way -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                moment = proxy._stops(step_of(self.command, self.path, body))
                if moment and not moment.answered:
                    self._stop()
                    return
                answer, content = proxy._passed_on(self, body)
                if moment:
                    self._stop()
                    return
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name.title() if proxy.capitals else name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

            def _stop(self) -> None:
                proxy.reached.set()
                proxy._released.wait()
                self.close_connection = True

            def handle(self) -> None:
                with contextlib.suppress(OSError):  # the client was killed
                    super().handle()

            def log_message(self, *_: object) -> None: ...

        return Handler


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
