"""Cleaning up behind crashed writers."""

import time
from collections.abc import Iterator
from typing import Literal
from unittest.mock import Mock

import pytest

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.config.model.key_space import KeySpace
from s3lake.errors import S3LakeError, StoreDeniedError, TableUnavailableError
from s3lake.hours import DAY_MS
from s3lake.index.commit.clean import Cleaned, clean_index, delete_replaced_manifests
from s3lake.index.commit.documents import File, Manifest, Read, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store import COMMIT, Document, PendingUpload, Store
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.index.commit.actors import completes, enters_pending
from s3lake_tests.index.commit.bucket import PACE
from s3lake_tests.index.commit.kafka import hour, ms
from s3lake_tests.index.commit.works import materialise, recovering
from s3lake_tests.index.commit.world import World
from s3lake_tests.kit.s3 import find_program, start_s3
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.kit.stores import CountedStore, crash_everywhere

NOW = ms(5)
FIVE = "2026-11-20T05"


@pytest.fixture
def dead(world: World) -> World:
    """A writer that crashed just before it would have entered its commit; another landed the hour."""
    world.do("A", materialise(0), until=enters_pending).crash()
    world.do("B", materialise(0))
    assert list(world.view().manifests) == ["c1", "c2"]
    assert len(world.bucket.uploads) == 3
    return world


def run(world: World, *, days: float, **how) -> list[Cleaned]:
    return clean_index(world.index, now_ms=NOW + int(days * DAY_MS), **how)


def _let_begin(world: World, since: str) -> None:
    """Let the present topic begin at an hour."""
    head, etag = world.index.head() or (None, None)
    assert head is not None
    world.index.swap(world.index.head_key, head.revise(since=since), str(etag))


def test_a_crashed_writers_uploads_are_aborted_after_a_day_and_not_before(dead: World):
    assert run(dead, days=0.9) == []
    assert len(dead.bucket.uploads) == 3
    assert run(dead, days=1) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]
    assert dead.bucket.uploads == {}


def test_a_pending_commit_is_settled_after_a_day_when_no_run_follows(world: World):
    """Its request was under way for hours, while the topic was created again and accepted."""
    world.do("A", materialise(0), until=completes).crash()
    _let_begin(world, hour(0))
    assert run(world, days=1) == []
    _let_begin(world, hour(1))

    assert run(world, days=0) == []
    assert run(world, days=1, dry_run=True) == [Cleaned(hour(0), "c1", 3, "settle")]
    assert world.view().tiles[hour(0)].pending == "c1"

    assert run(world, days=1) == [Cleaned(hour(0), "c1", 3, "settle")]
    assert (world.view().tiles[hour(0)].pending, world.view().tiles[hour(0)].commits) == (None, ("c1",))


def test_the_manifest_is_kept_until_no_late_object_can_appear_any_more(dead: World):
    run(dead, days=1)
    assert "c1" in dead.view().manifests

    assert run(dead, days=14) == [Cleaned(hour(0), "c1", 3, "delete manifest")]
    assert "c1" not in dead.view().manifests
    assert not list(dead.bucket.list(dead.index.manifest_key(hour(0), "c1").removesuffix(".json")))


def test_a_dry_run_reports_what_it_would_do_and_changes_nothing(dead: World):
    before = dict(dead.bucket.objects), dict(dead.bucket.uploads)

    assert run(dead, days=1, dry_run=True) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]
    assert run(dead, days=30, dry_run=True) == [Cleaned(hour(0), "c1", 3, "delete manifest")]
    assert before == (dead.bucket.objects, dead.bucket.uploads)


def test_a_day_recorded_as_settled_is_cleaned_again_when_it_has_new_names(dead: World):
    run(dead, days=30)
    assert b"2026-11-20" in dead.bucket.objects[dead.index.settled_key][0]

    dead.index.create(dead.index.manifest_key(hour(0), "c9"), Manifest("c9", "orders", hour(0), {}))

    assert run(dead, days=60) == [Cleaned(hour(0), "c9", 0, "delete manifest")]


@pytest.mark.parametrize("body", [b"{", b'{"days": 3}', b'{"days": {"2026-11-20": "other"}}'])
def test_a_record_of_what_was_settled_that_is_not_understood_is_none(body: bytes, dead: World):
    dead.bucket.put(dead.index.settled_key, body)

    assert run(dead, days=1) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]


def test_a_commit_that_is_rolled_back_later_is_found_though_its_manifest_was_there_before(world: World):
    """While it is pending its day is not written down as settled."""
    world.do("A", materialise(0), until=completes).crash()
    assert run(world, days=1) == []

    for upload in list(world.bucket.uploads):
        world.lose_upload(upload)
    world.do("B", recovering(0))

    assert run(world, days=1) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]


class TestUploadsThatNoManifestNames:
    """Their writers crashed before they had written one: only the store has their ids."""

    KEYS = KeySpace.from_sink(
        Sink(name="sink", topics=("orders",), bucket="lake", start="2026-11-20T00", prefix="data"), "orders"
    )

    @pytest.fixture
    def index(self) -> TopicIndex:
        """Of a topic whose hours began a year ago."""
        index = TopicIndex(CountedStore(), "index/sink", "orders", pace=PACE)
        index.create(index.head_key, TopicHead(hours=((self.hour(366 * 24), self.hour(0)),)))
        return index

    def hour(self, ago: int) -> str:
        return hours.key_of_ms(int(time.time() * 1000) - ago * hours.HOUR_MS)

    def clean(self, index: TopicIndex, *, days: float, **how) -> list[Cleaned]:
        return clean_index(index, now_ms=int(time.time() * 1000) + int(days * DAY_MS), keys=self.KEYS, **how)

    def upload(self, index: TopicIndex, key: str) -> str:
        return index.store.create_upload(key, {COMMIT: "c1"})

    def test_are_ended_after_a_day(self, index: TopicIndex):
        for key in (
            "data/orders/date=2026-11-20/hour=05/3-000000000007.json",
            "data/_dead_letters/sink/orders/3/000000000007.json",
            "data/.probe/7c9e6679-7425-40de-944b-e07fc1f90ae7",
        ):
            self.upload(index, key)

        assert self.clean(index, days=0.9) == []
        assert len(index.store.uploads) == 3
        assert self.clean(index, days=1.1, dry_run=True) == [Cleaned("", "", 3, "end uploads")]
        assert len(index.store.uploads) == 3
        assert self.clean(index, days=1.1) == [Cleaned("", "", 3, "end uploads")]
        assert index.store.uploads == {}
        assert self.clean(index, days=1.1) == []

    def test_an_upload_below_two_prefixes_of_a_sink_is_counted_once(self):
        by_country = {"template": "{field:country}/{topic}-{partition}-{offset}"}
        sink = make_sink(name="sink", prefix="data", layout=by_country)
        index = TopicIndex(CountedStore(), "index/sink", "orders", pace=PACE)
        index.create(index.head_key, TopicHead(hours=((self.hour(48), self.hour(0)),)))
        self.upload(index, "data/_dead_letters/sink/orders/3/000000000007.json")

        done = clean_index(index, now_ms=int(time.time() * 1000) + 2 * DAY_MS, keys=KeySpace.from_sink(sink, "orders"))
        assert done == [Cleaned("", "", 1, "end uploads")]

    @pytest.mark.parametrize("ending", [".json.gz", "~0123456789ab.avro"])
    def test_uploads_of_a_former_format_are_ended_when_no_manifest_is_as_old(self, ending: str, index: TopicIndex):
        """Until then they may be another sink's, whose commit is to be completed yet."""
        self.upload(index, f"data/orders/date=2026-11-20/hour=05/3-000000000007{ending}")

        assert self.clean(index, days=13.9) == []
        assert self.clean(index, days=14.1) == [Cleaned("", "", 1, "end uploads")]
        assert index.store.uploads == {}

    @pytest.mark.parametrize("key", ["data/clicks/3/000000000007.json", "data/orders/a.tmp", "other/orders/3/7.json"])
    def test_are_left_alone_where_the_sink_cannot_have_begun_them(self, key: str, index: TopicIndex):
        self.upload(index, key)

        assert self.clean(index, days=30) == []
        assert len(index.store.uploads) == 1

    def test_those_of_a_pending_commit_and_of_a_young_manifest_are_not_among_them(self, index: TopicIndex):
        ids = [
            self.upload(index, f"data/orders/date=2026-11-20/hour=05/3-00000000000{number}.json") for number in range(3)
        ]
        files = [
            File(f"data/orders/date=2026-11-20/hour=05/3-00000000000{n}.json", ids[n], ("e",), 3, n, n, 1, 1)
            for n in range(3)
        ]
        this = self.hour(0)
        index.create(index.tile_key(this), Tile(this, {3: TileRange(0, 0)}, pending="c1"))
        now = int(time.time() * 1000)
        for number, commit in enumerate(("c1", "c2")):
            manifest = Manifest(commit, "orders", this, {}, (files[number],), created_ms=now + number * 2 * DAY_MS)
            index.create(index.manifest_key(this, commit), manifest)

        assert self.clean(index, days=2) == [Cleaned("", "", 1, "end uploads")]
        assert sorted(index.store.uploads) == sorted(ids[:2])

    def test_are_ended_next_to_what_is_swept(self, index: TopicIndex):
        index.create(index.tile_key(FIVE), Tile(FIVE, {0: TileRange(0, 0)}))
        index.record(manifest("c"))
        self.upload(index, "data/orders/date=2026-11-20/hour=05/3-000000000007.json")

        assert self.clean(index, days=30) == [
            Cleaned(FIVE, "c", 0, "delete manifest"),
            Cleaned("", "", 1, "end uploads"),
        ]

    @pytest.mark.parametrize(("ending", "days"), [(".json", 1), (".json.gz", 14)], ids=["present", "former format"])
    def test_are_ended_from_the_first_millisecond_of_the_topic_to_that_of_so_many_days_ago(
        self, ending: str, days: int, index: TopicIndex
    ):
        upload = self.upload(index, f"data/orders/date=2026-11-20/hour=05/3-000000000007{ending}")
        begun_ms = index.store.uploads[upload].begun_ms = hours.start_ms(self.hour(366 * 24))

        assert clean_index(index, now_ms=begun_ms + days * DAY_MS - 1, keys=self.KEYS) == []
        done = clean_index(index, now_ms=begun_ms + days * DAY_MS, keys=self.KEYS)
        assert done == [Cleaned("", "", 1, "end uploads")]

    def test_a_store_that_does_not_keep_the_time_has_none_that_are_known_to_be_old(self, index: TopicIndex):
        """moto returns for every upload that it was begun in 2010, before the topic's first hour."""
        upload = self.upload(index, "data/orders/date=2026-11-20/hour=05/3-000000000007.json")
        index.store.uploads[upload].begun_ms = 1_289_422_113_000

        assert self.clean(index, days=30) == []

    def test_the_rest_is_cleaned_when_uploads_may_not_be_listed(
        self, index: TopicIndex, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ):
        def refuse(_: CountedStore, prefix: str) -> Iterator[PendingUpload]:
            raise StoreDeniedError(f"ListMultipartUploads s3://lake/{prefix} was refused")

        monkeypatch.setattr(CountedStore, "list_uploads", refuse)

        assert self.clean(index, days=30) == []
        assert "left to the bucket's lifecycle rule: ListMultipartUploads s3://lake/data/" in caplog.text


@pytest.mark.s3
@pytest.mark.parametrize(
    ("server", "left"),
    [pytest.param("versitygw", 0, marks=pytest.mark.slow("another store; moto is always tried")), ("moto", 1)],
)
def test_uploads_that_no_manifest_names_are_ended_on_a_real_store(server: Literal["moto", "versitygw"], left: int):
    if server == "versitygw" and find_program("versitygw") is None:
        pytest.skip("versitygw is missing: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    with start_s3(server) as s3:
        s3.create_bucket("lake")
        connection = S3Connection(s3.endpoint_url, s3.region, True, 9, s3.access_key_id, s3.secret_access_key)
        outside = TestUploadsThatNoManifestNames()
        index = TopicIndex(S3Store(connection, "lake"), "index/sink", "orders", pace=PACE)
        index.create(index.head_key, TopicHead(hours=((outside.hour(48), outside.hour(0)),)))
        key = "data/orders/date=2026-11-20/hour=05/3-000000000007.json"
        index.store.upload_part(key, outside.upload(index, key), 1, b"x")

        assert outside.clean(index, days=0.5) == []
        assert len(outside.clean(index, days=2)) == 1 - left
        assert len(list(index.store.list_uploads("data/"))) == left


def test_a_cleaned_commit_is_printed_with_its_hour_and_id_if_it_has_them():
    assert (
        str(Cleaned("2026-11-20T05", "c1", 3, "fence and sweep"))
        == "2026-11-20T05, commit c1: fence and sweep, 3 files"
    )
    assert str(Cleaned("", "", 2, "end uploads")) == "end uploads, 2 files"


def listed(index: TopicIndex, hour: str, commit: str) -> None:
    """An hour with one commit."""
    index.create(index.tile_key(hour), Tile(hour, {0: TileRange(0, 5, 5)}, commits=(commit,)))
    index.record(Manifest(commit, "orders", hour, {0: Read(0, 5)}))


def test_days_that_were_settled_cost_one_listing_and_one_document_and_only_a_day_that_changed_its_tiles():
    store = CountedStore()
    index = TopicIndex(store, "index/sink", "orders", pace=PACE)
    for at in ("2026-11-19T05", "2026-11-19T06", "2026-11-20T05"):
        listed(index, at, f"of {at}")
    clean_index(index, now_ms=NOW, dry_run=True)
    assert index.settled_key not in store.objects

    clean_index(index, now_ms=NOW)
    store.requests.clear()

    assert clean_index(index, now_ms=NOW) == []
    assert store.requests == {"list": 1, "get": 1}

    store.requests.clear()
    listed(index, "2026-11-20T06", "new")
    clean_index(index, now_ms=NOW)
    assert store.requests["get"] - 1 == 1 + 2  # what was settled, and two tiles; the manifest was read back


@pytest.mark.parametrize(
    "spared",
    [
        Manifest("a", "orders", "2026-11-20T05", {0: Read(0, 5)}),
        Manifest("b", "orders", "2026-11-20T05", {0: Read(0, 5)}, created_ms=NOW - 1),
        Manifest("b", "orders", "2026-11-20T05", {0: Read(0, 5)}, at_once=True),
    ],
    ids=["pending", "young", "made visible at once and not landed by others"],
)
def test_a_spared_manifest_spares_no_other_manifest_of_its_hour(spared: Manifest):
    index = TopicIndex(CountedStore(), "index/sink", "orders", pace=PACE)
    index.create(index.tile_key(spared.hour), Tile(spared.hour, {0: TileRange(0, 0)}, pending="a"))
    for manifest in (spared, Manifest("c", "orders", spared.hour, {})):
        index.record(manifest)

    assert clean_index(index, now_ms=NOW) == [Cleaned(spared.hour, "c", 0, "delete manifest")]


class LateWriter(MemoryStore):
    """A bucket in which the writer of commit `c` lists it just after its manifest is read, once it is `armed`."""

    armed = False

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        document = super().get(key, span)
        if key.endswith("/c.json") and self.armed:
            self.armed = False
            index = TopicIndex(self, "index/sink", "orders", pace=PACE)
            tile, etag = index.existing_tile(FIVE)
            index.swap_tile(tile.revise(commits=("c",)), etag)
        return document


def test_a_commit_that_its_writer_lists_meanwhile_stays_and_is_not_reported():
    store = LateWriter()
    index = TopicIndex(store, "index/sink", "orders", pace=PACE)
    index.create(index.tile_key(FIVE), Tile(FIVE, {0: TileRange(0, 0)}))
    index.record(Manifest("c", "orders", FIVE, {}))
    store.armed = True

    assert clean_index(index, now_ms=NOW) == []
    assert index.manifest_ids(FIVE) == ["c"]
    assert index.existing_tile(FIVE)[0].garbage == ()


def test_a_dry_run_does_not_bring_a_table_to_what_the_index_lists(index: TopicIndex):
    keep(index, manifest("a"))
    table = Mock()

    clean_index(TopicIndex(index.store, ".indexes/events", "orders", follower=table), now_ms=NOW, dry_run=True)

    assert table.follow.mock_calls == []


@pytest.mark.parametrize(
    ("error", "done", "message"),
    [
        (None, [Cleaned(FIVE, "a", 0, "delete manifest")], ""),
        (TableUnavailableError("away"), [], "2026-11-20: replaced objects stay until the table can follow: away"),
    ],
)
def test_replaced_objects_stay_while_a_table_cannot_follow(
    error: S3LakeError | None, done: list[Cleaned], message: str, index: TopicIndex, caplog: pytest.LogCaptureFixture
):
    keep(index, manifest("a"), manifest("b"))
    follower = Mock(follow=Mock(return_value=error))

    assert clean_index(TopicIndex(index.store, ".indexes/events", "orders", follower=follower), now_ms=NOW) == done
    assert message in caplog.text
    assert bool(caplog.text) == bool(message)


def test_manifests_of_an_hour_whose_tile_is_missing_are_kept():
    index = TopicIndex(CountedStore(), "index/sink", "orders", pace=PACE)
    index.record(Manifest("a", "orders", "2026-11-20T05", {}))

    assert clean_index(index, now_ms=NOW) == []
    assert index.manifest_ids("2026-11-20T05") == ["a"]


@pytest.mark.parametrize(("upto", "done"), [(4, 0), (5, 1)])
def test_a_manifest_made_visible_at_once_is_deleted_when_tiles_from_its_hour_on_have_landed_it(upto: int, done: int):
    index = TopicIndex(CountedStore(), "index/sink", "orders", pace=PACE)
    index.create(index.head_key, TopicHead(hours=(("2026-11-20T05", "2026-11-20T07"),)))
    for at, spans in [("05", {0: TileRange(0, 3, 3), 1: TileRange(0, 1, 1)}), ("07", {0: TileRange(3, upto, 9)})]:
        index.create(index.tile_key(f"2026-11-20T{at}"), Tile(f"2026-11-20T{at}", spans))
    index.record(Manifest("a", "orders", "2026-11-20T05", {0: Read(0, 5)}, at_once=True))

    assert len(clean_index(index, now_ms=NOW)) == done


# Manifests of what was replaced, when they are deleted on request: their keys may contain what is to be erased


def keep(index: TopicIndex, *manifests: Manifest, **tile: object) -> None:
    """An hour whose last manifest is of its only commit."""
    for manifest in manifests:
        index.record(manifest)
    listed = {"commits": (manifests[-1].id,), **tile}
    index.create(index.tile_key(FIVE), Tile(FIVE, {0: TileRange(0, 5, 5)}, **listed))  # type: ignore[arg-type]


def manifest(commit: str, *replaces: str, reason: str = "", created_ms: int = 0) -> Manifest:
    return Manifest(commit, "orders", FIVE, {}, replaces=replaces, reason=reason, created_ms=created_ms)


def test_replaced_manifests_are_deleted_when_a_later_commit_has_the_reason(index: TopicIndex):
    keep(index, manifest("a"), manifest("b", "a", reason="merge"), manifest("c", "b", reason="erase"))
    index.store.put(index.manifest_key(FIVE, "a").replace(".json", ".swept"), b"{}")
    delete_replaced_manifests(index, FIVE, "erase")

    assert list(index.store.list(f"{index.root}/{FIVE}/")) == [index.manifest_key(FIVE, "c")]


def test_manifests_replaced_for_another_reason_are_kept(index: TopicIndex):
    keep(index, manifest("a"), manifest("b", "a", reason="merge"))
    delete_replaced_manifests(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == ["a", "b"]


@pytest.mark.parametrize("state", [{"garbage": ("a",)}, {"pending": "c"}], ids=["garbage", "pending"])
def test_while_something_is_to_be_done_in_the_hour_everything_is_kept(state: dict[str, object], index: TopicIndex):
    keep(index, manifest("a"), manifest("b", "a", reason="erase"), **state)
    delete_replaced_manifests(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == ["a", "b"]


def test_a_listed_commit_that_an_attempt_was_to_replace_is_kept(index: TopicIndex):
    attempt = manifest("0", "b", reason="merge")
    listed = manifest("b", "a"), manifest("c", "y", reason="erase")
    keep(index, attempt, manifest("a"), manifest("y"), *listed, commits=("b", "c"))
    delete_replaced_manifests(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == ["0", "b", "c"]


def test_replaced_manifests_that_a_crashed_process_left_are_deleted_by_the_next(index: TopicIndex):
    keep(index, manifest("z"), manifest("b", "z", reason="merge"), manifest("c", "b", reason="erase"))
    assert isinstance(index.store, MemoryStore)

    def forget(store: Store) -> None:
        delete_replaced_manifests(TopicIndex(store, ".indexes/events", "orders"), FIVE, "erase")

    for place in crash_everywhere(index.store, forget):
        forget(index.store)
        assert index.manifest_ids(FIVE) == ["c"], place


@pytest.mark.parametrize(("age_ms", "kept"), [(DAY_MS - 1, ["a", "c"]), (DAY_MS, ["c"])])
def test_manifests_that_a_rewrite_replaced_young_are_left_to_clean(age_ms: int, kept: list[str], index: TopicIndex):
    young = manifest("a", created_ms=7)
    rewrite = manifest("b", "a", reason="rewrite", created_ms=7 + age_ms)
    keep(index, young, rewrite, manifest("c", "b", reason="erase"))
    delete_replaced_manifests(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == kept
