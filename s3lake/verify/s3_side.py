"""The committed objects, one at a time: whether they are what their commit wrote, and what is in them."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from s3lake.commit.index import File
from s3lake.errors import UnreadableError
from s3lake.objects import content
from s3lake.objects.shape import LINES
from s3lake.store import COMMIT, Store
from s3lake.verify import digest


class _Base64(msgspec.Struct, frozen=True):
    base64: str


class _Line(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    value: str | _Base64 | None


@dataclass(frozen=True)
class Letter:
    """A dead letter: whose record it is, and the digest of the value that it carries."""

    topic: str
    partition: int
    offset: int
    digest: bytes


_letter = msgspec.json.Decoder(_Line)


def problems(store: Store, file: File, commit: str) -> tuple[int | None, list[str]]:
    """The object's size, None when it is gone, and what makes it another object than the commit's."""
    head = store.head(file.key)
    if head is None:
        return None, [f"{file.key} of commit {commit} is gone"]
    wrong = []
    owner = head.metadata.get(COMMIT)
    if owner != commit:
        wrong.append(f"{file.key} is not commit {commit}'s any more: its metadata {COMMIT} is {owner!r}")
    if head.size != file.bytes:
        wrong.append(f"{file.key} has {head.size} bytes, the manifest says {file.bytes}")
    return head.size, wrong


def body(store: Store, key: str) -> bytes:
    """The bytes of an object.

    Raises:
        UnreadableError: it is gone.
    """
    document = store.get(key)
    if document is None:
        raise UnreadableError(f"{key} is gone")
    return document.body


def letters(store: Store, key: str) -> Iterator[Letter | str]:
    """The dead letters of an object; what is wrong with a line where it is none.

    Raises:
        UnreadableError: the last line is not ended.
    """
    row = 0
    for block in content.split(content.blocks(body(store, key), key, "none"), LINES, key):
        for line in block:
            try:
                letter = _letter.decode(line)
                yield Letter(letter.topic, letter.partition, letter.offset, digest.of_value(_bytes(letter.value)))
            except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error, ValueError) as error:
                yield f"{key} row {row} is no dead letter: {error}"
            row += 1


def _bytes(value: str | _Base64 | None) -> bytes | None:
    if isinstance(value, _Base64):
        return base64.b64decode(value.base64, validate=True)
    return None if value is None else value.encode()
