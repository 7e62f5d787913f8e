"""What the bucket in memory does beside the contract of `test_contract.py`."""

import pytest

from s3lake.errors import StoreUnavailableError
from s3lake.store.memory import MemoryStore


def test_it_notes_which_records_an_object_holds() -> None:
    store = MemoryStore()
    store.tag_offsets("a", 3, 9, 5)

    assert store.tagged == {"a": (3, 9, 5)}


def test_an_upload_is_known_by_its_key_and_its_id_together() -> None:
    store = MemoryStore()
    upload = store.create_upload("a", {})
    part = store.upload_part("a", upload, 1, b"x")
    store.abort_upload("b", upload)

    with pytest.raises(StoreUnavailableError, match="b: the store no longer knows the upload"):
        store.upload_part("b", upload, 1, b"y")
    assert store.complete_upload("b", upload, [part]) == "gone"
    assert store.complete_upload("a", upload, [part]) == "completed"


@pytest.mark.parametrize(("number", "body"), [(2, b"x"), (1, b"y")])
def test_parts_are_named_by_what_they_are_and_by_their_numbers_from_one(number: int, body: bytes) -> None:
    store = MemoryStore()
    upload, other = store.create_upload("a", {}), store.create_upload("b", {})
    store.upload_part("a", upload, number, body)

    assert store.complete_upload("a", upload, [store.upload_part("b", other, 1, b"x")]) == "refused"
    assert store.head("a") is None
