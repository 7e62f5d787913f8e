"""Cleaning up behind dead writers."""

import pytest

from s3lake.commit.clean import DAY_MS, Cleaned, clean
from s3lake.commit.index import Manifest
from s3lake_tests.commit.test_traces import completes, enters_pending
from s3lake_tests.commit.world import PACE, World, hour, materialise, ms, recovering, rewriting

NOW = ms(5)


@pytest.fixture
def dead(world: World) -> World:
    """A writer that died just before it would have entered its commit; another landed the hour."""
    a = world.start("A", materialise(0))
    world.run(a, until=enters_pending)
    a.crash()
    world.do("B", materialise(0))
    assert list(world.view().manifests) == ["c1", "c2"]
    assert len(world.bucket.uploads) == 3
    return world


def run(world: World, *, days: float, **how) -> list[Cleaned]:
    return clean(world.index, now_ms=NOW + int(days * DAY_MS), pace=PACE, **how)


def test_a_dead_writers_uploads_are_aborted_after_a_day(dead: World):
    assert run(dead, days=1) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]
    assert dead.bucket.uploads == {}


def test_a_young_manifest_is_left_alone_to_spare_a_live_writer(dead: World):
    assert run(dead, days=0.9) == []
    assert len(dead.bucket.uploads) == 3


def test_what_the_tile_lists_is_never_touched(dead: World):
    before = dead.view().data

    run(dead, days=30)

    assert dead.view().data == before
    assert dead.view().tiles[hour(0)].commits == ("c2",)
    assert "c2" in dead.view().manifests


def test_what_is_pending_is_left_to_recovery(world: World):
    a = world.start("A", materialise(0))
    world.run(a, until=completes)
    a.crash()

    assert run(world, days=30) == []
    assert world.view().tiles[hour(0)].pending == "c1"


def test_the_manifest_is_kept_until_no_late_object_can_appear_any_more(dead: World):
    run(dead, days=1)
    assert "c1" in dead.view().manifests

    assert run(dead, days=14) == [Cleaned(hour(0), "c1", 3, "delete manifest")]
    assert "c1" not in dead.view().manifests
    assert not list(dead.bucket.list(dead.index.manifest_key(hour(0), "c1").removesuffix(".json")))


def test_an_object_that_became_visible_late_goes_with_the_manifest(world: World):
    a = world.start("A", materialise(0), chunk=9)
    world.run(a, until=completes)
    world.step(a, "crash, in flight")
    upload = world.in_flight[0].arguments[1]
    parts = world.bucket.uploads[upload]
    world.lose_upload(upload)
    world.do("B", recovering(0))
    run(world, days=1)
    world.bucket.uploads[upload] = parts
    world.land_request()
    assert list(world.view().data) == ["data/orders/0+0"]

    run(world, days=14)

    assert world.view().data == {}


def test_cleaning_twice_changes_nothing(dead: World):
    for days in (1, 30):
        run(dead, days=days)
        before = dict(dead.bucket.objects)
        assert run(dead, days=days) == []
        assert dead.bucket.objects == before


def test_a_dry_run_says_what_would_be_done_and_does_nothing(dead: World):
    before = dict(dead.bucket.objects), dict(dead.bucket.uploads)

    assert run(dead, days=1, dry_run=True) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]
    assert run(dead, days=30, dry_run=True) == [Cleaned(hour(0), "c1", 3, "delete manifest")]
    assert before == (dead.bucket.objects, dead.bucket.uploads)


def test_ages_can_be_chosen(dead: World):
    assert run(dead, days=0.1, spare_ms=0, keep_ms=DAY_MS) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]
    assert run(dead, days=1, spare_ms=0, keep_ms=DAY_MS) == [Cleaned(hour(0), "c1", 3, "delete manifest")]


def test_a_writer_that_was_only_slow_is_fenced_and_plans_again(world: World):
    a = world.start("A", materialise(0))
    world.run(a, until=enters_pending)

    run(world, days=0, spare_ms=0)
    world.run(a)

    assert world.outcomes["FencedError"] == 1
    assert world.view().tiles[hour(0)].commits == ("c2",)


def test_what_a_rewrite_replaced_goes_with_its_manifest(world: World):
    world.minute = 65
    world.do("A", materialise(0))
    world.do("rewrite", rewriting(0))

    assert run(world, days=30) == [Cleaned(hour(0), "c1", 2, "delete manifest")]
    assert list(world.view().manifests) == ["c2"]
    assert {head.metadata["s3lake-commit"] for _, head in world.view().data.values()} == {"c2"}


def test_nothing_is_left_to_clean_in_a_healthy_index(world: World):
    world.do("A", materialise(0))

    assert run(world, days=300) == []


def test_what_was_found_settled_is_written_down_and_never_believed_against_the_names(dead: World):
    run(dead, days=30)
    assert b"2026-11-20" in dead.bucket.objects[dead.index.settled_key][0]

    dead.index.create(dead.index.manifest_key(hour(0), "c9"), Manifest("c9", "orders", hour(0), {}))

    assert run(dead, days=60) == [Cleaned(hour(0), "c9", 0, "delete manifest")]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"days": 3}', b'{"days": {"2026-11-20": "other"}}'])
def test_a_record_of_what_was_settled_that_is_not_understood_is_none(body: bytes, dead: World):
    dead.bucket.put(dead.index.settled_key, body)

    assert run(dead, days=1) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]


def test_a_commit_that_is_rolled_back_later_is_found_though_its_manifest_was_there_before(world: World):
    """While it is pending its day is not written down as settled."""
    a = world.start("A", materialise(0))
    world.run(a, until=completes)
    a.crash()
    assert run(world, days=1) == []

    for upload in list(world.bucket.uploads):
        world.lose_upload(upload)
    world.do("B", recovering(0))

    assert run(world, days=1) == [Cleaned(hour(0), "c1", 3, "fence and sweep")]


def test_a_dry_run_writes_nothing_down(dead: World):
    run(dead, days=30, dry_run=True)

    assert dead.index.settled_key not in dead.bucket.objects
