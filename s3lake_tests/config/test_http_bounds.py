"""What a server may take of time and memory, whatever it does."""

import gzip
import socket
import time
import tracemalloc
import zlib
from typing import Any

import pytest
import requests

from s3lake.config.source.http import Settings, fetched
from s3lake.errors import ConfigurationError
from s3lake_tests.answering import Answer, answering


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


def dripping(head: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(200):
            connection.sendall(b"x")
            time.sleep(0.05)

    return answer


def endless(head: bytes, piece: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return answer


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 250\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 302 Found\r\nLocation: /x\r\nX: ",
    ],
    ids=["body", "body without a length", "headers", "headers of a redirect"],
)
def test_the_timeout_is_that_of_the_whole_answer(head: bytes) -> None:
    with answering(dripping(head)) as url:
        start = time.monotonic()
        with pytest.raises(ConfigurationError, match=r"no answer within 0\.2 s"):
            fetched(url, Settings(timeout=0.2, retry_enabled=False))
        assert time.monotonic() - start < 1.5


def test_the_timeout_is_that_of_all_redirects() -> None:
    def slow(connection: socket.socket) -> None:
        time.sleep(0.08)
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")

    with answering(slow) as url:
        start = time.monotonic()
        with pytest.raises(ConfigurationError, match=r"no answer within 0\.2 s"):
            fetched(url, Settings(timeout=0.2, retry_enabled=False))
        assert time.monotonic() - start < 1.5


def test_time_may_run_out_just_before_a_request_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of HTTP takes no timeout below zero."""
    prepared = requests.Session.merge_environment_settings

    def slowly(*args: Any) -> Any:
        time.sleep(0.1)
        return prepared(*args)

    monkeypatch.setattr(requests.Session, "merge_environment_settings", slowly)
    with pytest.raises(ConfigurationError, match=r"no answer within 0\.05 s"):
        fetched("http://127.0.0.1:1/c", Settings(timeout=0.05, retry_enabled=False))


def test_nobody_reads_the_body_of_a_redirect() -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\n\r\n"
    with (
        answering(endless(head, b"x" * 65536)) as url,
        pytest.raises(ConfigurationError, match="the connection failed"),
    ):
        fetched(url, Settings(timeout=5, retry_enabled=False))


@pytest.mark.parametrize("times", [1, 2])
def test_a_bomb_is_refused_while_it_arrives(times: int) -> None:
    deflate, megabyte = zlib.compressobj(1, wbits=31), b"\0" * 2**20
    first, again = (deflate.compress(megabyte) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    bomb = first + again * 127
    for _ in range(times - 1):
        bomb = gzip.compress(bomb, 1)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {', '.join(['gzip'] * times)}\r\n\r\n".encode()
    with answering(lambda connection: connection.sendall(head + bomb)) as url:
        tracemalloc.start()
        with pytest.raises(ConfigurationError, match=r"has more than 16777216 bytes|is encoded as 'gzip, gzip'"):
            fetched(url, Settings(timeout=10, retry_enabled=False))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 80 * 2**20


def test_a_compressed_answer_is_read() -> None:
    body = gzip.compress(b"sinks: []")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    with answering(lambda connection: connection.sendall(head + body)) as url:
        assert fetched(url, Settings(timeout=5, retry_enabled=False)).text == "sinks: []"
    with (
        answering(lambda connection: connection.sendall(head + body[:-5])) as url,
        pytest.raises(ConfigurationError, match="the answer ends early"),
    ):
        fetched(url, Settings(timeout=5, retry_enabled=False))


def test_a_reason_phrase_cannot_write_to_the_terminal() -> None:
    head = b"HTTP/1.1 418 \x1b[31mteapot\x07\r\nContent-Length: 0\r\n\r\n"
    with answering(lambda connection: connection.sendall(head)) as url, pytest.raises(ConfigurationError) as error:
        fetched(url, Settings(timeout=5, retry_enabled=False))
    assert r"418 \x1b[31mteapot\x07" in str(error.value)
