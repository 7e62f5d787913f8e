"""The last objects in the bucket: what their names and contents say of where to go on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from s3lake.land.adopt import counts
from s3lake.land.adopt.claims import Claim, exact
from s3lake.land.adopt.names import LensesNames, Names, Naming
from s3lake.store import COMMIT, Store

_KEPT = 2  # files' offsets of a topic-partition: the last, and the one before, which must lead up to it
_LARGEST = 2**30


@dataclass
class _Seen:
    """The highest offsets in the names of one topic-partition, each with its objects by stem."""

    keys: dict[int, dict[str, str]] = field(default_factory=dict)

    def add(self, offset: int, key: str, parts: re.Match[str]) -> None:
        """Take in one object; of data and what stands beside it under one stem the data."""
        groups = parts.groupdict()
        if len(self.keys) == _KEPT and offset < min(self.keys):
            return
        stem = key[: parts.end("offset")] if "sidecar" in groups else key
        at = self.keys.setdefault(offset, {})
        if stem not in at or not groups.get("sidecar"):
            at[stem] = key
        if len(self.keys) > _KEPT:
            del self.keys[min(self.keys)]

    def at(self, offset: int) -> list[str]:
        """Keys of the objects that have this offset in their name."""
        return list(self.keys[offset].values())


def claims(store: Store, naming: Naming, topic: str, more: Iterable[str] = ()) -> dict[int, Claim]:
    """What the objects of `topic` say, per topic-partition.

    Args:
        naming: how the connector names its objects.
        more: keys of objects that will be there once pending operations are finished.
    """
    names = naming.names(topic)
    if names is None:
        return {}
    seen: dict[int, _Seen] = {}
    for keys in (store.list(names.prefix), more):
        for key in keys:
            numbers = names.numbers(key)
            if numbers is None:
                continue
            partition, offset, parts = numbers
            seen.setdefault(partition, _Seen()).add(offset, key, parts)
    observed = isinstance(naming, LensesNames) and naming.observed
    return {partition: _claim(store, names, one, observed) for partition, one in sorted(seen.items())}


def _claim(store: Store, names: Names, seen: _Seen, observed: bool) -> Claim:
    offset = max(seen.keys)
    keys = seen.at(offset)
    if names.last and not _first(store, names, keys[0], observed):
        if names.alone:
            return exact("objects", offset + 1)
        note = "the names tell how far the connector came, not whether every partition value came as far"
        return Claim("objects", offset + 1, 0, offset + 1, note)
    count = _records(store, names, keys)
    if count is None:
        note = f"names hold the first offset, and {keys[0]} does not tell how many records follow it"
        return Claim("objects", None, offset + 1, None, note)
    end = offset + count
    if not names.alone:
        note = "each directory has files of its own, so the last file's end is only the least that has landed"
        return Claim("objects", end, end, None, note)
    before = sorted(seen.keys)[:-1]
    if before and not _leads_to(store, names, before[0], seen.at(before[0]), offset):
        note = (
            f"the file that begins with {before[0]} has fewer or more records than lead to {offset}: offsets are "
            "missing (skipped or compacted records, transactions), so counting records only gives the least"
        )
        return Claim("objects", end, end, None, note)
    return exact("objects", end)


def _first(store: Store, names: Names, key: str, observed: bool) -> bool:
    """Whether an object was named by s3lake, after its first record; a name with timestamps never is."""
    numbers = names.numbers(key)
    if observed or (numbers and numbers[2].groupdict().get("stamps")):
        return False
    head = store.head(key)
    return head is not None and COMMIT in head.metadata


def _leads_to(store: Store, names: Names, first: int, keys: list[str], next: int) -> bool:
    count = _records(store, names, keys)
    return count is not None and first + count == next


def _records(store: Store, names: Names, keys: list[str]) -> int | None:
    """Records of all these objects together; None where one does not tell."""
    total = 0
    for key in keys:
        head = store.head(key)
        document = store.get(key) if head and head.size <= _LARGEST else None
        count = counts.records(document.body, key, lines=names.lines) if document else None
        if count is None:
            return None
        total += count
    return total
