"""Buckets in memory: one that counts requests, one at which a process crashes, one at which another writer acts."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from s3lake.index.commit import topic_index
from s3lake.index.store.memory import MemoryStore
from s3lake_tests.kit.crashes import Crash

PAGE = 1000
_REQUESTS = {
    *("get", "head", "put", "delete", "list", "list_steps", "list_uploads"),
    *("create_upload", "upload_part", "complete_upload", "abort_upload"),
}


class CountedStore(MemoryStore):
    """Counts requests as S3 does: a listing is one for every 1,000 keys. `requests` and `calls` may be cleared.

    Attributes:
        requests: how many there were, by their names in the contract.
        calls: their names and keys.
    """

    endpoint = "counted"  # named, so that it is probed once

    def __init__(self, bucket: str = "lake") -> None:
        super().__init__(bucket)
        self.requests: Counter[str] = Counter()
        self.calls: list[tuple[str, str]] = []

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in _REQUESTS - {"list_uploads"}:
            return method

        def call(key: str, *arguments: Any, **options: Any) -> Any:
            self.requests[name] += 1
            self.calls.append((name, key))
            return method(key, *arguments, **options)

        return call

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`."""
        keys = list(super().list(prefix))
        self.requests["list"] += len(keys) // PAGE
        return iter(keys)


class RacingStore:
    """A store at which another writer acts just before a part of an object is read for the first time."""

    def __init__(self, store: MemoryStore, act: Callable[[], object]) -> None:
        self._store, self._acts = store, [act]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str, span: tuple[int, int] | None = None) -> Any:
        """See `Store.get`."""
        if span is not None and self._acts:
            self._acts.pop()()
        return self._store.get(key, span)


class _CrashingStore:
    """The store of a process that crashes before or after its request number `at`."""

    def __init__(self, store: MemoryStore, at: int, *, after: bool) -> None:
        self.bucket = store.bucket
        self._store, self._left, self._after = store, at, after

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name not in _REQUESTS:
            return attribute

        def request(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._after):
                raise Crash
            answer = attribute(*arguments, **options)
            if self._left == 0:
                raise Crash
            return answer

        return request


def crash_everywhere(store: MemoryStore, change: Callable[[Any], object]) -> Iterator[str]:
    """Let a process crash before and after each request of a change, each time on the bucket as it is now.

    Yields the place of each crash, with what it left in `store`.
    """
    objects, uploads = dict(store.objects), dict(store.uploads)
    with mock.patch.object(topic_index, "PAUSES_S", (0.0,)):
        for at in range(1, 1000):
            for after in (False, True):
                store.objects, store.uploads = dict(objects), dict(uploads)
                try:
                    change(_CrashingStore(store, at, after=after))
                except Crash:
                    yield f"{'after' if after else 'before'} request {at}"
                else:
                    return
    raise AssertionError("it never came to an end")
