"""What planning asks of Iggy, answered by polling single messages.

Offsets have no gaps, and the timestamps of a partition, which the server gives, go back only with its clock. Purging a
topic begins its offsets again under the same id, so the time of the last message is what a leader's epoch is in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from s3lake import hours
from s3lake.errors import SourceUnavailableError
from s3lake.source.iggy.iggy_connection import IggyConnection, NotFoundError
from s3lake.source.iggy.partitions import Partition, describe_topic
from s3lake.source.offsets import Lag, LogRange, TopicOffsets

if TYPE_CHECKING:
    from apache_iggy import IggyClient

    from s3lake.source.iggy.reader import IggyReader

A = TypeVar("A")

CLOCK_US = 60_000_000
"""How far the clock of a server, or of the next leader of its cluster, may have been set back."""


class IggySource:
    """`Source` of a server; `settings` is `source` of a configuration."""

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self.connection = IggyConnection(**settings, timeout_s=timeout_s)
        self.place = f"iggy {self.connection.address}"
        self.offsets = IggyOffsets(self.connection)

    @property
    def reader(self) -> IggyReader:
        from s3lake.source.iggy.reader import IggyReader  # and Arrow, which questions do not need

        return IggyReader(self.connection)


class IggyOffsets:
    """`Offsets` of a real server; objects are cheap, those with the same settings share one client in a process."""

    def __init__(self, connection: IggyConnection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"IggyOffsets({self._connection.address!r})"

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        del existed  # a server that answers knows its topics
        start_us, end_us = hours.start_ms(hour) * 1000, hours.end_ms(hour) * 1000

        async def read(partition: Partition) -> LogRange:
            low, end = await partition.read_bounds()
            last = await partition.read_message(end - 1) if low < end else None
            at = await partition.find_offset_since(start_us, low, end)
            next_hour = await partition.find_offset_since(end_us, at, end)
            return LogRange(low, end, at, next_hour, last.timestamp() if last is not None else None)

        return TopicOffsets(*self._ask_each(topic, read))

    def snapshots(self, topics: Collection[str], hour: str) -> Mapping[str, TopicOffsets]:
        answers = {topic: self.snapshot(topic, hour) for topic in topics}
        return {topic: answer for topic, answer in answers.items() if answer.exists}

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        return self._ask_each(topic, Partition.read_bounds)[1]

    def log_ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        bounds = {topic: self.log_ranges(topic) for topic in topics}
        return {topic: {one: end for one, (_, end) in ranges.items()} for topic, ranges in bounds.items() if ranges}

    def find_truncations(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """See `Offsets.find_truncations`; an epoch is the time of the last message that there was."""

        async def find(partition: Partition) -> int | None:
            if partition.number not in reached:
                return None
            offset, epoch = reached[partition.number]
            low, end = await partition.read_bounds()
            if await partition.find_offset_since(epoch + CLOCK_US, low, end) >= offset:
                return None
            return await partition.find_offset_since(epoch + 1, low, end)

        truncated = self._ask_each(topic, find)[1]
        return {number: offset for number, offset in truncated.items() if offset is not None}

    def topics(self) -> list[str]:
        async def question(client: IggyClient) -> list[str]:
            names: list[str] = []
            for stream in await client.get_streams():
                names += [f"{stream.name}.{topic.name}" for topic in await client.get_topics(stream.id)]
            return sorted(names)

        return self._connection.ask("the names of topics", question)

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        async def find(partition: Partition) -> int:
            return await partition.find_offset_since(epoch_ms * 1000, *await partition.read_bounds())

        return self._ask_each(topic, find)[1]

    def lag(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Lag:
        async def measure(partition: Partition) -> Lag:
            low, end = await partition.read_bounds()
            begin = await partition.find_offset_since(begin_ms * 1000, low, end) if not reached and begin_ms else low
            first = max(low, reached.get(partition.number, begin))
            message = await partition.read_message(first) if first < end else None
            age = now_ms / 1000 - message.timestamp() / 1e6 if message is not None else 0.0
            return Lag(max(0, end - first), max(0.0, age), {partition.number: end})

        parts = self._ask_each(topic, measure)[1].values()
        seconds = max((part.seconds for part in parts), default=0.0)
        ends = {number: end for part in parts for number, end in part.ends.items()}
        return Lag(sum(part.records for part in parts), seconds, ends)

    def _ask_each(self, topic: str, ask: Callable[[Partition], Awaitable[A]]) -> tuple[str, dict[int, A]]:
        """Return the topic's identity, and the answer of each partition; both are empty if there is no topic."""

        async def question(client: IggyClient) -> tuple[str, dict[int, A]]:
            identity, partitions = await describe_topic(client, topic)
            answers = await asyncio.gather(*map(ask, partitions))
            if partitions and (await describe_topic(client, topic))[0] != identity:
                raise RuntimeError("the topic was deleted and created again meanwhile")
            return identity, {one.number: answer for one, answer in zip(partitions, answers, strict=True)}

        what = f"the offsets of topic {topic!r}"
        try:
            return self._connection.ask(what, question)
        except NotFoundError as reason:
            raise SourceUnavailableError(f"{self._connection} did not tell {what}: it is changing: {reason}") from None
