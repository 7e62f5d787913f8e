"""Elections that cut logs during all that lands, accepts, merges, rewrites and cleans: nothing twice, and nothing lost.

Offsets come again here, so records are told apart by when they were written, and what must hold is asked in the end.
`S3LAKE_EXAMPLES=10` plays ten times as many stories.
"""

import json
import random
from collections import Counter

import pytest

from s3lake import hours
from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.index.commit import commit_files, protocol
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake_tests.conftest import EXAMPLES, slow_after
from s3lake_tests.index.commit import changing, works
from s3lake_tests.index.commit.actors import Actor
from s3lake_tests.index.commit.kafka import FIRST_HOUR, FakeKafka, Record, hour
from s3lake_tests.index.commit.world import World

pytestmark = pytest.mark.long


class Electing(FakeKafka):
    """Each record that was ever written has a number of its own."""

    def __init__(self) -> None:
        super().__init__(2)
        self.numbers: list[list[int]] = [[], []]
        self.written = 0

    def produce(self, partition: int, *minutes: float) -> None:
        del self.numbers[partition][len(self.logs[partition].stamps) :]
        self.numbers[partition] += range(self.written, self.written + len(minutes))
        self.written += len(minutes)
        super().produce(partition, *minutes)

    def read(self, topic_id: str, partition: int, start: int, end: int) -> list[Record]:
        return [self.record(partition, offset) for _, _, offset in super().read(topic_id, partition, start, end)]

    def record(self, partition: int, offset: int) -> Record:
        """Return the record that is there now."""
        return f"record {self.numbers[partition][offset]}", partition, offset


@pytest.fixture(autouse=True)
def asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Actors ask for the log when they have read, as `Landing` does."""
    stage = works.stage

    def staged(me: Actor, attempt: Attempt, topic_id: str) -> Staged:
        read = stage(me, attempt, topic_id)
        stored = me.index.head()
        assert stored is not None
        try:
            protocol.require_log_unchanged(me.index, me.offsets, stored[0], attempt)
        except (DataLossError, KafkaUnavailableError):
            commit_files.abort_uploads(me.store, read.files, me.index.pace)
            raise
        return read

    monkeypatch.setattr(works, "stage", staged)


@pytest.mark.parametrize("seed", slow_after(6, "more of the same stories", range(60 * EXAMPLES)))
def test_each_record_of_the_log_is_in_one_listed_file_or_reported_as_lost(seed: int) -> None:
    rng = random.Random(seed)
    with World(mute=("I4", "I5", "I9", "I14", "REWRITES")) as world:
        world.kafka = kafka = Electing()
        for _ in range(rng.randrange(10, 60)):
            _something(world, kafka, rng)
        _in_peace(world, kafka, rng)
        _must_hold(world, kafka)


def _something(world: World, kafka: Electing, rng: random.Random) -> None:
    happening = rng.choices(("write", "wait", "elect", "start", "run"), (15, 10, 7, 23, 45))[0]
    if happening == "write":
        kafka.produce(rng.randrange(2), *[world.minute] * rng.choice((1, 2, 3)))
    elif happening == "wait":
        world.minute += rng.choice((6, 30, 60, 61))
    elif happening == "elect":
        partition = rng.choice((0, 0, 0, 1))
        end = max(0, len(kafka.logs[partition].stamps) - rng.choice((0, 1, 1, 2, 3, 5)))
        kafka.elect(partition, end=end)
        world.happens(f"a leader of partition {partition} begins at {end}")
        kafka.produce(partition, *[world.minute] * rng.choice((0, 1, 2, 4, 6)))
    elif happening == "start" and len(world.actors) < 5:
        world.start("actor", _work(world, rng), limit=rng.choice((1, 2, 99)), chunk=rng.choice((1, 2, 3)))
    elif world.actors:
        actor = rng.choice(world.actors)
        for _ in range(rng.choice((1, 2, 3, 5, 8, 20))):
            if actor.alive:
                world.step(actor)
        if actor.alive and rng.random() < 0.06:
            actor.crash()


def _work(world: World, rng: random.Random) -> works.Work:
    about = max(0, int(world.minute // 60) - rng.choice((0, 0, 0, 1, 2)))
    return rng.choice(
        (
            *[works.materialise(about)] * 2,
            works.materialise(*range(max(0, about - 2), about + 1)),
            works.accepting(),
            works.closing(about),
            works.recovering(about),
            changing.merging(about),
            works.rewriting(about),
            works.cleaning(),
        )
    )


def _in_peace(world: World, kafka: Electing, rng: random.Random) -> None:
    """Some actors die, the others come to their end; then each hour is asked for, and accepted what has to be."""
    for actor in list(world.actors):
        if actor.alive and rng.random() < 0.3:
            actor.crash()
    world.minute += 180
    world.happens("three hours later")
    for partition in range(2):
        kafka.produce(partition, *[world.minute - 1] * 40)  # beyond all that a log had before it was cut
    for _ in range(3):
        for actor in [actor for actor in world.actors if actor.alive]:
            world.run(actor)
        for number in range(int(world.minute // 60) + 1):
            world.do("healthy", works.accepting())
            head = world.view().head
            if head is None or head.since is None or hour(number) >= head.since:
                world.do("healthy", works.materialise(number, rounds=40))
        world.do("healthy", works.cleaning(later_days=30))


def _must_hold(world: World, kafka: Electing) -> None:
    view = world.view()
    assert view.head is not None
    listed = {file.key for tile in view.tiles.values() for manifest in view.listed(tile) for file in manifest.files}
    assert view.data.keys() == listed, world.trace()
    landed = Counter(tuple(record) for body, _ in view.data.values() for record in json.loads(body))
    assert [record for record, times in landed.items() if times > 1] == [], world.trace()
    expired = {(one, at) for tile in view.tiles.values() for one, *ends in tile.expired for at in range(*ends)}
    for partition, log in enumerate(kafka.logs):
        for offset, stamp in enumerate(log.stamps):
            written = hour((stamp - hours.start_ms(FIRST_HOUR)) // hours.HOUR_MS)
            if hours.in_ranges(written, view.head.hours):  # else it was not requested before the log was accepted
                there = landed[kafka.record(partition, offset)] or (partition, offset) in expired
                assert there, f"{partition}@{offset} of {written} is nowhere\n{world.trace()}"
