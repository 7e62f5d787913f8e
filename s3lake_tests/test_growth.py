"""What a long history costs: requests counted exactly, and CPU compared with what a short history costs."""

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg
import msgspec
import pytest

from s3lake import hours
from s3lake.errors import TooManyFilesError
from s3lake.hours import DAY_MS
from s3lake.index.commit import open_and_close
from s3lake.index.commit.clean import Cleaned, clean_index
from s3lake.index.commit.documents import File, Manifest, Read, TopicHead
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.sealed import digest_commits
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake.index.store import COMMIT
from s3lake.land.hour.landing import batch_limit, land, rewrite
from s3lake.land.request.read_request import RunTasks
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.orchestration import due_hours, sealed_hours, sensor_memory
from s3lake.orchestration.catalog import Route
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake.orchestration.runs import SinkRuns
from s3lake.orchestration.sensor_memory import Memory, RouteMemory
from s3lake.orchestration.tick import RouteState, Tick
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.offsets import Lag, LogRange, TopicOffsets
from s3lake_tests.kit.cost import cpu_ratio
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.kit.stores import CountedStore
from s3lake_tests.orchestration.world import catalog

HOURS = 20_000
FEW = 20
FIRST = "2024-01-01T00"
LAST = hours.shift(FIRST, HOURS - 1)
NEXT = hours.shift(LAST, 1)


@dataclass
class GrowingTopic:
    """A topic of one topic-partition with so many records in each hour."""

    end: int = 10 * HOURS + 5
    each: int = 10

    def snapshot(self, _: str, hour: str, **__: object) -> TopicOffsets:
        at = self.each * (hours.start_ms(hour) - hours.start_ms(FIRST)) // hours.HOUR_MS
        return TopicOffsets("id", {0: LogRange(0, self.end, min(at, self.end), min(at + self.each, self.end))})

    def log_ranges(self, _: str) -> Mapping[int, tuple[int, int]]:
        return {0: (0, self.end)}

    def find_offset_since(self, *_: object) -> Mapping[int, int]:
        return {}


def landed(number: int, *, end: int | None) -> tuple[Tile, Manifest]:
    """An hour with all of its records in one commit of one file."""
    hour, start = hours.shift(FIRST, number), 10 * number
    commit = f"{number:032x}"
    file = File(f"lake/{start}", "u", ('"e"',), 0, start, start + 9, 10, 100)
    manifest = Manifest(commit, "orders", hour, {0: Read(start, start + 10, read=10, landed=10)}, (file,))
    return Tile(hour, {0: TileRange(start, start + 10, end)}, commits=(commit,)), manifest


def _announced(hour: str) -> str:
    return digest_commits([f"{hours.count([(FIRST, hour)]) - 1:032x}"])


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


@pytest.fixture(scope="session")
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
        open_and_close.open_hour(index, GrowingTopic(), LAST)
        assert index.store.requests.total() <= 2
        short, last = history(FEW), hours.shift(FIRST, FEW - 1)
        log = GrowingTopic(10 * FEW + 5)
        ratio = cpu_ratio(
            lambda: open_and_close.open_hour(index, GrowingTopic(), LAST),
            lambda: open_and_close.open_hour(short, log, last),
            enough=3,
        )
        assert ratio <= 3

    def test_a_new_hour_costs_four_requests_and_one_more_to_close_the_hour_before(self, index: TopicIndex) -> None:
        """topic.json read, the hour before read and closed, topic.json changed, the tile written."""
        open_and_close.open_hour(index, GrowingTopic(), NEXT)
        assert index.store.requests == {"get": 2, "put": 3}
        assert index.tile(LAST)[0].closed
        assert index.tile(NEXT)[0].partitions == {0: TileRange(10 * HOURS, 10 * HOURS, None)}

    def test_a_new_hour_after_one_that_is_closed_costs_four_requests(self) -> None:
        index = history(10, still_open=False)
        open_and_close.open_hour(index, GrowingTopic(), hours.shift(FIRST, 10))
        assert index.store.requests == {"get": 2, "put": 2}

    def test_a_new_hour_costs_little_cpu_however_many_there_are(self, index: TopicIndex) -> None:
        short, next_hour = history(FEW), hours.shift(FIRST, FEW)
        log = GrowingTopic(10 * FEW + 5)
        before = [(one.store, dict(one.store.objects)) for one in (index, short)]

        def restore() -> None:
            for store, objects in before:
                store.objects = dict(objects)

        ratio = cpu_ratio(
            lambda: open_and_close.open_hour(index, GrowingTopic(), NEXT),
            lambda: open_and_close.open_hour(short, log, next_hour),
            enough=3,
            before=restore,
        )
        assert ratio <= 3

    def test_an_hour_between_others_costs_little_cpu_too(self, index: TopicIndex) -> None:
        missing = hours.shift(FIRST, HOURS // 2)
        ranges = ((FIRST, hours.shift(missing, -1)), (hours.shift(missing, 1), LAST))
        index.store.put(index.head_key, msgspec.json.encode(TopicHead(topic_id="id", hours=ranges)))
        index.store.delete(index.tile_key(missing))
        index.store.requests.clear()
        head = open_and_close.open_hour(index, GrowingTopic(), missing)
        assert head is not None
        assert head.hours == ((FIRST, LAST),)
        assert index.store.requests == {"get": 3, "put": 2}


def look(instance: dg.DagsterInstance, target: TopicSink, memory: Memory, now_ms: int) -> RouteState:
    """Look at the topic as a tick of its sensor does."""
    sink, entries = target.sink, catalog(target.sink)
    tick = Tick(
        instance,
        entries,
        [Route(sink, "orders")],
        {"orders": {0: target.offsets.end}},  # type: ignore[attr-defined]
        memory,
        now_ms,
        together=False,
        runs={sink.name: SinkRuns(instance, entries, sink, now_ms, "orders")},
        open=lambda _: target,
    )
    (state,) = tick.look_at_routes()
    return state


def target_of(
    store: CountedStore, log: GrowingTopic | None = None, now_ms: int | None = None, **settings: object
) -> TopicSink:
    """Return a target of the topic from hour `FIRST` on, by a stopped clock unless `now_ms` is None."""
    sink, reader = make_sink(start=FIRST, **settings), KafkaReader("127.0.0.1:1")
    clock = hours.now_ms if now_ms is None else lambda: now_ms
    return TopicSink(sink, "orders", lambda: None, lambda _: store, log or GrowingTopic(), lambda: reader, clock=clock)


@dataclass
class Sensor:
    """One that ticks while the last hour lasts, as Dagster has it tick: its cursor is a text in between."""

    target: TopicSink
    cursor: str
    instance: dg.DagsterInstance
    last: str

    @classmethod
    @contextmanager
    def of(cls, target: TopicSink, cursor: str, last: str = LAST) -> Iterator["Sensor"]:
        with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
            patch.setattr(
                sealed_hours, "announced_contents", lambda *asked: {hour: _announced(hour) for hour in asked[-1]}
            )
            yield cls(target, cursor, instance, last)

    @classmethod
    @contextmanager
    def that_has_seen_all(cls, target: TopicSink, count: int) -> Iterator["Sensor"]:
        """Hours before the last one are announced as sealed."""
        last = hours.shift(FIRST, count - 1)
        memory = Memory(routes={"events/orders": RouteMemory(announced=[(FIRST, hours.shift(last, -1))])})
        with cls.of(target, sensor_memory.encode_memory(memory), last) as sensor:
            for _ in range(count // due_hours.TILES_PER_TICK + 1):
                assert sensor.ask().span is None
            yield sensor

    def ask(self) -> RouteState:
        memory = sensor_memory.decode_memory(self.cursor)
        state = look(self.instance, self.target, memory, hours.start_ms(self.last) + 1_800_000)
        self.cursor = sensor_memory.encode_memory(memory)
        return state


@pytest.fixture(scope="session")
def seen(long: TopicIndex) -> str:
    """The cursor of a sensor that has seen all hours."""
    with Sensor.that_has_seen_all(target_of(long.store), HOURS) as sensor:
        return sensor.cursor


class TestTick:
    """What a sensor asks of S3, for one topic and one sink."""

    @pytest.fixture
    def target(self, index: TopicIndex) -> TopicSink:
        return target_of(index.store)

    @pytest.fixture
    def ask(self, target: TopicSink, seen: str) -> Iterator[Callable[[], object]]:
        """A tick with the cursor of the one before."""
        with Sensor.of(target, seen) as sensor:
            yield sensor.ask

    def test_a_steady_tick_costs_four_requests_and_little_cpu(
        self, ask: Callable[[], object], target: TopicSink
    ) -> None:
        target.store.requests.clear()
        assert ask().why.startswith("5 offsets wait; due at ")
        assert target.store.requests.total() <= 4
        with Sensor.that_has_seen_all(target_of(history(FEW).store, GrowingTopic(10 * FEW + 5)), FEW) as short:
            assert short.ask().why.startswith("5 offsets wait; due at ")
            assert cpu_ratio(ask, short.ask, enough=3) <= 3

    def test_a_tile_that_has_its_sums_spares_a_tick_the_manifest(
        self, ask: Callable[[], object], target: TopicSink
    ) -> None:
        tile, etag = target.index.existing_tile(LAST)
        target.index.swap_tile(tile.revise(sums=Sums(records=10, bytes=100)), etag)
        ask()
        target.store.requests.clear()
        assert ask().why.startswith("5 offsets wait; due at ")
        assert target.store.requests.total() <= 3

    def test_a_tick_far_behind_costs_little_cpu_too(self, target: TopicSink) -> None:
        """All of a backfill's hours are due, and each tick asks for one run."""
        target.store.objects = {}
        short, last = target_of(CountedStore(), GrowingTopic(10 * FEW + 5)), hours.shift(FIRST, FEW - 1)
        with dg.DagsterInstance.ephemeral() as instance:
            ratio = cpu_ratio(
                lambda: look(instance, target, Memory(), hours.start_ms(LAST)),
                lambda: look(instance, short, Memory(), hours.start_ms(last)),
                enough=3,
            )
        assert ratio <= 3


def staged(target: TopicSink, attempt: Attempt, _run: RunTasks, files: int = 1) -> Staged:
    """What Spark's tasks do, in as many files of one size."""
    target.index.columns()
    (partition, (start, end)) = next(iter(attempt.batch.reads.items()))
    made = []
    for first in range(start, end, -(-(end - start) // files)):
        key, last = f"lake/{first:012d}{attempt.suffix}", min(end, first + -(-(end - start) // files)) - 1
        upload = target.store.create_upload(key, {COMMIT: attempt.commit})
        etag = target.store.upload_part(key, upload, 1, b"{}")
        made.append(File(key, upload, (etag,), partition, first, last, last - first + 1, 2))
    return Staged(tuple(made), {partition: Read(start, end, read=end - start, landed=end - start)})


def test_each_of_100_commits_in_one_hour_costs_at_most_12_requests_with_its_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TopicSink, "stage", staged)
    store, log = CountedStore(), GrowingTopic(0)
    target = target_of(store, log, hours.start_ms(FIRST) + 1)
    land(target, [FIRST])
    dearest = 0
    for number in range(100):
        log.end += 7
        store.requests.clear()
        (landed,) = land(target, [FIRST])
        message = hour_metadata(landed, target.index, lag=Lag(0, 0.0))
        assert (message["dagster/row_count"], message["files"]) == (7 * (number + 1), number + 1)
        assert message["commits"] == f"{number + 1}, 1 of them new"
        dearest = max(dearest, store.requests.total())
    assert dearest <= 12, store.requests


@pytest.mark.long
class TestClean:
    NOW = hours.end_ms(LAST) + 90 * DAY_MS

    def test_20_000_idle_hours_cost_at_most_60_requests(self, index: TopicIndex) -> None:
        """Each tile was asked once whether it lists all manifests; the schedule's first clean of a new hour does."""
        assert clean_index(index, now_ms=self.NOW) == []
        index.store.requests.clear()
        assert clean_index(index, now_ms=self.NOW + DAY_MS) == []
        assert index.store.requests.total() <= 60
        assert index.store.requests["put"] == 0

    def test_the_first_clean_holds_the_tiles_of_a_day_and_not_of_all_hours(self) -> None:
        index = history(500)
        tracemalloc.start()
        try:
            clean_index(index, now_ms=self.NOW)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 500 * 1_500  # of which a third is their names; their tiles would be 500 * 3,000

    def test_a_dead_writers_manifest_among_them_is_found_with_the_tiles_of_its_day(self, index: TopicIndex) -> None:
        clean_index(index, now_ms=self.NOW)
        _, manifest = landed(HOURS // 2, end=0)
        dead = msgspec.structs.replace(manifest, id="dead", created_ms=self.NOW - 2 * DAY_MS)
        index.create(index.manifest_key(manifest.hour, dead.id), dead)
        index.store.requests.clear()
        assert clean_index(index, now_ms=self.NOW) == [Cleaned(manifest.hour, "dead", 1, "fence and sweep")]
        assert index.store.requests.total() <= 60 + 24

    def test_an_hour_that_was_landed_since_costs_the_tiles_of_its_day(self, index: TopicIndex) -> None:
        clean_index(index, now_ms=self.NOW)
        tile, manifest = landed(HOURS // 2, end=10 * (HOURS // 2) + 10)
        index.create(index.manifest_key(tile.hour, "another"), msgspec.structs.replace(manifest, id="another"))
        both = msgspec.structs.replace(tile, commits=(*tile.commits, "another"))
        index.store.put(index.tile_key(tile.hour), msgspec.json.encode(both))
        index.store.requests.clear()
        assert clean_index(index, now_ms=self.NOW) == []
        assert index.store.requests.total() <= 60 + 24
        index.store.requests.clear()
        assert clean_index(index, now_ms=self.NOW) == []
        assert index.store.requests.total() <= 60


class TestRewrite:
    def test_replaced_files_are_deleted_and_none_of_their_completed_uploads_is_aborted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(TopicSink, "stage", lambda *args: staged(*args, files=100))
        store = CountedStore()
        target = target_of(store, GrowingTopic(200, each=100), hours.end_ms(FIRST) + hours.HOUR_MS)
        land(target, [FIRST])
        store.requests.clear()
        rewrite(target, FIRST)
        assert store.requests["complete_upload"] == 100
        assert store.requests["delete"] == 100
        assert store.requests["abort_upload"] == 0
        assert sum(not key.startswith(".indexes") for key in store.objects) == 100


class TestFilesOfAMicroBatch:
    """A manifest with a line for each of 20 million files would be beyond a single PUT."""

    def target(self, **settings: object) -> TopicSink:
        return target_of(CountedStore(), GrowingTopic(120), hours.start_ms(FIRST) + 1, **settings)

    @pytest.mark.parametrize(
        ("settings", "records"),
        [
            ({"format": {"type": "bytes"}, "converter": {"value": "bytes"}}, 50_000),
            ({}, 20_000_000),
        ],
    )
    def test_a_micro_batch_of_too_many_files_by_flush_count_is_not_planned(
        self, settings: dict[str, object], records: int
    ) -> None:
        assert batch_limit(self.target(**settings).sink) == records

    def test_one_record_with_too_many_ends_the_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def crowded(*_: object) -> Staged:
            raise TooManyFilesError("too many files")

        monkeypatch.setattr(TopicSink, "stage", crowded)
        with pytest.raises(TooManyFilesError):
            land(self.target(), [FIRST])
