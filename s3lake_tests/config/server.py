"""A real HTTP server whose answers a test writes down beforehand."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Answer:
    body: bytes = b"sinks: []"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    cut: bool = False


@dataclass
class Asked:
    path: str
    headers: dict[str, str]


@dataclass
class Server:
    answers: list[Answer]
    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    """The answers in order; the last one again and again."""
    server = Server(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(Asked(self.path, {name.lower(): value for name, value in self.headers.items()}))
            answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            time.sleep(answer.wait_s)
            with suppress(BrokenPipeError, ConnectionResetError):
                self._send(answer)

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body) + (10 if answer.cut else 0)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server.port = httpd.server_address[1]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
