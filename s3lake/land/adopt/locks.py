"""The Lenses connector's locks as documents, and what becomes of an operation that one of them leaves pending.

An operation that was under way when the connector stopped is finished, or undone where its file stood on the
connector's machine, before anything counts (reference/lenses.md 5.2 and 5.5). Deciding reads only; doing is apart.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import msgspec

from s3lake.errors import ConfigurationError
from s3lake.store import Store

TEMPORARY = ".temp-upload/"


class Upload(msgspec.Struct, frozen=True, tag="upload"):
    """From the connector's disk; `source` is a path there."""

    bucket: str
    source: str
    destination: str


class Copy(msgspec.Struct, frozen=True, tag="copy", rename="camel"):
    """From a temporary object to its final key."""

    bucket: str
    source: str
    destination: str
    e_tag: str


class Delete(msgspec.Struct, frozen=True, tag="delete", rename="camel"):
    """Of a temporary object."""

    bucket: str
    source: str
    e_tag: str


class PendingState(msgspec.Struct, frozen=True, rename="camel"):
    """What was under way, and the offset that is committed once it is done."""

    pending_offset: int
    pending_operations: tuple[Upload | Copy | Delete, ...]


class Lock(msgspec.Struct, frozen=True, rename="camel"):
    """The document; `committed_offset` is that of the last record that landed, None while none has."""

    owner: str
    committed_offset: int | None = None
    pending_state: PendingState | None = None


@dataclass(frozen=True)
class Recovery:
    """What finishing a lock's pending operations takes.

    Attributes:
        partition: the topic-partition.
        key: of the lock.
        etag: of the lock as it was read.
        after: the lock afterwards.
        copies: (temporary object, final key) still to be copied.
        deletes: temporary objects still to be deleted.
        steps: all of it in words.
    """

    partition: int
    key: str
    etag: str
    after: Lock
    copies: tuple[tuple[str, str], ...] = ()
    deletes: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


def read(store: Store, key: str) -> tuple[Lock, str] | None:
    """The lock at `key` and its ETag; None where there is none.

    Raises:
        ConfigurationError: what stands there is no lock.
    """
    document = store.get(key)
    if document is None:
        return None
    try:
        return msgspec.json.decode(document.body, type=Lock), document.etag
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"s3://{store.bucket}/{key} is no lock of the Lenses connector: {error}; take it away if it is not one"
        ) from None


def recovery(store: Store, partition: int, key: str, etag: str, lock: Lock) -> Recovery | None:
    """What is to be done about the lock's pending operations; None where there are none. Nothing is changed.

    Raises:
        ConfigurationError: an operation can neither be finished nor undone.
    """
    pending = lock.pending_state
    if pending is None:
        return None
    copies: list[tuple[str, str]] = []
    deletes: list[str] = []
    steps: list[str] = []
    for operation in pending.pending_operations:
        if operation.bucket != store.bucket:
            raise ConfigurationError(
                f"s3://{store.bucket}/{key} has an operation pending in bucket {operation.bucket}, which the sink does "
                "not write to: correct the sink's bucket"
            )
        match operation:
            case Upload():
                # Its file was on the connector's disk: what follows in the list needs it, so all of it is undone.
                step = f"give up the upload of {operation.source}: its records are read again from Kafka"
                return Recovery(partition, key, etag, _settled(lock.committed_offset), steps=(step,))
            case Copy():
                if _to_be_copied(store, key, operation):
                    copies.append((operation.source, operation.destination))
                    steps.append(f"copy {operation.source} to {operation.destination}")
            case Delete():
                _temporary(store, key, operation.source)
                if store.head(operation.source) is not None:
                    deletes.append(operation.source)
                    steps.append(f"delete {operation.source}")
    steps.append(f"commit offset {pending.pending_offset}")
    return Recovery(partition, key, etag, _settled(pending.pending_offset), tuple(copies), tuple(deletes), tuple(steps))


def recover(store: Store, todo: Recovery) -> None:
    """Do it, and write the lock: an object that is to be copied to stands there afterwards, whoever wrote it.

    Raises:
        ConfigurationError: somebody else changed the lock or the objects meanwhile.
    """
    for source, destination in todo.copies:
        document = store.get(source)
        if document is None:
            raise ConfigurationError(_meanwhile(store, source))
        if store.put(destination, document.body, if_absent=True) is None:
            there = store.get(destination)
            if there is None or there.body != document.body:
                raise ConfigurationError(_meanwhile(store, destination))
    for source in todo.deletes:
        store.delete(source)
    body = encode(todo.after)
    if store.put(todo.key, body, if_match=todo.etag) is None:
        there = store.get(todo.key)  # a repeated request meets its own success
        if there is None or there.body != body:
            raise ConfigurationError(_meanwhile(store, todo.key))


def encode(lock: Lock) -> bytes:
    """The document as the connector writes it: compact, nulls written out."""
    return msgspec.json.encode(lock)


def _settled(committed: int | None) -> Lock:
    # An owner of its own: a task that still holds the lock's ETag must not find the same bytes again.
    return Lock(str(uuid.uuid4()), committed)


def _to_be_copied(store: Store, key: str, copy: Copy) -> bool:
    _temporary(store, key, copy.source)
    source, destination = store.head(copy.source), store.head(copy.destination)
    if source is None and destination is None:
        raise ConfigurationError(
            f"s3://{store.bucket}/{key}: a copy from {copy.source} to {copy.destination} is pending, and neither "
            "object is there. Bring one of them back; if both are lost, write null for pendingState into the lock, and "
            "the records are read again from Kafka"
        )
    if source is None:
        return False
    if source.etag.strip('"') != copy.e_tag.strip('"'):
        raise ConfigurationError(
            f"s3://{store.bucket}/{copy.source} is not what the lock {key} was about to copy: its ETag is "
            f"{source.etag}, the lock says {copy.e_tag}. Find out which is right before you adopt"
        )
    if destination is None:
        return True
    origin, other = store.get(copy.source), store.get(copy.destination)
    if origin is None or other is None or origin.body != other.body:
        raise ConfigurationError(
            f"s3://{store.bucket}/{copy.destination}: the lock {key} was about to copy {copy.source} there, but "
            "another object stands there. Move one of them away before you adopt"
        )
    return False


def _temporary(store: Store, key: str, source: str) -> None:
    if not source.startswith(TEMPORARY):
        raise ConfigurationError(
            f"s3://{store.bucket}/{key} names {source!r} as a temporary object, but those begin with {TEMPORARY}: "
            "nothing is copied or deleted on its word"
        )


def _meanwhile(store: Store, key: str) -> str:
    return (
        f"s3://{store.bucket}/{key} was changed while its pending operations were being finished: stop the connector, "
        "then adopt again"
    )
