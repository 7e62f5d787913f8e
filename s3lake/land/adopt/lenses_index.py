"""The Lenses connector's locks, version 10 and later: how far each topic-partition has landed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

import msgspec

from s3lake.errors import ConfigurationError
from s3lake.index.store import Store

_ENDING = ".lock"


class Lock(msgspec.Struct, frozen=True, rename="camel"):
    """A lock; `committed_offset` is the offset of the last record that landed, None before the first."""

    owner: str
    committed_offset: int | None = None
    pending_state: dict[str, Any] | None = None


_decode_lock = msgspec.json.Decoder(Lock).decode


def read_locks(
    store: Store, root: str, topic: str, group: Mapping[int, int], *, by_value: bool
) -> tuple[dict[int, int], dict[int, str]]:
    """Read the locks of a topic below `root`: a master lock for each topic-partition, granular locks below it.

    Args:
        store: the bucket.
        root: the directory, with a slash at its end.
        topic: the topic.
        group: offsets of the connector's consumer group, which the connector commits after its locks.
        by_value: objects are partitioned by values of the records.

    Returns:
        The next offset to land by topic-partition, and the reason if the locks of one do not have it.

    Raises:
        ConfigurationError: a document is not a lock.
    """
    locks: dict[int, dict[str, int | None]] = defaultdict(dict)
    problems: dict[int, str] = {}
    for key in store.list(root):
        number, _, value = key.removeprefix(root).removesuffix(_ENDING).partition("/")
        if not key.endswith(_ENDING) or not number.isdigit():
            continue  # the marker of a sweep
        lock = _read(store, key)
        if lock is not None and lock.pending_state is not None:
            problems[int(number)] = f"s3://{store.bucket}/{key} has operations pending"
        locks[int(number)][value] = lock.committed_offset if lock else None
    offsets: dict[int, int] = {}
    for partition, committed in locks.items():
        landed = {value: offset for value, offset in committed.items() if offset is not None}
        last = max(landed.values(), default=None)
        if partition in problems or last is None:
            continue
        ahead = sorted(value for value, offset in landed.items() if offset > landed.get("", -1))
        # The default layout has one writer, whose own lock is ahead until the master lock is written again.
        if ahead and committed.keys() - {""} != {_name_default_lock(topic, partition)}:
            problems[partition] = (
                f"everything up to {landed.get('', 'no offset')} has landed, beyond it only records of some partition "
                f"values, {', '.join(f'{value} up to {landed[value]}' for value in ahead[:3])}"
            )
        elif by_value and committed.keys() == {""} and group.get(partition) != last + 1:
            problems[partition] = (  # versions before 10.0.5 have one lock for all values
                f"the lock is at {last + 1} for all partition values together, and the consumer group is at "
                f"{group.get(partition, 'nothing')}"
            )
        else:
            offsets[partition] = last + 1
    return offsets, problems


def _read(store: Store, key: str) -> Lock | None:
    document = store.get(key)
    try:
        return _decode_lock(document.body) if document else None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"s3://{store.bucket}/{key} is not a lock of the Lenses connector: {error}. Move it away if it is not one"
        ) from None


def _name_default_lock(topic: str, partition: int) -> str:
    """Return the name of the only granular lock that the default layout has."""
    pairs = (("partition", str(partition)), ("topic", topic))
    return "_".join(f"{name}={quote_plus(value, safe='*').replace('_', '%5F')}" for name, value in pairs)
