"""The Lenses connector's index, in its three generations."""

import pytest

from s3lake.errors import ConfigurationError
from s3lake.land.adopt import lenses
from s3lake_tests.land.adopt.buckets import CONNECTOR, LOCKS, bucket, copy, delete, lock, put

DEFAULT = f"{LOCKS}/Topic(orders)/1/partition=1_topic=orders.lock"
MASTER = f"{LOCKS}/Topic(orders)/1.lock"


def said(objects, *, by_value=False, connector=CONNECTOR):
    found = lenses.look(bucket(objects), ".indexes", connector, "orders", by_value=by_value)
    return {partition: (one.next, one.low, one.high) for partition, one in found.claims.items()}


def granular(value):
    return f"{LOCKS}/Topic(orders)/1/{value}.lock"


# Version 10 and later


def test_the_master_lock_tells_the_last_offset_that_landed():
    assert said({MASTER: lock(733), f"{LOCKS}/Topic(orders)/0.lock": lock(5)}) == {
        1: (734, 734, 734),
        0: (6, 6, 6),
    }


def test_a_lock_that_never_committed_says_nothing():
    assert said({MASTER: lock(None)}) == {}


def test_the_default_layouts_own_lock_may_be_ahead():
    assert said({MASTER: lock(700), DEFAULT: lock(733)}) == {1: (734, 734, 734)}
    assert said({MASTER: lock(None), DEFAULT: lock(733)}) == {1: (734, 734, 734)}


def test_the_default_layouts_own_lock_is_known_with_an_underscore_in_the_topic():
    store = bucket(
        {
            f"{LOCKS}/Topic(my_topic)/1.lock": lock(700),
            f"{LOCKS}/Topic(my_topic)/1/partition=1_topic=my%5Ftopic.lock": lock(733),
        }
    )
    assert lenses.look(store, ".indexes", CONNECTOR, "my_topic").claims[1].next == 734


def test_the_marker_of_a_sweep_is_no_lock():
    marker = {"lastRunEpochMillis": 1, "nextRunEpochMillis": 2}
    assert said({MASTER: lock(7), f"{LOCKS}/Topic(orders)/1/sweep-marker.json": marker}) == {1: (8, 8, 8)}


def test_locks_of_values_up_to_the_master_leave_no_doubt():
    values = {granular("name=a"): lock(700), granular("name=b"): lock(690), granular("name=c"): lock(None)}
    assert said({MASTER: lock(700), **values}, by_value=True) == {1: (701, 701, 701)}


def test_locks_of_values_ahead_of_the_master_name_no_offset():
    objects = {MASTER: lock(700), granular("name=a"): lock(733), granular("name=b"): lock(710)}
    assert said(objects, by_value=True) == {1: (None, 701, 734)}


def test_the_note_says_which_values_are_ahead_and_what_to_do():
    objects = {MASTER: lock(700), granular("name=a"): lock(733), granular("name=b"): lock(710)}
    found = lenses.look(bucket(objects), ".indexes", CONNECTOR, "orders", by_value=True)
    assert found.claims[1].note == (
        "everything up to 700 has landed, beyond that only some partition values (name=a up to 733, name=b up to 710), "
        "so every offset lands some records twice or never. Start the connector once more, let it idle until "
        "flush.interval has passed without new records, stop it"
    )


def test_locks_of_values_that_cover_every_offset_leave_no_doubt():
    objects = {MASTER: lock(700), granular("n=a"): lock(702), granular("n=b"): lock(701), granular("n=c"): lock(3)}
    assert said(objects, by_value=True) == {1: (703, 703, 703)}


def test_one_lock_for_all_values_does_not_tell_of_each():
    assert said({MASTER: lock(700)}, by_value=True) == {1: (701, 0, 701)}


def test_another_connectors_locks_say_nothing():
    assert said({MASTER: lock(733)}, connector="other") == {}


def test_a_document_that_is_no_lock_is_refused():
    with pytest.raises(ConfigurationError, match=r"s3://b/.*1.lock is no lock of the Lenses connector"):
        said({MASTER: {"owner": 1}})


# Version 9.0


@pytest.mark.parametrize("indexes", [".indexes", "idx"])
def test_the_lock_of_version_9_has_no_connectors_name(indexes):
    store = bucket({".indexes/.locks/Topic(orders)/1.lock": lock(50)})
    assert lenses.look(store, indexes, CONNECTOR, "orders").claims[1].next == 51


def test_an_older_generation_is_what_was_left_behind():
    assert said({".indexes/.locks/Topic(orders)/1.lock": lock(50), MASTER: lock(733)}) == {1: (734, 734, 734)}


def test_an_older_generation_that_says_more_names_no_offset():
    assert said({".indexes/.locks/Topic(orders)/1.lock": lock(800), MASTER: lock(733)}) == {1: (None, 734, 801)}


# Version 8 and earlier

INDEX = f".indexes/{CONNECTOR}/orders/00001"


def test_the_newest_index_object_whose_file_is_there_tells():
    objects = {
        f"{INDEX}/00000000000000000050": b"p/orders/1/50.json",
        f"{INDEX}/00000000000000000060": b"p/orders/1/60.json",
        f"{INDEX}/00000000000000000070": b"p/orders/1/70.json",
        "p/orders/1/50.json": 1,
        "p/orders/1/60.json": 1,
    }
    assert said(objects) == {1: (61, 61, 61)}


def test_index_objects_without_files_say_nothing():
    assert said({f"{INDEX}/50": b"p/orders/1/50.json"}) == {}


# Pending


def test_pending_operations_count_as_finished():
    store = bucket({".temp-upload/Topic(orders)/1/u1p/orders/1/773_1_2.json": 1})
    operation = copy(store, ".temp-upload/Topic(orders)/1/u1p/orders/1/773_1_2.json", "p/orders/1/773_1_2.json")
    put(store, DEFAULT, lock(733, 773, [operation, delete(operation["source"])]))
    found = lenses.look(store, ".indexes", CONNECTOR, "orders")
    assert found.claims[1].next == 774
    assert found.copied == ["p/orders/1/773_1_2.json"]
    assert store.head("p/orders/1/773_1_2.json") is None
