"""Records that Kafka no longer has are reported as not checkable; the rest is compared as far as it goes."""

import msgspec
import pytest

from s3lake import hours
from s3lake.index.commit.documents import Read
from s3lake.index.plan.tile import TileRange
from s3lake.lake.verify import NotChecked
from s3lake.source.offsets import TopicOffsets
from s3lake_tests.lake.verify.world import HOUR, NEXT, VerifiedTopic, dead_letter_line, difference_types, texts

VALUES = [b'{"n":%d}' % n for n in range(9)]


@pytest.fixture
def world() -> VerifiedTopic:
    """Three files of one commit: offsets 0 to 2, 3 to 5, 6 to 8."""
    world = VerifiedTopic()
    world.log.add(VALUES)
    world.commit("c1", [world.lines("c1", VALUES[start : start + 3], start) for start in (0, 3, 6)])
    return world


def unchecked(world: VerifiedTopic) -> list[NotChecked]:
    return [lost for one in world.verify().checked for lost in one.not_checkable]


@pytest.mark.parametrize("low", range(1, 10))
def test_expired_offsets_are_not_checkable_and_later_ones_are_compared(world: VerifiedTopic, low: int) -> None:
    world.log.expire(low)
    report = world.verify()
    assert report.clean
    assert (report.compared, report.landed, report.not_checkable) == (9 - low, 9, low)
    assert unchecked(world) == [NotChecked(0, low, f"expired since: Kafka's log starts at {low}")]
    world.log.records[0][8] = (world.log.records[0][8][0], b"changed")
    report = world.verify()
    assert report.missing == (low < 9)
    assert ["offset 8:" in text for text in texts(report, "missing")] == [True] * (low < 9)


def test_a_row_too_many_is_found_in_files_wholly_above_the_log_start(world: VerifiedTopic) -> None:
    world.log.expire(4)
    world.overwrite(world.manifests["c1"].files[2], b'{"n":6}\n{"n":7}\n{"n":7}\n')
    report = world.verify()
    assert (report.missing, report.duplicated) == (1, 1)


def test_rows_of_a_file_across_the_log_start_need_no_record(world: VerifiedTopic) -> None:
    world.log.expire(4)
    world.overwrite(world.manifests["c1"].files[1], b'{"n":?}\n{"n":4}\n{"n":5}\n')
    assert world.verify().clean


def test_files_below_the_log_start_must_still_be_there(world: VerifiedTopic) -> None:
    world.log.expire(9)
    first, second, third = world.manifests["c1"].files
    world.store.delete(first.key)
    world.overwrite(second, world.store.objects[second.key][0], commit="another")
    world.overwrite(third, world.store.objects[third.key][0] + b"\n")
    report = world.verify()
    assert difference_types(report) == {"object"}
    assert len(report.differences) == 3


def test_dead_letters_of_expired_records_are_not_checkable(world: VerifiedTopic) -> None:
    world = VerifiedTopic()
    world.log.add([b"?", b"1"])
    world.commit("c1", [world.dead_letters("c1", {0: dead_letter_line(0, "other")}), world.lines("c1", [b"1"], 1)])
    assert difference_types(world.verify()) == {"dead_letter"}
    world.log.expire(1)
    assert world.verify().clean


def test_other_records_are_compared_if_some_expired_before_landing() -> None:
    world = VerifiedTopic()
    world.log.add(VALUES)
    world.log.expire(4)
    world.commit("c1", [world.lines("c1", VALUES[4:], 4)], {0: Read(0, 9, read=5, landed=5)}, expired=((0, 0, 4),))
    assert world.verify().clean
    assert unchecked(world) == [NotChecked(0, 4, "expired before it was landed")]
    assert len(world.log.reads) == 2  # once each: no closer look was needed
    world.log.expire(6)
    assert unchecked(world)[1:] == [NotChecked(4, 6, "expired since: Kafka's log starts at 6")]
    world.log.expire(4)
    world.change("c1", partitions={0: Read(0, 9, read=4, landed=5)})
    assert "count" in difference_types(world.verify())


def test_expired_offsets_that_kafka_has_after_all_are_missing() -> None:
    world = VerifiedTopic()
    world.log.add(VALUES)
    world.commit("c1", [world.lines("c1", VALUES[4:], 4)], {0: Read(0, 9, read=5, landed=5)}, expired=((0, 0, 4),))
    assert world.verify().missing == 4


def test_a_log_start_that_moves_meanwhile_is_followed(world: VerifiedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = world.log.snapshot
    answers: list[TopicOffsets] = []

    def before_it_moves(topic: str, hour: str) -> TopicOffsets:
        answers.append(snapshot(topic, hour))
        world.log.expire(5)
        return answers[-1]

    monkeypatch.setattr(world.log, "snapshot", before_it_moves)
    report = world.verify()
    assert report.clean
    assert report.not_checkable == 5
    assert len(answers) == 2


def test_a_log_that_ends_before_what_is_committed_is_a_difference(world: VerifiedTopic) -> None:
    world.log.end[0] = 7
    report = world.verify()
    assert texts(report, "kafka") == ["offsets 7 to 8 are committed, but Kafka's log ends at 7"]
    assert report.missing == report.duplicated == 0
    assert unchecked(world) == [NotChecked(7, 9, "Kafka's log ends at 7")]


def test_a_topic_partition_that_kafka_does_not_know_is_a_difference(world: VerifiedTopic) -> None:
    world.log.end.clear()
    world.log.marker(partition=1, count=0)
    assert "kafka" in difference_types(world.verify())


@pytest.mark.parametrize(("topic_id", "text"), [("two", "two: it was created again"), ("", "no such topic")])
def test_another_topic_is_a_difference_and_nothing_can_be_checked(
    world: VerifiedTopic, topic_id: str, text: str
) -> None:
    world.log.topic_id = topic_id
    report = world.verify()
    (difference,) = report.differences
    assert difference.type == "kafka"
    assert text in difference.detail
    assert unchecked(world) == [NotChecked(0, 9, "its topic was deleted")]
    assert not world.log.reads


def test_hours_of_a_topic_that_was_given_up_are_not_checkable(world: VerifiedTopic) -> None:
    given_up = msgspec.structs.replace(world.tiles[HOUR], partitions={0: TileRange(0, 12, 12)}, expired=((0, 9, 12),))
    world.tiles[HOUR] = given_up
    world.since = NEXT
    world.log.records.clear()
    world.log.end.clear()
    world.landed([b"new"], commit="c2", hour=NEXT)
    report = world.verify()
    assert report.clean
    assert (report.compared, report.landed, report.not_checkable) == (1, 10, 12)


def test_hours_of_topics_that_were_given_up_one_after_the_other_need_not_meet(world: VerifiedTopic) -> None:
    world.since, world.earlier = hours.shift(NEXT, 1), (NEXT,)
    world.log.records.clear()
    world.log.end.clear()
    world.landed([b"of the second"], commit="c2", hour=NEXT)
    world.tiles[NEXT] = msgspec.structs.replace(world.tiles[NEXT], partitions={0: TileRange(0, 1, 1)}, burnt={0: 12})
    world.log.records.clear()
    world.log.end.clear()
    world.landed([b"of the third"], commit="c3", hour=world.since)
    assert world.verify().clean


def test_records_that_a_compacted_topic_lost_since_are_not_checkable(world: VerifiedTopic) -> None:
    for offset in (0, 4, 5):
        del world.log.records[0][offset]
    assert world.verify().duplicated == 3
    world.log.compacted = True
    report = world.verify()
    assert report.clean
    assert [lost.reason for one in report.checked for lost in one.not_checkable] == [
        "compacted: 3 of the records that were landed are no longer in Kafka"
    ]
    world.overwrite(world.manifests["c1"].files[0], b'{"n":0}\n{"n":0}\n{"n":2}\n')
    assert world.verify().missing == 1


def test_rows_beyond_the_records_that_compaction_left_are_found(world: VerifiedTopic) -> None:
    world.log.compacted = True
    del world.log.records[0][4]
    world.overwrite(world.manifests["c1"].files[0], b'{"n":0}\n{"n":1}\n{"n":2}\n{"n":2}\n')
    assert world.verify().duplicated == 2
