"""Landed hours in memory, and a store that dies at any request."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from s3lake.commit import index as index_module
from s3lake.commit.index import TopicIndex
from s3lake.land.target import TopicSink
from s3lake.store import Store
from s3lake.store.memory import MemoryStore
from s3lake_tests.land.maintenance.parts import Parts

_REQUESTS = {
    "get", "head", "put", "delete", "list", "create_upload", "upload_part", "complete_upload", "abort_upload",
    "list_uploads",
}  # fmt: skip


class Died(BaseException):
    """A process that is gone; nothing catches it."""


class Dying:
    """The store of a process that dies before or after one of its requests."""

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
                raise Died
            answer = attribute(*arguments, **options)
            if self._left == 0:
                raise Died
            return answer

        return request


class Overtaken:
    """A store at which another writer does something just before an object is read for the first time."""

    def __init__(self, store: MemoryStore, other: Callable[[], object]) -> None:
        self._store, self._others = store, [other]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str, span: tuple[int, int] | None = None) -> Any:
        if span is not None and self._others:
            self._others.pop()()
        return self._store.get(key, span)


def holding(world: Parts, store: Store | None = None) -> TopicSink:
    """What the world's sink holds, seen through a store."""
    opened: Store = store or world.store
    index = TopicIndex(opened, ".indexes/events", world.index.topic, world.sink.root)
    return TopicSink(world.sink, index, lambda _: opened)


def killed_everywhere(world: Parts, change: Callable[[TopicSink], Any]) -> Iterator[str]:
    """Let a process die at each of its requests, and another one do the change again: which request it was."""
    objects = dict(world.store.objects)
    with mock.patch.object(index_module, "PAUSES_S", (0.0,)):
        for at in range(1, 1000):
            for after in (False, True):
                world.store.objects, world.store.uploads = dict(objects), {}
                try:
                    change(holding(world, Dying(world.store, at, after=after)))  # type: ignore[arg-type]
                except Died:
                    change(holding(world))
                    yield f"{'after' if after else 'before'} request {at}"
                else:
                    return
    raise AssertionError("it never came to an end")
