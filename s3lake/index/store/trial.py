"""Try that a store does what the commit needs, before the first record is landed."""

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from s3lake.errors import S3LakeError, StoreConflictError, StoreDeniedError, StoreUnavailableError
from s3lake.index.store import COMMIT, Document, Store

_log = logging.getLogger(__name__)
_trying = threading.Lock()
_AT_ONCE = 4
RACES = 21
"""Of each kind: a store that lets two win in a fifth of them gets through once in a hundred trials (0.8 ** 21)."""
REMEMBERED_S = 86_400
"""A trial is 233 requests (docs/scale.md); one a day is enough for all runs of a place."""
REFUSED_S = 600
"""A store that let two win once may pass by chance the next time."""


@dataclass(frozen=True)
class TriedStores:
    """The stores that a process has tried.

    Attributes:
        passed: the places at which a store did all that a commit needs.
        raced: the stores that let one writer win, whatever the prefix.
    """

    passed: set[tuple[str, ...]] = field(default_factory=set)
    raced: set[tuple[str, str]] = field(default_factory=set)


tried = TriedStores()
"""The stores that this process has tried."""


def ensure_tried(store: Store, index: str, data: str) -> None:
    """Try the store at this place, unless this process did, or another one within a day, or refused it minutes ago.

    Args:
        store: the bucket. A store in memory is tried every time.
        index: the beginning of the index's keys; `.probe/<place>` below it records the trial.
        data: the beginning of keys of data.

    Raises:
        StoreDeniedError: the store does not do what is needed, or refuses to write or delete there.
        StoreUnavailableError: the store does not answer.
    """
    if store.endpoint is None:
        try_store(store, index, data)
        return
    place = (store.endpoint, store.bucket, index, data, store.requirements)
    if place in tried.passed:
        return
    digest = hashlib.sha256("\n".join(filter(None, place)).encode()).hexdigest()
    memory = _make_key(f"{index.rstrip('/')}/", digest[:16])
    with _trying:  # one of the threads that land topics tries for all
        if place in tried.passed:
            return
        if not _is_recent(store.get(memory)):
            _try_and_remember(store, memory, index, data)
        tried.passed.add(place)


def _try_and_remember(store: Store, memory: str, index: str, data: str) -> None:
    """Try the store. Writes down when it passed, or when and why it was refused."""
    name = (_describe_place(store), store.bucket)
    try:
        try_store(store, index, data, races=name not in tried.raced)
        tried.raced.add(name)
    except StoreDeniedError as error:
        with suppress(S3LakeError):  # it may not be allowed to write there at all
            store.put(memory, f"{int(time.time())} {error}".encode())
        raise
    store.put(memory, str(int(time.time())).encode())


def ensure_keeps_objects(store: Store, data: str) -> None:
    """Try once in a process that objects below `data` come back with their metadata, and as configured.

    This is all that `exactly_once: false` needs of a store.

    Raises:
        StoreDeniedError: the store does not do it, or refuses to write or delete there.
        StoreUnavailableError: the store does not answer.
    """
    place = (_describe_place(store), data, store.requirements)
    if place not in tried.passed:
        _try(store, _make_key(data), _upload_alone)
        tried.passed.add(place)


def try_store(store: Store, index: str, data: str, *, races: bool = True) -> None:
    """Try all requests of a commit and its rollback on keys below `index` and `data` called `.probe/<random>`.

    A process that is killed meanwhile leaves an object of some bytes, or an upload. `clean` ends the upload when it is
    old. Nothing deletes the object: no name in a bucket proves that an object is not data.

    Args:
        races: whether several writers race, too.

    Raises:
        StoreDeniedError: the store does not do what is needed, or refuses to write or delete there.
        StoreUnavailableError: the store does not answer.
    """
    _try(store, _make_key(f"{index.rstrip('/')}/"), partial(_write_on_condition, races=races))
    _try(store, _make_key(data), _upload)


def _make_key(prefix: str, name: str = "") -> str:
    return f"{prefix}.probe/{name or uuid.uuid4()}".lstrip("/")


def _is_recent(memory: Document | None) -> bool:
    """Return whether there was a trial in the last day; one in the future is of a wrong clock.

    Raises:
        StoreDeniedError: the store was refused in the last minutes.
    """
    moment, _, refusal = (memory.body if memory is not None else b"").partition(b" ")
    if not moment.isdigit():
        return False
    age = time.time() - int(moment)
    if refusal and 0 <= age < REFUSED_S:
        raise StoreDeniedError(
            f"{refusal.decode(errors='replace')} (This was found {int(age)} s ago. Runs try again after "
            f"{REFUSED_S // 60} minutes; `s3lake check --connect` tries at once.)"
        )
    return not refusal and 0 <= age < REMEMBERED_S


def _try(store: Store, key: str, trial: Callable[[Store, str], None]) -> None:
    """Try something on `key`, and delete it. An error of the deletion never hides one of the trial."""
    try:
        trial(store, key)
    except StoreUnavailableError:
        raise
    except BaseException:
        with suppress(S3LakeError):
            store.delete(key)
        raise
    store.delete(key)
    if store.head(key) is not None:
        raise _make_unsuitable_error(
            store,
            f"an object was still there after it was deleted ({key}), so what is rolled back would stay",
            "let these credentials delete there",
        )


def _write_on_condition(store: Store, key: str, *, races: bool) -> None:
    first, second, third = (str(uuid.uuid4()).encode() for _ in range(3))
    etag = _put(store, key, first, if_absent=True)
    if etag is None:
        raise _make_unconditional_error(store, "a PUT with If-None-Match: * of a new key was refused")
    if _put(store, key, second, if_absent=True) is not None:
        raise _make_unconditional_error(store, "a PUT with If-None-Match: * overwrote an object")
    changed = _put(store, key, second, if_match=etag)
    if changed is None:
        raise _make_unconditional_error(store, "a PUT with If-Match and the right ETag was refused")
    if _put(store, key, third, if_match=etag) is not None:
        raise _make_unconditional_error(store, "a PUT with If-Match and an ETag of the past overwrote an object")
    if races:
        _race(store, key)
    _require_settings(store, key)


def _race(store: Store, key: str) -> None:
    """Change and create an object from several threads at once: a store that looks first and writes later loses some.

    All threads wait for each other, so their requests leave together.
    """
    start = threading.Barrier(_AT_ONCE)

    def try_put(body: str, etag: str | None) -> bool:
        start.wait()
        with suppress(StoreConflictError):
            return store.put(key, body.encode(), if_match=etag, if_absent=etag is None) is not None
        return False

    with ThreadPoolExecutor(_AT_ONCE, "s3lake-trial") as pool, _free_when_it_fails(start):
        for condition in ["If-Match and one ETag", "If-None-Match: * of one new key"] * RACES:
            etag = None
            if condition.startswith("If-Match"):
                document = store.get(key)
                etag = document.etag if document else None
            else:
                store.delete(key)
            bodies = [str(uuid.uuid4()) for _ in range(_AT_ONCE)]  # an ETag can be the same again when the body is
            winners = sum(pool.map(try_put, bodies, [etag] * _AT_ONCE))
            if winners > 1:
                raise _make_unconditional_error(
                    store, f"of {_AT_ONCE} PUTs with {condition}, sent at once, {winners} won"
                )


@contextmanager
def _free_when_it_fails(start: threading.Barrier) -> Iterator[None]:
    """Let no thread wait for one that never comes: an interrupt cancels each that has not started."""
    try:
        yield
    except BaseException:
        start.abort()
        raise


def _put(store: Store, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
    """Return the ETag if `body` is there afterwards, also if the answer was lost (rule R4), else None."""
    store.put(key, body, if_match=if_match, if_absent=if_absent)
    document = store.get(key)
    return document.etag if document is not None and document.body == body else None


def _upload(store: Store, key: str) -> None:
    """Complete an upload and read its commit, as a commit does; then complete another one over it."""
    mine, other = (uuid.uuid4().hex for _ in range(2))
    answer = _complete(store, key, mine)
    shown = _read_owner(store, key)
    if shown is None:
        raise StoreUnavailableError(
            f"CompleteMultipartUpload s3://{store.bucket}/{key} was answered {answer!r}, and no object is there. "
            "Run again."
        )
    _require_owner(store, shown, mine)
    _require_settings(store, key)
    _complete(store, key, other)
    if _read_owner(store, key) != mine:
        _log.warning(
            "%s completes uploads over objects that are there (it ignores If-None-Match on CompleteMultipartUpload): "
            "objects of other programs are not safe under this sink's prefix. s3lake's own never share a key.",
            _describe_place(store),
        )


def _upload_alone(store: Store, key: str) -> None:
    mine = uuid.uuid4().hex
    _complete(store, key, mine)
    _require_owner(store, _read_owner(store, key), mine)
    _require_settings(store, key)


def _require_owner(store: Store, shown: str | None, written: str) -> None:
    """Raise StoreDeniedError if an object's metadata did not come back: every way to land needs it."""
    if shown != written:
        raise StoreDeniedError(
            f"{_describe_place(store)} does not give back an object's metadata: x-amz-meta-{COMMIT} was {written!r} "
            f"and came back as {shown!r}. Without it nothing shows which commit an object is of, so nothing can be "
            "landed there, with exactly_once: false neither. To go on: let proxies pass x-amz-meta- headers on, or use "
            "a store that keeps metadata."
        )


def _require_settings(store: Store, key: str) -> None:
    """Raise StoreDeniedError if the store ignored a setting of `s3.objects`, for example encryption."""
    lost = store.find_ignored(key) if store.requirements else []
    if lost:
        raise StoreDeniedError(
            f"{_describe_place(store)} took an object and ignored {', '.join(lost)}. To go on: take out what it "
            "ignored, or use a store that applies it."
        )


def _complete(store: Store, key: str, commit: str) -> str:
    upload = store.create_upload(key, {COMMIT: commit})
    answer = "not sent"
    try:
        answer = store.complete_upload(key, upload, [store.upload_part(key, upload, 1, b"x")])
    finally:
        if answer != "completed":
            with suppress(S3LakeError):
                store.abort_upload(key, upload)
    return answer


def _read_owner(store: Store, key: str) -> str | None:
    """Return the object's commit: None if there is no object, an empty text if it has none."""
    head = store.head(key)
    return None if head is None else head.metadata.get(COMMIT, "")


def _make_unconditional_error(store: Store, what: str) -> StoreDeniedError:
    return _make_unsuitable_error(
        store,
        f"it does not honour conditional writes: {what}. Without them two runs can both believe that they have "
        "committed, and land a record twice",
    )


def _make_unsuitable_error(store: Store, what: str, remedy: str = "") -> StoreDeniedError:
    remedy = remedy or "use a store with conditional writes (AWS S3, MinIO, versitygw, ...)"
    return StoreDeniedError(
        f"{_describe_place(store)} cannot be landed in exactly once: {what}. To go on: set exactly_once: false or "
        f"{remedy}."
    )


def _describe_place(store: Store) -> str:
    return f"bucket {store.bucket!r}" + (f" at {store.endpoint}" if store.endpoint else "")
