"""The committed objects, one at a time: whether each is what its commit wrote, and what no commit lists."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from posixpath import commonpath

from s3lake.commit.documents import File, Manifest
from s3lake.errors import UnreadableError
from s3lake.store import COMMIT, Store

_HEADS = 1_000
"""How many objects of others are looked at in a directory: it may be one of many topics."""
_HIDDEN = re.compile("/[_.]|/$")
"""In a key: engines do not read the object, as they read no markers."""


def check_object(store: Store, file: File, commit: str) -> tuple[int | None, list[str]]:
    """Return the object's size, None if it is gone, and what makes it another object than the commit's."""
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


def read_body(store: Store, key: str) -> bytes:
    """Return the bytes of an object.

    Raises:
        UnreadableError: it is gone.
    """
    document = store.get(key)
    if document is None:
        raise UnreadableError(f"{key} is gone")
    return document.body


def find_unlisted(store: Store, hour: str, manifests: Sequence[Manifest], *, is_alone: bool) -> Iterator[str]:
    """Yield what is wrong with each object that no commit lists, in the hour's directories: engines count its records.

    Directories are looked at if they name the hour, in UTC. An object of another commit is not reported: that may be
    running, another hour's or another sink's, and `clean` ends what is left of one that failed.

    Args:
        manifests: of all commits that the hour's tile lists.
        is_alone: whether nothing but s3lake has written into the hour.
    """
    keys = {file.key for manifest in manifests for file in manifest.files}
    names_hour = re.compile(r"{}\D?{}\D?{}\D+{}(?!\d)[^/]*/".format(*re.split("[-T]", hour)))
    places: dict[str, list[str]] = {}
    for key in {file.key for manifest in manifests for file in manifest.files if file.kind != "dead_letters"}:
        if match := names_hour.search(key):
            places.setdefault(key[: match.end()], []).append(key.rpartition("/")[0])
    owners = {None if is_alone else "", *(manifest.id for manifest in manifests)}
    for directories in places.values():
        place = commonpath(directories) + "/"
        others = (key for key in store.list(place) if key not in keys and not _HIDDEN.search(key[len(place) - 1 :]))
        for key in islice(others, _HEADS):
            head = store.head(key)
            if head is not None and head.metadata.get(COMMIT) in owners:
                yield f"{key} is in a directory of the hour, and no commit lists it"
