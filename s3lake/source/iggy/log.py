"""One partition of an Iggy topic: where it begins and ends, and where in it a moment is.

The server tells of a partition its newest offset and how many messages it holds, which cannot tell an empty partition
from one with a single message that expired. So its edges are those of its first and last message.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError
from s3lake.source.iggy.names import Name, candidates

if TYPE_CHECKING:
    from apache_iggy import IggyClient, Partition, PollingStrategy, ReceiveMessage, TopicDetails

CONSUMER = "s3lake"
"""The consumer that polls; nothing is ever committed under its name."""


@dataclass(frozen=True)
class Log:
    """A partition, as the server described it a moment ago."""

    client: IggyClient
    name: Name
    partition: Partition

    @property
    def number(self) -> int:
        """The partition's id: from 0, or from 1 where the server is an old one."""
        return self.partition.id

    async def polled(self, strategy: PollingStrategy, count: int = 1) -> list[ReceiveMessage]:
        """Messages from there on."""
        from apache_iggy import Consumer

        return await self.client.poll_messages(
            *self.name,
            consumer=Consumer.Single(CONSUMER),
            polling_strategy=strategy,
            count=count,
            auto_commit=False,
            partition_id=self.number,
        )

    async def edges(self) -> tuple[int, int]:
        """The first offset that is still there, and the one that comes next."""
        from apache_iggy import PollingStrategy

        first = await self.polled(PollingStrategy.First()) if self.partition.messages_count else []
        last = await self.polled(PollingStrategy.Last()) if first else []
        if not last:
            # All that was there expired, or nothing ever was.
            end = self.partition.current_offset + 1 if self.partition.current_offset else 0
            return end, end
        return first[0].offset(), last[0].offset() + 1

    async def at(self, offset: int) -> ReceiveMessage | None:
        """The message at `offset`; None where it expired, or is still to come."""
        from apache_iggy import PollingStrategy

        message = next(iter(await self.polled(PollingStrategy.Offset(offset))), None)
        return message if message is not None and message.offset() == offset else None

    async def first_since(self, moment_us: int, low: int, end: int) -> int:
        """The first offset of `[low, end)` whose message is stamped then or later; `end` where there is none.

        The server's own answer is tried first, and searched for by halves where the messages about it say otherwise.
        """
        from apache_iggy import PollingStrategy

        if low >= end:
            return end
        asked = await self.polled(PollingStrategy.Timestamp(max(0, moment_us)))
        told = max(low, min(end, asked[0].offset() if asked else end))
        if await self._is_since(told, moment_us, end) and not (
            told > low and await self._is_since(told - 1, moment_us, end)
        ):
            return told
        while low < end:
            middle = (low + end) // 2
            low, end = (low, middle) if await self._is_since(middle, moment_us, end) else (middle + 1, end)
        return low

    async def _is_since(self, offset: int, moment_us: int, end: int) -> bool:
        if offset >= end:
            return True
        message = await self.at(offset)
        return message is not None and message.timestamp() >= moment_us


async def described(client: IggyClient, topic: str) -> tuple[str, list[Log]]:
    """What tells a topic from others that had its name, and its partitions; nothing of both where there is none.

    Raises:
        ConfigurationError: the name may mean several topics, or none of Iggy's.
    """
    names = candidates(topic)
    if not names:
        raise ConfigurationError(f"topic {topic!r} names no stream: write STREAM.TOPIC")
    there = [(name, details) for name in names if (details := await client.get_topic(*name)) is not None]
    if len(there) > 1:
        meanings = " and ".join(f"{name.topic!r} of stream {name.stream!r}" for name, _ in there)
        raise ConfigurationError(f"topic {topic!r} may be {meanings}: rename one of them")
    return next(((_identity(details), _logs(client, name, details)) for name, details in there), ("", []))


def _identity(details: TopicDetails) -> str:
    # Numbers are used again once a topic is deleted; the moment of its creation is not.
    return f"{details.id}-{details.created_at}"


def _logs(client: IggyClient, name: Name, details: TopicDetails) -> list[Log]:
    return [Log(client, name, partition) for partition in sorted(details.partitions, key=attrgetter("id"))]
