"""One commit replaces others: which objects are deleted, when, and what is raised if they may not be."""

from typing import Any

import pytest

from s3lake.errors import ConfigurationError, FencedError, StoreDeniedError, TableUnavailableError
from s3lake.index.commit.documents import FileForm, Manifest, Read
from s3lake.index.store.memory import MemoryStore
from s3lake.land.change.hour_change import group_compatible, settle_hour
from s3lake.land.topic.table_follower import TableFollower
from s3lake.land.topic.topic_sink import TopicSink, retry_fenced
from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.at_hand import RecordingTable, TopicInMemory
from s3lake_tests.land.change.parts import Parts, holding, land_two_commits, run_change


class Denying(MemoryStore):
    """Denies so many deletions."""

    denials = 0

    def delete(self, key: str) -> None:
        if self.denials:
            self.denials -= 1
            raise StoreDeniedError(f"{key}: access denied")
        super().delete(key)


def followed(world: Parts, *away: int) -> tuple[TopicSink, RecordingTable]:
    """What it holds, and a table that follows."""
    table: Any = RecordingTable(world.store, away)
    held = holding(world)
    held.index.follower = TableFollower(table)
    return held, table


@pytest.mark.parametrize("failures", [1, 2])
def test_replaced_files_stay_until_the_change_is_repeated_if_the_table_cannot_follow(failures: int) -> None:
    world = land_two_commits()
    before = set(world.bodies())
    held, table = followed(world, *range(2, 3 + failures))
    for _ in range(failures):
        with pytest.raises(TableUnavailableError):
            run_change("compact", held)
    assert before < set(world.bodies())
    run_change("compact", held)
    assert before.isdisjoint(world.bodies())
    assert before < table.followed[2 + failures][1]
    world.verify_clean()


def garbage(denials: int) -> tuple[TopicSink, Denying]:
    """An hour whose replaced objects are still there, at a store that denies their deletion so often from now on."""
    world = land_two_commits()
    with pytest.raises(TableUnavailableError):
        run_change("compact", followed(world, 2, 3)[0])
    store = Denying(world.store.bucket)
    store.objects, store.denials = world.store.objects, denials
    return holding(world, store), store


def test_replaced_files_that_may_not_be_deleted_raise() -> None:
    held, _ = garbage(denials=1_000)
    with pytest.raises(StoreDeniedError):
        settle_hour(held, HOUR)


def commit(number: int, **form: Any) -> Manifest:
    """One of two offsets."""
    return Manifest(str(number), "orders", HOUR, {0: Read(2 * number, 2 * number + 2)}, **form)


def test_commits_of_one_form_that_follow_each_other_are_one() -> None:
    commits = [commit(number, form=FileForm("json"), columns={"a": "int64"}) for number in range(3)]
    assert group_compatible(commits) == [commits]


@pytest.mark.parametrize(
    "form",
    [
        {"form": FileForm(format="parquet")},
        {"form": FileForm(value="avro")},
        {"form": FileForm(codec="gzip")},
        {"nulls": "write"},
        {"columns": {"a": "int64"}},
    ],
    ids=short_id,
)
def test_commits_of_several_forms_are_read_apart_and_no_commit_reaches_over_another(form: dict[str, Any]) -> None:
    first, second, third = commit(0), commit(1, **form), commit(2)
    assert group_compatible([first, second, third]) == [[first], [third], [second]]


def test_a_sink_that_is_not_exactly_once_cannot_be_changed_commit_by_commit() -> None:
    with pytest.raises(ConfigurationError, match="sink events has exactly_once: false"):
        TopicInMemory(exactly_once=False).target().require_exactly_once()


def test_a_topic_that_was_never_landed_has_no_hours() -> None:
    assert TopicInMemory().target().hours() == []


def test_a_change_gives_up_if_others_are_always_faster() -> None:
    tries = []

    @retry_fenced
    def change() -> None:
        tries.append(len(tries) + 1)
        raise FencedError("another writer was first")

    with pytest.raises(FencedError):
        change()
    assert tries == [1, 2, 3, 4, 5]
