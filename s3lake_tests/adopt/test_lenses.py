"""The Lenses connector's locks."""

import pytest

from s3lake.adopt.lenses import read_locks
from s3lake.errors import ConfigurationError
from s3lake_tests.adopt.buckets import LOCKS, bucket, copy, delete, lock, put

ROOT = f"{LOCKS}/Topic(orders)/"
DEFAULT = f"{ROOT}1/partition=1_topic=orders.lock"
MASTER = f"{ROOT}1.lock"


def locks(objects, *, by_value=False, group=None):
    return read_locks(bucket(objects), ROOT, "orders", group or {}, by_value=by_value)


def offsets(objects, **options):
    found, problems = locks(objects, **options)
    assert problems == {}
    return found


def problem(objects, **options):
    found, problems = locks(objects, **options)
    assert found == {}
    return problems[1]


def granular(value):
    return f"{ROOT}1/{value}.lock"


def test_the_master_lock_has_the_last_offset_that_landed():
    assert offsets({MASTER: lock(733), f"{ROOT}0.lock": lock(5)}) == {1: 734, 0: 6}


def test_a_lock_that_never_committed_has_no_offset():
    assert offsets({MASTER: lock(None)}) == {}


@pytest.mark.parametrize("master", [700, None])
def test_the_default_layouts_own_lock_may_be_ahead(master):
    assert offsets({MASTER: lock(master), DEFAULT: lock(733)}) == {1: 734}


def test_the_default_layouts_own_lock_is_found_with_an_underscore_in_the_topic():
    root = f"{LOCKS}/Topic(my_topic)/"
    store = bucket({f"{root}1.lock": lock(700), f"{root}1/partition=1_topic=my%5Ftopic.lock": lock(733)})
    assert read_locks(store, root, "my_topic", {}, by_value=False) == ({1: 734}, {})


def test_the_marker_of_a_sweep_is_not_a_lock():
    marker = {"lastRunEpochMillis": 1, "nextRunEpochMillis": 2}
    assert offsets({MASTER: lock(7), f"{ROOT}1/sweep-marker.json": marker}) == {1: 8}


def test_locks_of_values_up_to_the_master_leave_no_doubt():
    values = {granular("name=a"): lock(700), granular("name=b"): lock(690), granular("name=c"): lock(None)}
    assert offsets({MASTER: lock(700), **values}, by_value=True) == {1: 701}


def test_locks_of_values_ahead_of_the_master_are_a_problem():
    objects = {MASTER: lock(700), granular("name=a"): lock(733), granular("name=b"): lock(710)}
    assert problem(objects, by_value=True) == (
        "everything up to 700 has landed, beyond it only records of some partition values, name=a up to 733, "
        "name=b up to 710"
    )


def test_one_lock_for_all_values_counts_only_if_the_group_agrees():
    assert offsets({MASTER: lock(700)}, by_value=True, group={1: 701}) == {1: 701}
    assert "the lock says 701 for all partition values together, and the consumer group says 650" in problem(
        {MASTER: lock(700)}, by_value=True, group={1: 650}
    )


def test_a_pending_operation_is_a_problem():
    store = bucket({".temp-upload/x": 1})
    put(store, DEFAULT, lock(733, 773, [copy(store, ".temp-upload/x", "p/x"), delete(".temp-upload/x")]))
    assert read_locks(store, ROOT, "orders", {}, by_value=False) == (
        {},
        {1: f"s3://lake/{DEFAULT} has operations pending"},
    )


def test_a_document_that_is_not_a_lock_is_refused():
    with pytest.raises(ConfigurationError, match=r"s3://lake/.*1.lock is not a lock of the Lenses connector"):
        locks({MASTER: {"owner": 1}})
