"""Records whose headers have names of any bytes, as a producer in C or Java can write them, and a broker without a JVM.

confluent-kafka takes texts for names, so this asks the librdkafka that it is linked with.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import cimpl

_LIBRDKAFKA = ctypes.PyDLL(cimpl.__file__)
_PRODUCER, _OK = 0, 0
_END, _TOPIC, _PARTITION, _VALUE, _FLAGS, _TIMESTAMP, _HEADER = 0, 1, 3, 4, 7, 8, 9
_COPY = 2


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_LIBRDKAFKA, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


_new_settings = _function("rd_kafka_conf_new", ctypes.c_void_p)
_set = _function("rd_kafka_conf_set", ctypes.c_int, ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_size_t)
_new = _function("rd_kafka_new", ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
_destroy = _function("rd_kafka_destroy", None, ctypes.c_void_p)
_flush = _function("rd_kafka_flush", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_cluster_of = _function("rd_kafka_handle_mock_cluster", ctypes.c_void_p, ctypes.c_void_p)
_addresses = _function("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p, ctypes.c_void_p)
_produce = _LIBRDKAFKA.rd_kafka_producev
_produce.restype = ctypes.c_int


@contextmanager
def _client(settings: dict[str, str]) -> Iterator[int]:
    said = ctypes.create_string_buffer(512)
    handle = _new_settings()
    for name, value in settings.items():
        assert _set(handle, name.encode(), value.encode(), said, len(said)) == _OK, said.value
    client = _new(_PRODUCER, handle, said, len(said))
    assert client, said.value
    try:
        yield client
    finally:
        _destroy(client)


def produce(servers: str, topic: str, *records: tuple[bytes, bytes | None], stamp_ms: int = 0) -> None:
    """Write records to topic-partition 0: a value each, and the name of its one header, None for no header."""
    with _client({"bootstrap.servers": servers, "log_level": "0"}) as client:
        for value, name in records:
            arguments: list[Any] = [_TOPIC, ctypes.c_char_p(topic.encode()), _PARTITION, 0, _FLAGS, _COPY]
            arguments += [_VALUE, ctypes.c_char_p(value), ctypes.c_size_t(len(value))]
            arguments += [_TIMESTAMP, ctypes.c_int64(stamp_ms)]
            if name is not None:
                arguments += [_HEADER, ctypes.c_char_p(name), ctypes.c_char_p(b"v"), ctypes.c_ssize_t(1)]
            assert _produce(ctypes.c_void_p(client), *arguments, _END) == _OK
        assert _flush(client, 10_000) == _OK


@contextmanager
def mock_broker() -> Iterator[str]:
    """The address of librdkafka's own broker, which lives in this process."""
    with _client({"test.mock.num.brokers": "1", "log_level": "0"}) as client:
        yield _addresses(_cluster_of(client)).decode()
