"""Settle and sweep: a writer's own last steps, and everybody's recovery (docs/design/commit.md).

Whoever finds a pending commit finishes it, forward when every upload can still be completed, else back. Both are
decided from the store alone, so no reader of Kafka is needed, and any number may do it at once.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, TypeVar

from s3lake.errors import S3LakeError, StoreDeniedError
from s3lake.index.commit import sums
from s3lake.index.commit.documents import File, Manifest
from s3lake.index.commit.index import PACE, Pace, TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import Tile
from s3lake.index.store import COMMIT, Head, Store

_log = logging.getLogger(__name__)
A = TypeVar("A")
B = TypeVar("B")


_LONGEST_PAUSE_S = 5.0
Completion = Literal["landed", "foreign", "vanished", "skipped"]


def settle_pending_commit(index: TopicIndex, hour: str) -> tuple[Tile, str] | None:
    """Finish the pending commit of `hour`, if any: the tile without pending and its ETag, None if there is none."""
    while True:
        stored = index.tile(hour)
        if stored is None or stored[0].pending is None:
            return stored
        finish_pending_commit(index, *stored, index.manifest(hour, stored[0].pending))


def finish_pending_commit(
    index: TopicIndex, tile: Tile, etag: str, manifest: Manifest | None
) -> tuple[Tile, str] | None:
    """Publish the pending commit of `tile`, or roll it back: the tile then and its ETag, None if it changed meanwhile.

    Args:
        index: the index of the sink and topic.
        tile: with a pending commit.
        etag: of the tile.
        manifest: of the pending commit; None if it is deleted.
    """
    outcomes = complete_files(index, manifest) if manifest else {}
    if manifest is not None and all(outcome == "landed" for outcome in outcomes.values()):
        settled = roll_commit_forward(index, tile, manifest)
    else:
        foreign = tuple(key for key, outcome in outcomes.items() if outcome == "foreign")
        settled = roll_commit_back(tile, manifest, foreign)
    swapped = index.swap_tile(settled, etag)  # lost: another process settled it, and the same code decided
    if swapped:
        return settled, swapped
    if manifest is not None and "landed" in outcomes.values():
        fence_commit(index, tile.hour, manifest.id)  # the others may have swept it before all of it was there
    return None


def fence_commit(index: TopicIndex, hour: str, commit: str) -> bool:
    """Enter `commit` in the tile's garbage, whatever became of it before; False where the tile has it as its own.

    Its writer can no longer enter it as pending, and what became visible of it, however late, is swept. The tile
    changes even if it lists the commit already: a process may be about to clear that garbage, which looked for the
    commit's objects before the last of them was there, and has to look again.
    """
    while True:
        stored = index.tile(hour)
        if stored is None:
            return False
        tile, etag = stored
        if commit in tile.commits or commit == tile.pending:
            return False
        others = tuple(listed for listed in tile.garbage if listed != commit)
        if index.swap_tile(tile.revise(garbage=(*others, commit)), etag):
            return True


def roll_commit_forward(index: TopicIndex, tile: Tile, manifest: Manifest) -> Tile:
    """Return the tile with `manifest` committed."""
    return tile.revise(
        partitions=tiles.advance(tile, {partition: read.end for partition, read in manifest.partitions.items()}),
        commits=(*(one for one in tile.commits if one not in manifest.replaces), manifest.id),
        garbage=(*tile.garbage, *manifest.replaces),
        expired=tiles.join_offset_ranges((*tile.expired, *manifest.expired)),
        pending=None,
        foreign=(),
        sums=sums.after(index, tile, manifest),
        took_ms=max(0, int(time.time() * 1000) - manifest.begun_ms) if manifest.begun_ms else 0,
        epochs={**tile.epochs, **manifest.epochs},
    )


def sweep_garbage(index: TopicIndex, hour: str, manifests_at_hand: Sequence[Manifest] = ()) -> tuple[Tile, str] | None:
    """Delete what the tile lists as garbage: the tile without garbage and its ETag. Manifests stay, for `clean`.

    Nothing is deleted before what follows the index has let go of it (rule R3): if it cannot, a warning is logged, and
    the garbage stays in the tile that is returned. `manifests_at_hand` are manifests that need not be read.
    """
    read = {manifest.id: manifest for manifest in manifests_at_hand}
    while True:
        stored = index.tile(hour)
        if stored is None or not stored[0].garbage:
            return stored
        tile, etag = stored
        if not _can_delete_garbage(index, tile):
            return stored
        listed = tile.commits[-1:]
        newest = next((read.get(commit) or index.manifest(hour, commit) for commit in listed), None)
        for commit in tile.garbage:
            manifest = read.get(commit) or index.manifest(hour, commit)
            if manifest is not None:
                # What was replaced had been committed: of its uploads none is left.
                take = delete_own_object if newest and commit in newest.replaces else abort_and_delete_file
                map_in_parallel(partial(take, index.store, manifest), manifest.files, index.pace)
        swept = tile.revise(garbage=())
        if swapped := index.swap_tile(swept, etag):
            return swept, swapped


def _can_delete_garbage(index: TopicIndex, tile: Tile) -> bool:
    """Return whether nothing but the tile lists its garbage any more."""
    # Asked after the tile was read: what is garbage there is never listed again, so who follows it now drops it.
    error = index.follow(tile.hour)
    if error is not None:
        _log.warning(
            "%s %s: the objects of %d replaced commits stay until the table can follow: %s",
            index.topic,
            tile.hour,
            len(tile.garbage),
            error,
        )
    return error is None


def settle_and_sweep_hour(index: TopicIndex, hour: str) -> tuple[Tile, str] | None:
    """Step 1 of every write: the tile with nothing pending and no garbage, and its ETag.

    Garbage that may not be deleted, or that a table may list, stays, and no process waits: its names are never used.
    """
    while True:
        settled = settle_pending_commit(index, hour)
        if settled is None or not settled[0].garbage:
            return settled
        try:
            swept = sweep_garbage(index, hour)
        except StoreDeniedError as error:
            _log.warning("%s %s: files of commits that were given up stay visible: %s", index.topic, hour, error)
            return settled
        if swept is None or swept[0].pending is None:
            return swept


def abort_and_delete_file(store: Store, manifest: Manifest, file: File) -> None:
    """Take away one file of a commit that is garbage: its upload, and its object if that is really this commit's."""
    store.abort_upload(file.key, file.upload)
    delete_own_object(store, manifest, file)


def delete_own_object(store: Store, manifest: Manifest, file: File) -> None:
    """Delete the object at a file's key if that is really this commit's.

    An object whose key says no offset stays: a listed commit may name that key too, and have nothing else there.
    """
    if replaces_object(manifest, file):
        return
    head = store.head(file.key)
    if head is not None and belongs_to_commit(head, manifest.id):
        store.delete(file.key)


def replaces_object(manifest: Manifest, file: File) -> bool:
    """Return whether the file replaces the object at its key. Dead letters do not: their keys have an offset."""
    return manifest.replacing and file.stream != "dead_letters"


def belongs_to_commit(head: Head, commit: str) -> bool:
    """Rule R1: an object is a commit's if its metadata says so; ETag, size and time are no identity."""
    return head.metadata.get(COMMIT) == commit


def abort_uploads(store: Store, files: Iterable[File], pace: Pace = PACE) -> None:
    """Abort the uploads of an attempt that no process can have begun to publish.

    What cannot be dropped stays, invisible: tidying up never takes the place of the error that it follows.
    """
    try:
        map_in_parallel(lambda file: store.abort_upload(file.key, file.upload), files, pace)
    except S3LakeError as error:
        _log.warning("uploads that are not needed stay in %s: %s", store.bucket, error)


def roll_commit_back(tile: Tile, manifest: Manifest | None, foreign: tuple[str, ...]) -> Tile:
    """Return the tile with its pending commit rolled back."""
    # Without a manifest there is nothing to sweep, and nothing can have been completed.
    garbage = (*tile.garbage, manifest.id) if manifest else tile.garbage
    ends = {number: read.end for number, read in manifest.partitions.items()} if manifest else {}
    burnt = tiles.burning(tile.burnt, ends or dict.fromkeys(tile.partitions, tiles.UNKNOWN_END))
    return tile.revise(pending=None, garbage=garbage, burnt=burnt, foreign=(*tile.foreign, *foreign))


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


def map_in_parallel(work: Callable[[A], B], items: Iterable[A], pace: Pace) -> list[B]:
    todo = list(items)
    if pace.parallel == 1 or len(todo) < 2:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(min(pace.parallel, len(todo)), "s3lake-commit") as pool:
        return list(pool.map(work, todo))
