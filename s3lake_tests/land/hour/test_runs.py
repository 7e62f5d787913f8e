"""What a run makes of its hours, and what it leaves where it ends early: no Spark, no Kafka, no S3."""

from typing import Any

import pytest

from s3lake.errors import ConfigurationError, DataLossError, FencedError, ForeignObjectError, TooManyFilesError
from s3lake.index.commit.documents import MOST_FILES
from s3lake.index.commit.protocol import Attempt
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.land.hour.landing import batch_limit, land
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.kit.stores import CountedStore
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, Filed, Landed, UnstagedTopic


def world(**settings: Any) -> UnstagedTopic:
    """One in which there are files."""
    made = UnstagedTopic(**settings)
    made.lands = Filed
    return made


def committed(target: Landed, hour: str) -> list[tuple[int, int]]:
    """The offsets of each commit of an hour."""
    reads = [manifest.partitions[0] for manifest in target.report(hour).manifests]
    return [(read.start, read.end) for read in reads]


def disturb(index: TopicIndex, hour: str) -> None:
    """Change a tile, as a writer that closes it does."""
    stored = index.tile(hour)
    assert stored is not None
    index.swap_tile(stored[0].revise(), stored[1])


# Hours


def test_records_that_come_while_an_hour_is_landed_wait_for_the_next_run() -> None:
    made = world(batch_records=5)
    target = made.target(now_minute=130)
    target.before = lambda _: made.kafka.produce(0, 129)
    land(target, [THIRD])
    assert committed(target, THIRD) == [(20, 25), (25, 30)]
    land(made.target(now_minute=130), [THIRD])
    assert committed(target, THIRD) == [(20, 25), (25, 30), (30, 32)]


def test_an_hour_is_left_open_for_late_records_until_its_grace_is_over() -> None:
    made = world(close_grace=15)
    (landed,) = land(made.target(now_minute=60.2), [FIRST])
    assert not landed.tile.closed
    (landed,) = land(made.target(now_minute=60.25), [FIRST])
    assert landed.tile.complete


@pytest.mark.parametrize(("setting", "start"), [("earliest", 0), ("start", 3)])
def test_the_first_hour_takes_what_is_older_where_the_sink_begins_at_the_log_s_start(setting: str, start: int) -> None:
    made = world(**{"from": setting})
    made.kafka.logs[0].stamps[:0] = [made.kafka.logs[0].stamps[0] - 3_600_000] * 3
    target = made.target()
    land(target, [FIRST])
    assert committed(target, FIRST) == [(start, 13)]


def test_a_topic_that_never_was_is_refused_and_the_nearest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = UnstagedTopic()
    made.kafka.delete_topic()
    monkeypatch.setattr(made.kafka, "topics", lambda: ["clicks", "order", "users"], raising=False)
    with pytest.raises(ConfigurationError, match=r"sink events: topic 'orders' does not exist.*did you mean 'order'"):
        land(made.target(), [FIRST])


def test_a_topic_that_is_waited_for_has_empty_hours() -> None:
    made = UnstagedTopic(missing_topic="wait")
    made.kafka.delete_topic()
    (landed,) = land(made.target(), [FIRST])
    assert (landed.tile, landed.new) == (Tile(FIRST, {}), 0)


def test_a_topic_that_was_deleted_is_no_topic_that_never_was() -> None:
    made = UnstagedTopic()
    land(made.target(now_minute=30), [FIRST])
    made.kafka.delete_topic()
    with pytest.raises(DataLossError, match="was deleted"):
        land(made.target(), [FIRST])


# Other writers


def test_an_hour_that_another_writer_changed_is_staged_and_landed_once_more() -> None:
    made = world()
    target = made.target(now_minute=130)

    def change(_: Attempt) -> None:
        target.before = lambda _: made.kafka.produce(0, 129)
        disturb(target.index, THIRD)

    target.before = change
    (landed,) = land(target, [THIRD])
    assert (landed.new, committed(target, THIRD)) == (1, [(20, 30)])
    assert made.store.uploads == {}


def test_an_hour_that_others_change_each_time_is_tried_six_times() -> None:
    made = world()
    target, tries = made.target(), 0

    def change(attempt: Attempt) -> None:
        nonlocal tries
        tries += 1
        disturb(target.index, attempt.tile.hour)

    target.before = change
    with pytest.raises(FencedError):
        land(target, [FIRST])
    assert tries == 6
    assert made.store.uploads == {}


def test_commits_of_another_writer_are_reported_when_this_run_began_the_hour() -> None:
    made = world(batch_records=4, flush={"merge": False})
    target = made.target()

    def overtake(attempt: Attempt) -> None:
        if attempt.tile.commits:
            target.before = lambda _: None
            land(made.target(), [FIRST])

    target.before = overtake
    (landed,) = land(target, [FIRST])
    assert landed.new == 1
    assert landed.tile.complete
    assert sum(read.landed for one in landed.manifests for read in one.partitions.values()) == 10


# What goes wrong


def test_staged_files_of_the_next_hour_are_dropped_when_a_commit_fails() -> None:
    made = world()
    made.store.put(f"{TOPIC}/0/0.txt", b"another program's")
    with pytest.raises(ForeignObjectError):
        land(made.target(), [FIRST, SECOND])
    assert made.store.uploads == {}
    assert [key for key in made.store.objects if not key.startswith(".indexes/")] == [f"{TOPIC}/0/0.txt"]


def test_staged_files_are_dropped_when_their_topic_was_recreated_meanwhile() -> None:
    made = world()
    target = made.target()
    target.before = lambda _: made.kafka.create_topic()
    with pytest.raises(DataLossError, match="created again"):
        land(target, [FIRST])
    assert made.store.uploads == {}


def test_objects_of_another_prefix_stop_no_landing() -> None:
    made = world(prefix="lake")
    made.store.put("lake/orders/0/0.txt", b"another program's")

    class Below(Filed):
        def _key(self, *of: Any) -> str:
            return self.sink.root + super()._key(*of)

    made.lands = Below
    with pytest.raises(ForeignObjectError):
        land(made.target(), [FIRST])
    made.settings["prefix"] = "pond"
    (landed,) = land(made.target(), [FIRST])
    assert landed.tile.complete


# Files of one commit


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, 3 * MOST_FILES),
        ({"sidecars": {"keys": "json"}}, 3 * (MOST_FILES // 2)),
        ({"sidecars": {"keys": "json", "headers": "json"}}, 3 * (MOST_FILES // 3)),
        ({"batch_records": 7}, 7),
    ],
)
def test_a_micro_batch_reads_no_more_than_one_commit_can_list_files_of(settings: dict[str, Any], limit: int) -> None:
    assert batch_limit(UnstagedTopic(flush={"count": 3}, **settings).sink) == limit


def refusing(most: int, target: Landed) -> Landed:
    """A target whose tasks have too many files of more offsets than that."""

    def refuse(attempt: Attempt) -> None:
        if sum(end - start for start, end in attempt.batch.reads.values()) > most:
            raise TooManyFilesError("too many")

    target.before = refuse
    return target


def test_a_micro_batch_of_too_many_files_becomes_four_and_so_do_those_that_follow() -> None:
    made = world(flush={"merge": False})
    made.kafka.produce(0, 129, 129, 129)
    target = refusing(4, made.target())
    land(target, [THIRD])
    assert committed(target, THIRD) == [(20, 23), (23, 26), (26, 29), (29, 32), (32, 33)]


def test_two_records_that_have_too_many_files_together_become_two_commits() -> None:
    target = refusing(1, world(flush={"merge": False}, batch_records=2).target())
    land(target, [FIRST])
    assert committed(target, FIRST) == [(at, at + 1) for at in range(10)]


# The store


class Encrypting(CountedStore):
    """Is asked to encrypt what it is given, and does."""

    requirements = "aws:kms"

    def find_ignored(self, _: str) -> list[str]:
        return []


@pytest.mark.parametrize(("store", "exactly_once"), [(CountedStore, True), (Encrypting, False)])
def test_the_store_is_tried_where_the_sink_s_data_will_be(store: type[CountedStore], exactly_once: bool) -> None:
    made = UnstagedTopic(prefix="lake", exactly_once=exactly_once)
    made.store = tried = store()
    land(made.target(), [FIRST])
    begun = [key for name, key in tried.calls if name == "create_upload"]
    assert {key[: len("lake/.probe/")] for key in begun} == {"lake/.probe/"}
