"""The steps of recovery, each alone: what becomes of the tile, and what is asked of the store."""

from types import SimpleNamespace

import pytest

from s3lake.index.commit import commit_files, recovery
from s3lake.index.commit.documents import File, Manifest, Read
from s3lake.index.commit.recovery import fence_commit
from s3lake.index.commit.topic_index import PACE, TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store import COMMIT
from s3lake_tests.index.commit.actors import completes
from s3lake_tests.index.commit.bucket import Circumstances
from s3lake_tests.index.commit.kafka import hour, ms
from s3lake_tests.index.commit.works import materialise
from s3lake_tests.index.commit.world import World

FIVE = "2026-11-20T05"
NOW_MS = 1_700_000_010_000


def ended(index: TopicIndex) -> list[str]:
    """The keys of the uploads that were ended."""
    return [key for name, key in index.store.calls if name == "abort_upload"]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    time = SimpleNamespace(time=lambda: NOW_MS / 1000, monotonic=lambda: 0.0, sleep=lambda _: None)
    monkeypatch.setattr(recovery, "time", time)
    monkeypatch.setattr(commit_files, "time", time)


def file(key: str) -> File:
    return File(key, f"upload of {key}", (), 0, 0, 4, 5, 50)


def manifest(commit: str, *keys: str, **more: object) -> Manifest:
    return Manifest(commit, "orders", FIVE, {0: Read(0, 5)}, tuple(map(file, keys)), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("begun_ms", "took_ms"),
    [(NOW_MS - 2_500, 2_500), (NOW_MS, 0), (NOW_MS + 1, 0), (0, 0)],
    ids=["two seconds and a half ago", "now", "by a clock that goes before", "at an unknown time"],
)
def test_a_tile_has_the_duration_of_its_newest_commit(begun_ms: int, took_ms: object, index: TopicIndex):
    tile = Tile(FIVE, {0: TileRange(0, 5, 0)}, pending="new", took_ms=7)

    assert recovery.roll_commit_forward(index, tile, manifest("new", begun_ms=begun_ms)).took_ms == took_ms


def test_a_tile_forgets_the_keys_that_were_in_the_way_with_its_next_commit(index: TopicIndex):
    tile = Tile(FIVE, {0: TileRange(0, 5, 5)}, commits=("old",), pending="new", foreign=("a",))

    assert recovery.roll_commit_forward(index, tile, manifest("new", replaces=("old",))).foreign == ()


def put(index: TopicIndex, key: str, commit: str) -> None:
    index.store.put(key, b"{}", metadata={COMMIT: commit})  # type: ignore[call-arg]


def test_no_upload_is_looked_for_when_the_newest_commit_replaced_its_commit(index: TopicIndex):
    for each in (manifest("first", "a"), manifest("deleted", "b"), manifest("last", "c", replaces=("old",))):
        index.record(each)
    index.record(manifest("old", "d"))
    tile = Tile(FIVE, {0: TileRange(0, 5, 5)}, commits=("first", "last"), garbage=("deleted", "old"))
    index.create(index.tile_key(FIVE), tile)
    recovery.sweep_garbage(index, FIVE)

    assert ended(index) == ["b"]


def test_manifests_that_are_at_hand_are_not_read_to_sweep(index: TopicIndex):
    index.create(
        index.tile_key(FIVE), Tile(FIVE, {0: TileRange(0, 5, 5)}, commits=("last",), garbage=("deleted", "old"))
    )
    at_hand = [manifest("deleted", "b"), manifest("old", "d"), manifest("last", "c", replaces=("old",))]
    recovery.sweep_garbage(index, FIVE, manifests_at_hand=at_hand)

    assert ended(index) == ["b"]


@pytest.mark.parametrize(("completed", "garbage"), [(True, ("new",)), (False, ())])
def test_a_commit_settled_by_another_run_is_fenced_if_it_had_completed_a_file(
    completed: bool, garbage: tuple[str, ...], index: TopicIndex
):
    index.create(index.tile_key(FIVE), Tile(FIVE, {0: TileRange(0, 0)}, rev=2))
    if completed:
        put(index, "a", "new")
    former = Tile(FIVE, {0: TileRange(0, 0)}, rev=1, pending="new")

    assert recovery.finish_pending_commit(index, former, "former", manifest("new", "a", "b")) is None
    assert index.existing_tile(FIVE)[0] == Tile(FIVE, {0: TileRange(0, 0)}, rev=2 + completed, garbage=garbage)


# Fencing


@pytest.fixture
def begun(index: TopicIndex) -> TopicIndex:
    tile = Tile(FIVE, {0: TileRange(0, 5)}, commits=("landed",), pending="begun", garbage=("g1", "g2"))
    index.create(index.tile_key(FIVE), tile)
    return index


def test_a_commit_that_is_fenced_comes_last_of_the_garbage_once_and_the_tile_changes_each_time(begun: TopicIndex):
    assert fence_commit(begun, FIVE, "deleted")
    assert fence_commit(begun, FIVE, "g1")

    tile, _ = begun.existing_tile(FIVE)
    assert tile.garbage == ("g2", "deleted", "g1")
    assert tile.rev == 2


@pytest.mark.parametrize("commit", ["landed", "begun"])
def test_a_commit_that_the_tile_has_as_its_own_is_not_fenced(begun: TopicIndex, commit: str):
    assert fence_commit(begun, FIVE, commit) is False
    assert begun.existing_tile(FIVE)[0].rev == 0


def test_no_commit_is_fenced_when_the_hour_has_no_tile(index: TopicIndex):
    assert fence_commit(index, FIVE, "deleted") is False
    assert index.tile(FIVE) is None


# How long a Complete that may be under way elsewhere is waited for before its commit is rolled back


class SleepingClock:
    """Time that passes by sleeping only; `then` happens at its moment."""

    def __init__(self, age_s: float) -> None:
        self.now = ms(5) / 1000 + age_s
        self.pauses: list[float] = []
        self.then = (10**9, lambda: None)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if sum(self.pauses) >= self.then[0]:
            self.then[1]()


@pytest.fixture
def under_way() -> World:
    """A's only Complete is under way: its upload is known no more, its object is not there yet."""
    with World(Circumstances(late=True), partitions=1) as world:
        world.kafka.produce(0, 1, 2)
        a = world.do("A", materialise(0), until=completes)
        world.step(a, twist="slow")
        yield world


def settled(world: World, clock: SleepingClock, monkeypatch: pytest.MonkeyPatch):
    time = SimpleNamespace(time=lambda: clock.now, monotonic=lambda: clock.now, sleep=clock.sleep)
    monkeypatch.setattr(recovery, "time", time)
    monkeypatch.setattr(commit_files, "time", time)
    index = world.index
    index.pace = PACE
    return recovery.settle_pending_commit(index, hour(0))[0]


@pytest.mark.parametrize("age_s", [-300, 890])
def test_a_young_commit_is_rolled_back_only_after_45_s_of_looking(
    age_s: float, under_way: World, monkeypatch: pytest.MonkeyPatch
):
    clock = SleepingClock(age_s)
    tile = settled(under_way, clock, monkeypatch)

    assert (tile.commits, tile.garbage) == ((), ("c1",))
    assert clock.pauses[:6] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert 45 <= sum(clock.pauses) < 50


def test_a_complete_that_ends_meanwhile_is_landed_and_not_doubled(under_way: World, monkeypatch: pytest.MonkeyPatch):
    clock = SleepingClock(2)
    (upload,) = under_way.bucket.working
    clock.then = (20, lambda: under_way.bucket.working and under_way.bucket.end(upload))
    tile = settled(under_way, clock, monkeypatch)

    assert tile.commits == ("c1",)
    assert tile.partitions[0] == TileRange(0, 2)
    assert not tile.burnt
    assert len(clock.pauses) < 10


def test_an_old_commit_is_looked_at_three_times(under_way: World, monkeypatch: pytest.MonkeyPatch):
    clock = SleepingClock(901)
    tile = settled(under_way, clock, monkeypatch)

    assert tile.commits == ()
    assert clock.pauses == [0.2, 0.4]
