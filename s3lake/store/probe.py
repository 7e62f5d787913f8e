"""Shows by trying that a store honours conditional writes; exactly-once is nothing without them."""

import uuid

from s3lake.errors import StoreDeniedError
from s3lake.store import Store

_honest: set[tuple[str, str]] = set()


def probe(store: Store, prefix: str) -> None:
    """Try conditional writes on a key of our own, successfully at most once per process and bucket.

    Args:
        store: the bucket. A store that names no `endpoint` is tried every time.
        prefix: where `.probe/<random>` is written and deleted again.

    Raises:
        StoreDeniedError: the store does not honour them, or does not let us write and delete there at all.
        StoreUnavailableError: the store does not answer.
    """
    endpoint = getattr(store, "endpoint", None)
    if (endpoint, store.bucket) in _honest:
        return
    key = f"{prefix.rstrip('/')}/.probe/{uuid.uuid4()}".lstrip("/")
    try:
        _try(store, key)
    finally:
        store.delete(key)
    if endpoint is not None:
        _honest.add((endpoint, store.bucket))


def _try(store: Store, key: str) -> None:
    first, second, third = (f"{number} {uuid.uuid4()}".encode() for number in (1, 2, 3))
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


def _put(store: Store, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
    """The new ETag if `body` is there now, whatever the answer was: answers get lost (rule R4)."""
    store.put(key, body, if_match=if_match, if_absent=if_absent)
    found = store.get(key)
    return found.etag if found is not None and found.body == body else None


def _dishonest(store: Store, what: str) -> StoreDeniedError:
    endpoint = getattr(store, "endpoint", None)
    place = f"bucket {store.bucket!r}" + (f" at {endpoint}" if endpoint else "")
    return StoreDeniedError(
        f"{place} does not honour conditional writes: {what}. Without them two writers can land a record twice. "
        "To go on: set exactly_once: false or use a store with conditional writes (AWS S3, MinIO, versitygw, ...)."
    )
