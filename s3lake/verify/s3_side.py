"""The committed objects, one at a time: whether they are what their commit wrote, and what is in them."""

from collections.abc import Iterator

from s3lake.commit.index import File
from s3lake.errors import UnreadableError
from s3lake.objects import content
from s3lake.objects.letters import Letter, parse
from s3lake.objects.shape import LINES
from s3lake.store import COMMIT, Store


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
                yield parse(line)
            except ValueError as error:
                yield f"{key} row {row} is no dead letter: {error}"
            row += 1
