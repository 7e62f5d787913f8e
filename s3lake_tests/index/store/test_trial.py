"""A store is believed to honour conditional writes when it has shown it."""

import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from s3lake.errors import StoreConflictError, StoreDeniedError, StoreUnavailableError
from s3lake.index.store import COMMIT, Completion, Document, Store, trial
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.trial import TriedStores, ensure_keeps_objects, ensure_tried, try_store
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.stores import CountedStore


class Counting(CountedStore):
    """A store with an address, so that a trial of it is remembered."""

    endpoint = "http://store"

    @property
    def keys(self) -> list[str]:
        """The keys that were written to."""
        return list(dict.fromkeys(key for request, key in self.calls if request in ("put", "create_upload")))


@pytest.fixture(autouse=True)
def _nothing_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "tried", TriedStores())


class LetsTwoWin(MemoryStore):
    """Lets two of the writers that race win in one race of five, if they create or if they change."""

    endpoint = "http://store"

    def __init__(self, *, creates: bool) -> None:
        super().__init__("lake")
        self.creates, self.races, self.waiting = creates, 0, threading.Lock()

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        is_alone = threading.current_thread() is threading.main_thread()
        if is_alone or if_absent is not self.creates:
            return super().put(key, body, if_match=if_match, if_absent=if_absent)
        with self.waiting:
            self.races += 1
            is_second_of_a_fifth_race = self.races % 20 == 18
            etag = super().put(key, body, if_match=if_match, if_absent=if_absent)
            return super().put(key, body) if etag is None and is_second_of_a_fifth_race else etag


class Unconditional(MemoryStore):
    """Ignores one of the conditions of a PUT, or refuses each PUT with it."""

    def __init__(self, bucket: str, condition: str, *, refuses: bool) -> None:
        super().__init__(bucket)
        self.condition, self.refuses = condition, refuses

    def put(self, key: str, body: bytes, **conditions: Any) -> str | None:
        refused = bool(conditions.pop(self.condition, None)) and self.refuses
        return None if refused else super().put(key, body, **conditions)


class LooksAndThenWrites(MemoryStore):
    """As servers that keep objects as files and take no lock: of four that write at once two win."""

    def __init__(self, bucket: str) -> None:
        super().__init__(bucket)
        self.looked, self.winners = threading.Barrier(4), threading.Semaphore(2)

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        if if_match is None:
            return super().put(key, body, if_absent=if_absent)
        document = self.get(key)
        if threading.current_thread() is not threading.main_thread():  # who writes alone does not wait
            self.looked.wait(PATIENCE_S)
            if not self.winners.acquire(blocking=False):
                return None
        return super().put(key, body) if document and document.etag == if_match else None


class AnswersConflict(MemoryStore):
    """As AWS does to all but one of several that write at once."""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        etag = super().put(key, body, if_match=if_match, if_absent=if_absent)
        if etag is None and threading.current_thread() is not threading.main_thread():
            raise StoreConflictError(key)
        return etag


class LosesMetadata(MemoryStore):
    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:  # noqa: ARG002
        return super().create_upload(key, {})


class KeepsData(MemoryStore):
    """Credentials without the right to delete below the data prefix."""

    def delete(self, key: str) -> None:
        if key.startswith("raw/"):
            raise StoreDeniedError(f"DeleteObject {key} was refused: allow these credentials s3:DeleteObject here")
        super().delete(key)


class KeepsAll(MemoryStore):
    """A store that claims that it deletes."""

    def delete(self, key: str) -> None: ...


class ForgetsUploads(MemoryStore):
    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        self.abort_upload(key, upload)
        return super().complete_upload(key, upload, parts, replace=replace)


class AskedStore(MemoryStore):
    """A store that has to do more than keep bytes."""

    endpoint = "http://s3"
    requirements = "encrypted"

    def __init__(self, *ignored: str) -> None:
        super().__init__("lake")
        self._ignored = list(ignored)
        self.looked: list[str] = []
        self.commits: list[str] = []

    def find_ignored(self, key: str) -> list[str]:
        assert key in self.objects
        self.looked.append(key)
        return self._ignored

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        self.commits.append(metadata[COMMIT])
        return super().create_upload(key, metadata)


class LosesAnswers(MemoryStore):
    """Every PUT happens, and its repetition after the lost answer finds its condition failed."""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        super().put(key, body, if_match=if_match, if_absent=if_absent)
        return None


class StoreWithoutReads(Counting):
    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:  # noqa: ARG002
        raise StoreUnavailableError(key)


TRIED_AND_REMEMBERED = 3
"""Keys: one of the index, one of data, and the memory of both."""


def test_every_store_of_ours_passes_and_is_left_as_it_was(store: Store, prefix: str) -> None:
    try_store(store, f"{prefix}index", f"{prefix}raw/")
    assert list(store.list(prefix)) == []


@pytest.mark.parametrize(("index", "data"), [(".indexes/events/", "raw/"), ("EX/EX", "X/"), ("", "")])
def test_a_trial_writes_below_the_prefixes_of_index_and_data_and_leaves_its_record_at_the_index(
    index: str, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Counting()
    ensure_tried(store, index, data)
    of_index, of_data, record = store.keys
    below = f"{index.removesuffix('/')}/.probe/".removeprefix("/")
    assert of_index.startswith(below)
    assert of_data.startswith(f"{data}.probe/")
    assert re.fullmatch(rf"{below}[0-9a-f]{{16}}", record)
    assert (list(store.objects), store.uploads, caplog.text) == ([record], {}, "")


@pytest.mark.parametrize(
    ("store", "what"),
    [
        (Unconditional("lake", "if_absent", refuses=False), r"a PUT with If-None-Match: \* overwrote an object"),
        (Unconditional("lake", "if_match", refuses=False), "a PUT with If-Match and an ETag of the past overwrote"),
        (Unconditional("lake", "if_absent", refuses=True), r"a PUT with If-None-Match: \* of a new key was refused"),
        (Unconditional("lake", "if_match", refuses=True), "a PUT with If-Match and the right ETag was refused"),
        (LooksAndThenWrites("lake"), "of 4 PUTs with If-Match and one ETag, sent at once, 2 won"),
    ],
    ids=["ignores If-None-Match", "ignores If-Match", "refuses If-None-Match", "refuses If-Match", "looks first"],
)
def test_a_store_that_does_not_honour_conditions_is_refused(store: MemoryStore, what: str) -> None:
    with pytest.raises(
        StoreDeniedError,
        match=f"^bucket 'lake' cannot be landed in exactly once: it does not honour conditional writes: {what}.*"
        r"set exactly_once: false or use a store with conditional writes \(AWS S3, MinIO, versitygw, ",
    ):
        try_store(store, "p", "raw/")
    assert store.objects == {}


def test_a_store_that_loses_metadata_is_refused_before_anything_is_landed() -> None:
    store = LosesMetadata("lake")
    with pytest.raises(
        StoreDeniedError,
        match=r"does not give back an object's metadata: x-amz-meta-s3lake-commit was '\w{32}' and came back as ''.*"
        "let proxies pass x-amz-meta- headers on",
    ):
        try_store(store, "p", "raw/")
    assert store.objects == {}


def test_a_store_that_lets_one_win_and_answers_the_others_with_a_conflict_passes() -> None:
    try_store(AnswersConflict("lake"), "p", "raw/")


def test_a_store_that_deletes_nothing_is_refused() -> None:
    with pytest.raises(
        StoreDeniedError,
        match=r"an object was still there after it was deleted \(p/\.probe/\S+\), .*or let these credentials delete",
    ):
        try_store(KeepsAll("lake"), "p", "raw/")


def test_a_failed_deletion_does_not_hide_the_error_of_the_trial() -> None:
    class Both(LosesMetadata, KeepsData): ...

    with pytest.raises(StoreDeniedError, match="does not give back an object's metadata"):
        try_store(Both("lake"), "p", "raw/")


def test_a_failed_end_of_an_upload_does_not_hide_the_error_of_the_trial() -> None:
    class Both(MemoryStore):
        def upload_part(self, key: str, *_: object) -> str:
            raise StoreDeniedError(f"UploadPart {key} was refused")

        def abort_upload(self, key: str, *_: object) -> None:
            raise StoreDeniedError(f"AbortMultipartUpload {key} was refused")

    with pytest.raises(StoreDeniedError, match="UploadPart raw/"):
        try_store(Both("lake"), "p", "raw/")


def test_the_trial_of_a_store_that_loses_an_upload_is_an_error_without_a_verdict() -> None:
    with pytest.raises(
        StoreUnavailableError, match=r"CompleteMultipartUpload s3://lake/raw/\.probe/\S+ was answered 'missing'"
    ):
        try_store(ForgetsUploads("lake"), "p", "raw/")


def test_a_right_to_delete_that_is_missing_where_data_goes_shows_before_the_first_landing() -> None:
    with pytest.raises(StoreDeniedError, match=r"DeleteObject raw/\.probe/\S+ was refused: .*s3:DeleteObject"):
        try_store(KeepsData(), "p", "raw/")


def test_a_store_that_completes_over_objects_passes_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore("lake")
    store.overwrites = True
    try_store(store, "p", "raw/")
    assert "bucket 'lake' completes uploads over objects that are there" in caplog.text
    assert store.objects == store.uploads == {}


def test_a_store_whose_answers_get_lost_passes() -> None:
    try_store(LosesAnswers(), "p", "raw/")


def test_a_place_is_tried_once_in_a_process() -> None:
    store, other = Counting(), Counting()
    ensure_tried(store, "p", "raw/")
    assert [key.partition(".probe/")[0] for key in store.keys] == ["p/", "raw/", "p/"]
    ensure_tried(other, "p", "raw/")
    assert other.keys == []
    ensure_tried(other, "p", "rights/may/differ/")
    assert len(other.keys) == TRIED_AND_REMEMBERED
    other.bucket = "another"
    ensure_tried(other, "p", "raw/")
    assert len(other.keys) == 2 * TRIED_AND_REMEMBERED
    other.endpoint = "http://elsewhere"
    ensure_tried(other, "p", "raw/")
    assert len(other.keys) == 3 * TRIED_AND_REMEMBERED
    asked = AskedStore()
    for asked.requirements in ("encrypted", "encrypted", "tagged"):
        ensure_tried(asked, "p", "raw/")
    assert len(asked.looked) == 4, "what else the store has to do is a part of the place"


@pytest.mark.parametrize(
    ("record", "again"),
    [(b"1800000000", False), (b"1799913601", False), (b"1799913600", True), (b"1800000060", True), (b"\xff", True)],
    ids=["of now", "of a day", "older than a day", "from the future", "unreadable"],
)
def test_another_process_trusts_a_trial_for_a_day(record: bytes, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counting()
    monkeypatch.setattr("time.time", lambda: 1_800_000_000)
    ensure_tried(store, "p", "raw/")
    (key,) = store.objects
    assert store.objects[key][0] == b"1800000000"
    store.put(key, record)
    monkeypatch.setattr(trial, "tried", TriedStores())
    ensure_tried(store, "p", "raw/")
    assert len(store.keys) == TRIED_AND_REMEMBERED + 2 * again


def test_a_failure_is_not_remembered() -> None:
    with pytest.raises(StoreUnavailableError):
        ensure_tried(StoreWithoutReads(), "p", "raw/")
    store = Counting()
    ensure_tried(store, "p", "raw/")
    assert len(store.keys) == TRIED_AND_REMEMBERED


def test_a_store_without_an_address_is_tried_every_time() -> None:
    store = Counting()
    store.endpoint = None  # type: ignore[assignment]
    ensure_tried(store, "p", "raw/")
    ensure_tried(store, "p", "raw/")
    assert [key.partition(".probe/")[0] for key in store.keys] == ["p/", "raw/"] * 2
    assert store.objects == {}
    memory = MemoryStore()
    ensure_tried(memory, "p", "raw/")
    assert memory.objects == {}


# Stores that have to do more than keep bytes


def test_settings_are_checked_on_objects_of_the_index_and_of_the_data() -> None:
    store = AskedStore()
    try_store(store, "p", "raw/")
    assert [key.partition(".probe/")[0] for key in store.looked] == ["p/", "raw/"]
    assert [len(commit) for commit in store.commits] == [32, 32]
    assert len(set(store.commits)) == 2


def test_a_trial_refuses_a_store_that_ignores_a_setting() -> None:
    with pytest.raises(
        StoreDeniedError, match=r"^bucket 'lake' at http://s3 took an object and ignored s3\.objects\.acl\. "
    ):
        try_store(AskedStore("s3.objects.acl"), "p", "raw/")


def test_creating_is_tried_once_in_a_process_for_each_place_and_all_that_is_asked() -> None:
    store = AskedStore()
    for change in ({}, {}, {"bucket": "other"}, {"endpoint": "http://other"}, {"requirements": "tagged"}):
        vars(store).update(change)
        ensure_keeps_objects(store, "raw/")
    ensure_keeps_objects(store, "new/")
    assert [key.partition(".probe/")[0] for key in store.looked] == ["raw/"] * 4 + ["new/"]
    assert {len(commit) for commit in store.commits} == {32}
    assert store.objects == store.uploads == {}


def test_a_store_that_does_not_create_as_asked_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(StoreDeniedError, match=r"ignored s3\.objects\.acl"):
            ensure_keeps_objects(AskedStore("s3.objects.acl"), "raw/")


def test_a_store_that_has_only_to_keep_objects_is_asked_for_their_metadata_once_in_a_process() -> None:
    store = CountedStore()
    for _ in range(2):
        ensure_keeps_objects(store, "raw/")
    assert (store.requests["create_upload"], store.requests["put"], store.objects) == (1, 0, {})


def test_a_store_that_loses_metadata_is_refused_without_exactly_once_too() -> None:
    with pytest.raises(StoreDeniedError, match="so nothing can be landed there, with exactly_once: false neither"):
        ensure_keeps_objects(LosesMetadata(), "raw/")


# Races


@pytest.mark.parametrize(
    ("creates", "what"),
    [(True, r"PUTs with If-None-Match: \* of one new key"), (False, "PUTs with If-Match and one ETag")],
)
def test_a_store_that_lets_two_win_in_a_fifth_of_races_is_refused(creates: bool, what: str) -> None:
    with pytest.raises(StoreDeniedError, match=rf"of 4 {what}, sent at once, 2 won\. Without them two runs can both"):
        try_store(LetsTwoWin(creates=creates), "p", "raw/")


def test_races_of_one_store_are_run_once_in_a_process_for_all_prefixes() -> None:
    store = Counting()
    ensure_tried(store, "p", "raw/")
    once = store.requests["put"]
    ensure_tried(store, "other", "raw/other/")
    assert once > 160
    assert store.requests["put"] - once < 10


def test_an_interrupted_race_leaves_no_thread_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, started = ThreadPoolExecutor.submit, count()

    def interrupt_third(*arguments: Any) -> Any:
        if next(started) == 2:
            raise KeyboardInterrupt
        return submit(*arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupt_third)
    with pytest.raises(KeyboardInterrupt):
        try_store(MemoryStore("lake"), "p", "raw/")
    assert not [one for one in threading.enumerate() if one.name.startswith("s3lake-trial")]


@pytest.mark.parametrize(("later_s", "again"), [(0, False), (599, False), (600, True), (-1, True)])
def test_a_refusal_is_remembered_for_ten_minutes(later_s: int, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    refused, memory = LetsTwoWin(creates=True), Counting()
    monkeypatch.setattr("time.time", lambda: 1_800_000_000)
    with pytest.raises(StoreDeniedError, match="2 won"):
        ensure_tried(refused, "p", "raw/")
    ((key, (record, *_)),) = refused.objects.items()
    memory.put(key, record)
    monkeypatch.setattr("time.time", lambda: 1_800_000_000 + later_s)
    if again:
        ensure_tried(memory, "p", "raw/")
        assert memory.objects[key][0].isdigit()
    else:
        with pytest.raises(StoreDeniedError, match=rf"2 won.*This was found {later_s} s ago.*after 10 minutes"):
            ensure_tried(memory, "p", "raw/")
