"""Sums: what an hour's commits hold together, kept in its tile, so that nobody reads every manifest after every run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import msgspec

from s3lake.commit.files import count_data_files
from s3lake.commit.index import Manifest, Read, TopicIndex
from s3lake.errors import MissingDocumentError
from s3lake.plan.freshness import Wait
from s3lake.plan.tile import Sums, Tile


class Commits(Sequence[Manifest]):
    """Manifests of an hour's commits, in order, each read when it is first asked for."""

    def __init__(self, index: TopicIndex, hour: str, ids: Sequence[str], at_hand: Iterable[Manifest] = ()) -> None:
        """`at_hand` are manifests that need not be read."""
        self._index, self._hour, self._ids = index, hour, ids
        self._read = {manifest.id: manifest for manifest in at_hand}

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Manifest]:
        return map(self._manifest, self._ids)

    @overload
    def __getitem__(self, at: int) -> Manifest: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Manifest]: ...

    def __getitem__(self, at: int | slice) -> Manifest | Sequence[Manifest]:
        if isinstance(at, slice):
            return [self._manifest(commit) for commit in self._ids[at]]
        return self._manifest(self._ids[at])

    def _manifest(self, commit: str) -> Manifest:
        """The manifest of a listed commit.

        Raises:
            MissingDocumentError: it is gone.
        """
        manifest = self._read.get(commit)
        if manifest is None:
            manifest = self._read[commit] = self._index.listed(self._hour, commit)
        return manifest


def total(manifests: Iterable[Manifest]) -> Sums:
    """What these commits hold together."""
    sums = Sums()
    for manifest in manifests:
        sums = plus(sums, manifest)
    return sums


def plus(sums: Sums, manifest: Manifest) -> Sums:
    """Sums with one more commit."""
    reads, data_files = manifest.partitions.values(), count_data_files(manifest)
    return Sums(
        offsets=sums.offsets + sum(read.end - read.start for read in reads),
        expired=sums.expired + sum(end - start for _, start, end in manifest.expired),
        read=sums.read + sum(read.read for read in reads),
        landed=sums.landed + sum(read.landed for read in reads),
        skipped=sums.skipped + sum(read.skipped for read in reads),
        dead=sums.dead + sum(read.dead for read in reads),
        late=sums.late + sum(read.late for read in reads),
        files=sums.files + data_files,
        dead_files=sums.dead_files + len(manifest.files) - data_files,
        records=sums.records + sum(file.records for file in manifest.files if file.kind in ("data", "dead_letters")),
        bytes=sums.bytes + sum(file.bytes for file in manifest.files),
        landed_ms=max(sums.landed_ms, manifest.created_ms),
        waits=(*sums.waits, *manifest.waits),
        erased=sums.erased + sum(read.erased for read in reads),
        taken=sums.taken + sum(taken.count for taken in manifest.taken),
        dropped=dict(Counter(sums.dropped) + Counter(manifest.dropped)),
    )


def waited(reads: Iterable[Read], now_ms: int) -> tuple[Wait, ...]:
    """How long the records of a commit that is made now have waited; empty where none has a timestamp."""
    stamped = [read for read in reads if read.oldest_ms]
    if not stamped:
        return ()
    oldest, newest = min(read.oldest_ms for read in stamped), max(read.newest_ms for read in stamped)
    return (Wait(sum(read.read for read in stamped), max(0, now_ms - newest), max(0, now_ms - oldest)),)


def of_tile(tile: Tile, manifests: Iterable[Manifest]) -> Sums:
    """The sums of a tile; of one that was written before there were any, from its manifests."""
    return total(manifests) if tile.sums is msgspec.UNSET else tile.sums


def after(index: TopicIndex, tile: Tile, manifest: Manifest) -> Sums | msgspec.UnsetType:
    """The sums of a tile that `manifest` is committed to; unset where a manifest that they need is gone."""
    kept = tuple(commit for commit in tile.commits if commit not in manifest.replaces)
    if not kept:
        return plus(Sums(), manifest)
    if kept == tile.commits and tile.sums is not msgspec.UNSET:
        return plus(tile.sums, manifest)
    try:
        return plus(total(Commits(index, tile.hour, kept)), manifest)
    except MissingDocumentError:
        return msgspec.UNSET
