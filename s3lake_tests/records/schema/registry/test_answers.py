"""What each answer of a registry means: for a record, for the configuration, or for another attempt.

The answers come from Confluent's documentation of its API, and of the framework below it.
"""

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from s3lake.errors import ConfigurationError, TransientError
from s3lake.records.schema import registry as module
from s3lake.records.schema.registry import Client, bounded_http
from s3lake.records.schema.registry.registry_answers import UnknownSchema
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.records.schema.registry.server import NO_SUCH_PATH, SchemaRegistry, serving

HTML = b"<html>"


def problem(code: int, message: str = "so it is") -> bytes:
    return json.dumps({"error_code": code, "message": message}).encode()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    with serving() as found:
        yield found


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (404, problem(40403), "the registry reports 'so it is'"),
        (404, problem(40401), "the registry reports 'so it is'"),
        (404, problem(40402), "the registry reports 'so it is'"),
        (404, problem(404), "the registry reports 'so it is'"),
        (404, b'{"error_code":40403}', "the registry reports ''"),
        (404, b'{"error_code":40403,"message":null}', "the registry reports 'None'"),
        (422, problem(42202), "the registry reports 'so it is'"),
        (422, problem(42201), "the registry reports 'so it is'"),
        (200, b'{"schema":5}', r"not as its API defines it: ValidationError: Expected `str`, got `int`"),
        (200, b'{"schema":null}', r"not as its API defines it: ValidationError: Expected `str`, got `null`"),
        (200, b'{"schema":"{}","references":{}}', "Expected `array | null`, got `object`"),
        (200, b'{"schema":"{}","references":[5]}', "Expected `object`, got `int`"),
        (200, b'{"schema":"{}","references":[{"name":"a","subject":"b","version":"1"}]}', "Expected `int`, got `str`"),
        (200, b'{"schema":"{}","schemaType":5}', "Expected `str | null`, got `int`"),
        (200, rb'{"schema":"\ud800"}', "not as its API defines it: DecodeError"),
        (200, b'{"schema":"\xed\xa0\x80"}', "not as its API defines it: UnicodeDecodeError"),
        (200, b'{"schema":"{}","more":' + b"[" * 100_000, "not as its API defines it: RecursionError"),
    ],
)
def test_an_answer_about_the_schema_is_the_error_of_its_records(
    registry: SchemaRegistry, status: int, body: bytes, reason: str
) -> None:
    registry.answers = [(status, body)]
    with pytest.raises(UnknownSchema, match=reason):
        Client(registry.connection).schema(1)
    assert len(registry.asked) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, HTML),
        (200, b""),
        (200, b"[]"),
        (200, b"{}"),
        (204, b""),
        (302, b""),
        (400, HTML),
        (400, problem(400)),
        (401, problem(40101)),
        (403, problem(40301)),
        (404, HTML),
        (404, b"{}"),
        (404, b'{"message":"no"}'),
        (405, problem(405)),
        (406, problem(406)),
    ],
)
def test_an_answer_that_no_schema_can_cause_is_an_error_of_the_configuration(
    registry: SchemaRegistry, status: int, body: bytes
) -> None:
    registry.answers = [(status, body)]
    with pytest.raises(ConfigurationError, match=r"is not a Schema Registry|refuses: HTTP 40"):
        Client(registry.connection).schema(1)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (408, HTML),
        (429, HTML),
        (500, problem(50001)),
        (500, problem(50002)),
        (500, problem(50003)),
        (502, HTML),
        (503, HTML),
        (504, HTML),
        (520, HTML),
    ],
)
def test_an_answer_of_a_server_in_trouble_is_transient(registry: SchemaRegistry, status: int, body: bytes) -> None:
    registry.answers = [(status, body)] * 3
    with pytest.raises(TransientError, match=f"did not answer in 3 attempts: HTTP {status}"):
        Client(registry.connection).schema(1)


@pytest.mark.parametrize("number", [2**31, 2**32 - 254, 2**32 - 1])
def test_an_id_that_no_registry_can_have_is_unknown_without_a_request(registry: SchemaRegistry, number: int) -> None:
    with pytest.raises(UnknownSchema, match=f"schema id {number}: a registry's ids are at most 2147483647"):
        Client(registry.connection).schema(number)
    assert registry.asked == []


@pytest.mark.parametrize("number", [0, 2**31 - 1])
def test_an_id_at_the_bounds_is_requested(registry: SchemaRegistry, number: int) -> None:
    with pytest.raises(UnknownSchema, match=f"schema id {number}: the registry reports 'Schema {number} not found'"):
        Client(registry.connection).schema(number)


def test_a_redirect_is_not_followed_and_named(registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    to = bounded_http.Answer(301, b"", "https://other/schemas/ids/1")
    monkeypatch.setattr(bounded_http, "get", lambda *_: to)
    with pytest.raises(ConfigurationError, match="HTTP 301, which leads to https://other/schemas/ids/1; that is not"):
        Client(registry.connection).schema(1)


# What a schema refers to


@pytest.mark.parametrize("answer", [(404, HTML), (404, problem(404)), (400, HTML), (414, HTML), (200, b"{}")])
def test_a_bad_answer_to_a_reference_is_the_error_of_the_records(
    registry: SchemaRegistry, answer: tuple[int, bytes]
) -> None:
    number = registry.add('"top"', refers=[("com.Low", "a/b")])
    registry.answers = [(200, b'{"schema":"{}","references":[{"name":"a","subject":"a/b","version":1}]}'), answer]
    with pytest.raises(UnknownSchema, match=f"schema id {number}: the registry"):
        Client(registry.connection).schema(number)


@pytest.mark.parametrize("refers", [["a"], ["b", "a"], ["b", "c", "a"]])
def test_schemas_that_refer_to_each_other_are_unknown(registry: SchemaRegistry, refers: list[str]) -> None:
    for subject, next_one in itertools.pairwise(["a", *refers]):
        registry.add('"x"', subject=subject, refers=[(f"com.{next_one}", next_one)])
    number = registry.add('"top"', refers=[("com.a", "a")])
    with pytest.raises(UnknownSchema, match=rf"schema id {number}: its reference 'com\.a' refers to itself"):
        Client(registry.connection).schema(number)


def test_a_chain_of_references_is_read_to_a_bound(registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REFERENCES", 5)
    registry.add('"x"', subject="0")
    for number in range(1, 6):
        registry.add('"x"', subject=str(number), refers=[(f"n{number - 1}", str(number - 1))])
    inside = registry.add('"top"', refers=[("n4", "4")])
    assert list(Client(registry.connection).schema(inside).references) == ["n0", "n1", "n2", "n3", "n4"]
    beyond = registry.add('"top"', refers=[("n5", "5")])
    with pytest.raises(UnknownSchema, match=f"schema id {beyond}: it needs more than 5 other schemas"):
        Client(registry.connection).schema(beyond)


def test_1200_references_are_more_than_a_schema_may_have(registry: SchemaRegistry) -> None:
    for number in range(1_200):
        registry.add('"x"', subject=str(number), refers=[(f"n{number + 1}", str(number + 1))])
    first = registry.add('"top"', refers=[("n0", "0")])
    with pytest.raises(UnknownSchema, match="it needs more than 1000 other schemas"):
        Client(registry.connection).schema(first)


# One bound of time and of size for each request


def test_an_answer_beyond_the_bound_is_the_error_of_the_records(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "MOST_BYTES", 1_000)
    fits, beyond = registry.add("x" * 900), registry.add("x" * 1_000)
    assert len(Client(registry.connection).schema(fits).text) == 900
    with pytest.raises(UnknownSchema, match=f"schema id {beyond}: the registry's answer has more than 1000 bytes"):
        Client(registry.connection).schema(beyond)


def test_a_schema_with_references_beyond_the_bound_is_unknown(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TEXT", 50)
    registry.add("x" * 40, subject="low")
    number = registry.add("x" * 40, refers=[("com.Low", "low")])
    with pytest.raises(UnknownSchema, match="it has, with its references, more than 50 characters"):
        Client(registry.connection).schema(number)


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """Serve `head` at once, and then a byte every 20 ms for as long as the client listens."""
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as threads:
        over = threading.Event()

        def drip(client: socket.socket) -> None:
            with client, contextlib.suppress(OSError):
                client.recv(4096)
                client.sendall(head)
                while not over.wait(0.02):
                    client.sendall(b"x")

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    thread = threading.Thread(target=drip, args=(server.accept()[0],))
                    thread.start()
                    threads.callback(thread.join)

        thread = threading.Thread(target=accept)
        thread.start()
        threads.callback(thread.join)
        threads.callback(over.set)
        threads.callback(server.shutdown, socket.SHUT_RDWR)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Long: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_a_request_that_drips_ends_after_its_timeout(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    with dripping(head) as url, pytest.raises(TransientError, match=r"in 3 attempts: no answer within 0\.1 s"):
        Client(Connection((url,), timeout=0.1)).schema(1)


# Whether a registry is there


def test_a_registry_without_schemas_passes_the_check(registry: SchemaRegistry) -> None:
    Client(registry.connection).check()


def test_a_path_that_a_registry_does_not_have_fails_the_check(registry: SchemaRegistry) -> None:
    wrong = Connection((f"{registry.url}/api",))
    with pytest.raises(ConfigurationError, match="that is not a Schema Registry: write the address that"):
        Client(wrong).check()
    assert NO_SUCH_PATH[0] == 404
