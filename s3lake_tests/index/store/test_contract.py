"""The store contract: what `commit/` builds on, the same for every store."""

import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from s3lake.errors import StoreDeniedError, StoreUnavailableError
from s3lake.index.store import COMMIT, Document, Head, Store
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_store import S3Store

A = TypeVar("A")
MIB = 2**20
THREADS = 8
AWKWARD = [
    "plain",
    "with space",
    " leading and trailing ",
    "a=b",
    "a+b",
    "100%",
    "%20",
    "%2F",
    "a%zz",
    "events(0_000000000012).json",
    "a&b;c,d:e@f!g$h'i*j~k",
    "quote\"and'<>",
    "question?mark#hash",
    "back\\slash",
    "[brackets]{braces}|^`",
    "grüße/日本/🚀",
    "type=a b/date=2026-11-20/00+05:30",
    ".hidden/.indexes",
]


def together(work: Callable[[int], A], count: int = THREADS) -> list[A]:
    """Run `work` in `count` threads that start at one moment."""
    gate = threading.Barrier(count)

    def one(number: int) -> A:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def upload(store: Store, key: str, *parts: bytes, commit: str = "c") -> tuple[str, list[str]]:
    """A staged upload: its id, and its parts' ETags."""
    id = store.create_upload(key, {COMMIT: commit})
    return id, [store.upload_part(key, id, number, part) for number, part in enumerate(parts, 1)]


def document(store: Store, key: str, span: tuple[int, int] | None = None) -> Document:
    found = store.get(key, span)
    assert found is not None
    return found


def body(store: Store, key: str) -> bytes:
    return document(store, key).body


def head_of(store: Store, key: str) -> Head:
    head = store.head(key)
    assert head is not None
    return head


@pytest.fixture
def moto_knows_no_gone_upload(request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["store"] == "moto":
        reason = "moto 5.2.5 answers 500 instead of 404 NoSuchUpload to a Complete of a missing upload"
        request.applymarker(pytest.mark.xfail(reason=reason, raises=StoreUnavailableError, strict=True))


@pytest.fixture
def minio_lists_uploads_of_a_key(request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["store"] == "minio":
        reason = "MinIO lists the uploads of one key: it takes a prefix for a whole one"
        request.applymarker(pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True))


class TestObjects:
    @pytest.mark.parametrize("content", [b"one", b"", bytes(range(256)) * 5000], ids=["some", "nothing", "every byte"])
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_an_object_that_was_put_can_be_read(
        self, store: Store, prefix: str, kind: Callable[[bytes], bytes], content: bytes
    ) -> None:
        etag = store.put(prefix + "a", kind(content))
        found, head = document(store, prefix + "a"), head_of(store, prefix + "a")
        assert (found.body, found.etag) == (content, etag)
        assert (head.etag, head.size, dict(head.metadata)) == (etag, len(content), {})
        id, parts = upload(store, prefix + "b", kind(content))
        assert store.complete_upload(prefix + "b", id, parts) == "completed"
        assert body(store, prefix + "b") == content

    @pytest.mark.parametrize(("span", "expected"), [((0, 2), b"01"), ((3, 5), b"34"), ((8, 99), b"89")])
    def test_some_of_the_bytes_can_be_got(
        self, store: Store, prefix: str, span: tuple[int, int], expected: bytes
    ) -> None:
        id, parts = upload(store, prefix + "a", b"0123456789", commit="mine")
        assert store.complete_upload(prefix + "a", id, parts) == "completed"
        found = document(store, prefix + "a", span)
        assert (found.body, found.metadata[COMMIT]) == (expected, "mine")
        assert store.get(prefix + "b", span) is None
        assert store.get(prefix + "a", (10, 12)) is None

    def test_a_missing_object_is_none(self, store: Store, prefix: str) -> None:
        assert store.get(prefix + "a") is None
        assert store.head(prefix + "a") is None

    def test_a_put_without_condition_replaces(self, store: Store, prefix: str) -> None:
        first = store.put(prefix + "a", b"one")
        second = store.put(prefix + "a", b"two")
        assert second not in (None, first)
        assert body(store, prefix + "a") == b"two"

    def test_a_deleted_object_is_missing(self, store: Store, prefix: str) -> None:
        store.put(prefix + "a", b"one")
        store.delete(prefix + "a")
        assert store.get(prefix + "a") is None
        assert store.put(prefix + "a", b"two", if_absent=True) is not None

    def test_deleting_nothing_is_no_error(self, store: Store, prefix: str) -> None:
        store.delete(prefix + "a")
        store.delete(prefix + "deep/er/a")

    @pytest.mark.parametrize("name", AWKWARD)
    def test_any_key_is_a_key(self, store: Store, prefix: str, name: str) -> None:
        key = prefix + name
        etag = store.put(key, b"one", if_absent=True)
        assert etag is not None
        assert store.put(key, b"two", if_match=etag) is not None
        assert body(store, key) == b"two"
        assert store.head(key) is not None
        assert list(store.list(prefix)) == [key]
        assert list(store.list(key)) == [key]
        store.delete(key)
        id, parts = upload(store, key, b"three")
        assert store.complete_upload(key, id, parts) == "completed"
        assert body(store, key) == b"three"
        store.delete(key)
        assert list(store.list(prefix)) == []


class TestConditions:
    def test_if_absent_writes_once(self, store: Store, prefix: str) -> None:
        assert store.put(prefix + "a", b"one", if_absent=True) is not None
        assert store.put(prefix + "a", b"two", if_absent=True) is None
        assert store.put(prefix + "a", b"one", if_absent=True) is None
        assert body(store, prefix + "a") == b"one"

    def test_if_match_writes_over_what_was_read(self, store: Store, prefix: str) -> None:
        first = store.put(prefix + "a", b"one")
        second = store.put(prefix + "a", b"two", if_match=first)
        assert second is not None
        assert store.put(prefix + "a", b"three", if_match=first) is None
        assert store.put(prefix + "a", b"three", if_match=second) is not None
        assert body(store, prefix + "a") == b"three"

    def test_if_match_on_nothing_fails(self, store: Store, prefix: str) -> None:
        etag = store.put(prefix + "a", b"one")
        store.delete(prefix + "a")
        assert store.put(prefix + "a", b"two", if_match=etag) is None
        assert store.put(prefix + "b", b"two", if_match=etag) is None
        assert store.get(prefix + "a") is None

    def test_one_writer_wins_when_many_write_if_absent(self, store: Store, prefix: str) -> None:
        for round in range(5):
            key = f"{prefix}{round}"
            etags = together(lambda number, key=key: store.put(key, b"%d" % number, if_absent=True))  # type: ignore[misc]
            winners = [number for number, etag in enumerate(etags) if etag is not None]
            assert len(winners) == 1
            found = document(store, key)
            assert (found.body, found.etag) == (b"%d" % winners[0], etags[winners[0]])

    def test_compare_and_swap_loses_no_increment(self, store: Store, prefix: str) -> None:
        key, each = prefix + "counter", 10
        store.put(key, b"0")

        def increment(_: int) -> None:
            for _ in range(each):
                while True:
                    found = document(store, key)
                    if store.put(key, b"%d" % (int(found.body) + 1), if_match=found.etag) is not None:
                        break

        together(increment)
        assert int(body(store, key)) == THREADS * each


class TestMetadata:
    def test_metadata_of_a_document_is_returned_and_replaced_with_the_next_one(self, store: Store, prefix: str) -> None:
        key = prefix + "a"
        etag = store.put(key, b"", if_absent=True, metadata={"s3lake-sealed": "c1", "other": "a b=c"})
        head = head_of(store, key)
        assert (dict(head.metadata), head.size) == ({"s3lake-sealed": "c1", "other": "a b=c"}, 0)
        store.put(key, b"", if_match=etag)
        head = head_of(store, key)
        assert dict(head.metadata) == {}


class TestMultipart:
    def test_an_upload_is_invisible_until_completed(self, store: Store, prefix: str) -> None:
        id, parts = upload(store, prefix + "a", b"one")
        assert store.get(prefix + "a") is None
        assert store.head(prefix + "a") is None
        assert list(store.list(prefix)) == []
        assert store.complete_upload(prefix + "a", id, parts) == "completed"
        assert body(store, prefix + "a") == b"one"
        assert list(store.list(prefix)) == [prefix + "a"]

    def test_parts_are_joined_in_the_order_of_their_numbers(self, store: Store, prefix: str) -> None:
        key = prefix + "a"
        id = store.create_upload(key, {COMMIT: "c"})
        chunks = [b"a" * 5 * MIB, b"b" * (5 * MIB + 1), b"c"]
        etags = {number: store.upload_part(key, id, number, chunks[number - 1]) for number in (3, 1, 2)}
        assert store.complete_upload(key, id, [etags[1], etags[2], etags[3]]) == "completed"
        assert body(store, key) == b"".join(chunks)
        head = head_of(store, key)
        assert head.size == 10 * MIB + 2

    def test_a_part_may_be_uploaded_again(self, store: Store, prefix: str) -> None:
        id, _ = upload(store, prefix + "a", b"one")
        etag = store.upload_part(prefix + "a", id, 1, b"two")
        assert store.complete_upload(prefix + "a", id, [etag]) == "completed"
        assert body(store, prefix + "a") == b"two"

    def test_a_taken_key_is_not_overwritten(self, store: Store, prefix: str) -> None:
        id, parts = upload(store, prefix + "a", b"one")
        store.put(prefix + "a", b"foreign")
        assert store.complete_upload(prefix + "a", id, parts) == "taken"
        assert body(store, prefix + "a") == b"foreign"
        head = head_of(store, prefix + "a")
        assert COMMIT not in head.metadata

    def test_a_taken_key_is_overwritten_where_that_is_asked_for(self, store: Store, prefix: str) -> None:
        store.put(prefix + "a", b"foreign")
        id, parts = upload(store, prefix + "a", b"one")
        assert store.complete_upload(prefix + "a", id, parts, replace=True) == "completed"
        assert body(store, prefix + "a") == b"one"

    def test_completing_twice_changes_nothing(self, store: Store, prefix: str) -> None:
        id, parts = upload(store, prefix + "a", b"one")
        assert store.complete_upload(prefix + "a", id, parts) == "completed"
        # Stores differ in what they answer; whoever asks looks at the object's metadata.
        assert store.complete_upload(prefix + "a", id, parts) in ("completed", "taken", "missing")
        assert body(store, prefix + "a") == b"one"

    @pytest.mark.usefixtures("moto_knows_no_gone_upload")
    @pytest.mark.parametrize("is_aborted", [True, False])
    def test_an_upload_that_was_aborted_or_whose_object_was_deleted_does_not_come_back(
        self, store: Store, prefix: str, is_aborted: bool
    ) -> None:
        id, parts = upload(store, prefix + "a", b"one")
        if is_aborted:
            store.abort_upload(prefix + "a", id)
        else:
            store.complete_upload(prefix + "a", id, parts)
            store.delete(prefix + "a")
        assert store.complete_upload(prefix + "a", id, parts) == "missing"
        assert store.get(prefix + "a") is None

    def test_aborting_a_missing_upload_is_no_error(self, store: Store, prefix: str) -> None:
        id, parts = upload(store, prefix + "a", b"one")
        store.abort_upload(prefix + "a", id)
        store.abort_upload(prefix + "a", id)
        id, parts = upload(store, prefix + "b", b"one")
        store.complete_upload(prefix + "b", id, parts)
        store.abort_upload(prefix + "b", id)
        assert body(store, prefix + "b") == b"one"

    def test_uploads_of_one_key_are_apart(self, store: Store, prefix: str) -> None:
        one, one_parts = upload(store, prefix + "a", b"one", commit="1")
        two, _ = upload(store, prefix + "a", b"two", commit="2")
        store.abort_upload(prefix + "a", two)
        assert store.complete_upload(prefix + "a", one, one_parts) == "completed"
        head = head_of(store, prefix + "a")
        assert head.metadata[COMMIT] == "1"

    def test_one_upload_becomes_the_object_when_two_are_completed_at_once(self, store: Store, prefix: str) -> None:
        for round in range(5):
            key = f"{prefix}{round}"
            uploads = [upload(store, key, b"%d" % number, commit=str(number)) for number in range(2)]
            answers = together(lambda number, key=key, all=uploads: store.complete_upload(key, *all[number]), 2)  # type: ignore[misc]
            counts = Counter(answers)
            assert counts["completed"] == 1
            assert counts["taken"] + counts["conflict"] == 1
            winner = answers.index("completed")
            head = head_of(store, key)
            assert head.metadata[COMMIT] == str(winner)
            assert body(store, key) == b"%d" % winner

    def test_one_upload_completed_by_many_is_one_object(self, store: Store, prefix: str) -> None:
        for round in range(5):
            key = f"{prefix}{round}"
            id, parts = upload(store, key, b"one")
            together(lambda _, key=key, id=id, parts=parts: store.complete_upload(key, id, parts))  # type: ignore[misc]
            # A 409 may cost everybody the upload (AWS), but never leaves half an object.
            assert body(store, key) == b"one"
            head = head_of(store, key)
            assert head.metadata[COMMIT] == "c"


class TestListing:
    def test_keys_begin_with_the_prefix_and_are_in_order(self, store: Store, prefix: str) -> None:
        # Not both "a" and "a/1": versitygw keeps objects as files, and a file is not a directory.
        names = ["b", "a/1", "a/2", "a-", "ab", "a/b/c", "é", "Z", "a=1/x", "a.b"]
        for name in names:
            store.put(prefix + name, b"")
        assert list(store.list(prefix)) == sorted(prefix + name for name in names)
        assert list(store.list(prefix + "a/")) == [prefix + name for name in ("a/1", "a/2", "a/b/c")]
        assert list(store.list(prefix + "c")) == []

    def test_a_listing_has_all_keys_when_they_need_two_pages(self, store: Store, prefix: str) -> None:
        keys = [f"{prefix}{number:05} +%.json" for number in range(1050)]
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda key: store.put(key, b""), keys))
        assert list(store.list(prefix)) == keys

    def test_steps_below_a_prefix_are_listed_once(self, store: Store, prefix: str) -> None:
        for key in ("a/b/1", "a/b/2", "a/c d/e/1", "a/file", "other/x/1"):
            store.put(f"{prefix}{key}", b"")
        assert list(store.list_steps(f"{prefix}a/")) == ["b", "c d"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get("a"),
        lambda store: store.put("a", b""),
        lambda store: store.put("a", b"", if_absent=True),
        lambda store: store.put("a", b"", if_match='"0"'),
        lambda store: store.delete("a"),
        lambda store: list(store.list("")),
        lambda store: store.create_upload("a", {}),
    ],
)
def test_a_missing_bucket_is_never_taken_for_a_missing_object(
    s3_store: S3Store, ask: Callable[[Store], object]
) -> None:
    with pytest.raises(StoreDeniedError, match=r"s3://no-such-bucket/a?.* 404 NoSuchBucket .*create the bucket"):
        ask(S3Store(s3_store.connection, "no-such-bucket"))


def test_a_store_can_be_sent_to_another_process(s3_store: S3Store, prefix: str) -> None:
    s3_store.put(prefix + "a", b"one")
    copy = pickle.loads(pickle.dumps(s3_store))
    assert (copy.bucket, copy.connection, copy.requests) == (s3_store.bucket, s3_store.connection, Counter())
    assert body(copy, prefix + "a") == b"one"


MOTO_BEGAN_MS = 1_289_422_113_000
"""moto returns that every upload began on a day in 2010."""


@pytest.mark.usefixtures("minio_lists_uploads_of_a_key")
class TestUploadsUnderWay:
    def test_are_named_with_their_age_until_they_are_completed_or_aborted(self, store: Store, prefix: str) -> None:
        began_ms = int(time.time() * 1000)
        completed, aborted, left = (upload(store, f"{prefix}{name}", b"one") for name in "abc")
        assert {one.upload for one in store.list_uploads(prefix)} == {completed[0], aborted[0], left[0]}
        store.complete_upload(prefix + "a", *completed)
        store.abort_upload(prefix + "b", aborted[0])
        (found,) = store.list_uploads(prefix)
        assert (found.key, found.upload) == (prefix + "c", left[0])
        assert abs(found.begun_ms - began_ms) < 60_000 or found.begun_ms == MOTO_BEGAN_MS

    def test_those_of_other_keys_are_not(self, store: Store, prefix: str) -> None:
        upload(store, prefix + "x/1", b"one")
        upload(store, prefix + "y/1", b"one")
        assert [one.key for one in store.list_uploads(prefix + "x/")] == [prefix + "x/1"]
        assert list(store.list_uploads(prefix + "z")) == []

    def test_several_of_one_key_are_named_one_by_one(self, store: Store, prefix: str) -> None:
        ids = {upload(store, prefix + "a", b"one")[0] for _ in range(3)}
        assert {one.upload for one in store.list_uploads(prefix)} == ids

    @pytest.mark.slow("a thousand uploads, one request each")
    def test_a_listing_of_uploads_has_all_when_they_need_two_pages(self, store: Store, prefix: str) -> None:
        count = 1_010
        ids = {store.create_upload(f"{prefix}{number:04}", {}) for number in range(count)}
        assert len(ids) == count
        assert {one.upload for one in store.list_uploads(prefix)} == ids


# What the bucket in memory does next to the contract


def test_an_upload_is_known_by_its_key_and_its_id_together() -> None:
    store = MemoryStore()
    upload = store.create_upload("a", {})
    part = store.upload_part("a", upload, 1, b"x")
    store.abort_upload("b", upload)

    with pytest.raises(StoreUnavailableError, match="b: the store no longer knows the upload"):
        store.upload_part("b", upload, 1, b"y")
    assert store.complete_upload("b", upload, [part]) == "missing"
    assert store.complete_upload("a", upload, [part]) == "completed"


@pytest.mark.parametrize(("number", "body"), [(2, b"x"), (1, b"y")])
def test_parts_are_named_by_what_they_are_and_by_their_numbers_from_one(number: int, body: bytes) -> None:
    store = MemoryStore()
    upload, other = store.create_upload("a", {}), store.create_upload("b", {})
    store.upload_part("a", upload, number, body)

    assert store.complete_upload("a", upload, [store.upload_part("b", other, 1, b"x")]) == "refused"
    assert store.head("a") is None
