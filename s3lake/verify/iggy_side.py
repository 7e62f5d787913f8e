"""Iggy once more: the messages of given offsets. Only the client is shared with what landed them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from s3lake.errors import SourceUnavailableError
from s3lake.source.iggy.connection import Connection
from s3lake.source.iggy.offsets import IggyOffsets
from s3lake.source.iggy.partitions import Partition, describe_topic
from s3lake.source.offsets import Snapshot
from s3lake.verify.log import Headers, LogStartMoved, Records

if TYPE_CHECKING:
    from apache_iggy import ReceiveMessage

_MOST = 5_000
_MOST_BYTES = 16_000_000
_PATIENCE_S = 30.0
_PAUSE_S = 0.1


class IggyLog:
    """`Log` of a real server."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._offsets = connection, IggyOffsets(connection)

    def snapshot(self, topic: str, hour: str) -> Snapshot:
        """See `Log.snapshot`."""
        return self._offsets.snapshot(topic, hour)

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """See `Log.first_since`."""
        return self._offsets.first_since(topic, epoch_ms)

    def compacted(self, topic: str) -> bool:
        """See `Log.compacted`: Iggy never does."""
        del topic
        return False

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        """See `Log.read`."""
        _, logs = self._connection.ask(
            f"the partitions of topic {topic!r}", lambda client: describe_topic(client, topic)
        )
        for log in logs:
            start, end = ranges.get(log.number, (0, 0))
            count, heard = _MOST // 10, time.monotonic()
            while start < end:
                messages = self._polled(log, start, min(count, end - start))
                if messages:
                    if messages[0].offset() != start:
                        raise LogStartMoved(f"partition {log.number} begins at {messages[0].offset()}")
                    yield _records(log.number, messages, parts)
                    start, heard = messages[-1].offset() + 1, time.monotonic()
                    size = sum(len(message.payload()) for message in messages)
                    count = max(1, min(_MOST, _MOST_BYTES * len(messages) // max(1, size)))
                elif time.monotonic() - heard > _PATIENCE_S:
                    raise SourceUnavailableError(
                        f"{self._connection} gave no message of topic {topic!r} for {_PATIENCE_S:g} s; still to come: "
                        f"partition {log.number} up to {end}"
                    )
                else:
                    time.sleep(_PAUSE_S)

    def _polled(self, log: Partition, offset: int, count: int) -> list[ReceiveMessage]:
        from apache_iggy import PollingStrategy

        what = f"the messages of {log.name.topic!r} from offset {offset} on"
        return self._connection.ask(what, lambda _: log.poll(PollingStrategy.Offset(offset), count))


def _records(partition: int, messages: list[ReceiveMessage], parts: Collection[str]) -> Records:
    return Records(
        partition,
        [message.offset() for message in messages],
        [message.timestamp() // 1000 for message in messages],
        [message.payload() for message in messages],
        [str(message.id()).encode() for message in messages] if "key" in parts else (),
        [_headers(message) for message in messages] if "headers" in parts else (),
    )


def _headers(message: ReceiveMessage) -> Headers:
    return [
        (_told(key).decode(errors="backslashreplace"), _told(value))
        for key, value in (message.user_headers() or {}).items()
    ]


def _told(field: Any) -> bytes:
    match type(field).__name__.rpartition("_")[2]:
        case "Raw":
            return bytes(field.value)
        case "Bool":
            return str(field.value).lower().encode()
        case _:
            return str(field.value).encode()
