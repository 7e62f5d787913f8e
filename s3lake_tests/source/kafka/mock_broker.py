"""librdkafka's own broker without a JVM, and records as any producer in C or Java can write them.

confluent-kafka takes only texts for the names of headers, so this asks the librdkafka that it is linked with.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import cimpl

_LIBRDKAFKA = ctypes.PyDLL(cimpl.__file__)
_PRODUCER, _OK = 0, 0
_END, _TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADERS = 0, 1, 3, 4, 5, 7, 8, 10
_COPY = 2
_BATCH = 50_000  # librdkafka's queue takes twice as many


class WrittenRecord(NamedTuple):
    """A record to write; headers as name and value."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    stamp_ms: int = 1


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_LIBRDKAFKA, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


_new_settings = _function("rd_kafka_conf_new", ctypes.c_void_p)
_set = _function("rd_kafka_conf_set", ctypes.c_int, ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_size_t)
_new = _function("rd_kafka_new", ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
_destroy = _function("rd_kafka_destroy", None, ctypes.c_void_p)
_new_headers = _function("rd_kafka_headers_new", ctypes.c_void_p, ctypes.c_size_t)
_add_header = _function(
    *("rd_kafka_header_add", ctypes.c_int, ctypes.c_void_p),
    *(ctypes.c_char_p, ctypes.c_ssize_t, ctypes.c_char_p, ctypes.c_ssize_t),
)
_flush = _function("rd_kafka_flush", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_cluster_of = _function("rd_kafka_handle_mock_cluster", ctypes.c_void_p, ctypes.c_void_p)
_addresses = _function("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p, ctypes.c_void_p)
_produce = _LIBRDKAFKA.rd_kafka_producev
_produce.restype = ctypes.c_int


class Writer:
    """A producer that writes to topic-partition 0 of topics."""

    def __init__(self, servers: str, client: int) -> None:
        self.servers, self._client = servers, client

    def write(self, topic: str, *records: WrittenRecord) -> None:
        """Write the records; returns once the broker has them."""
        for number, record in enumerate(records, start=1):
            arguments: list[Any] = [_TOPIC, ctypes.c_char_p(topic.encode()), _PARTITION, 0, _FLAGS, _COPY]
            for field, content in ((_VALUE, record.value), (_KEY, record.key)):
                arguments += [field, ctypes.c_char_p(content), ctypes.c_size_t(len(content or b""))]
            arguments += [_TIMESTAMP, ctypes.c_int64(record.stamp_ms)]
            if record.headers:
                headers = _new_headers(len(record.headers))
                for name, content in record.headers:
                    _add_header(headers, name, len(name), content, len(content or b""))
                arguments += [_HEADERS, ctypes.c_void_p(headers)]
            assert _produce(ctypes.c_void_p(self._client), *arguments, _END) == _OK
            if number % _BATCH == 0 or number == len(records):
                assert _flush(self._client, 60_000) == _OK


@contextmanager
def _client(settings: dict[str, str]) -> Iterator[int]:
    reason = ctypes.create_string_buffer(512)
    handle = _new_settings()
    for name, value in settings.items():
        assert _set(handle, name.encode(), value.encode(), reason, len(reason)) == _OK, reason.value
    client = _new(_PRODUCER, handle, reason, len(reason))
    assert client, reason.value
    try:
        yield client
    finally:
        _destroy(client)


@contextmanager
def connect(servers: str) -> Iterator[Writer]:
    """A producer for these brokers."""
    # Compressed, because the broker in memory keeps 5 MiB of a topic-partition.
    settings = {"bootstrap.servers": servers, "log_level": "0", "compression.type": "zstd", "linger.ms": "5"}
    with _client(settings) as client:
        yield Writer(servers, client)


@contextmanager
def start() -> Iterator[Writer]:
    """A broker that runs in this process, and its producer."""
    with (
        _client({"test.mock.num.brokers": "1", "log_level": "0"}) as broker,
        connect(_addresses(_cluster_of(broker)).decode()) as writer,
    ):
        yield writer
