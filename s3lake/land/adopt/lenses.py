"""The Lenses connector's index: how far each topic-partition has landed by its own account (reference/lenses.md 5.1).

Three generations: index objects (up to 8.1), one lock a topic-partition (9.0), a master lock with granular locks of
partition values below it (10 and later). The newest that is there counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import overload
from urllib.parse import quote_plus

from s3lake.land.adopt.claims import Claim, exact
from s3lake.land.adopt.locks import Recovery, read, recovery
from s3lake.store import Store

_ENDING = ".lock"
_FIRST_OF_9 = ".indexes"  # 9.0.0 wrote here whatever indexes.name said


@dataclass(frozen=True)
class Found:
    """What the index says, and what has to be done before it is true."""

    claims: Mapping[int, Claim]
    recoveries: tuple[Recovery, ...] = ()

    @property
    def copied(self) -> list[str]:
        """Keys that will have an object once everything pending is finished."""
        copies = chain.from_iterable(one.copies for one in self.recoveries)
        return [destination for _, destination in copies]


def look(store: Store, indexes: str, connector: str, topic: str, *, by_value: bool = False) -> Found:
    """What the index of `connector` says of `topic`, as if everything pending were finished already.

    Args:
        indexes: `connect.s3.indexes.name`.
        by_value: objects are partitioned by values of the records.

    Raises:
        ConfigurationError: a lock cannot be read, or an operation can neither be finished nor undone.
    """
    recoveries: list[Recovery] = []
    masters: dict[int, int | None] = {}
    granular: dict[int, dict[str, int | None]] = defaultdict(dict)
    root = f"{indexes}/{connector}/.locks/Topic({topic})/"
    for key in store.list(root):
        number, _, value = key.removeprefix(root).removesuffix(_ENDING).partition("/")
        if not key.endswith(_ENDING) or not number.isdigit():
            continue  # the marker of a sweep
        committed = _committed(store, int(number), key, recoveries)
        if value:
            granular[int(number)][value] = committed
        else:
            masters[int(number)] = committed
    claims: dict[int, Claim] = {}
    for partition in sorted({*masters, *granular}):
        master, values = masters.get(partition), granular.get(partition)
        claim = _newest(topic, partition, master, values) if values else _one_lock(master, by_value)
        if claim is not None:
            claims[partition] = claim
    for older, note in (
        (_locks_of_9(store, {indexes, _FIRST_OF_9}, topic, recoveries), "the lock of version 9.0"),
        (_objects_of_8(store, f"{indexes}/{connector}/{topic}/"), "the index objects of version 8"),
    ):
        for partition, last in older.items():
            newer = claims.get(partition)
            claims[partition] = _also(newer, last, note) if newer else _one_lock(last, by_value)
    return Found(claims, tuple(recoveries))


def _committed(store: Store, partition: int, key: str, recoveries: list[Recovery]) -> int | None:
    document = read(store, key)
    if document is None:
        return None
    lock, etag = document
    todo = recovery(store, partition, key, etag, lock)
    if todo is None:
        return lock.committed_offset
    recoveries.append(todo)
    return todo.after.committed_offset


@overload
def _one_lock(committed: int, by_value: bool) -> Claim: ...
@overload
def _one_lock(committed: int | None, by_value: bool) -> Claim | None: ...
def _one_lock(committed: int | None, by_value: bool) -> Claim | None:
    """What one offset for a whole topic-partition says."""
    if committed is None:
        return None
    if not by_value:
        return exact("index", committed + 1)
    note = (
        "versions before 10.0.5 kept one lock for all partition values: it is where the furthest of them stopped, and "
        "if the connector did not stop after a whole flush, others stopped before"
    )
    return Claim("index", committed + 1, 0, committed + 1, note)


def _newest(topic: str, partition: int, master: int | None, granular: Mapping[str, int | None]) -> Claim | None:
    ahead = {
        value: one for value, one in granular.items() if one is not None and one > (-1 if master is None else master)
    }
    if not ahead:
        return None if master is None else exact("index", master + 1)
    last = max(ahead.values())
    # The default layout has one writer, whose own lock is ahead until the master lock is written again.
    only = set(granular) == {_default(topic, partition)}
    # Each lock's own offset is that of a record that landed: without a hole between them nothing is missing.
    below = 0 if master is None else master + 1
    covered = last - below < len(ahead) and set(range(below, last + 1)) <= set(ahead.values())
    if only or covered:
        return exact("index", last + 1)
    values = ", ".join(f"{value} up to {one}" for value, one in sorted(ahead.items())[:3])
    note = (
        f"everything up to {master if master is not None else 'no offset'} has landed, beyond that only some partition "
        f"values ({values}{', …' if len(ahead) > 3 else ''}), so every offset lands some records twice or never. Start "
        "the connector once more, let it idle until flush.interval has passed without new records, stop it"
    )
    return Claim("index", None, below, last + 1, note)


def _default(topic: str, partition: int) -> str:
    """The name of the only granular lock that the default layout has."""
    pairs = (("partition", str(partition)), ("topic", topic))
    return "_".join(f"{name}={quote_plus(value, safe='*').replace('_', '%5F')}" for name, value in pairs)


def _also(newer: Claim, committed: int, note: str) -> Claim:
    """An older generation is what was left behind, unless it says more than the newer one."""
    if committed < newer.low:
        return newer
    both = f"{note} says {committed + 1}, newer locks say {newer.low}: two versions of the connector have written here"
    return Claim("index", None, newer.low, committed + 1, both)


def _locks_of_9(store: Store, indexes: Iterable[str], topic: str, recoveries: list[Recovery]) -> dict[int, int]:
    offsets: dict[int, int] = {}
    for prefix in sorted(indexes):
        root = f"{prefix}/.locks/Topic({topic})/"
        for key in store.list(root):
            number = key.removeprefix(root).removesuffix(_ENDING)
            if not key.endswith(_ENDING) or not number.isdigit():
                continue
            committed = _committed(store, int(number), key, recoveries)
            if committed is not None:
                offsets[int(number)] = max(committed, offsets.get(int(number), -1))
    return offsets


def _objects_of_8(store: Store, root: str) -> dict[int, int]:
    """Per topic-partition the newest offset whose data file is there."""
    offsets: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for key in store.list(root):
        number, _, last = key.removeprefix(root).partition("/")
        if number.isdigit() and last.isdigit():
            offsets[int(number)].append((int(last), key))
    newest: dict[int, int] = {}
    for partition, objects in offsets.items():
        for offset, key in sorted(objects, reverse=True):
            document = store.get(key)
            if document and store.head(document.body.decode(errors="replace")) is not None:
                newest[partition] = offset
                break
    return newest
