"""Shows by trying that a store does what the commit needs; exactly-once is nothing without it."""

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from s3lake.errors import S3LakeError, StoreConflictError, StoreDeniedError, StoreUnavailableError
from s3lake.store import COMMIT, Document, Store
from s3lake.store.s3 import S3Store

_log = logging.getLogger(__name__)
_honest: set[tuple[str, ...]] = set()
_trying = threading.Lock()
_AT_ONCE, _ROUNDS = 4, 2
REMEMBERED_S = 86_400
"""A trial is 30 requests, and a run lands a few files: one trial a day is enough for all runs of a place."""


def trust(store: Store, index: str, data: str) -> None:
    """See that the store was tried at this place, by this process or any other within a day, or `probe` it.

    Args:
        store: the bucket. A store that names no `endpoint` is tried every time.
        index: what keys of the index begin with; `.probe/<place>` below it remembers the trial.
        data: what keys of data begin with.

    Raises:
        StoreDeniedError: the store does not do what is needed, or does not let us write and delete there at all.
        StoreUnavailableError: the store does not answer.
    """
    endpoint = getattr(store, "endpoint", None)
    if endpoint is None:
        probe(store, index, data)
        return
    place = (str(endpoint), store.bucket, index, data, _terms(store))
    if place in _honest:
        return
    memory = _key(f"{index.rstrip('/')}/", hashlib.sha256("\n".join(filter(None, place)).encode()).hexdigest()[:16])
    with _trying:  # of the threads that land many topics one tries for all
        if place in _honest:
            return
        if not _is_recent(store.get(memory)):
            probe(store, index, data)
            store.put(memory, str(int(time.time())).encode())
        _honest.add(place)


def created(store: Store, data: str) -> None:
    """Try that objects below `data` are created as the configuration says, once in a process.

    Raises:
        StoreDeniedError: the store does not do it, or does not let us write and delete there at all.
        StoreUnavailableError: the store does not answer.
    """
    terms = _terms(store)
    place = (_place(store), data, terms)
    if terms and place not in _honest:
        _tried(store, _trial(data), _upload_alone)
        _honest.add(place)


def probe(store: Store, index: str, data: str) -> None:
    """Try conditional writes and an upload on keys of our own.

    Everything that a commit or its roll back will ever ask for is asked for here, where it will be asked: a right that
    is missing, or a store that loses metadata, must show before the first record is landed, not at the first crash.

    A process that is killed meanwhile leaves an object of some bytes, or an upload. Nothing deletes those later: no
    name in a bucket proves that an object is not data.

    Args:
        index: below it `.probe/<random>` is written and deleted again.
        data: what keys of data begin with; `.probe/<random>` is uploaded and deleted there.

    Raises:
        StoreDeniedError: the store does not do what is needed, or does not let us write and delete there at all.
        StoreUnavailableError: the store does not answer.
    """
    _tried(store, _trial(f"{index.rstrip('/')}/"), _write_on_condition)
    _tried(store, _trial(data), _upload)


def _trial(prefix: str) -> str:
    """A key of nobody else's."""
    return _key(prefix, str(uuid.uuid4()))


def _key(prefix: str, name: str) -> str:
    return f"{prefix}.probe/{name}".lstrip("/")


def _is_recent(memory: Document | None) -> bool:
    """Whether a trial is remembered, of the last day; one from the future is of a clock that was wrong."""
    if memory is None or not memory.body.isdigit():
        return False
    return 0 <= time.time() - int(memory.body) < REMEMBERED_S


def _tried(store: Store, key: str, trial: Callable[[Store, str], None]) -> None:
    """Try something on `key`, and delete it; tidying up never hides what went wrong, nor waits for a silent store."""
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
        raise _unfit(
            store,
            f"an object was still there after it was deleted ({key}), so what is rolled back would stay",
            "let these credentials delete there",
        )


def _write_on_condition(store: Store, key: str) -> None:
    first, second, third = (str(uuid.uuid4()).encode() for _ in range(3))
    etag = _put(store, key, first, if_absent=True)
    if etag is None:
        raise _dishonest(store, "a PUT with If-None-Match: * of a new key was refused")
    if _put(store, key, second, if_absent=True) is not None:
        raise _dishonest(store, "a PUT with If-None-Match: * overwrote an object")
    changed = _put(store, key, second, if_match=etag)
    if changed is None:
        raise _dishonest(store, "a PUT with If-Match and the right ETag was refused")
    if _put(store, key, third, if_match=etag) is not None:
        raise _dishonest(store, "a PUT with If-Match and an ETag of the past overwrote an object")
    for _ in range(_ROUNDS):
        _write_at_once(store, key)
    _as_said(store, key)


def _write_at_once(store: Store, key: str) -> None:
    """A store may look first and write then: who writes between the two is lost, and told that nobody was."""
    document = store.get(key)
    etag = document.etag if document else None

    def won(body: str) -> bool:
        with suppress(StoreConflictError):
            return store.put(key, body.encode(), if_match=etag) is not None
        return False

    bodies = [str(uuid.uuid4()) for _ in range(_AT_ONCE)]  # an ETag can be the same again when the body is
    with ThreadPoolExecutor(_AT_ONCE, "s3lake-trial") as pool:
        winners = sum(pool.map(won, bodies))
    if winners > 1:
        raise _dishonest(store, f"of {_AT_ONCE} PUTs with If-Match and one ETag, sent at once, {winners} won")


def _put(store: Store, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
    """The new ETag if `body` is there now, whatever the answer was: answers get lost (rule R4)."""
    store.put(key, body, if_match=if_match, if_absent=if_absent)
    document = store.get(key)
    return document.etag if document is not None and document.body == body else None


def _upload(store: Store, key: str) -> None:
    """Make an object visible and read whose it is, as a commit does, and complete another one over it."""
    mine, other = (uuid.uuid4().hex for _ in range(2))
    answer = _complete(store, key, mine)
    shown = _owner(store, key)
    if shown is None:
        raise StoreUnavailableError(
            f"CompleteMultipartUpload s3://{store.bucket}/{key} was answered {answer!r}, and no object is there. "
            "Run again."
        )
    if shown != mine:
        raise _unfit(
            store,
            f"it does not give back an object's metadata: x-amz-meta-{COMMIT} was {mine!r} and came back as {shown!r}. "
            "Without it nobody can tell whose an object is",
            "let what stands between here and the store pass x-amz-meta- headers on",
        )
    _as_said(store, key)
    _complete(store, key, other)
    if _owner(store, key) != mine:
        _log.warning(
            "%s completes uploads over objects that are there (it ignores If-None-Match on CompleteMultipartUpload): "
            "objects of other programs are not safe under this sink's prefix. s3lake's own never share a key.",
            _place(store),
        )


def _upload_alone(store: Store, key: str) -> None:
    _complete(store, key, uuid.uuid4().hex)
    _as_said(store, key)


def _as_said(store: Store, key: str) -> None:
    """A store that reads over a setting would keep in the clear what its owner believes to be encrypted."""
    lost = store.ignored(key) if isinstance(store, S3Store) and store.terms else []
    if lost:
        raise StoreDeniedError(
            f"{_place(store)} took an object and did not heed {', '.join(lost)}. To go on: take "
            f"{'them' if len(lost) > 1 else 'it'} out, or use a store that does it."
        )


def _terms(store: Store) -> str:
    return store.terms if isinstance(store, S3Store) else ""


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


def _owner(store: Store, key: str) -> str | None:
    """Whose the object is; None where there is no object, and empty where it does not say."""
    head = store.head(key)
    return None if head is None else head.metadata.get(COMMIT, "")


def _dishonest(store: Store, what: str) -> StoreDeniedError:
    return _unfit(
        store, f"it does not honour conditional writes: {what}. Without them two writers can land a record twice"
    )


def _unfit(store: Store, what: str, remedy: str = "") -> StoreDeniedError:
    remedy = remedy or "use a store with conditional writes (AWS S3, MinIO, versitygw, ...)"
    return StoreDeniedError(
        f"{_place(store)} cannot be landed in exactly once: {what}. To go on: set exactly_once: false or {remedy}."
    )


def _place(store: Store) -> str:
    endpoint = getattr(store, "endpoint", None)
    return f"bucket {store.bucket!r}" + (f" at {endpoint}" if endpoint else "")
