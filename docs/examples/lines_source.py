"""A source of s3lake: directories of text files as topics, a line each record, `EPOCH_MS VALUE`.

Files are only ever appended to. Topic-partition N of a topic is its file N.txt, and an offset is the number of a line.
"""

import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from s3lake import hours
from s3lake.source.offsets import Lag, LogRange, TopicOffsets
from s3lake.source.records import SCHEMA, OffsetRange

Line = tuple[int, bytes]


def lines(directory: Path, topic: str) -> dict[int, list[Line]]:
    """What a topic has now: per topic-partition its records' times and values."""
    files = sorted((directory / topic).glob("*.txt"))
    split = {int(file.stem): [line.split(b" ", 1) for line in file.read_bytes().splitlines()] for file in files}
    return {number: [(int(time), value) for time, value in records] for number, records in split.items()}


class LinesOffsets:
    """What planning, sensors and checks ask."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        """The topic's offsets around an hour; the id tells it from another one that has its name later."""
        found = lines(self.directory, topic)
        if not found:
            return TopicOffsets("", {})
        edges = (hours.start_ms(hour), hours.end_ms(hour))
        ranges = {
            number: LogRange(0, len(records), *(bisect.bisect_left(records, (edge,)) for edge in edges))
            for number, records in found.items()
        }
        return TopicOffsets(str((self.directory / topic).stat().st_ino), ranges)

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """First and next offset per topic-partition."""
        return {number: (0, len(records)) for number, records in lines(self.directory, topic).items()}

    def log_ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        """Next offsets of many topics; missing topics are left out."""
        every = {topic: {number: end for number, (_, end) in self.ranges(topic).items()} for topic in topics}
        return {topic: ends for topic, ends in every.items() if ends}

    def find_truncations(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Topic-partitions whose log was cut; asked only where `LogRange.epoch` changed, and ours has none."""
        return {}

    def topics(self) -> list[str]:
        """Names of all topics."""
        return sorted(path.name for path in self.directory.iterdir() if path.is_dir())

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """The first offset stamped then or later, per topic-partition."""
        found = lines(self.directory, topic)
        return {number: bisect.bisect_left(records, (epoch_ms,)) for number, records in found.items()}

    def lag(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Lag:
        """What is beyond the offsets that were reached; where nothing was, what is stamped `begin_ms` or later."""
        first = reached or self.find_offset_since(topic, begin_ms)
        behind = [
            record for one, records in lines(self.directory, topic).items() for record in records[first.get(one, 0) :]
        ]
        return Lag(len(behind), max((now_ms - time for time, _ in behind), default=0) / 1000)


class LinesReader:
    """What travels to Spark's workers: plain values, and the module has to be installed there too."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def batches(self, topic: str, ranges: Iterable[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of exactly these offsets, as the columns that are asked for."""
        for partition, start, end in ranges:
            records = lines(self.directory, topic)[partition][start:end]
            rows = [
                {"partition": partition, "offset": offset, "timestamp": time * 1000, "value": value}
                for offset, (time, value) in enumerate(records, start)
            ]
            yield pa.RecordBatch.from_pylist(rows, SCHEMA).select(list(columns))


class LinesSource:
    """What the entry point names: `source.options` come in, and within how many seconds to answer."""

    def __init__(self, options: Mapping[str, Any], timeout_s: float) -> None:
        directory = Path(options["directory"])
        self.place = f"lines {directory}"
        self.offsets, self.reader = LinesOffsets(directory), LinesReader(directory)
