"""What a landing tells while it works, on planning and commits as they are, with a stage that stages nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from s3lake.commit.index import Manifest, Read
from s3lake.commit.protocol import Attempt, Staged
from s3lake.errors import RecordError
from s3lake.landing import LandedHour, Landing
from s3lake.sink import Sink
from s3lake.store.memory import MemoryStore
from s3lake_tests.commit.world import TOPIC, FakeKafka, hour, ms

NINE, TEN, ELEVEN = hour(0), hour(1), hour(2)


class Told:
    """Everything that an observer is told, in order."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def planned(self, hour: str, offsets: int, batches: int) -> None:
        self.lines.append(("planned", hour, offsets, batches))

    def committed(self, manifest: Manifest) -> None:
        self.lines.append(("committed", manifest.hour, sum(read.landed for read in manifest.partitions.values())))

    def done(self, landed: LandedHour) -> None:
        self.lines.append(("done", landed.tile.hour, landed.new))


class Landed(Landing):
    """Stages no files; `before` may do something before a micro-batch is staged."""

    before: Callable[[Attempt], None] = staticmethod(lambda _: None)

    def _stage(self, attempt: Attempt) -> Staged:
        self.before(attempt)
        reads = {one: Read(s, e, e - s, e - s) for one, (s, e) in attempt.batch.reads.items()}
        return Staged(files=(), reads=reads)


class World:
    """A topic of ten records an hour, three hours long, and what lands it by a clock long after."""

    def __init__(self, **settings: Any) -> None:
        self.kafka = FakeKafka(1)
        for number in range(3):
            self.kafka.produce(0, *[60 * number + minute for minute in range(10)])
        self.store = MemoryStore("lake")
        self.settings = settings

    def landing(self, now_minute: float = 600) -> tuple[Landed, Told]:
        told = Told()
        sink = Sink.model_validate(
            {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": NINE, "exactly_once": False}
            | self.settings
        )
        landing = Landed(
            sink=sink,
            topic=TOPIC,
            spark=lambda: pytest.fail("nothing is read"),
            stores=lambda _: self.store,
            offsets=self.kafka,
            kafka_options={},
            observer=told,
            clock=lambda: ms(now_minute),
        )
        return landing, told


def test_of_each_hour_the_plan_then_its_commits_then_that_it_is_done() -> None:
    landing, told = World(batch_records=4).landing()
    landing.land([NINE, TEN])
    assert [line for line in told.lines if line[1] == NINE] == [
        ("planned", NINE, 10, 3),
        ("committed", NINE, 4),
        ("committed", NINE, 4),
        ("committed", NINE, 2),
        ("done", NINE, 3),
    ]
    assert [line for line in told.lines if line[1] == TEN] == [
        ("planned", TEN, 10, 3),
        ("committed", TEN, 4),
        ("committed", TEN, 4),
        ("committed", TEN, 2),
        ("done", TEN, 3),
    ]
    assert [line[1] for line in told.lines if line[0] == "done"] == [NINE, TEN]


def test_an_hour_is_done_before_the_last_one_is_read() -> None:
    landing, told = World().landing()
    landing.land([NINE, TEN, ELEVEN])
    assert told.lines.index(("done", NINE, 1)) < told.lines.index(("committed", ELEVEN, 10))


def test_an_hour_of_which_nothing_is_left_is_done_without_a_plan() -> None:
    world = World()
    world.landing()[0].land([NINE, TEN])
    landing, told = world.landing()
    landing.land([NINE, TEN])
    assert told.lines == [("done", NINE, 0), ("done", TEN, 0)]


def test_the_hour_under_way_is_done_for_this_run_when_what_was_there_is_landed() -> None:
    landing, told = World().landing(now_minute=130)
    (landed,) = landing.land([ELEVEN])
    assert told.lines == [("planned", ELEVEN, 10, 1), ("committed", ELEVEN, 10), ("done", ELEVEN, 1)]
    assert not landed.tile.closed


def test_what_is_visible_when_an_error_ends_the_run_is_told() -> None:
    landing, told = World().landing()

    def refuse(attempt: Attempt) -> None:
        if attempt.tile.hour == TEN:
            raise RecordError("refused")

    landing.before = refuse  # type: ignore[method-assign]
    with pytest.raises(RecordError):
        landing.land([NINE, TEN, ELEVEN])
    assert told.lines == [("planned", NINE, 10, 1), ("planned", TEN, 10, 1), ("committed", NINE, 10)]


def test_an_hour_that_another_writer_was_faster_with_is_done_in_the_end() -> None:
    world = World()
    landing, told = world.landing()

    def overtake(attempt: Attempt) -> None:
        if attempt.tile.hour == NINE:
            landing.before = lambda _: None  # type: ignore[method-assign]
            world.landing()[0].land([NINE])

    landing.before = overtake  # type: ignore[method-assign]
    landed = landing.land([NINE, TEN])
    assert [line for line in told.lines if line[0] != "planned"] == [
        ("committed", TEN, 10),
        ("done", TEN, 1),
        ("done", NINE, 0),
    ]
    assert [one.tile.hour for one in landed] == [NINE, TEN]


def test_a_rewrite_tells_the_same() -> None:
    world = World(exactly_once=True)
    world.landing()[0].land([NINE])
    landing, told = world.landing()
    landing.rewrite(NINE)
    assert told.lines == [("planned", NINE, 10, 1), ("committed", NINE, 10), ("done", NINE, 1)]
