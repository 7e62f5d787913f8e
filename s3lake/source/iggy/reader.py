"""Messages of exactly the offsets that were planned, polled inside the task that lands them.

Each offset is a message: a range has no gaps, so a poll that begins at another offset has missed something.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.errors import RecordError, SourceUnavailableError, TransientError
from s3lake.source.iggy.iggy_connection import IggyConnection, NotFoundError
from s3lake.source.iggy.partitions import Partition, describe_topic
from s3lake.source.record_batches import SCHEMA, OffsetRange

if TYPE_CHECKING:
    from apache_iggy import HeaderKey, HeaderValue, ReceiveMessage

BATCH_ROWS = 10_000
FIRST_ROWS = 100
"""Of the first poll, before the size of messages is known."""
BATCH_BYTES = 16 * 2**20
SILENCE_S = 30.0
"""How long planned messages may be missing, and how long one answer of megabytes may take."""
_WAIT_S = 0.1


class IggyReader:
    """`Reader` of a real server: plain values that travel to workers."""

    def __init__(self, connection: IggyConnection) -> None:
        self._connection = replace(connection, timeout_s=SILENCE_S)

    def batches(self, topic: str, ranges: Iterable[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Reader.batches`. The key is the message's id, because Iggy has no keys.

        Raises:
            SourceUnavailableError: the server did not answer, or gave no message, in time.
            TransientError: messages expired meanwhile, or the topic was deleted: planning again shows which.
            ConfigurationError: the server refuses to let this user read.
            RecordError: the headers of a message cannot be read.
        """
        for part in ranges:
            next_offset, rows, last_answer = part.start, FIRST_ROWS, time.monotonic()
            partition = self._find_partition(topic, part.partition) if next_offset < part.end else None
            while partition is not None and next_offset < part.end:
                messages = self._poll(topic, partition, next_offset, min(rows, part.end - next_offset))
                if not messages:
                    if time.monotonic() - last_answer >= SILENCE_S:
                        raise SourceUnavailableError(
                            f"{self._connection} did not give the messages of topic {topic!r}, partition "
                            f"{part.partition}, from offset {next_offset} on within {SILENCE_S:g} s; {part.end} was "
                            "planned. If this stays so, the log was cut off"
                        )
                    time.sleep(_WAIT_S)  # a poll and not a retry: the server answered that it has no message yet
                    continue
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array([_read_field(name, message, part) for message in messages], SCHEMA.field(name).type)
                        for name in columns
                    ],
                    list(columns),
                )
                next_offset, last_answer = messages[-1].offset() + 1, time.monotonic()
                size = sum(message.length() for message in messages)
                rows = max(1, min(BATCH_ROWS, BATCH_BYTES * len(messages) // max(1, size)))

    def _find_partition(self, topic: str, number: int) -> Partition:
        question = f"the partitions of topic {topic!r}"
        _, partitions = self._connection.ask(question, lambda client: describe_topic(client, topic))
        for partition in partitions:
            if partition.number == number:
                return partition
        raise TransientError(f"topic {topic!r}, partition {number} is not there any more; planning again")

    def _poll(self, topic: str, partition: Partition, offset: int, count: int) -> list[ReceiveMessage]:
        from apache_iggy import PollingStrategy

        where = f"topic {topic!r}, partition {partition.number}"
        try:
            messages = self._connection.ask(
                f"the messages of {where}", lambda _: partition.poll(PollingStrategy.Offset(offset), count)
            )
        except NotFoundError as reason:
            raise TransientError(f"{where} is not there any more: {reason}; planning again") from None
        if messages and [message.offset() for message in messages] != list(range(offset, offset + len(messages))):
            raise TransientError(
                f"{where}: Iggy has no message at offset {offset} any more: it expired, or the topic was purged, while "
                "it was being read; planning again"
            )
        return messages


def _read_field(name: str, message: ReceiveMessage, part: OffsetRange) -> object:
    """Return what a message has in a column."""
    match name:
        case "partition":
            return part.partition
        case "offset":
            return message.offset()
        case "timestamp":
            return message.timestamp()
        case "value":
            return message.payload()
        case "key":
            return b"%d" % message.id()
    try:
        headers = message.user_headers()
    except ValueError as error:
        raise RecordError(
            f"partition {part.partition}, offset {message.offset()}: its user headers cannot be read: {error}"
        ) from None
    return headers and [
        (_to_text(key).decode("utf-8", "backslashreplace"), _to_text(value)) for key, value in headers.items()
    ]


def _to_text(field: HeaderKey | HeaderValue) -> bytes:
    """Return texts and raw bytes as they are, numbers in decimal digits, booleans as `true` and `false`."""
    value = field.value  # type: ignore[union-attr]
    match value:
        case bytes():
            return value
        case bool():
            return b"true" if value else b"false"
    return str(value).encode()
