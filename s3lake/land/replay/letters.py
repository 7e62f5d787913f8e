"""The dead letters of a commit: one by one from its objects, or counted by reason from its manifest."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from s3lake.commit.index import Manifest
from s3lake.commit.letters import LETTERS, Reason, Tally, reason_of
from s3lake.objects.letters import Letter, letters
from s3lake.store import Store
from s3lake.store.reading import opened


@dataclass(frozen=True)
class Chosen:
    """Which dead letters.

    Attributes:
        reason: a part of `stage: message`, or of what it is counted as; None for all.
    """

    reason: str | None = None

    def __call__(self, letter: Letter) -> bool:
        """Whether this is one of them."""
        if self.reason is None:
            return True
        texts = (f"{letter.stage}: {message}".lower() for message in (letter.message, reason_of(letter.message)))
        return any(self.reason.lower() in text for text in texts)


def letters_of(store: Store, manifest: Manifest, only: int | None = None) -> Iterator[Letter]:
    """The dead letters of a commit by topic-partition and offset, read as they are asked for.

    Args:
        store: the bucket.
        manifest: the commit's.
        only: a topic-partition; None for all.

    Raises:
        DataLossError: an object is gone, is another one, or holds something else.
    """
    files = [file for file in manifest.files if file.kind == LETTERS and only in (None, file.partition)]
    for partition in sorted({file.partition for file in files}):
        objects = (
            letters(opened(store, file.key, file.bytes, manifest.id), file.key)
            for file in files
            if file.partition == partition
        )
        yield from heapq.merge(*objects, key=lambda letter: letter.offset)


def reasons_of(store: Store, manifest: Manifest) -> tuple[Reason, ...]:
    """Why the dead letters of a commit are some, most frequent first.

    The objects are read only of a commit that does not say it: one of an earlier s3lake, or whose letters somebody has
    taken some out of since.

    Raises:
        DataLossError: an object is gone, is another one, or holds something else.
    """
    dead = sum(file.records for file in manifest.files if file.kind == LETTERS)
    if sum(one.count for one in manifest.letters) == dead:
        return manifest.letters
    tally = Tally()
    for letter in letters_of(store, manifest):
        tally.add(letter.stage, letter.message, letter.partition, letter.offset)
    return tally.reasons
