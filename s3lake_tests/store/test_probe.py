"""A store is believed to honour conditional writes when it has shown it."""

import uuid

import pytest

from s3lake.errors import StoreDeniedError, StoreUnavailableError
from s3lake.store import Document, Store
from s3lake.store.memory import MemoryStore
from s3lake.store.probe import probe
from s3lake.store.s3 import S3Store


class Counting(MemoryStore):
    """A store with an address, so that a probe of it is remembered."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.puts = 0
        self.keys: set[str] = set()

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        self.puts += 1
        self.keys.add(key)
        return super().put(key, body, if_match=if_match, if_absent=if_absent)


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


class LosesAnswers(MemoryStore):
    """Every PUT happens, and its repetition after the lost answer finds its condition failed."""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        super().put(key, body, if_match=if_match, if_absent=if_absent)
        return None


class Down(Counting):
    def get(self, key: str) -> Document | None:
        raise StoreUnavailableError(key)


def test_every_store_of_ours_passes_and_is_left_as_it_was(store: Store, prefix: str) -> None:
    probe(store, prefix)
    assert list(store.list(prefix)) == []


def test_it_really_writes_below_the_prefix() -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    probe(store, ".indexes/events/")
    (key,) = store.keys
    assert key.startswith(".indexes/events/.probe/")
    assert store.objects == {}


def test_without_a_prefix_it_writes_at_the_top() -> None:
    store = Counting(f"http://{uuid.uuid4()}")
    probe(store, "")
    (key,) = store.keys
    assert key.startswith(".probe/")


@pytest.mark.parametrize(
    ("store", "what"),
    [
        (IgnoresIfNoneMatch("lake"), r"a PUT with If-None-Match: \* overwrote an object"),
        (IgnoresIfMatch("lake"), "a PUT with If-Match and an ETag of the past overwrote an object"),
        (RefusesIfNoneMatch("lake"), r"a PUT with If-None-Match: \* of a new key was refused"),
        (RefusesIfMatch("lake"), "a PUT with If-Match and the right ETag was refused"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, MemoryStore) else "",
)
def test_a_store_that_does_not_honour_conditions_is_refused(store: MemoryStore, what: str) -> None:
    with pytest.raises(
        StoreDeniedError,
        match=f"^bucket 'lake' does not honour conditional writes: {what}.*"
        "set exactly_once: false or use a store with conditional writes",
    ):
        probe(store, "p")
    assert store.objects == {}


def test_a_store_whose_answers_get_lost_passes() -> None:
    probe(LosesAnswers(), "p")


def test_a_bucket_is_tried_once_in_a_process() -> None:
    endpoint = f"http://{uuid.uuid4()}"
    store = Counting(endpoint)
    probe(store, "p")
    puts = store.puts
    probe(store, "q")
    other = Counting(endpoint)
    probe(other, "p")
    assert (store.puts, other.puts) == (puts, 0)
    other.bucket = "another"
    probe(other, "p")
    assert other.puts == puts


def test_a_failure_is_not_remembered() -> None:
    endpoint = f"http://{uuid.uuid4()}"
    with pytest.raises(StoreUnavailableError):
        probe(Down(endpoint), "p")
    store = Counting(endpoint)
    probe(store, "p")
    assert store.puts > 0


def test_the_second_probe_of_a_real_store_costs_no_request(s3_store: S3Store, prefix: str) -> None:
    probe(s3_store, prefix)
    s3_store.requests.clear()
    probe(s3_store, prefix)
    assert not s3_store.requests
