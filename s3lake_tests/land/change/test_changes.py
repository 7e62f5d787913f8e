"""What every change of a landed hour keeps, wherever a process stops, and whatever another writer does meanwhile."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.model import Sink
from s3lake.config.model.marker import build_marker_key
from s3lake.errors import DataLossError
from s3lake.index.commit.sealed_marker import build_marker_body, renew_marker
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.sums import Commits
from s3lake.land.change.committed_dead_letters import ReasonFilter
from s3lake.land.change.compact import CompactOptions, compact_hours, merge
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour
from s3lake.land.change.hour_change import CannotChange, settle_hour
from s3lake.land.change.reformat import reformat_hours
from s3lake.land.change.replay import replay
from s3lake.land.change.retention import expire_hours
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.conftest import slow_after
from s3lake_tests.kit.stores import RacingStore, crash_everywhere
from s3lake_tests.lake.verify.random_records import records
from s3lake_tests.lake.verify.sinks import sinks
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.change.parts import Parts, holding, run_change

ALICE = EraseConditions(Condition("contains(CAST(rows AS VARCHAR), 'alice')"))


def merge_hour(target: TopicSink) -> None:
    """Merge as a landing does at an hour's end, if its files can be joined."""
    settle_hour(target, HOUR)
    with suppress(CannotChange):
        list(merge(target, HOUR, target.manifests(HOUR) or [], CompactOptions.at_hour_end(target.sink)))
    settle_hour(target, HOUR)


@dataclass(frozen=True)
class Change:
    """A change of an hour.

    Attributes:
        run: does it.
        settings: that the sink has by then.
        counts: rows, dead letters, skipped and erased records of `landed` after it.
    """

    run: Callable[[TopicSink], object]
    counts: tuple[int, int, int, int]
    settings: dict[str, Any] = field(default_factory=dict)


CHANGES = {
    "compact": Change(lambda target: list(compact_hours(target, [HOUR], yes=True)), (5, 2, 0, 0)),
    "retention": Change(lambda target: list(expire_hours(target, yes=True, older_than_s=0)), (0, 0, 0, 7)),
    "merge": Change(merge_hour, (5, 2, 0, 0)),
    "reformat": Change(
        lambda target: list(reformat_hours(target, [HOUR], yes=True)),
        (5, 2, 0, 0),
        {"format": {"type": "json", "codec": "gzip"}},
    ),
    "erase": Change(lambda target: erase_hour(target, HOUR, ALICE), (3, 2, 0, 2)),
    "replay": Change(
        lambda target: list(replay(target, HOUR, ReasonFilter())),
        (5, 1, 1, 0),
        {"nulls": "skip"},
    ),
}
ALL = pytest.mark.parametrize("name", CHANGES)


def landed() -> Parts:
    """An hour in two commits, with dead letters, whose marker lists keys that name whose records the objects hold."""
    by_user = {"template": "{topic}/{hour:yyyy-MM-dd-HH}/{field:user}-{partition}-{offset}"}
    world = Parts(sealed={"marker": "objects"}, layout=by_user, flush={"count": 2}, nulls="fail")
    world.land(*(b'{"user":"%s","n":%d}' % (b"alice" if n == 1 else b"bob", n) for n in range(3)), None)
    world.land(b'{"user":"alice","n":4}', b"no JSON", b'{"user":"bob","n":5}')
    tile, _ = world.index.existing_tile(HOUR)
    renew_marker(world.store, marker(world), tile, expected_marker(world))
    return world


def marker(world: Parts) -> str:
    key = build_marker_key(world.sink, world.index.topic, HOUR)
    assert key is not None
    return key


def expected_marker(world: Parts) -> bytes:
    tile, _ = world.index.existing_tile(HOUR)
    return build_marker_body("objects", world.index.topic, tile, Commits(world.index, HOUR, tile.commits))


def configure(world: Parts, settings: dict[str, Any]) -> None:
    """Let the sink be configured otherwise from now on."""
    world.sink = Sink.model_validate({**world.sink.model_dump(by_alias=True, exclude_unset=True), **settings})


def assert_changed(world: Parts, change: Change, place: str = "") -> None:
    """Check what verify finds, that the bucket has what the index lists, and nothing else, and the marker lists it."""
    report = world.verified()
    assert report.clean, (place, report.differences)
    erased = sum(one.erased for one in report.checked)
    assert (report.landed, report.dead_letters, report.skipped, erased) == change.counts, place
    listed = {file.key for one in holding(world).manifests(HOUR) or [] for file in one.files}
    assert set(world.bodies()) == listed | {marker(world)}, place
    assert world.bodies()[marker(world)] == expected_marker(world), place
    head = world.index.head()
    assert head is not None
    assert Sealing(world.index, head[0]).flaw(HOUR) is None, place
    if change.counts[-1]:  # nothing names what was taken out
        assert b"alice" not in b"".join(key.encode() + body for key, (body, _) in world.store.objects.items()), place


@ALL
def test_a_change_keeps_each_record_or_reports_where_it_is(name: str) -> None:
    world, change = landed(), CHANGES[name]
    configure(world, change.settings)
    change.run(holding(world))
    assert_changed(world, change)
    assert world.store.uploads == {}
    before = dict(world.store.objects)
    change.run(holding(world))
    assert world.bodies() == {key: body for key, (body, _) in before.items() if key in world.bodies()}


@pytest.mark.long
@pytest.mark.parametrize("name", slow_after(3, "a process stops at each request of it", CHANGES))
def test_wherever_a_process_stops_the_next_one_ends_the_change(name: str) -> None:
    world, change = landed(), CHANGES[name]
    configure(world, change.settings)
    for place in crash_everywhere(world.store, lambda store: change.run(holding(world, store))):
        change.run(holding(world))
        assert_changed(world, change, place)


@pytest.mark.parametrize("name", sorted({*CHANGES} - {"merge", "retention"}))
def test_objects_that_another_writer_has_replaced_are_found_where_they_are_now(name: str) -> None:
    world, change = landed(), CHANGES[name]
    store: Any = RacingStore(world.store, partial(run_change, "compact", holding(world)))
    configure(world, change.settings)
    change.run(holding(world, store))
    assert_changed(world, change)
    assert world.store.uploads == {}


def test_an_object_that_is_missing_although_its_commit_is_listed_is_a_loss() -> None:
    world = landed()
    lost = next(key for key in world.bodies() if key.endswith(".json") and "bob" in key)
    del world.store.objects[lost]
    with pytest.raises(DataLossError, match="is missing"):
        erase_hour(holding(world), HOUR, ALICE)


def test_an_hour_without_a_marker_gets_none() -> None:
    world = landed()
    world.store.delete(marker(world))
    erase_hour(holding(world), HOUR, ALICE)
    assert world.store.get(marker(world)) is None


@pytest.mark.long
@given(
    sink=sinks(),
    later=st.sampled_from(
        [
            {},
            {"format": {"type": "parquet"}},
            {"format": {"type": "avro"}},
            {"format": {"type": "json", "codec": "gzip"}},
            {"layout": {"partition_by": ["a"]}},
            {"envelope": None},
            {"nulls": "skip"},
        ]
    )
    | sinks(),
    parts=st.lists(st.lists(records, min_size=1, max_size=4), min_size=1, max_size=5),
    change=st.sampled_from([merge_hour, partial(run_change, "compact"), partial(run_change, "reformat")]),
    renamed=st.booleans(),
)
def test_verify_finds_no_difference_whatever_was_landed(
    sink: dict[str, Any],
    later: dict[str, Any],
    parts: list[list[Any]],
    change: Callable[[TopicSink], object],
    renamed: bool,
) -> None:
    world = Parts(**{"flush": {"count": 2}, **sink})
    for number, part in enumerate(parts):
        world.land_records(part, renamed=renamed and number == 1)
    before = world.verify_clean()
    if isinstance(change, partial) and change.args == ("reformat",):
        try:
            world.sink = Parts(**{**sink, **later, "flush": {"count": 1}}).sink
        except ValueError:  # no sink can be configured so
            return
    change(holding(world))
    after = world.verify_clean()
    assert (after.landed, after.dead_letters) == (before.landed, before.dead_letters)
    assert world.bodies().keys() == {file.key for one in holding(world).manifests(HOUR) or [] for file in one.files}
    assert world.store.uploads == {}
