"""The dead letters of commits, read from their objects, and the choice of some by their reason."""

from __future__ import annotations

import heapq
import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from s3lake.index.commit.dead_letter_reasons import normalize_reason
from s3lake.index.commit.documents import DEAD_LETTERS, Manifest, collect_files
from s3lake.index.commit.sums import Commits
from s3lake.index.plan.tile import Tile
from s3lake.index.store import COMMIT, Store
from s3lake.index.store.reading import open_object
from s3lake.lake.objects.dead_letter_objects import StoredDeadLetter, read_dead_letters
from s3lake.lake.readback.committed import read_tiles
from s3lake.land.topic.topic_sink import TopicSink

_PEEK_BYTES = 2**16


@dataclass(frozen=True)
class ReasonFilter:
    """A choice of dead letters by their reason.

    Attributes:
        reason: a part of `stage: message`, or of what it is counted as; None for all.
    """

    reason: str | None = None

    def __call__(self, dead_letter: StoredDeadLetter) -> bool:
        """Return whether a dead letter is chosen."""
        if self.reason is None:
            return True
        texts = (
            f"{dead_letter.stage}: {message}".lower()
            for message in (dead_letter.message, normalize_reason(dead_letter.message))
        )
        return any(self.reason.lower() in text for text in texts)


def read_committed_dead_letters(
    store: Store, manifest: Manifest, only: int | None = None
) -> Iterator[StoredDeadLetter]:
    """Yield the dead letters of a commit, or of `only` one topic-partition of it, by topic-partition and offset.

    Raises:
        DataLossError: an object is missing, is another one, or holds something else.
    """
    files = [file for file in collect_files([manifest], DEAD_LETTERS) if only in (None, file.partition)]
    for partition in sorted({file.partition for file in files}):
        objects = (
            read_dead_letters(open_object(store, file.key, file.bytes, manifest.id), file.key)
            for file in files
            if file.partition == partition
        )
        yield from heapq.merge(*objects, key=attrgetter("offset"))


def some_of(store: Store, manifests: Iterable[Manifest], most: int) -> list[StoredDeadLetter]:
    """Return some dead letters of these commits, at most `most`. Only the beginning of their objects is read."""
    some: list[StoredDeadLetter] = []
    for manifest in manifests:
        for file in manifest.files:
            if file.stream != DEAD_LETTERS or len(some) >= most:
                continue
            start = store.get(file.key, (0, min(file.bytes, _PEEK_BYTES)))
            if start is not None and start.metadata.get(COMMIT) == manifest.id:
                whole = start.body[: start.body.rfind(b"\n") + 1]
                some += itertools.islice(read_dead_letters(io.BytesIO(whole), file.key), most - len(some))
    return some


def hours_of(target: TopicSink, first: str | None, last: str | None) -> Iterator[tuple[Tile, Commits]]:
    """Yield the hours of this range with dead letters, or with replayed ones, and their commits."""
    for tile in read_tiles(target.index, target.hours(first, last)).values():
        if tile is not None and (tile.sums.dead or tile.sums.taken):
            yield tile, Commits(target.index, tile.hour, tile.commits)
