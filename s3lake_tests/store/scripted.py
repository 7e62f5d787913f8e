"""A server that answers from a script, with answers of all sorts."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from s3lake.store.connection import S3Connection
from s3lake.store.s3 import S3Store

SECRET = "wJalrXUtnFEMI/K7MDENG"
TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE"

Answer = Callable[[BaseHTTPRequestHandler], None]


def status(code: int, error: str = "", message: str = "") -> Answer:
    """An answer with an error document, or without a body."""
    text = f"<Error><Code>{error}</Code><Message>{message}</Message></Error>" if error else ""
    return answering(code, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode() if text else b"")


def ok(content: bytes = b"") -> Answer:
    return answering(200, content)


def answering(code: int, content: bytes, headers: Mapping[str, str] = {}) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in {"ETag": '"e"', "Content-Length": str(len(content)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)

    return answer


def dropped(handler: BaseHTTPRequestHandler) -> None:
    """No answer at all."""
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def cut(handler: BaseHTTPRequestHandler) -> None:
    """An answer that breaks off in its body."""
    handler.send_response(200)
    handler.send_header("ETag", '"e"')
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"only this")
    handler.close_connection = True


def garbage(handler: BaseHTTPRequestHandler) -> None:
    """A proxy's idea of an answer."""
    answering(200, b"<html>come back later")(handler)


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(0.6)
    ok()(handler)


@dataclass
class Scripted:
    """A server that answers from a script, and its last answer ever after."""

    url: str = ""
    script: list[Answer] = field(default_factory=lambda: [ok()])
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def store(self, **settings: object) -> S3Store:
        connection = S3Connection(
            endpoint_url=self.url,
            region="eu-north-1",
            access_key_id="AKIAEXAMPLE",
            secret_access_key=SECRET,
            session_token=TOKEN,
            max_attempts=3,
            backoff_ms=1,
            patience_s=0,
        )
        return S3Store(replace(connection, **settings), "lake")  # type: ignore[arg-type]


@contextmanager
def serving() -> Iterator[Scripted]:
    """A server of a script, while the block runs."""
    scripted, lock = Scripted(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                scripted.asked.append(f"{self.command} {self.path}")
                scripted.headers.append({name.lower(): value for name, value in self.headers.items()})
                scripted.bodies.append(content)
                respond = scripted.script.pop(0) if len(scripted.script) > 1 else scripted.script[0]
            respond(self)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:  # dropped connections are meant
            pass

    with Quiet(("127.0.0.1", 0), Handler) as http:
        scripted.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield scripted
        finally:
            http.shutdown()
            thread.join()
