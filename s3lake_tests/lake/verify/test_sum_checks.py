"""The sums of a tile: each must be the sum of what its commits have, because other readers take it for that."""

from typing import Any

import msgspec
import pytest

from s3lake.index.commit.documents import Read, ReplayedDeadLetters
from s3lake.index.plan.tile import Sums, Wait
from s3lake_tests.lake.verify.world import HOUR, VerifiedTopic, dead_letter_line, difference_types, texts

TAKEN = ReplayedDeadLetters("c0", 1, ((0, 1, 3),))


@pytest.fixture
def world() -> VerifiedTopic:
    """Two commits of an hour, with something in every sum but the counts of records that nothing read."""
    world = VerifiedTopic(sidecars={"keys": "json"})
    world.log.add([b'{"a":1}', b"{", b'{"a":3}'])
    data = world.lines("c1", [b'{"a":1}'], 0)
    keys = world.lines("c1", [b"null"], 0, stream="keys")
    dead = world.dead_letters("c1", {1: dead_letter_line(1, "{")})
    world.commit("c1", [data, keys, dead], {0: Read(0, 2, read=2, landed=1, dead=1, fields_filled={"b": 1})})
    world.change("c1", created_ms=5, waits=(Wait(2, 10, 20),), taken=(TAKEN,))
    more = world.lines("c2", [b'{"a":3}'], 2)
    more_keys = world.lines("c2", [b"null"], 2, stream="keys")
    world.commit("c2", [more, more_keys], {0: Read(2, 3, read=1, landed=1, fields_filled={"b": 1, "c": 1})})
    world.change("c2", created_ms=7, waits=(Wait(1, 30, 40),))
    return world


def with_sums(world: VerifiedTopic, **changes: Any) -> list[str]:
    """Return what verify finds if the tile has other sums; all of it must be wrong counts of the whole hour."""
    world.write_index()
    stored = world.index.tile(HOUR)
    assert stored
    sums = msgspec.structs.replace(stored[0].sums, **changes)
    report = world.verify_changed(world.index.tile_key(HOUR), msgspec.structs.replace(stored[0], sums=sums))
    assert difference_types(report) == {"count"}
    return texts(report, "count")


def test_the_sums_of_two_commits_are_right(world: VerifiedTopic) -> None:
    assert world.verify().clean


ONE_MORE = {"fields_left_out": {"b": 1}, "fields_filled": {"b": 3}, "waits": (Wait(2, 10, 20),)}


@pytest.mark.parametrize("name", Sums.__struct_fields__)
def test_each_sum_that_is_not_the_sum_of_the_commits_is_found(world: VerifiedTopic, name: str) -> None:
    (text,) = with_sums(world, **{name: ONE_MORE.get(name, 99)})
    assert text.startswith(f"the tile states {name} ")


@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("landed", 7, "the tile states landed 7, its commits 2"),
        ("files", 1, "the tile states files 1, its commits 4"),
        ("dead_files", 0, "the tile states dead_files 0, its commits 1"),
        ("records", 5, "the tile states records 5, its commits 3"),
        ("landed_ms", 5, "the tile states landed_ms 5, its commits 7"),
        ("taken", 1, "the tile states taken 1, its commits 2"),
        ("fields_filled", {"b": 2}, 'the tile states fields_filled {"b":2}, its commits {"b":2,"c":1}'),
        ("waits", (), "the tile states waits [], its commits [[2,10,20],[1,30,40]]"),
    ],
)
def test_a_wrong_sum_is_reported_with_both_values(world: VerifiedTopic, name: str, wrong: Any, text: str) -> None:
    assert with_sums(world, **{name: wrong}) == [text]


def test_the_sums_of_an_hour_without_commits_are_nothing() -> None:
    empty = VerifiedTopic()
    empty.span(0, 0, 0)
    assert empty.verify().clean
    assert with_sums(empty, offsets=1) == ["the tile states offsets 1, its commits 0"]


def test_sums_are_not_judged_if_a_manifest_is_missing(world: VerifiedTopic) -> None:
    del world.manifests["c1"]
    report = world.verify()
    assert texts(report, "index") == ["the manifest of commit c1 is missing"]
    assert texts(report, "count") == []
