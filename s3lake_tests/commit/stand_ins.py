"""What the world replaces in the product: its clock, its ids and its threads."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from s3lake import hours
from s3lake.commit import index, protocol
from s3lake.land.maintenance import retention
from s3lake.store import trial


class _InTurn:
    """A pool of threads that has none: whose request is next is for the world to say."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "_InTurn":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [work(item) for item in items]


class ShortId(str):
    """An id that is short, so that traces are."""

    @property
    def hex(self) -> str:
        return str(self)


def standing_in(uuid4: Callable[[], ShortId], time: Callable[[], float]) -> list[Any]:
    """Patches that are not in force yet."""
    return [
        mock.patch.object(protocol, "uuid", SimpleNamespace(uuid4=uuid4)),
        mock.patch.object(hours, "time", SimpleNamespace(time=time)),
        mock.patch.object(index, "time", SimpleNamespace(sleep=lambda _: None)),
        mock.patch.object(trial, "uuid", SimpleNamespace(uuid4=uuid4)),
        mock.patch.object(trial, "time", SimpleNamespace(time=time)),
        mock.patch.object(trial, "ThreadPoolExecutor", _InTurn),
        mock.patch.object(retention, "time", SimpleNamespace(time=time)),
    ]
