"""HTTP servers of tests: a function answers each request, or a list of answers does."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

S = TypeVar("S", bound="ScriptedServer")


@dataclass(frozen=True)
class Request:
    """A request; names of headers are in lower case, `target` is the path with its query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def steps(self) -> list[str]:
        """The steps of the path."""
        return [unquote(step) for step in urlsplit(self.target).path.strip("/").split("/")]

    @property
    def query(self) -> dict[str, str]:
        """The first value of each parameter."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass(frozen=True)
class Response:
    """An answer, `wait_s` later; one that is `cut` breaks off in its body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0
    cut: bool = False


DROPPED = Response(0)
"""No answer: the connection ends."""


def as_json(document: Any, status: int = 200) -> Response:
    """Answer with a document."""
    return Response(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


@contextmanager
def serve(answer: Callable[[Request], Response], tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[str]:
    """Answer requests on a free port of 127.0.0.1 while the block runs, or on `port`. Yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer, or each waits 40 ms for the client's acknowledgement

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = answer(Request(self.command, self.path, headers, body))
            if response.wait_s:  # tests patch this function of the product's
                time.sleep(response.wait_s)
            self.close_connection = True
            if response is DROPPED:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(response.status)
            length = str(len(response.body) + 1000 * response.cut)
            for name, value in {"Content-Length": length, "Connection": "close", **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _respond

        def handle_expect_100(self) -> bool:
            continues = super().handle_expect_100()
            self.wfile.flush()  # the client waits for it before it sends a body
            return continues

        def handle(self) -> None:
            with suppress(OSError):  # the client has left
                super().handle()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class ScriptedServer:
    """Answers from `script`, the last answer again and again, and keeps the `requests`."""

    def __init__(self, *script: Response, url: str = "") -> None:
        self.script = list(script) or [Response()]
        self.requests: list[Request] = []
        self.url = url
        self._lock = threading.Lock()

    @property
    def asked(self) -> list[str]:
        """Method and target of each request."""
        return [f"{request.method} {request.target}" for request in self.requests]

    @property
    def headers(self) -> list[Mapping[str, str]]:
        """Of each request."""
        return [request.headers for request in self.requests]

    @property
    def bodies(self) -> list[bytes]:
        """Of each request."""
        return [request.body for request in self.requests]

    def answer(self, request: Request) -> Response:
        """Return the next answer."""
        with self._lock:
            self.requests.append(request)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    @contextmanager
    def running(self: S) -> Iterator[S]:
        """Serve while the block runs."""
        with serve(self.answer) as self.url:
            yield self


def serve_script(*script: Response) -> AbstractContextManager[ScriptedServer]:
    """Serve these answers while the block runs."""
    return ScriptedServer(*script).running()
