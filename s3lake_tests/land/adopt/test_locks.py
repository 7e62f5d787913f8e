"""Pending operations, in every state that a connector can leave them in (reference/lenses.md 5.5)."""

import pytest

from s3lake.errors import ConfigurationError
from s3lake.land.adopt.locks import read, recover, recovery
from s3lake_tests.land.adopt.buckets import bucket, committed, copy, delete, lines, lock, put, upload

KEY = ".indexes/lake/.locks/Topic(orders)/1.lock"
TEMPORARY = ".temp-upload/Topic(orders)/1/5f3ep/orders/1/773_1_2.json"
FINAL = "p/orders/1/773_1_2.json"


def left(*operations, temporary=True, final=False, last=733):
    """A bucket whose lock has these operations pending."""
    store = bucket({**({TEMPORARY: 40} if temporary else {}), **({FINAL: 40} if final else {})})
    put(store, KEY, lock(last, 773, [one(store) for one in operations]))
    return store


def to_copy(store):
    return copy(store, TEMPORARY, FINAL)


def to_delete(_):
    return delete(TEMPORARY)


def to_upload(_):
    return upload("/tmp/lake/1/5f3e", TEMPORARY)


def todo(store):
    document, etag = read(store, KEY)
    return recovery(store, 1, KEY, etag, document)


def finished(store):
    recover(store, todo(store))
    return committed(store, KEY)


def refused(store):
    before = dict(store.objects)
    with pytest.raises(ConfigurationError) as refusal:
        recover(store, todo(store))
    assert store.objects == before
    return str(refusal.value)


def test_a_lock_without_pending_operations_is_left_alone():
    store = bucket({KEY: lock(733)})
    assert todo(store) is None


def test_a_copy_and_a_delete_are_carried_out():
    store = left(to_copy, to_delete)
    assert finished(store) == (773, None)
    assert store.get(FINAL).body == lines(40)
    assert store.head(TEMPORARY) is None


def test_a_copy_that_was_made_already_is_done():
    store = left(to_copy, to_delete, temporary=False, final=True)
    assert todo(store).steps == ("commit offset 773",)
    assert finished(store) == (773, None)


def test_a_copy_whose_source_was_not_deleted_yet_is_done():
    store = left(to_copy, to_delete, final=True)
    assert todo(store).steps == (f"delete {TEMPORARY}", "commit offset 773")
    assert finished(store) == (773, None)
    assert store.head(TEMPORARY) is None


@pytest.mark.parametrize("temporary", [True, False])
def test_a_delete_is_done_however_often(temporary):
    store = left(to_delete, temporary=temporary, final=True)
    assert finished(store) == (773, None)
    assert store.head(TEMPORARY) is None


def test_an_upload_from_the_connectors_disk_is_given_up():
    store = left(to_upload, to_copy, to_delete, temporary=False)
    assert todo(store).steps == ("give up the upload of /tmp/lake/1/5f3e: its records are read again from Kafka",)
    assert finished(store) == (733, None)
    assert store.head(FINAL) is None


def test_an_upload_given_up_before_anything_landed_leaves_nothing_committed():
    assert finished(left(to_upload, temporary=False, last=None)) == (None, None)


def test_the_steps_are_said_and_nothing_is_done_before_it_is_asked_for():
    store = left(to_copy, to_delete)
    before = dict(store.objects)
    assert todo(store).steps == (f"copy {TEMPORARY} to {FINAL}", f"delete {TEMPORARY}", "commit offset 773")
    assert store.objects == before


def test_finishing_twice_changes_nothing_more():
    store = left(to_copy, to_delete)
    finished(store)
    before = dict(store.objects)
    assert todo(store) is None
    assert store.objects == before


@pytest.mark.parametrize("done", ["copied", "deleted"])
def test_finishing_can_die_half_way_and_begin_again(done):
    store = left(to_copy, to_delete)
    put(store, FINAL, 40)
    if done == "deleted":
        store.delete(TEMPORARY)
    assert finished(store) == (773, None)


def test_a_new_owner_fences_a_task_that_still_holds_the_lock():
    store = left(to_delete)
    etag = store.head(KEY).etag
    finished(store)
    assert store.put(KEY, b"{}", if_match=etag) is None


# What can neither be finished nor undone


def test_a_copy_whose_objects_are_both_gone_is_refused():
    message = refused(left(to_copy, to_delete, temporary=False))
    assert message == (
        f"s3://b/{KEY}: a copy from {TEMPORARY} to {FINAL} is pending, and neither object is there. Bring one of them "
        "back; if both are lost, write null for pendingState into the lock, and the records are read again from Kafka"
    )


def test_a_source_of_another_content_is_refused():
    store = left(to_copy, to_delete)
    put(store, TEMPORARY, 41)
    assert "is not what the lock" in refused(store)


def test_another_object_at_the_final_key_is_refused():
    store = left(to_copy, to_delete)
    put(store, FINAL, 41)
    assert "but another object stands there" in refused(store)


def test_an_operation_in_another_bucket_is_refused():
    store = left(lambda store: copy(store, TEMPORARY, FINAL, bucket="other"))
    assert "an operation pending in bucket other" in refused(store)


@pytest.mark.parametrize("operation", [lambda store: copy(store, FINAL, "x"), lambda _: delete(FINAL)])
def test_only_temporary_objects_are_copied_and_deleted(operation):
    store = left(operation, final=True)
    assert "nothing is copied or deleted on its word" in refused(store)


def test_a_lock_that_changed_meanwhile_is_refused():
    store = left(to_delete)
    planned = todo(store)
    put(store, KEY, lock(800))
    with pytest.raises(ConfigurationError, match="stop the connector, then adopt again"):
        recover(store, planned)
    assert committed(store, KEY) == (800, None)
