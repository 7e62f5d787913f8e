"""One partition of an Iggy topic: its first and last offset, and the first offset of a moment.

The name of a topic is its stream's and its own with a dot between. Both may have dots: the server's topics decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    import apache_iggy as iggy

CONSUMER = "s3lake"
"""The consumer that polls; nothing is ever committed under its name."""


class Name(NamedTuple):
    """A topic as Iggy names it; everywhere else it has one name, joined by a dot."""

    stream: str
    topic: str


@dataclass(frozen=True)
class Partition:
    """A partition, as the server described it a moment ago; `number` begins at 1 on old servers, else at 0."""

    client: iggy.IggyClient
    name: Name
    details: iggy.Partition

    @property
    def number(self) -> int:
        return self.details.id

    async def poll(self, strategy: iggy.PollingStrategy, count: int = 1) -> list[iggy.ReceiveMessage]:
        """Return messages from there on."""
        from apache_iggy import Consumer

        return await self.client.poll_messages(
            *self.name,
            consumer=Consumer.Single(CONSUMER),
            polling_strategy=strategy,
            count=count,
            auto_commit=False,
            partition_id=self.number,
        )

    async def read_bounds(self) -> tuple[int, int]:
        """Return the first offset that is still there, and the one that comes next.

        The server reports the newest offset and a count, which do not tell an empty partition from one with a single
        message that expired. So both offsets are read from messages.
        """
        from apache_iggy import PollingStrategy

        first = await self.poll(PollingStrategy.First()) if self.details.messages_count else []
        last = await self.poll(PollingStrategy.Last()) if first else []
        if not last:
            end = self.details.current_offset + 1 if self.details.current_offset else 0
            return end, end
        return first[0].offset(), last[0].offset() + 1

    async def read_message(self, offset: int) -> iggy.ReceiveMessage | None:
        """Return the message at `offset`, None if it expired or is still to come."""
        from apache_iggy import PollingStrategy

        message = next(iter(await self.poll(PollingStrategy.Offset(offset))), None)
        return message if message is not None and message.offset() == offset else None

    async def find_offset_since(self, moment_us: int, low: int, end: int) -> int:
        """Return the first offset of `[low, end)` stamped then or later, `end` if there is none.

        The server's own answer is checked by the messages about it; if they disagree, it is searched for by halves.
        """
        from apache_iggy import PollingStrategy

        if low >= end:
            return end
        messages = await self.poll(PollingStrategy.Timestamp(max(0, moment_us)))
        answer = max(low, min(end, messages[0].offset() if messages else end))
        if await self._is_since(answer, moment_us, end) and not (
            answer > low and await self._is_since(answer - 1, moment_us, end)
        ):
            return answer
        while low < end:
            middle = (low + end) // 2
            low, end = (low, middle) if await self._is_since(middle, moment_us, end) else (middle + 1, end)
        return low

    async def _is_since(self, offset: int, moment_us: int, end: int) -> bool:
        if offset >= end:
            return True
        message = await self.read_message(offset)
        return message is not None and message.timestamp() >= moment_us


async def describe_topic(client: iggy.IggyClient, topic: str) -> tuple[str, list[Partition]]:
    """Return the topic's identity and its partitions; an empty text and list if there is no such topic.

    Raises:
        ConfigurationError: the name has no stream, or may mean several topics.
    """
    pieces = topic.split(".")
    names = [Name(".".join(pieces[:at]), ".".join(pieces[at:])) for at in range(1, len(pieces))]
    names = [name for name in names if name.stream and name.topic]
    if not names:
        raise ConfigurationError(f"topic {topic!r} names no stream: write STREAM.TOPIC")
    topics = [(name, details) for name in names if (details := await client.get_topic(*name)) is not None]
    if len(topics) > 1:
        meanings = " and ".join(f"{name.topic!r} of stream {name.stream!r}" for name, _ in topics)
        raise ConfigurationError(f"topic {topic!r} may be {meanings}: rename one of them")
    for name, details in topics:
        # Numbers are used again once a topic is deleted; the moment of its creation is not.
        identity = f"{details.id}-{details.created_at}"
        return identity, [Partition(client, name, one) for one in sorted(details.partitions, key=attrgetter("id"))]
    return "", []
