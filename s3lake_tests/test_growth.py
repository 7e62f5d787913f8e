"""What a long history costs: requests counted exactly, CPU with room for a slow machine's best of some tries."""

import time
from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest

from s3lake import hours
from s3lake.commit import protocol
from s3lake.commit.index import File, Manifest, Read, TopicHead, TopicIndex
from s3lake.kafka.offsets import LogRange, Snapshot
from s3lake.plan.tile import Span, Tile
from s3lake_tests.counted import CountedStore

HOURS = 20_000
FIRST = "2024-01-01T00"
LAST = hours.shift(FIRST, HOURS - 1)
NEXT = hours.shift(LAST, 1)


class Log:
    """A topic of one topic-partition with ten records an hour."""

    def snapshot(self, _: str, hour: str) -> Snapshot:
        at = 10 * (hours.start_ms(hour) - hours.start_ms(FIRST)) // hours.HOUR_MS
        return Snapshot("id", {0: LogRange(0, 10 * HOURS + 5, at, at + 10)})

    def ranges(self, _: str) -> Mapping[int, tuple[int, int]]:
        return {0: (0, 10 * HOURS + 5)}

    def first_since(self, *_: object) -> Mapping[int, int]:
        return {}


def landed(number: int, *, end: int | None) -> tuple[Tile, Manifest]:
    """An hour with all of its records in one commit of one file."""
    hour, start = hours.shift(FIRST, number), 10 * number
    commit = f"{number:032x}"
    file = File(f"lake/{start}", "u", ('"e"',), 0, start, start + 9, 10, 100)
    manifest = Manifest(commit, "orders", hour, {0: Read(start, start + 10, 10, 10)}, (file,))
    return Tile(hour, {0: Span(start, start + 10, end)}, commits=(commit,)), manifest


def history(count: int = HOURS, *, still_open: bool = True) -> TopicIndex:
    """An index of so many hours, each landed; the last one may still be open."""
    index = TopicIndex(CountedStore(), ".indexes/events", "orders")
    for number in range(count):
        end = None if still_open and number == count - 1 else 10 * number + 10
        tile, manifest = landed(number, end=end)
        index.store.put(index.tile_key(tile.hour), msgspec.json.encode(tile))
        index.store.put(index.manifest_key(tile.hour, manifest.id), msgspec.json.encode(manifest))
    head = TopicHead(topic_id="id", hours=((FIRST, hours.shift(FIRST, count - 1)),), new=tile)
    index.store.put(index.head_key, msgspec.json.encode(head))
    index.store.requests.clear()
    return index


def cpu_ms(work: Callable[[], object], tries: int = 20) -> float:
    """The CPU time of the fastest try."""

    def once() -> float:
        began = time.process_time()
        work()
        return (time.process_time() - began) * 1000

    return min(once() for _ in range(tries))


@pytest.fixture(scope="module")
def long() -> TopicIndex:
    return history()


@pytest.fixture
def index(long: TopicIndex) -> Iterator[TopicIndex]:
    """20,000 hours; what a test writes is taken away again."""
    before = dict(long.store.objects)
    long.store.requests.clear()
    yield long
    long.store.objects = before


class TestOpening:
    def test_an_hour_that_is_open_costs_two_requests_and_little_cpu(self, index: TopicIndex) -> None:
        protocol.open_hour(index, Log(), LAST)
        assert index.store.requests.total() <= 2
        assert cpu_ms(lambda: protocol.open_hour(index, Log(), LAST)) <= 5

    def test_a_new_hour_costs_four_requests_and_one_more_to_close_the_hour_before(self, index: TopicIndex) -> None:
        """topic.json read, the hour before read and closed, topic.json changed, the tile written."""
        protocol.open_hour(index, Log(), NEXT)
        assert index.store.requests == {"get": 2, "put": 3}
        assert index.tile(LAST)[0].closed
        assert index.tile(NEXT)[0].partitions == {0: Span(10 * HOURS, 10 * HOURS, None)}

    def test_a_new_hour_after_one_that_is_closed_costs_four_requests(self) -> None:
        index = history(10, still_open=False)
        protocol.open_hour(index, Log(), hours.shift(FIRST, 10))
        assert index.store.requests == {"get": 2, "put": 2}

    def test_a_new_hour_costs_little_cpu_however_many_there_are(self, index: TopicIndex) -> None:
        before = dict(index.store.objects)

        def opened() -> None:
            index.store.objects = dict(before)

        copying = cpu_ms(opened)
        assert cpu_ms(lambda: (opened(), protocol.open_hour(index, Log(), NEXT))) - copying <= 5

    def test_an_hour_between_others_costs_little_cpu_too(self, index: TopicIndex) -> None:
        missing = hours.shift(FIRST, HOURS // 2)
        ranges = ((FIRST, hours.shift(missing, -1)), (hours.shift(missing, 1), LAST))
        index.store.put(index.head_key, msgspec.json.encode(TopicHead(topic_id="id", hours=ranges)))
        index.store.delete(index.tile_key(missing))
        index.store.requests.clear()
        head = protocol.open_hour(index, Log(), missing)
        assert head is not None
        assert head.hours == ((FIRST, LAST),)
        assert index.store.requests == {"get": 3, "put": 2}
