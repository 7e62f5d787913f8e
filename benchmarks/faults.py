"""A proxy in front of an S3 server whose network and server misbehave when they are told to."""

import contextlib
import http.client
import random
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

FAULTS = ("slow", "unsent", "unanswered", "twice", "done and 500", "500", "503", "409", "200 with an error")
"""What becomes of a request: delayed; the connection ends before it is sent on, or before its answer comes back; sent
on twice; carried out and answered with 500; refused without being sent on; or an answer to Complete that says 200 and
holds an error."""

_ERROR = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>%b</Code><Message>of the soak</Message>'
    b"<RequestId>1</RequestId></Error>"
)
_CODES = {
    "500": b"InternalError",
    "503": b"SlowDown",
    "409": b"OperationAborted",
    "200 with an error": b"InternalError",
}


class FaultyS3:
    """Passes requests on, and spoils a share of them while `share` is above zero."""

    def __init__(self, upstream: str, seed: int) -> None:
        self._upstream = str(urlsplit(upstream).netloc)
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self.share = 0.0
        self.spoilt: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "FaultyS3":
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _drawn(self, method: str, target: str) -> str | None:
        with self._lock:
            if self._rng.random() >= self.share:
                return None
            completes = method == "POST" and "uploadId=" in target
            fault = self._rng.choice([name for name in FAULTS if completes or name != "200 with an error"])
            self.spoilt[fault] += 1
            return fault

    def _passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        upstream = http.client.HTTPConnection(self._upstream, timeout=60)
        try:
            upstream.request(request.command, request.path, body, dict(request.headers))
            answer = upstream.getresponse()
            return answer, answer.read()
        finally:
            upstream.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = proxy._drawn(self.command, self.path)
                if fault == "slow":
                    time.sleep(proxy._rng.uniform(0.5, 5))
                if fault == "unsent":
                    self._hang_up()
                elif fault in _CODES:
                    self._refuse(fault)
                else:
                    self._pass_on(body, fault)

            def _pass_on(self, body: bytes, fault: str | None) -> None:
                try:
                    answer, content = proxy._passed_on(self, body)
                    if fault == "twice":
                        answer, content = proxy._passed_on(self, body)
                except (OSError, http.client.HTTPException):  # the server is down
                    self._hang_up()
                    return
                if fault == "unanswered":
                    self._hang_up()
                    return
                if fault == "done and 500":
                    self._refuse("500")
                    return
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self._answer(answer.status, answer.getheaders(), content, length)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

            def _refuse(self, fault: str) -> None:
                content = b"" if self.command == "HEAD" else _ERROR % _CODES[fault]
                self._answer(int(fault.split()[0]), [("Content-Type", "application/xml")], content)

            def _answer(
                self, status: int, headers: list[tuple[str, str]], content: bytes, length: str | None = None
            ) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                self.send_header("Content-Length", length or str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def _hang_up(self) -> None:
                self.close_connection = True

            def handle(self) -> None:
                with contextlib.suppress(OSError):  # the client was killed
                    super().handle()

            def log_message(self, *_: object) -> None: ...

        return Handler
