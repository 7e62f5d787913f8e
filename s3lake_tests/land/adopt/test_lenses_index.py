"""The Lenses connector's locks."""

from typing import Any

import pytest

from s3lake.errors import ConfigurationError
from s3lake.land.adopt.lenses_index import read_locks
from s3lake_tests.land.adopt.buckets import LOCKS, bucket, copy, delete, lock, put

ROOT = f"{LOCKS}/Topic(orders)/"
MASTER, DEFAULT, UNDERSCORES = "1.lock", "1/partition=1_topic=orders.lock", "1/partition=1_topic=my%5Ftopic.lock"
A, B, C = (f"1/name={name}.lock" for name in "abc")

FOUND: dict[str, tuple[dict[str, Any], dict[str, Any], dict[int, int]]] = {
    "the master lock has the last offset that landed": ({MASTER: lock(733), "0.lock": lock(5)}, {}, {1: 734, 0: 6}),
    "a lock that never committed has no offset": ({MASTER: lock(None)}, {}, {}),
    "the default layout's own lock may be ahead": ({MASTER: lock(700), DEFAULT: lock(733)}, {}, {1: 734}),
    "and be the only one that has an offset": ({MASTER: lock(None), DEFAULT: lock(733)}, {}, {1: 734}),
    "its name has underscores of the topic in its own way": (
        *({MASTER: lock(700), UNDERSCORES: lock(733)}, {"topic": "my_topic"}, {1: 734}),
    ),
    "the marker of a sweep is not a lock": ({MASTER: lock(7), "1/sweep-marker.json": {"nextRun": 2}}, {}, {1: 8}),
    "locks of values up to the master leave no doubt": (
        {MASTER: lock(700), A: lock(700), B: lock(690), C: lock(None)},
        *({"by_value": True}, {1: 701}),
    ),
    "one lock for all values counts if the group agrees": (
        *({MASTER: lock(700)}, {"by_value": True, "group": {1: 701}}, {1: 701}),
    ),
}
PROBLEMS: dict[str, tuple[dict[str, Any], dict[int, int], str]] = {
    "locks of values ahead of the master": (
        *({MASTER: lock(700), A: lock(733), B: lock(710)}, {}),
        "everything up to 700 has landed, beyond it only records of some partition values, name=a up to 733, "
        "name=b up to 710",
    ),
    "one lock for all values, and the group does not agree": (
        *({MASTER: lock(700)}, {1: 650}),
        "the lock is at 701 for all partition values together, and the consumer group is at 650",
    ),
}


def locks(
    objects: dict[str, Any], topic: str = "orders", group: dict[int, int] | None = None, *, by_value: bool = False
) -> tuple[dict[int, int], dict[int, str]]:
    store = bucket({f"{ROOT}{name}": document for name, document in objects.items()})
    return read_locks(store, ROOT, topic, group or {}, by_value=by_value)


@pytest.mark.parametrize(("objects", "options", "offsets"), FOUND.values(), ids=FOUND)
def test_locks_contain_the_next_offset(
    objects: dict[str, Any], options: dict[str, Any], offsets: dict[int, int]
) -> None:
    assert locks(objects, **options) == (offsets, {})


@pytest.mark.parametrize(("objects", "group", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_locks_without_the_next_offset_are_a_problem(
    objects: dict[str, Any], group: dict[int, int], problem: str
) -> None:
    assert locks(objects, group=group, by_value=True) == ({}, {1: problem})


def test_a_pending_operation_is_a_problem() -> None:
    store = bucket({".temp-upload/x": 1})
    pending = [copy(store, ".temp-upload/x", "p/x"), delete(".temp-upload/x")]
    put(store, f"{ROOT}{DEFAULT}", lock(733, 773, pending))
    problem = f"s3://lake/{ROOT}{DEFAULT} has operations pending"
    assert read_locks(store, ROOT, "orders", {}, by_value=False) == ({}, {1: problem})


def test_a_document_that_is_not_a_lock_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"s3://lake/.*1.lock is not a lock of the Lenses connector"):
        locks({MASTER: {"owner": 1}})
