"""The tile of an hour has the sums of its commits."""

import msgspec
import pytest

from s3lake.index.commit import sums
from s3lake.index.commit.documents import File, Manifest, Read, ReplayedDeadLetters
from s3lake.index.commit.recovery import roll_commit_forward
from s3lake.index.commit.sums import Commits, measure_waits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, TileRange, Wait

HOUR = "2026-11-20T05"


def manifest(commit: str, start: int, *, replaces: tuple[str, ...] = (), expired: int = 0) -> Manifest:
    """Twenty offsets: twelve rows in a file with a sidecar, two dead letters, one skipped null."""
    return Manifest(
        commit,
        "orders",
        HOUR,
        {0: Read(start, start + 20, read=15, landed=12, skipped=1, dead=2, late=3, filtered=4)},
        (
            File("a", "u", ("e",), 0, start, start + 19, 12, 100),
            File("k", "u", ("e",), 0, start, start + 19, 12, 30, "keys"),
            File("d", "u", ("e",), 0, start, start + 19, 2, 7, "dead_letters"),
        ),
        replaces=replaces,
        expired=((0, start, start + expired),) if expired else (),
        created_ms=1000 + start,
    )


def test_the_counts_of_two_commits_add_up():
    assert sums.sum_commits([manifest("a", 0, expired=4), manifest("b", 20)]) == Sums(
        offsets=40,
        expired=4,
        read=30,
        landed=24,
        skipped=2,
        dead=4,
        late=6,
        files=4,
        dead_files=2,
        records=28,
        bytes=274,
        landed_ms=1020,
        filtered=8,
    )


def test_a_further_commit_adds_to_them_without_a_request(index: TopicIndex):
    one = roll_commit_forward(index, Tile(HOUR, {0: TileRange(0, 0)}), manifest("a", 0))
    two = roll_commit_forward(index, one, manifest("b", 20))

    assert two.sums == sums.sum_commits([manifest("a", 0), manifest("b", 20)])
    assert index.store.requests.total() == 0


def test_waits_and_missing_records_of_all_commits_are_added_up():
    taken = ReplayedDeadLetters("r", 1, ((0, 3, 5),))
    first = msgspec.structs.replace(
        manifest("a", 10, expired=4),
        partitions={
            0: Read(10, 20, read=9, erased=2, fields_left_out={"card": 2}),
            1: Read(0, 5, read=5, erased=1, fields_left_out={"card": 1, "name": 1}),
        },
        waits=(Wait(9, 1, 2),),
        taken=(taken, taken),
    )
    second = msgspec.structs.replace(
        manifest("b", 20, expired=2),
        partitions={0: Read(20, 30, read=10, erased=4, fields_left_out={"card": 2}, fields_filled={"at": 7})},
        waits=(Wait(10, 3, 4),),
        taken=(taken,),
    )

    both = sums.sum_commits([first, second])
    assert (both.expired, both.erased, both.taken) == (6, 7, 6)
    assert both.waits == (Wait(9, 1, 2), Wait(10, 3, 4))
    assert (both.fields_left_out, both.fields_filled) == ({"card": 5, "name": 1}, {"at": 7})


def test_a_replacing_commit_counts_the_other_manifests_when_one_is_deleted(index: TopicIndex):
    index.create(index.manifest_key(HOUR, "a"), manifest("a", 0))
    tile = Tile(HOUR, {0: TileRange(0, 80)}, commits=("a", "deleted", "c"))

    assert roll_commit_forward(index, tile, manifest("d", 60, replaces=("c",))).sums == sums.sum_commits(
        [manifest("a", 0), manifest("d", 60)]
    )


def test_manifests_are_read_when_they_are_asked_for_and_once(index: TopicIndex):
    for one in (manifest("a", 0), manifest("b", 20)):
        index.create(index.manifest_key(HOUR, one.id), one)
    index.store.requests.clear()
    commits = Commits(index, HOUR, ("a", "b"))

    assert len(commits) == 2
    assert index.store.requests.total() == 0
    assert commits[-1].id == "b"
    assert index.store.requests == {"get": 1}
    assert [one.id for one in commits] == ["a", "b"]
    assert index.store.requests == {"get": 2}


def test_expired_intervals_that_touch_are_one(index: TopicIndex):
    tile = Tile(HOUR, {0: TileRange(0, 4)}, expired=((0, 0, 4), (1, 7, 9)))

    assert roll_commit_forward(index, tile, manifest("b", 4, expired=3)).expired == ((0, 0, 7), (1, 7, 9))


@pytest.mark.parametrize(
    ("now_ms", "wait"), [(10_000, Wait(9, 3_000, 6_000)), (5_000, Wait(9, 0, 1_000)), (1_000, Wait(9, 0, 0))]
)
def test_waits_are_measured_from_the_newest_and_the_oldest_known_time(now_ms: int, wait: Wait):
    reads = [
        Read(0, 5, read=4, oldest_ms=5_000, newest_ms=7_000),
        Read(5, 9, read=5, oldest_ms=4_000, newest_ms=6_000),
        Read(9, 20, read=11),
    ]

    assert measure_waits(reads, now_ms) == (wait,)


def test_records_without_a_time_have_no_waits():
    assert measure_waits([Read(0, 5, read=5)], 10_000) == ()
