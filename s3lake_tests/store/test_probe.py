"""A store is believed to honour conditional writes when it has shown it."""

import threading
import time
import uuid
from collections.abc import Mapping, Sequence

import pytest

from s3lake.errors import StoreDeniedError, StoreUnavailableError
from s3lake.store import Document, Store
from s3lake.store.memory import MemoryStore
from s3lake.store.probe import probe, sweep, trust
from s3lake.store.s3 import S3Store

TRIED_AND_REMEMBERED = 3
"""Keys: one of the index, one of data, and the memory of both."""


class Counting(MemoryStore):
    """A store with an address, so that a trial of it is remembered."""

    def __init__(self, endpoint: str | None) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.keys: list[str] = []

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        self._note(key)
        return super().put(key, body, if_match=if_match, if_absent=if_absent)

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        self._note(key)
        return super().create_upload(key, metadata)

    def _note(self, key: str) -> None:
        if key not in self.keys:
            self.keys.append(key)


class IgnoresIfNoneMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:  # noqa: ARG002
        return super().put(key, body, if_match=if_match)


class IgnoresIfMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:  # noqa: ARG002
        return super().put(key, body, if_absent=if_absent)


class RefusesIfNoneMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        return None if if_absent else super().put(key, body, if_match=if_match)


class RefusesIfMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        return None if if_match is not None else super().put(key, body, if_absent=if_absent)


class LooksAndThenWrites(MemoryStore):
    """As servers that keep objects as files and take no lock."""

    def __init__(self, bucket: str) -> None:
        super().__init__(bucket)
        self.looked = threading.Barrier(4)

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        if if_match is None:
            return super().put(key, body, if_absent=if_absent)
        document = self.get(key)
        if threading.current_thread() is not threading.main_thread():  # who writes alone waits for nobody
            self.looked.wait(30)
        return super().put(key, body) if document and document.etag == if_match else None


class LosesMetadata(MemoryStore):
    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:  # noqa: ARG002
        return super().create_upload(key, {})


class KeepsData(MemoryStore):
    """Credentials without the right to delete below the data prefix."""

    def delete(self, key: str) -> None:
        if key.startswith("raw/"):
            raise StoreDeniedError(f"DeleteObject {key} was refused: allow these credentials s3:DeleteObject here")
        super().delete(key)


class LosesAnswers(MemoryStore):
    """Every PUT happens, and its repetition after the lost answer finds its condition failed."""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        super().put(key, body, if_match=if_match, if_absent=if_absent)
        return None


class Down(Counting):
    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:  # noqa: ARG002
        raise StoreUnavailableError(key)

    def delete(self, key: str) -> None:
        raise AssertionError(f"a store that does not answer is asked to delete {key}")


def test_every_store_of_ours_passes_and_is_left_as_it_was(store: Store, prefix: str) -> None:
    probe(store, f"{prefix}index", f"{prefix}raw/")
    assert list(store.list(prefix)) == []


def test_it_really_writes_where_the_index_and_the_data_go() -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    probe(store, ".indexes/events/", "raw/")
    index, data = store.keys
    assert index.startswith(".indexes/events/.probe/")
    assert data.startswith("raw/.probe/")
    assert store.objects == store.uploads == {}


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("methods", [("delete",), ("upload_part", "abort_upload")])
def test_what_a_killed_trial_left_is_swept_a_day_later(methods: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise Killed

    store = Counting(f"http://{uuid.uuid4()}")
    with monkeypatch.context() as patch:
        for method in methods:
            patch.setattr(store, method, killed)
        with pytest.raises(Killed):
            probe(store, ".indexes/events", "raw/")
    store.put(".indexes/events/.probe/0123456789abcdef", b"what is remembered")
    left = len(store.objects) + len(store.uploads)
    assert left > 1

    assert sweep(store, ".indexes/events", "raw/", time.time() + 80_000) == 0
    assert sweep(store, ".indexes/events", "raw/", time.time() + 90_000, dry_run=True) == left - 1
    assert len(store.objects) + len(store.uploads) == left
    assert sweep(store, ".indexes/events", "raw/", time.time() + 90_000) == left - 1
    assert [*store.objects, *store.uploads] == [".indexes/events/.probe/0123456789abcdef"]


def test_without_a_prefix_it_writes_at_the_top() -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    probe(store, "", "")
    assert [key.startswith(".probe/") for key in store.keys] == [True, True]


@pytest.mark.parametrize(
    ("store", "what"),
    [
        (IgnoresIfNoneMatch("lake"), r"a PUT with If-None-Match: \* overwrote an object"),
        (IgnoresIfMatch("lake"), "a PUT with If-Match and an ETag of the past overwrote an object"),
        (RefusesIfNoneMatch("lake"), r"a PUT with If-None-Match: \* of a new key was refused"),
        (RefusesIfMatch("lake"), "a PUT with If-Match and the right ETag was refused"),
        (LooksAndThenWrites("lake"), r"of 4 PUTs with If-Match and one ETag, sent at once, \d won"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, MemoryStore) else "",
)
def test_a_store_that_does_not_honour_conditions_is_refused(store: MemoryStore, what: str) -> None:
    with pytest.raises(
        StoreDeniedError,
        match=f"^bucket 'lake' cannot be landed in exactly once: it does not honour conditional writes: {what}.*"
        "set exactly_once: false or use a store with conditional writes",
    ):
        probe(store, "p", "raw/")
    assert store.objects == {}


def test_a_store_that_loses_metadata_is_refused_before_anything_is_landed() -> None:
    store = LosesMetadata("lake")
    with pytest.raises(
        StoreDeniedError,
        match=r"does not give back an object's metadata: x-amz-meta-s3lake-commit was '\w{32}' and came back as ''.*"
        "let what stands between here and the store pass x-amz-meta- headers on",
    ):
        probe(store, "p", "raw/")
    assert store.objects == {}


def test_a_right_to_delete_that_is_missing_where_data_goes_shows_before_the_first_landing() -> None:
    with pytest.raises(StoreDeniedError, match=r"DeleteObject raw/\.probe/\S+ was refused: .*s3:DeleteObject"):
        probe(KeepsData(), "p", "raw/")


def test_a_store_that_completes_over_objects_passes_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore("lake")
    store.overwrites = True
    probe(store, "p", "raw/")
    assert "bucket 'lake' completes uploads over objects that are there" in caplog.text
    assert store.objects == store.uploads == {}


def test_a_store_whose_answers_get_lost_passes() -> None:
    probe(LosesAnswers(), "p", "raw/")


def test_a_place_is_tried_once_in_a_process() -> None:
    endpoint = f"http://{uuid.uuid4()}"
    store, other = Counting(endpoint), Counting(endpoint)
    trust(store, "p", "raw/")
    trust(other, "p", "raw/")
    assert other.keys == []
    trust(other, "p", "rights/may/differ/")
    assert len(other.keys) == TRIED_AND_REMEMBERED
    other.bucket = "another"
    trust(other, "p", "raw/")
    assert len(other.keys) == 2 * TRIED_AND_REMEMBERED


def test_another_process_trusts_the_trial_of_the_last_day(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    trust(store, "p", "raw/")
    later = time.time() + 86_000
    monkeypatch.setattr("s3lake.store.probe._honest", set())
    monkeypatch.setattr("time.time", lambda: later)
    trust(store, "p", "raw/")
    assert len(store.keys) == TRIED_AND_REMEMBERED


@pytest.mark.parametrize("seconds", [90_000, -60], ids=["older than a day", "from the future"])
def test_another_process_tries_again_after_a_trial(seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    trust(store, "p", "raw/")
    later = time.time() + seconds
    monkeypatch.setattr("s3lake.store.probe._honest", set())
    monkeypatch.setattr("time.time", lambda: later)
    trust(store, "p", "raw/")
    assert len(store.keys) == TRIED_AND_REMEMBERED + 2


def test_a_memory_that_cannot_be_read_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    trust(store, "p", "raw/")
    (memory,) = store.objects
    store.put(memory, b"\xff")
    monkeypatch.setattr("s3lake.store.probe._honest", set())
    trust(store, "p", "raw/")
    assert len(store.keys) == TRIED_AND_REMEMBERED + 2


def test_a_failure_is_not_remembered() -> None:
    endpoint = f"http://{uuid.uuid4()}"
    with pytest.raises(StoreUnavailableError):
        trust(Down(endpoint), "p", "raw/")
    store = Counting(endpoint)
    trust(store, "p", "raw/")
    assert len(store.keys) == TRIED_AND_REMEMBERED


def test_a_store_without_an_address_is_tried_every_time() -> None:
    store = Counting(None)
    trust(store, "p", "raw/")
    trust(store, "p", "raw/")
    assert len(store.keys) == 4
    assert store.objects == {}


def test_a_trial_of_a_real_store_costs_one_request_in_the_next_process(
    s3_store: S3Store, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(s3_store, f"{prefix}index", f"{prefix}raw/")
    s3_store.requests.clear()
    trust(s3_store, f"{prefix}index", f"{prefix}raw/")
    assert not s3_store.requests
    monkeypatch.setattr("s3lake.store.probe._honest", set())
    trust(s3_store, f"{prefix}index", f"{prefix}raw/")
    assert s3_store.requests == {"GetObject": 1}
