"""Compact: the files of an hour become few large ones, and verify can tell that they hold the same records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from s3lake.commit.documents import files_of
from s3lake.land.merge import Rule, Unjoinable, Way, merge, planned
from s3lake.land.replace import settle_hour
from s3lake.land.target import TopicSink, retry_fenced

REASON = "compact"
SIZE = 512 * 2**20
_NO_LIMIT = 2**63 - 1


@dataclass(frozen=True)
class Compaction:
    """What becomes of an hour.

    Attributes:
        files: that its commits have, sidecars and dead letters included.
        left: that there will be, or are now.
        bytes: of all of them before.
        obstacle: why it stays as it is; empty where it does not.
    """

    hour: str
    files: int
    left: int
    bytes: int = 0
    obstacle: str = ""

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.hour}: its {self.files:,} files stay: {self.obstacle}"
        return f"{self.hour}: {self.files:,} files of {self.bytes:,} bytes become {self.left:,}"


def compactions(target: TopicSink, hours: Iterable[str], size: int = SIZE) -> Iterator[Compaction]:
    """What compacting would do; nothing is said of hours that are not landed as a whole, or have few files already."""
    for hour in hours:
        manifests = target.manifests(hour) or []
        files = files_of(manifests)
        if len(files) < 2:
            continue
        try:
            worthy = planned(target.sink, target.topic, manifests, _way(size).rule)
        except Unjoinable as error:
            yield Compaction(hour, len(files), len(files), obstacle=str(error))
            continue
        # Of each pack as many files are left as its first source has.
        packs = chain.from_iterable(packs for _, packs in worthy)
        sources = chain.from_iterable(pack.sources[1:] for pack in packs)
        spared = sum(len(source.files) for source in sources)
        if spared:
            yield Compaction(hour, len(files), len(files) - spared, sum(file.bytes for file in files))


def compact(target: TopicSink, hour: str, size: int = SIZE) -> Compaction:
    """Compact an hour, in one commit for each set of columns that its commits have.

    Args:
        target: of the hour.
        hour: that is landed as a whole.
        size: of the files that are made, about; those that are larger stay.

    Raises:
        FencedError: other writers were faster, again and again.
        S3LakeError: the store or the table was in the way; the hour is as it was, or this can be repeated.
    """
    return retry_fenced(partial(_compacted, target, hour, size))


def _compacted(target: TopicSink, hour: str, size: int) -> Compaction:
    settle_hour(target, hour)
    manifests = target.manifests(hour) or []
    files = sum(len(manifest.files) for manifest in manifests)
    size_before = sum(file.bytes for file in files_of(manifests))
    try:
        for merged in merge(target, hour, manifests, _way(size)):
            if merged.tile.garbage:
                settle_hour(target, hour)
    except Unjoinable as error:
        return Compaction(hour, files, files, size_before, str(error))
    left = sum(len(manifest.files) for manifest in target.manifests(hour) or [])
    return Compaction(hour, files, left, size_before)


def _way(size: int) -> Way:
    return Way(Rule(size, _NO_LIMIT, spared=0, fewest=1), REASON, digests=True, large_at_once=2)
