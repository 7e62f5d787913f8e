"""Sums: what an hour's commits hold together, kept in its tile, so that readers need not read every manifest."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from s3lake.errors import MissingDocumentError
from s3lake.index.commit.documents import DEAD_LETTERS, Manifest, Read, count_data_files
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, Wait


class Commits:
    """Manifests of an hour's commits, in order, each read when it is first asked for."""

    def __init__(self, index: TopicIndex, hour: str, ids: Sequence[str], at_hand: Iterable[Manifest] = ()) -> None:
        """`at_hand` are manifests that need not be read."""
        self._index, self._hour, self._ids = index, hour, ids
        self._read = {manifest.id: manifest for manifest in at_hand}

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Manifest]:
        return map(self._manifest, self._ids)

    def __getitem__(self, at: int) -> Manifest:
        return self._manifest(self._ids[at])

    def _manifest(self, commit: str) -> Manifest:
        """The manifest of a listed commit.

        Raises:
            MissingDocumentError: it is missing.
        """
        manifest = self._read.get(commit)
        if manifest is None:
            manifest = self._read[commit] = self._index.read_listed(self._hour, commit)
        return manifest


def sum_commits(manifests: Iterable[Manifest]) -> Sums:
    """Return the sums of these commits."""
    sums = Sums()
    for manifest in manifests:
        sums = add_commit(sums, manifest)
    return sums


def add_commit(sums: Sums, manifest: Manifest) -> Sums:
    """Return sums with one more commit."""
    reads, data_files = manifest.partitions.values(), count_data_files(manifest)
    return msgspec.structs.replace(
        sums.plus(manifest.counts),
        offsets=sums.offsets + sum(read.end - read.start for read in reads),
        expired=sums.expired + sum(end - start for _, start, end in manifest.expired),
        files=sums.files + data_files,
        dead_files=sums.dead_files + len(manifest.files) - data_files,
        records=sums.records + sum(file.records for file in manifest.files if file.stream in ("data", DEAD_LETTERS)),
        bytes=sums.bytes + sum(file.bytes for file in manifest.files),
        landed_ms=max(sums.landed_ms, manifest.created_ms),
        waits=(*sums.waits, *manifest.waits),
        taken=sums.taken + sum(taken.count for taken in manifest.taken),
    )


def measure_waits(reads: Iterable[Read], now_ms: int) -> tuple[Wait, ...]:
    """Return how long the records of a commit made now have waited; empty if no record has a timestamp."""
    stamped = [read for read in reads if read.oldest_ms]
    if not stamped:
        return ()
    oldest, newest = min(read.oldest_ms for read in stamped), max(read.newest_ms for read in stamped)
    return (Wait(sum(read.read for read in stamped), max(0, now_ms - newest), max(0, now_ms - oldest)),)


def sum_after_commit(index: TopicIndex, tile: Tile, manifest: Manifest) -> Sums:
    """Return the sums of a tile that `manifest` is committed to.

    A missing manifest counts for nothing, so the sums do not explain the offsets, and the hour is not sealed.
    """
    remaining = tuple(commit for commit in tile.commits if commit not in manifest.replaces)
    if remaining == tile.commits:
        return add_commit(tile.sums, manifest)
    return sum_commits([*_read_existing(index, tile.hour, remaining), manifest])


def _read_existing(index: TopicIndex, hour: str, commits: Iterable[str]) -> Iterator[Manifest]:
    for commit in commits:
        with suppress(MissingDocumentError):
            yield index.read_listed(hour, commit)
