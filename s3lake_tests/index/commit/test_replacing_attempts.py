"""What a commit that replaces others covers, and that it holds no fewer records than they do."""

import msgspec
import pytest

from s3lake.errors import DataLossError, IncompleteError
from s3lake.index.commit import protocol
from s3lake.index.commit.documents import File, Manifest, Read
from s3lake.index.commit.open_and_close import open_hour
from s3lake.index.commit.protocol import require_no_fewer_records
from s3lake.index.commit.replacing_attempts import MERGE, REWRITE, begin_replacement, begin_rewrite
from s3lake.index.commit.sums import Commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.batch import Batch
from s3lake.index.plan.tile import Tile, TileRange
from s3lake_tests.index.commit.changing import merging
from s3lake_tests.index.commit.kafka import hour
from s3lake_tests.index.commit.works import accepting, materialise, reading, recovering, stage
from s3lake_tests.index.commit.world import World

FIVE = "2026-11-20T05"
A = Manifest("a", "orders", FIVE, {0: Read(0, 5, read=4), 1: Read(7, 8, read=1)}, expired=((0, 4, 5),))
B = Manifest("b", "orders", FIVE, {0: Read(5, 9, read=3)}, expired=((0, 5, 6),))
DELETED = Manifest("deleted", "orders", FIVE, {}, (File("orders/deleted", "u", (), 0, 0, 0, 1, 1),))
WHOLE = Batch({0: (0, 9), 1: (7, 8)}, {}, ((0, 4, 6),))
OF_A, OF_B = Batch({0: (0, 5), 1: (7, 8)}, {}, ((0, 4, 5),)), Batch({0: (5, 9)}, {}, ((0, 5, 6),))
BEGUN = {"of two commits": ([A, B], WHOLE), "of one": ([B], OF_B), "of the first": ([A], OF_A)}


@pytest.fixture
def stored(index: TopicIndex) -> TopicIndex:
    for manifest in (A, B, DELETED):
        index.record(manifest)
    tile = Tile(FIVE, {0: TileRange(0, 9, 9), 1: TileRange(7, 8, 8)}, commits=("a", "b"), garbage=("deleted",))
    index.create(index.tile_key(FIVE), tile)
    return index


@pytest.mark.parametrize(("replaced", "batch"), BEGUN.values(), ids=BEGUN)
def test_an_attempt_covers_what_its_commits_did_replaces_them_and_has_the_reason(
    replaced: list[Manifest], batch: Batch, stored: TopicIndex
):
    attempt = begin_replacement(stored, FIVE, replaced, "erase")

    assert attempt is not None
    assert (attempt.batch, attempt.replaced_manifests, attempt.reason) == (batch, tuple(replaced), "erase")
    assert attempt.replaces == tuple(manifest.id for manifest in replaced)
    assert attempt.suffix == f"~{attempt.commit[:12]}"
    assert (attempt.tile, attempt.etag) == stored.existing_tile(FIVE)
    assert attempt.tile.garbage == ()


def test_an_attempt_on_a_whole_hour_covers_it_whichever_commits_it_has(index: TopicIndex):
    index.create(
        index.tile_key(hour(0)), Tile(hour(0), {0: TileRange(0, 9, 9), 1: TileRange(7, 7)}, commits=("a", "b"))
    )
    attempt = begin_replacement(index, hour(0), None, "put")

    assert attempt is not None
    assert (attempt.batch, attempt.reason) == (Batch({0: (0, 9), 1: (7, 7)}, {}), "put")
    assert (attempt.replaces, attempt.suffix) == (("a", "b"), f"~{attempt.commit[:12]}")
    assert (attempt.tile, attempt.etag) == index.existing_tile(hour(0))


def test_a_commit_that_the_hour_does_not_list_any_more_is_not_replaced(stored: TopicIndex):
    assert begin_replacement(stored, FIVE, [DELETED], "replay") is None


@pytest.fixture
def replaced(index: TopicIndex) -> Commits:
    """A commit whose manifest is deleted, and two of three records each in topic-partition 0, one with two in 1."""
    index.record(Manifest("a", "orders", FIVE, {0: Read(0, 5, read=3)}))
    index.record(Manifest("b", "orders", FIVE, {0: Read(5, 9, read=3), 1: Read(0, 2, read=2)}))
    return Commits(index, FIVE, ("deleted", "a", "b"))


@pytest.mark.parametrize(
    ("reads", "fewer"),
    [
        ({0: Read(0, 9, read=5), 1: Read(0, 2, read=2)}, "topic-partition 0: 5 of 6"),
        ({0: Read(0, 9, read=6)}, "topic-partition 1: 0 of 2"),
        ({1: Read(0, 2, read=1)}, "topic-partition 0: 0 of 6, topic-partition 1: 1 of 2"),
    ],
)
def test_fewer_records_than_were_landed_are_refused_with_their_counts(
    reads: dict[int, Read], fewer: str, replaced: Commits
):
    with pytest.raises(DataLossError, match=rf"than were landed \({fewer}\), as after compaction"):
        require_no_fewer_records("orders", FIVE, replaced, reads)


def test_as_many_or_more_are_not(replaced: Commits):
    reads = {0: Read(0, 9, read=7), 1: Read(0, 2, read=2), 2: Read(0, 1, read=1)}
    require_no_fewer_records("orders", FIVE, replaced, reads)


# Merging the commits of an hour that has landed


@pytest.fixture
def landed(world: World) -> World:
    """Hour 0 is landed in three commits of four records; it is minute 65."""
    world.do("A", materialise(0), limit=1, chunk=1)
    world.minute = 65
    world.do("A", materialise(0), chunk=1)
    assert world.view().tiles[hour(0)].complete
    assert len(world.view().tiles[hour(0)].commits) == 4
    return world


def test_commits_that_do_not_follow_each_other_are_left_alone(landed: World):
    first, _, third, _ = landed.view().listed(landed.view().tiles[hour(0)])

    assert begin_replacement(landed.index, hour(0), [first, third], MERGE) is None


def test_records_that_had_expired_before_they_were_landed_stay_noted(world: World):
    world.do("A", materialise(0, rounds=0))
    world.kafka.retain(0, 1)
    world.minute = 65
    world.do("A", materialise(0, rounds=9), limit=1)
    before = world.view().tiles[hour(0)]
    world.do("merge", merging(0))

    tile = world.view().tiles[hour(0)]
    assert len(before.commits) > len(tile.commits) == 1
    assert tile.expired == before.expired == ((0, 0, 1),)
    assert world.view().manifests[tile.commits[0]].expired == ((0, 0, 1),)


@pytest.mark.parametrize("fault", ["crash before", "crash after", "timeout, done", "timeout, not done", "answer lost"])
def test_whatever_happens_to_any_request_the_hour_is_as_it_was_or_replaced_as_a_whole(fault: str):
    """Invariants are checked after each request, readers see all records, and whoever comes next finishes."""
    number = 0
    while True:
        with World(partitions=2) as world:
            world.kafka.produce(0, 1, 2, 3, 61)
            world.kafka.produce(1, 1, 62)
            world.do("A", materialise(0), limit=1, chunk=1)
            world.minute = 65
            world.do("A", materialise(0), chunk=1)
            before = world.view().tiles[hour(0)]
            merge = world.start("merge", merging(0))
            for _ in range(number):
                if merge.alive:
                    world.step(merge)
            if not merge.alive:
                break
            world.step(merge, fault)
            world.do("reader", reading(0))
            world.run(merge)
            world.do("B", recovering(0))
            world.do("B", merging(0))
            tile = world.view().tiles[hour(0)]
            assert tile.complete
            assert len(before.commits) > len(tile.commits) == 1
        number += 1
    assert number > 20


# Rewriting an hour that has landed


@pytest.fixture
def whole(world: World) -> World:
    """Hour 0 is landed, in two files; it is minute 65."""
    world.minute = 65
    world.do("A", materialise(0), chunk=2)
    assert list(world.view().data) == ["data/orders/0+0", "data/orders/0+2"]
    return world


def refused(world: World, number: int) -> str:
    head, _ = world.index.head()
    with pytest.raises((DataLossError, IncompleteError)) as caught:
        begin_rewrite(world.index, world.kafka, head, hour(number))
    return str(caught.value)


def test_a_rewrite_waits_for_a_topic_that_the_index_knows_and_has_the_reason_of_its_replacement(whole: World):
    whole.kafka.waited_for = False
    head, _ = whole.index.head()
    attempt = begin_rewrite(whole.index, whole.kafka, head, hour(0))

    assert whole.kafka.waited_for
    assert (attempt.reason, attempt.replaces) == (REWRITE, whole.view().tiles[hour(0)].commits)


def test_an_hour_that_is_not_landed_is_not_rewritten(world: World):
    world.do("A", materialise(0))

    assert refused(world, 0) == "orders 2026-11-20T00 is not complete: land it before you rewrite it"


def test_an_hour_that_is_announced_and_has_no_tile_yet_is_not_rewritten(whole: World):
    open_hour(whole.index, whole.kafka, hour(1))
    del whole.bucket.objects[whole.index.tile_key(hour(1))]

    assert refused(whole, 1) == "orders 2026-11-20T01 is not complete: land it before you rewrite it"


def test_an_hour_that_records_were_erased_of_is_not_rewritten(whole: World):
    tile, etag = whole.index.existing_tile(hour(0))
    whole.index.swap_tile(tile.revise(sums=msgspec.structs.replace(tile.sums, erased=3)), etag)

    assert refused(whole, 0).startswith("orders 2026-11-20T00: 3 of its records were erased")


def test_an_hour_that_kafka_has_no_longer_is_not_rewritten(whole: World):
    whole.kafka.retain(0, 1)

    assert "Kafka has expired some of these records; a rewrite would lose them" in refused(whole, 0)


def test_an_hour_that_compaction_took_records_from_is_not_rewritten(whole: World):
    whole.kafka.compact(0, 1, 3)
    before = whole.view()
    head, _ = whole.index.head()
    attempt = begin_rewrite(whole.index, whole.kafka, head, hour(0))
    actor = whole.start("rewrite", lambda me: setattr(me, "staged", stage(me, attempt, whole.kafka.topic_id)))
    whole.run(actor)

    with pytest.raises(
        DataLossError,
        match=r"orders 2026-11-20T00: Kafka has fewer records now than were landed \(topic-partition 0: 2 of 4\), .*"
        "the landed files stay",
    ):
        protocol.commit_attempt(whole.index, attempt, actor.staged)
    assert whole.view() == before
    assert whole.bucket.uploads == {}


def test_an_hour_of_a_topic_created_again_is_not_rewritten(whole: World):
    whole.kafka.create_topic(1)

    assert "the topic was deleted since; the files are all there is" in refused(whole, 0)


def test_not_even_after_the_new_topic_was_accepted_and_has_offsets_enough(whole: World):
    whole.kafka.create_topic(1)
    whole.kafka.produce(0, 70, 71, 72, 73, 74)
    whole.do("accept", accepting())

    assert "its topic was deleted since, or a connector landed it; the files are all there is" in refused(whole, 0)


def test_the_first_hour_of_a_topic_created_again_is_rewritten(whole: World):
    whole.kafka.create_topic(1)
    whole.kafka.produce(0, 66, 67)
    whole.do("operator", accepting())
    whole.minute = 125
    whole.do("A", materialise(1))
    head, _ = whole.index.head()
    assert head.since == hour(1)

    attempt = begin_rewrite(whole.index, whole.kafka, head, hour(1))
    assert attempt.batch.reads == {0: (0, 2)}
