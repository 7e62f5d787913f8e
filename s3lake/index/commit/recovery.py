"""Prepare an hour for a writer, settle its pending commit, and sweep its garbage (docs/design/commit.md).

A writer and each process that finds its pending commit run the same code. It finishes the commit: forward if every
upload can still be completed, else back. The store alone decides that, so Kafka is not asked, and any number of
processes may do it at once.

    prepare_tile                        step 1 of every write
        settle_and_sweep_hour
            settle_pending_commit
                finish_pending_commit   completes the files, then rolls the commit forward or back
            sweep_garbage               deletes the objects of commits that the tile has given up
    finish_own_commit                   steps 5 and 6 of the writer
        finish_pending_commit
"""

import logging
import time
from collections.abc import Sequence
from functools import partial

from s3lake.errors import FencedError, ForeignObjectError, StoreDeniedError
from s3lake.index.commit import sums
from s3lake.index.commit.commit_files import (
    abort_and_delete_file,
    complete_files,
    delete_own_object,
    map_in_parallel,
)
from s3lake.index.commit.documents import Manifest, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import Tile
from s3lake.index.store import COMMIT

_log = logging.getLogger(__name__)


def prepare_tile(index: TopicIndex, hour: str, head: TopicHead | None = None) -> tuple[Tile, str]:
    """Step 1 of every write: settle and sweep the hour. Return its tile and the tile's ETag.

    Nothing is pending in this tile, and no key of it is taken by another program's object. With the topic's `head`
    the tile is created if it was announced last and is missing.

    Raises:
        MissingDocumentError: the tile is missing.
        ForeignObjectError: keys of an earlier attempt have another program's objects.
    """
    while True:
        stored = settle_and_sweep_hour(index, hour)
        if stored is None:
            if head is not None:
                index.create_announced_tile(head)
            index.existing_tile(hour)
            continue
        tile, etag = stored
        if not tile.foreign or tile.landed:  # a landed hour is written again by a rewrite only, under new names
            return tile, etag
        _require_no_foreign_objects(index, tile)
        index.swap_tile(tile.revise(foreign=()), etag)  # they are deleted, or the sink writes elsewhere now


def settle_and_sweep_hour(index: TopicIndex, hour: str) -> tuple[Tile, str] | None:
    """Settle the pending commit of `hour` and sweep its garbage. Return the tile and its ETag, None if it is missing.

    Garbage that cannot be deleted, or that a table may list, stays in the tile. No process waits for that: the names
    of its objects are never used again.
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
        tile: the tile with the pending commit.
        etag: the ETag of the tile.
        manifest: the manifest of the pending commit; None if it is deleted.
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
        partitions=tiles.advance_committed(
            tile, {partition: read.end for partition, read in manifest.partitions.items()}
        ),
        commits=(*(one for one in tile.commits if one not in manifest.replaces), manifest.id),
        garbage=(*tile.garbage, *manifest.replaces),
        expired=tiles.join_offset_ranges((*tile.expired, *manifest.expired)),
        pending=None,
        foreign=(),
        sums=sums.sum_after_commit(index, tile, manifest),
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


def roll_commit_back(tile: Tile, manifest: Manifest | None, foreign: tuple[str, ...]) -> Tile:
    """Return the tile with its pending commit rolled back."""
    # Without a manifest there is nothing to sweep, and nothing can have been completed.
    garbage = (*tile.garbage, manifest.id) if manifest else tile.garbage
    ends = {number: read.end for number, read in manifest.partitions.items()} if manifest else {}
    burnt = tiles.extend_burnt(tile.burnt, ends or dict.fromkeys(tile.partitions, tiles.UNKNOWN_END))
    return tile.revise(pending=None, garbage=garbage, burnt=burnt, foreign=(*tile.foreign, *foreign))


def finish_own_commit(index: TopicIndex, pending: Tile, etag: str | None, manifest: Manifest) -> Tile:
    """Steps 5 and 6 of the writer: finish the commit that it has made pending. Return the tile that lists it.

    Args:
        index: the index of the sink and topic.
        pending: the tile with the pending commit.
        etag: the ETag of that tile; None if the answer to its PUT was lost.
        manifest: the manifest of the commit.

    Raises:
        FencedError: the commit was rolled back, or replaced by another writer.
        ForeignObjectError: it was rolled back because another program's object has one of its keys.
    """
    settled = finish_pending_commit(index, pending, etag, manifest) if etag is not None else None
    settled = settled or settle_pending_commit(index, pending.hour)
    if settled is not None and manifest.id in settled[0].commits:
        return settled[0]
    settle_and_sweep_hour(index, pending.hour)
    if settled is not None and settled[0].foreign:
        _require_no_foreign_objects(index, settled[0])
    raise FencedError(
        f"commit {manifest.id} of {index.topic} {pending.hour} was rolled back: an upload could not be completed, or "
        "another writer replaced it; nothing of it is visible"
    )


def _require_no_foreign_objects(index: TopicIndex, tile: Tile) -> None:
    for key in tile.foreign:
        head = index.store.head(key) if key.startswith(index.data) else None
        if head is not None:
            raise ForeignObjectError(
                f"s3://{index.store.bucket}/{key} was not written by this sink (its {COMMIT} metadata is "
                f"{head.metadata.get(COMMIT)!r}); nothing of {index.topic} {tile.hour} was landed over it: if the sink "
                "had another name, set index.name to that name; else move the object away, or give the sink another "
                "prefix"
            )
