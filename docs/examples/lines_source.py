"""A source of s3lake: each directory is a topic, and each line of its text files is a record, `EPOCH_MS VALUE`.

Topic-partition N of a topic is its file N.txt, and an offset is the number of a line. Files only grow.
"""

import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from s3lake import hours
from s3lake.source.offsets import Lag, LogRange, TopicOffsets
from s3lake.source.record_batches import SCHEMA, OffsetRange

Line = tuple[int, bytes]


def lines(directory: Path, topic: str) -> dict[int, list[Line]]:
    """Return time and value of each record of a topic, per topic-partition."""
    files = sorted((directory / topic).glob("*.txt"))
    split = {int(file.stem): [line.split(b" ", 1) for line in file.read_bytes().splitlines()] for file in files}
    return {number: [(int(time), value) for time, value in records] for number, records in split.items()}


class LinesOffsets:
    """Answers the questions of planning, sensors and checks."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def snapshot(self, topic: str, hour: str, *, existed: bool = False) -> TopicOffsets:
        """Return the offsets around an hour, and an id, which a topic that is created again has not."""
        partitions = lines(self.directory, topic)
        if not partitions:
            return TopicOffsets("", {})
        edges = (hours.start_ms(hour), hours.end_ms(hour))
        ranges = {
            number: LogRange(0, len(records), *(bisect.bisect_left(records, (edge,)) for edge in edges))
            for number, records in partitions.items()
        }
        return TopicOffsets(str((self.directory / topic).stat().st_ino), ranges)

    def log_ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Return the first and the next offset of each topic-partition."""
        return {number: (0, len(records)) for number, records in lines(self.directory, topic).items()}

    def log_ends(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        """Return the next offsets of many topics; missing topics are left out."""
        every = {topic: {number: end for number, (_, end) in self.log_ranges(topic).items()} for topic in topics}
        return {topic: ends for topic, ends in every.items() if ends}

    def find_truncations(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Return truncated topic-partitions. It is called if `LogRange.epoch` has changed; ours has none."""
        return {}

    def topics(self) -> list[str]:
        """Return the names of all topics."""
        return sorted(path.name for path in self.directory.iterdir() if path.is_dir())

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        """Return the first offset with this timestamp or a later one, per topic-partition."""
        partitions = lines(self.directory, topic)
        return {number: bisect.bisect_left(records, (epoch_ms,)) for number, records in partitions.items()}

    def lag(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Lag:
        """Return what is not landed: after the `reached` offsets, or from `begin_ms` on if nothing is landed."""
        first = reached or self.find_offset_since(topic, begin_ms)
        behind = [
            record
            for partition, records in lines(self.directory, topic).items()
            for record in records[first.get(partition, 0) :]
        ]
        return Lag(len(behind), max((now_ms - time for time, _ in behind), default=0) / 1000)


class LinesReader:
    """Reads records in Spark's workers: it is pickled, and this module has to be installed there too."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def batches(self, topic: str, ranges: Iterable[OffsetRange], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the records of exactly these offsets, with the requested columns."""
        for partition, start, end in ranges:
            records = lines(self.directory, topic)[partition][start:end]
            rows = [
                {"partition": partition, "offset": offset, "timestamp": time * 1000, "value": value}
                for offset, (time, value) in enumerate(records, start)
            ]
            yield pa.RecordBatch.from_pylist(rows, SCHEMA).select(list(columns))


class LinesSource:
    """The class that the entry point names. It gets `source.options`, and the seconds within which to answer."""

    def __init__(self, options: Mapping[str, Any], timeout_s: float) -> None:
        directory = Path(options["directory"])
        self.place = f"lines {directory}"
        self.offsets, self.reader = LinesOffsets(directory), LinesReader(directory)
