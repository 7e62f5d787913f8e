"""The functions of librdkafka that reading calls, in the very library that confluent-kafka is linked with.

A name that is looked up in confluent-kafka's extension is found in its librdkafka, wherever the wheel put that.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from types import SimpleNamespace

from s3lake.errors import ConfigurationError
from s3lake.source.kafka.client_properties import hide_secrets

MOST = 10_000
"""How many messages one poll returns at most."""

OLDEST_VERSION = 0x02060000
"""The oldest librdkafka whose functions are as they are called here: 2.6.0."""
_POINTER, _TEXT, _SIZE, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
_PARTITION, _OFFSET = ctypes.c_int32, ctypes.c_int64
_ON_ERROR = ctypes.CFUNCTYPE(None, _POINTER, _INT, _TEXT, _POINTER)
FUNCTIONS: dict[str, tuple[object, ...]] = {
    "version": (_INT,),
    "conf_new": (_POINTER,),
    "conf_set": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _SIZE),
    "conf_set_error_cb": (None, _POINTER, _ON_ERROR),
    "conf_destroy": (None, _POINTER),
    "new": (_POINTER, _INT, _POINTER, _TEXT, _SIZE),
    "destroy": (None, _POINTER),
    "err2name": (_TEXT, _INT),
    "err2str": (_TEXT, _INT),
    "poll_set_consumer": (_INT, _POINTER),
    "consumer_close": (_INT, _POINTER),
    "queue_get_consumer": (_POINTER, _POINTER),
    "queue_destroy": (None, _POINTER),
    "topic_partition_list_new": (_POINTER, _INT),
    "topic_partition_list_add": (_POINTER, _POINTER, _TEXT, _PARTITION),
    "topic_partition_list_set_offset": (_INT, _POINTER, _TEXT, _PARTITION, _OFFSET),
    "topic_partition_list_destroy": (None, _POINTER),
    "assign": (_INT, _POINTER, _POINTER),
    "consume_batch_queue": (ctypes.c_ssize_t, _POINTER, _INT, _POINTER, _SIZE),
    "query_watermark_offsets": (_INT, _POINTER, _TEXT, _PARTITION, _POINTER, _POINTER, _INT),
    "message_timestamp": (_OFFSET, _POINTER, _POINTER),
    "message_headers": (_INT, _POINTER, _POINTER),
    "message_errstr": (_TEXT, _POINTER),
    "message_destroy": (None, _POINTER),
    "header_get_all": (_INT, _POINTER, _SIZE, _POINTER, _POINTER, _POINTER),
}
_BLOCKING = {"assign", "consume_batch_queue", "consumer_close", "destroy", "query_watermark_offsets"}
_CONSUMER = 1


class Message(ctypes.Structure):
    """`rd_kafka_message_t`, as librdkafka's public header has it."""

    _fields_ = (
        ("error", ctypes.c_int32),
        ("topic", _POINTER),
        ("partition", _PARTITION),
        ("value", _POINTER),
        ("value_size", _SIZE),
        ("key", _POINTER),
        ("key_size", _SIZE),
        ("offset", _OFFSET),
        ("private", _POINTER),
    )


class KafkaRequestError(Exception):
    """librdkafka's answer to a request is an error; the text is librdkafka's."""


@functools.cache
def load_librdkafka() -> SimpleNamespace:
    """Return librdkafka's functions by their names without `rd_kafka_`.

    Raises:
        ConfigurationError: there is no librdkafka of a version that is known to have these functions and messages.
    """
    from confluent_kafka import cimpl

    try:
        # Python's lock is released only for what may wait: taking it again costs more than most of these functions.
        keeping, releasing = ctypes.PyDLL(cimpl.__file__), ctypes.CDLL(cimpl.__file__)
        rd = SimpleNamespace()
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(releasing if name in _BLOCKING else keeping, f"rd_kafka_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(rd, name, function)
    except (OSError, AttributeError) as error:
        raise _unsuitable(str(error)) from None
    if sys.maxsize < 2**32:
        raise _unsuitable("this Python has 32 bits")
    if rd.version() < OLDEST_VERSION:
        raise _unsuitable(
            f"its version is {rd.version():#010x}, and the oldest that s3lake supports is {OLDEST_VERSION:#010x}"
        )
    return rd


def _unsuitable(why: str) -> ConfigurationError:
    return ConfigurationError(
        f"records of Kafka cannot be read with this librdkafka: {why}. Install confluent-kafka 2.6 or later, in the "
        "wheel for Linux or macOS on 64 bits that the package index has"
    )


class PolledMessages:
    """The messages of one poll. At the end of the block messages that were not taken are destroyed."""

    def __init__(self, rd: SimpleNamespace, pointers: ctypes.Array[ctypes.c_void_p], count: int) -> None:
        self._rd, self._pointers, self._count = rd, pointers, count
        self.taken = 0

    def __len__(self) -> int:
        return self._count - self.taken

    def __enter__(self) -> PolledMessages:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy(len(self))

    @property
    def place(self) -> int:
        """The address of the remaining messages' addresses."""
        return ctypes.addressof(self._pointers) + self.taken * ctypes.sizeof(ctypes.c_void_p)

    @property
    def addresses(self) -> list[int]:
        return self._pointers[self.taken : self._count]  # type: ignore[return-value]

    def destroy(self, count: int) -> None:
        addresses = self.addresses[:count]
        self.taken += count
        for address in addresses:
            self._rd.message_destroy(address)

    def take_error(self) -> tuple[str, str]:
        """Return name and text of the error that the first remaining message is, and destroy the message."""
        (address, *_) = self.addresses
        code = Message.from_address(address).error
        text = (self._rd.message_errstr(address) or b"").decode(errors="replace")
        self.destroy(1)
        return self._rd.err2name(code).decode(), text


class Consumer:
    """A client that reads one topic-partition at a time and joins no group.

    Args:
        settings: librdkafka's properties.
        on_error: is called with name and text of each error of a connection, while this process polls.

    Raises:
        ConfigurationError: librdkafka refuses the properties, or there is none that fits.
    """

    def __init__(self, settings: Mapping[str, str], on_error: Callable[[str, str], None]) -> None:
        rd = self._rd = load_librdkafka()

        def report(_: object, code: int, text: bytes | None, __: object) -> None:
            on_error(rd.err2name(code).decode(), (text or b"").decode(errors="replace"))

        callback, reason = _ON_ERROR(report), ctypes.create_string_buffer(512)
        properties = rd.conf_new()
        # Plugins see only the settings that come after their own.
        client, in_order = None, sorted(settings.items(), key=lambda setting: setting[0] != "plugin.library.paths")
        if not any(rd.conf_set(properties, n.encode(), v.encode(), reason, len(reason)) for n, v in in_order):
            rd.conf_set_error_cb(properties, callback)
            client = rd.new(_CONSUMER, properties, reason, len(reason))
        if client is None:
            rd.conf_destroy(properties)
            why = hide_secrets(reason.value.decode(errors="replace"), settings)
            raise ConfigurationError(f"kafka.properties: librdkafka refuses them: {why}")
        rd.poll_set_consumer(client)
        self._client, self._queue = client, rd.queue_get_consumer(client)
        self._pointers = (ctypes.c_void_p * MOST)()
        self.close = weakref.finalize(self, _close, rd, client, self._queue, callback, os.getpid())
        self.close.atexit = False  # a process that ends need not wait for the brokers

    def assign(self, topic: str, partition: int, offset: int) -> None:
        """Read from this offset on; nothing else is read any more."""
        where = self._rd.topic_partition_list_new(1)
        self._rd.topic_partition_list_add(where, topic.encode(), partition)
        self._rd.topic_partition_list_set_offset(where, topic.encode(), partition, offset)
        self._rd.assign(self._client, where)
        self._rd.topic_partition_list_destroy(where)

    def unassign(self) -> None:
        if self.close.alive:
            self._rd.assign(self._client, None)

    def poll(self, most: int, timeout_ms: int) -> PolledMessages:
        """Return the next messages as soon as `most` are there, or the ones that came in time."""
        count = self._rd.consume_batch_queue(self._queue, timeout_ms, self._pointers, min(most, MOST))
        return PolledMessages(self._rd, self._pointers, max(0, count))

    def read_log_end(self, topic: str, partition: int, timeout_ms: int) -> int:
        """Return the last stable offset of a topic-partition.

        Raises:
            KafkaRequestError: no broker answered in time, or not with an offset.
        """
        start, end = ctypes.c_int64(), ctypes.c_int64()
        edges = ctypes.byref(start), ctypes.byref(end)
        code = self._rd.query_watermark_offsets(self._client, topic.encode(), partition, *edges, timeout_ms)
        if code:
            raise KafkaRequestError(self._rd.err2str(code).decode())
        return end.value


def _close(rd: SimpleNamespace, client: int, queue: int, _callback: object, pid: int) -> None:
    """End the client, which may call `_callback` until then."""
    if pid == os.getpid():  # in a forked process the client's threads are missing
        rd.queue_destroy(queue)
        rd.consumer_close(client)
        rd.destroy(client)
