"""What a long history costs, in a process of its own: `histories.py HOURS` makes an index, and prints one JSON line.

The index stands in memory, so that requests are counted, and nothing but our own work is timed.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from s3lake import hours
from s3lake.hours import DAY_MS
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.clean import clean_index
from s3lake.index.commit.documents import File, Manifest, Read, TopicHead
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.sums import add_commit
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake.index.store import Document
from s3lake.index.store.memory import MemoryStore
from s3lake.source.offsets import LogRange, TopicOffsets

FIRST, EACH = "2020-01-01T00", 10


class Counting(MemoryStore):
    """A bucket in memory that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        self.asked += 1
        return super().get(key, span)

    def put(self, key: str, body: bytes, **conditions: Any) -> str | None:
        self.asked += 1
        return super().put(key, body, **conditions)

    def list(self, prefix: str) -> Iterator[str]:
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        self.asked += 1 + len(keys) // 1000  # keys of one answer
        return iter(keys)


@dataclass
class Log:
    """A topic of one topic-partition with so many records in each hour."""

    end: int

    def snapshot(self, _: str, hour: str, **__: object) -> TopicOffsets:
        at = EACH * (hours.start_ms(hour) - hours.start_ms(FIRST)) // hours.HOUR_MS
        return TopicOffsets("id", {0: LogRange(0, self.end, min(at, self.end), min(at + EACH, self.end))})

    def log_ranges(self, _: str) -> Mapping[int, tuple[int, int]]:
        return {0: (0, self.end)}


def main(count: int) -> None:
    """Measures, and prints one JSON line."""
    store = Counting()
    index = TopicIndex(store, ".indexes/events", "orders")
    made(index, count)
    last = hours.shift(FIRST, count - 1)
    following, now_ms = hours.shift(last, 1), hours.end_ms(last) + 90 * DAY_MS
    log: Any = Log(EACH * (count + 1))

    def planned() -> None:
        head = open_and_close.open_hour(index, log, following)
        assert head is not None
        protocol.begin_micro_batch(index, log, head, following, limit=10**9, now_ms=hours.end_ms(following))

    def sealed() -> None:
        stored = index.head()
        assert stored is not None
        Sealing(index, *stored).move(FIRST)

    works: dict[str, Callable[[], object]] = {
        "plan": planned,
        "watermark": sealed,
        "first clean": lambda: clean_index(index, now_ms=now_ms),
        "clean": lambda: clean_index(index, now_ms=now_ms + DAY_MS),
    }
    size = sum(len(body) for body, _ in store.objects.values())
    rss_before = _rss()
    for name, work in works.items():
        store.asked, began = 0, (time.perf_counter(), time.process_time())
        work()
        took = time.perf_counter() - began[0], time.process_time() - began[1]
        told = {"did": name, "seconds": took[0], "cpu_s": took[1], "requests": store.asked}
        print(json.dumps({**told, "index_bytes": size, "peak_rss_bytes": _rss() - rss_before}), flush=True)


def made(index: TopicIndex, count: int) -> None:
    """So many hours, each landed by one commit."""
    for number in range(count):
        hour, start = hours.shift(FIRST, number), EACH * number
        commit, end = f"{number:032x}", start + EACH
        file = File(f"orders/{hour}/orders+0+{start:010}.json", "u", ('"e"',), 0, start, end - 1, EACH, 100)
        manifest = Manifest(commit, "orders", hour, {0: Read(start, end, read=EACH, landed=EACH)}, (file,))
        tile = Tile(hour, {0: TileRange(start, end, end)}, commits=(commit,), sums=add_commit(Sums(), manifest))
        index.create(index.tile_key(hour), tile)
        index.create(index.manifest_key(hour, commit), manifest)
    head = TopicHead(topic_id="id", hours=((FIRST, hours.shift(FIRST, count - 1)),), new=tile)
    index.store.put(index.head_key, msgspec.json.encode(head))


def _rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(int(sys.argv[1]))
