"""What planning asks of Iggy, answered by polling single messages.

Offsets have no gaps, and the timestamps of a partition, which the server gives, do not go back but for its clock.
Purging a topic begins its offsets anew under the same id, so the time of its last message stands for a leader's epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeVar

from s3lake import hours
from s3lake.errors import SourceUnavailableError
from s3lake.source.iggy.connection import Connection, Gone
from s3lake.source.iggy.log import Log, described
from s3lake.source.iggy.names import Name, together
from s3lake.source.offsets import LogRange, Snapshot, Waiting

if TYPE_CHECKING:
    from apache_iggy import IggyClient

A = TypeVar("A")

CLOCK_US = 60_000_000
"""How far the clock of a server, or of the next leader of its cluster, may have gone back."""


class IggyOffsets:
    """`Offsets` of a real server; objects are cheap, those with the same settings share one client in a process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"IggyOffsets({self._connection.address!r})"

    def snapshot(self, topic: str, hour: str, *, known: bool = False) -> Snapshot:
        """See `Offsets.snapshot`."""
        del known  # a server that answers knows its topics
        start_us, end_us = hours.start_ms(hour) * 1000, hours.end_ms(hour) * 1000

        async def around(log: Log) -> LogRange:
            low, end = await log.edges()
            last = await log.at(end - 1) if low < end else None
            at = await log.first_since(start_us, low, end)
            following = await log.first_since(end_us, at, end)
            return LogRange(low, end, at, following, last.timestamp() if last is not None else None)

        identity, ranges = self._of_each(topic, around)
        return Snapshot(identity, ranges)

    def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """See `Offsets.ranges`."""
        return self._of_each(topic, Log.edges)[1]

    def ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        """See `Offsets.ends`."""
        edges = {topic: self.ranges(topic) for topic in topics}
        return {topic: {one: end for one, (_, end) in ranges.items()} for topic, ranges in edges.items() if ranges}

    def cut(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """See `Offsets.cut`; an epoch is the time of the last message that there was."""

        async def below(log: Log) -> int | None:
            if log.number not in reached:
                return None
            offset, epoch = reached[log.number]
            low, end = await log.edges()
            if await log.first_since(epoch + CLOCK_US, low, end) >= offset:
                return None
            return await log.first_since(epoch + 1, low, end)

        cut = self._of_each(topic, below)[1]
        return {partition: offset for partition, offset in cut.items() if offset is not None}

    def topics(self) -> list[str]:
        """See `Offsets.topics`."""

        async def question(client: IggyClient) -> list[str]:
            names: list[Name] = []
            for stream in await client.get_streams():
                names += [Name(stream.name, topic.name) for topic in await client.get_topics(stream.id)]
            return sorted(map(together, names))

        return self._connection.ask("the names of topics", question)

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """See `Offsets.first_since`."""

        async def since(log: Log) -> int:
            return await log.first_since(epoch_ms * 1000, *await log.edges())

        return self._of_each(topic, since)[1]

    def waiting(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Waiting:
        """See `Offsets.waiting`."""

        async def behind(log: Log) -> Waiting:
            low, end = await log.edges()
            begin = await log.first_since(begin_ms * 1000, low, end) if not reached and begin_ms else low
            first = max(low, reached.get(log.number, begin))
            message = await log.at(first) if first < end else None
            age = now_ms / 1000 - message.timestamp() / 1e6 if message is not None else 0.0
            return Waiting(max(0, end - first), max(0.0, age), {log.number: end})

        parts = self._of_each(topic, behind)[1].values()
        seconds = max((part.seconds for part in parts), default=0.0)
        ends = {number: end for part in parts for number, end in part.ends.items()}
        return Waiting(sum(part.records for part in parts), seconds, ends)

    def _of_each(self, topic: str, ask: Callable[[Log], Awaitable[A]]) -> tuple[str, dict[int, A]]:
        """What the topic is told from others by, and an answer of each partition; nothing where there is no topic."""

        async def question(client: IggyClient) -> tuple[str, dict[int, A]]:
            identity, logs = await described(client, topic)
            answers = await asyncio.gather(*map(ask, logs))
            if logs and (await described(client, topic))[0] != identity:
                raise RuntimeError("the topic was deleted and created again meanwhile")
            return identity, {log.number: answer for log, answer in zip(logs, answers, strict=True)}

        what = f"the offsets of topic {topic!r}"
        try:
            return self._connection.ask(what, question)
        except Gone as reason:
            raise SourceUnavailableError(f"{self._connection} did not tell {what}: it is changing: {reason}") from None
