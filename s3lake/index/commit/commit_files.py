"""Complete, abort and delete the files of a commit in the store.

Nothing here reads or writes a tile: `recovery.py` decides what becomes of a commit.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest
from s3lake.index.commit.topic_index import PACE, Pace, TopicIndex
from s3lake.index.store import COMMIT, Head, Store

_log = logging.getLogger(__name__)
A = TypeVar("A")
B = TypeVar("B")
_LONGEST_PAUSE_S = 5.0
Completion = Literal["landed", "foreign", "vanished", "skipped"]


def complete_files(index: TopicIndex, manifest: Manifest) -> dict[str, Completion]:
    """Make the files of a manifest visible until one cannot be: what came of each key."""
    stop = threading.Event()
    young = time.time() - manifest.created_ms / 1000 < index.pace.young_s
    patient_until = time.monotonic() + (index.pace.patience_s if young else 0.0)

    def complete_file(file: File) -> tuple[str, Completion]:
        outcome: Completion = "skipped" if stop.is_set() else _complete_file(index, file, manifest, patient_until)
        if outcome == "landed":
            index.store.tag_offsets(file.key, file.first_offset, file.last_offset, file.records)
        else:
            stop.set()  # the commit goes back: make nothing more of it visible
        return file.key, outcome

    return dict(map_in_parallel(complete_file, manifest.files, index.pace))


def _complete_file(index: TopicIndex, file: File, manifest: Manifest, patient_until: float) -> Completion:
    store, pause = index.store, index.pace.pause_s
    # Not a retry of tenacity: each answer but 200 is followed by a HEAD, which decides (docs/design/commit.md, settle).
    for look in itertools.count(1):
        answer = store.complete_upload(file.key, file.upload, file.parts, replace=replaces_object(manifest, file))
        if answer == "completed":
            return "landed"
        head = store.head(file.key)
        if head is not None:
            if belongs_to_commit(head, manifest.id):
                return "landed"
            return "foreign" if answer == "taken" else "vanished"
        if answer == "refused" or (look >= index.pace.looks and time.monotonic() >= patient_until):
            break
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
    return "vanished"


def abort_uploads(store: Store, files: Iterable[File], pace: Pace = PACE) -> None:
    """Abort the uploads of an attempt that no process can have begun to publish.

    What cannot be dropped stays, invisible: tidying up never takes the place of the error that it follows.
    """
    try:
        map_in_parallel(lambda file: store.abort_upload(file.key, file.upload), files, pace)
    except S3LakeError as error:
        _log.warning("uploads that are not needed stay in %s: %s", store.bucket, error)


def abort_and_delete_file(store: Store, manifest: Manifest, file: File) -> None:
    """Take away one file of a commit that is garbage: its upload, and its object if that is really this commit's."""
    store.abort_upload(file.key, file.upload)
    delete_own_object(store, manifest, file)


def delete_own_object(store: Store, manifest: Manifest, file: File) -> None:
    """Delete the object at a file's key if that is really this commit's.

    An object whose key contains no offset stays: a listed commit may name that key too, and have nothing else there.
    """
    if replaces_object(manifest, file):
        return
    head = store.head(file.key)
    if head is not None and belongs_to_commit(head, manifest.id):
        store.delete(file.key)


def replaces_object(manifest: Manifest, file: File) -> bool:
    """Return whether the file replaces the object at its key. Dead letters do not: their keys have an offset."""
    return manifest.replacing and file.stream != DEAD_LETTERS


def belongs_to_commit(head: Head, commit: str) -> bool:
    """Rule R1: an object is a commit's if its metadata names the commit; ETag, size and time are no identity."""
    return head.metadata.get(COMMIT) == commit


def map_in_parallel(work: Callable[[A], B], items: Iterable[A], pace: Pace) -> list[B]:
    todo = list(items)
    if pace.parallel == 1 or len(todo) < 2:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(min(pace.parallel, len(todo)), "s3lake-commit") as pool:
        return list(pool.map(work, todo))
