"""The index: its offsets and numbers must hold, by itself and against Kafka."""

from typing import Any

import msgspec
import pytest

from s3lake import hours
from s3lake.index.commit.documents import Read, RefusalReason, TopicHead, Watermark
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store import COMMIT
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import (
    HOUR,
    IN_TIME,
    NEXT,
    VerifiedTopic,
    dead_letter_line,
    difference_types,
    texts,
)

VALUES = [b'{"n":%d}' % n for n in range(8)]


@pytest.fixture
def world() -> VerifiedTopic:
    return VerifiedTopic()


def test_a_gap_between_commits_is_found_and_its_records_are_missing(world: VerifiedTopic) -> None:
    world.log.add(VALUES)
    world.commit("c1", [world.lines("c1", VALUES[:3], 0)])
    world.commit("c2", [world.lines("c2", VALUES[5:], 5)])
    report = world.verify()
    assert texts(report, "interval") == ["no commit covers offsets 3 to 4"]
    assert texts(report, "missing") == ["topic verified, partition 0, offsets 3 to 4: in no commit"]
    assert report.missing == 2


@pytest.mark.parametrize(
    ("offsets", "type", "message"),
    [
        ((0, 10, 10), "interval", "no commit covers offsets 8 to 9"),
        ((-2, 8, 8), "interval", "no commit covers offsets -2 to -1"),
        ((0, 6, 8), "interval", "commits cover offsets up to 7, the tile is committed up to 6"),
        ((0, -1, 8), "index", "offsets are out of order"),
        ((0, 9, 8), "index", "offsets are out of order"),
    ],
)
def test_a_tile_that_contradicts_its_commits_is_found(
    world: VerifiedTopic, offsets: tuple[int, int, int], type: str, message: str
) -> None:
    world.landed(VALUES)
    world.log.add([b"9", b"10"])
    world.span(*offsets)
    assert message in " ".join(texts(world.verify(), type))


@pytest.mark.parametrize(
    ("changes", "type", "message"),
    [
        ({"topic": "other"}, "index", "the manifest of commit c1 is for commit c1 of other"),
        ({"id": "c9"}, "index", "the manifest of commit c1 is for commit c9 of verified"),
        ({"files": {"first_offset": -1}}, "interval", ""),
        ({"files": {"last_offset": 8}}, "interval", ""),
        ({"files": {"partition": 1}}, "interval", ""),
        ({"files": {"first_offset": 9}}, "interval", ""),
    ],
)
def test_a_manifest_of_another_tile_or_with_a_file_outside_of_its_offsets_is_found(
    world: VerifiedTopic, changes: dict[str, Any], type: str, message: str
) -> None:
    file = world.landed(VALUES)
    if "files" in changes:
        changes = {"files": (msgspec.structs.replace(file, **changes["files"]),)}
    world.change("c1", **changes)
    assert message in texts(world.verify(), type)[0]


def test_a_manifest_that_is_missing_and_a_file_that_is_listed_twice_are_found(world: VerifiedTopic) -> None:
    file = world.landed(VALUES)
    world.change("c1", files=(file, file))
    report = world.verify()
    assert (texts(report, "index"), report.duplicated) == ([f"commit c1 has {file.key} twice"], 8)
    del world.manifests["c1"]
    world.store.delete(world.index.manifest_key(HOUR, "c1"))
    report = world.verify()
    assert (texts(report, "index"), report.missing) == (["the manifest of commit c1 is missing"], 8)


def test_offsets_of_two_commits_are_found_and_their_rows_are_duplicated(world: VerifiedTopic) -> None:
    world.log.add(VALUES)
    world.commit("c1", [world.lines("c1", VALUES[:5], 0)])
    world.commit("c2", [world.lines("c2", VALUES[3:], 3)])
    report = world.verify()
    assert "offsets 3 to 4 are covered by more than one commit" in texts(report, "interval")[0]
    assert (report.missing, report.duplicated) == (0, 2)


def test_a_topic_partition_that_the_tile_lacks_is_found(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    world.landed(VALUES, partition=1)
    world.tiles[HOUR] = msgspec.structs.replace(world.tiles[HOUR], partitions={0: TileRange(0, 8, 8)}, commits=("c1",))
    world.change("c1", partitions={0: Read(0, 8, read=8, landed=8), 1: Read(0, 8, read=8, landed=8)})
    assert {"index", "interval"} <= difference_types(world.verify())


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (Read(0, 8, read=7, landed=8), "read 7"),
        (Read(0, 8, read=9, landed=8, skipped=1), "skipped 1"),
        (Read(0, 8, read=8, landed=7, skipped=1), "landed 7"),
        (Read(0, 8, read=8, landed=8, skipped=0, dead=1), "dead 1"),
        (Read(0, 8, read=8, landed=8, skipped=0, dead=0, late=2), "late 2"),
    ],
)
def test_wrong_counts_are_found(world: VerifiedTopic, read: Read, what: str) -> None:
    world.landed(VALUES)
    world.change("c1", partitions={0: read})
    report = world.verify()
    assert difference_types(report) == {"count"}
    assert any(what in text for text in texts(report, "count"))


def test_late_records_are_counted_by_their_timestamp(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    world.log.records[0][2] = (IN_TIME - 1, VALUES[2])
    world.log.records[0][3] = (0, VALUES[3])
    world.change("c1", partitions={0: Read(0, 8, read=8, landed=8, skipped=0, dead=0, late=2)})
    assert world.verify().clean


@pytest.mark.parametrize(("records", "impossible"), [(7, False), (0, True), (9, True)])
def test_verify_finds_a_file_with_other_records_than_its_manifest_has(
    world: VerifiedTopic, records: int, impossible: bool
) -> None:
    file = world.landed(VALUES)
    world.change("c1", files=(msgspec.structs.replace(file, records=records),))
    report = world.verify()
    assert difference_types(report) == {"count"}
    assert f"{file.key} has 8 records, the manifest states {records}" in texts(report, "count")
    assert (f"{file.key} cannot hold {records} records of its offsets" in texts(report, "count")) == impossible


def test_a_gap_between_adjacent_tiles_is_found(world: VerifiedTopic) -> None:
    world.landed(VALUES[:4])
    world.log.add([b"lost"])
    world.landed(VALUES[4:], commit="c2", hour=NEXT)
    report = world.verify()
    assert texts(report, "interval") == [f"offsets 4 to 4 are neither here nor in the tile of {HOUR}"]
    assert report.differences[0].hour == NEXT


def test_a_gap_of_hours_that_were_never_opened_is_not_a_difference(world: VerifiedTopic) -> None:
    world.landed(VALUES[:4])
    world.log.add([b"not asked for"])
    world.landed(VALUES[4:], commit="c2", hour=hours.shift(NEXT, 1))
    assert world.verify().differences == ()
    world.span(0, 4, 6)
    assert "offsets 5 to 5 are also in the tile of" in texts(world.verify(), "interval")[0]


def test_an_earlier_tile_that_is_open_and_a_tile_that_is_missing_and_not_announced_are_found(
    world: VerifiedTopic,
) -> None:
    world.landed(VALUES[:4])
    world.landed(VALUES[4:], commit="c2", hour=NEXT)
    assert world.verify().clean
    world.span(0, 4, None)
    assert texts(world.verify(), "index") == [f"the tile of {HOUR} is open, and this one follows it"]
    world.span(0, 4, 4)
    world.write_index()
    world.store.delete(world.index.tile_key(NEXT))
    del world.tiles[NEXT]
    found = world.index.head()
    assert found
    head = msgspec.structs.replace(found[0], hours=((HOUR, NEXT),))
    world.write_index = lambda: None  # type: ignore[method-assign]
    world.store.put(world.index.head_key, msgspec.json.encode(head))
    assert texts(world.verify(), "index") == ["the tile is missing from the index"]
    for start, gaps in ((4, []), (5, [f"offsets 4 to 4 are neither here nor in the tile of {HOUR}"])):
        new = Tile(NEXT, {0: TileRange(start, start)})
        world.store.put(world.index.head_key, msgspec.json.encode(msgspec.structs.replace(head, new=new)))
        report = world.verify()
        assert texts(report, "index") == []
        assert texts(report, "interval") == gaps


def test_a_tile_of_another_hour_is_found(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    report = world.verify_changed(world.index.tile_key(HOUR), Tile(NEXT, {0: TileRange(0, 0, 0)}))
    assert f"the tile is for {NEXT}" in texts(report, "index")


def test_expired_offsets_of_a_commit_that_the_tile_lacks_are_found(world: VerifiedTopic) -> None:
    world.log.add(VALUES)
    world.log.expire(4)
    read = Read(0, 8, read=4, landed=4)
    world.commit("c1", [world.lines("c1", VALUES[4:], 4)], {0: read}, expired=((0, 0, 4),))
    assert world.verify().clean
    world.tiles[HOUR] = msgspec.structs.replace(world.tiles[HOUR], expired=((0, 1, 3),))
    assert texts(world.verify(), "index") == [
        "commit c1 states that offsets 0 to 0 had expired, the tile does not",
        "commit c1 states that offsets 3 to 3 had expired, the tile does not",
    ]


@pytest.mark.parametrize(
    ("count", "given"), [(0, "0 dead letters"), (1, "1 dead letter"), (3, "3 dead letters")], ids=["0", "1", "3"]
)
def test_reasons_of_more_or_fewer_dead_letters_than_the_files_have_are_found(
    world: VerifiedTopic, count: int, given: str
) -> None:
    world.log.add([b"{", b"}"])
    world.commit("c1", [world.dead_letters("c1", {0: dead_letter_line(0, "{"), 1: dead_letter_line(1, "}")})])
    assert world.verify().clean
    reasons = (RefusalReason("convert", "refused", count, 0, 0),) if count else ()
    world.change("c1", refusal_reasons=reasons)
    assert texts(world.verify(), "count") == [f"commit c1 has reasons for {given}, its files have 2"]


def read_head(world: VerifiedTopic) -> TopicHead:
    world.write_index()
    stored = world.index.head()
    assert stored
    return stored[0]


def test_a_tile_that_is_announced_for_an_hour_that_is_not_listed_is_found(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    head = msgspec.structs.replace(read_head(world), new=Tile(NEXT, {0: TileRange(8, 8)}))
    report = world.verify_changed(world.index.head_key, head)
    assert [str(difference) for difference in report.differences] == [
        f"index: verified {NEXT}: topic.json announces the tile of this hour, and does not list the hour"
    ]


def test_a_watermark_after_the_last_hour_is_found(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    head = read_head(world)
    sealed = msgspec.structs.replace(head, sealed=Watermark(HOUR, HOUR))
    assert world.verify_changed(world.index.head_key, sealed).clean
    report = world.verify_changed(
        world.index.head_key, msgspec.structs.replace(head, sealed=Watermark(HOUR, "2027-01-01T00"))
    )
    assert [str(difference) for difference in report.differences] == [
        "index: verified 2027-01-01T00: topic.json states that this hour is sealed, and does not list it"
    ]


def test_a_watermark_over_an_hour_that_is_not_landed_is_found(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    world.span(0, 8, None)
    assert world.verify().clean
    head = msgspec.structs.replace(read_head(world), sealed=Watermark(HOUR, HOUR))
    assert texts(world.verify_changed(world.index.head_key, head), "index") == [
        f"topic.json states that all hours up to {HOUR} are sealed, and this one is not landed"
    ]


# Objects that no commit lists


def put_next_to(world: VerifiedTopic, name: str, commit: str | None) -> str:
    """Put an object next to the files of a landed hour, as a copy of another commit's would be."""
    stage_records(world, [(None, b"1", []), (None, b"2", [])])
    (file,) = world.manifests["c1"].files
    key = f"{file.key.rpartition('/')[0]}/{name}"
    world.store.put(key, b"1\n", metadata={} if commit is None else {COMMIT: commit})
    return key


@pytest.mark.parametrize("commit", [None, "c1"])
@pytest.mark.parametrize("name", ["copy.json", "a=1/copy.json"])
def test_an_object_that_no_commit_lists_is_found_in_the_directory_of_the_hour(name: str, commit: str | None) -> None:
    world = VerifiedTopic()
    key = put_next_to(world, name, commit)
    report = world.verify()
    assert texts(report, "unlisted") == [f"{key} is in a directory of the hour, and no commit lists it"]
    assert (difference_types(report), report.clean) == ({"unlisted"}, False)


@pytest.mark.parametrize(
    ("name", "commit"), [("_SUCCESS", None), ("_objects.json", None), (".part", None), ("", None), ("other.json", "c9")]
)
def test_markers_and_objects_of_other_commits_are_not_reported(name: str, commit: str | None) -> None:
    world = VerifiedTopic()
    put_next_to(world, name, commit)
    assert world.verify().clean


def test_objects_of_a_connector_are_not_reported_in_the_hour_in_which_it_stopped() -> None:
    world = VerifiedTopic()
    put_next_to(world, "connector.json", None)
    world.since = HOUR
    assert world.verify().clean


@pytest.mark.parametrize(
    "template", ["{topic}/{partition}-{offset}", "{hour:yyyy/MM/dd/HH}/{topic}/{partition}-{offset}"]
)
def test_sidecars_and_dead_letters_are_listed_objects(template: str) -> None:
    world = VerifiedTopic(layout={"template": template}, sidecars={"keys": "json"}, errors={"tolerance": "all"})
    stage_records(world, [(b"k", b"1", []), (b"k", b"{", [])])
    assert world.verify().clean
