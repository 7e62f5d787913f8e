"""Messages of exactly the offsets that were planned, polled inside the task that lands them.

An offset is a message: a range has no gaps, so a poll that begins anywhere else has missed something.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.errors import RecordError, SourceUnavailableError, TransientError
from s3lake.source.iggy.connection import Connection, Gone
from s3lake.source.iggy.headers import name, text
from s3lake.source.iggy.log import Log, described
from s3lake.source.records import HEADERS, Range

if TYPE_CHECKING:
    from apache_iggy import ReceiveMessage

BATCH_ROWS = 10_000
FIRST_ROWS = 100
"""Of the first poll, while nobody knows how large messages are."""
BATCH_BYTES = 16 * 2**20
SILENCE_S = 30.0
"""How long messages that were planned may stay away, and how long one answer of megabytes may take."""
_WAIT_S = 0.1


class IggyReader:
    """`Reader` of a real server: plain values that travel to workers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = replace(connection, timeout_s=SILENCE_S)

    def batches(self, topic: str, ranges: Iterable[Range], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Reader.batches`. A message's id stands for a key, which Iggy has not.

        Raises:
            SourceUnavailableError: the server did not answer, or gave no message, in time.
            TransientError: messages expired while they were being read, or the topic is gone: planning again tells.
            ConfigurationError: the server refuses to let this user read.
            RecordError: a message's headers are none.
        """
        for part in ranges:
            following, rows, heard = part.start, FIRST_ROWS, time.monotonic()
            log = self._log(topic, part.partition) if following < part.end else None
            while log is not None and following < part.end:
                messages = self._polled(topic, log, following, min(rows, part.end - following))
                if not messages:
                    if time.monotonic() - heard >= SILENCE_S:
                        raise SourceUnavailableError(
                            f"{self._connection} did not give the messages of topic {topic!r}, partition "
                            f"{part.partition}, from offset {following} on within {SILENCE_S:g} s; {part.end} was "
                            "planned. If this stays so, the log was cut off"
                        )
                    time.sleep(_WAIT_S)
                    continue
                yield pa.RecordBatch.from_arrays([_column(name, messages, part) for name in columns], list(columns))
                following, heard = messages[-1].offset() + 1, time.monotonic()
                size = sum(message.length() for message in messages)
                rows = max(1, min(BATCH_ROWS, BATCH_BYTES * len(messages) // max(1, size)))

    def _log(self, topic: str, partition: int) -> Log:
        _, logs = self._connection.ask(f"the partitions of topic {topic!r}", lambda client: described(client, topic))
        for log in logs:
            if log.number == partition:
                return log
        raise TransientError(f"topic {topic!r}, partition {partition} is not there any more; planning again")

    def _polled(self, topic: str, log: Log, offset: int, count: int) -> list[ReceiveMessage]:
        from apache_iggy import PollingStrategy

        where = f"topic {topic!r}, partition {log.number}"
        try:
            messages = self._connection.ask(
                f"the messages of {where}", lambda _: log.polled(PollingStrategy.Offset(offset), count)
            )
        except Gone as reason:
            raise TransientError(f"{where} is not there any more: {reason}; planning again") from None
        if messages and [message.offset() for message in messages] != list(range(offset, offset + len(messages))):
            raise TransientError(
                f"{where}: Iggy has no message at offset {offset} any more: it expired, or the topic was purged, while "
                "it was being read; planning again"
            )
        return messages


def _column(name: str, messages: list[ReceiveMessage], part: Range) -> pa.Array:
    match name:
        case "partition":
            return pa.repeat(pa.scalar(part.partition, pa.int32()), len(messages))
        case "offset":
            return pa.array([message.offset() for message in messages], pa.int64())
        case "timestamp":
            return pa.array([message.timestamp() for message in messages], pa.timestamp("us", "UTC"))
        case "value":
            return pa.array([message.payload() for message in messages], pa.binary())
        case "key":
            return pa.array([b"%d" % message.id() for message in messages], pa.binary())
    return _headers(messages, part)


def _headers(messages: list[ReceiveMessage], part: Range) -> pa.Array:
    rows = []
    for message in messages:
        try:
            headers = message.user_headers()
        except ValueError as error:
            raise RecordError(
                f"partition {part.partition}, offset {message.offset()}: its user headers cannot be read: {error}"
            ) from None
        rows.append(headers and [(name(key), text(value)) for key, value in headers.items()])
    return pa.array(rows, HEADERS)
