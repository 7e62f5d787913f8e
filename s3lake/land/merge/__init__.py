"""Merge: the small commits of an hour that is landed become one, of files of the flush size (docs/design/commit.md).

The committed objects are read back, never Kafka, and joined at the level of their format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake.commit.documents import MOST_FILES, File, Manifest, count_data_files
from s3lake.commit.index import TopicIndex
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import abort
from s3lake.commit.replace import MERGE
from s3lake.land import binding
from s3lake.land.merge.joining import LETTERS_SHAPE, Joining, Unjoinable
from s3lake.land.merge.packs import LETTERS, Pack, Rule, obstacle, packs, runs
from s3lake.land.replace import carry_over, replace_commits
from s3lake.land.target import TopicSink
from s3lake.objects.shape import Shape
from s3lake.store.upload import PART_BYTES

if TYPE_CHECKING:
    from s3lake.plan.tile import Tile
    from s3lake.sink import Sink

__all__ = ["Merged", "Rule", "Unjoinable", "Way", "merge", "planned"]

_AT_ONCE = 8
"""Small packs: most of their time is spent waiting for the store. A large one holds parts and row groups in memory."""


@dataclass(frozen=True)
class Way:
    """How commits are merged.

    Attributes:
        rule: which files become one; None for the sink's.
        reason: see `Manifest`.
        digests: note of each new file the digest of the records that it is made of.
        large_at_once: packs that are larger than a part; each holds two row groups.
    """

    rule: Rule | None = None
    reason: str = MERGE
    digests: bool = False
    large_at_once: int = 1


@dataclass(frozen=True)
class Merged:
    """A commit that took the place of so many others, and of their files."""

    manifest: Manifest
    tile: Tile
    commits: int
    files: int

    def __str__(self) -> str:
        return f"{self.commits} commits of {self.files} files became one of {count_data_files(self.manifest)}"


def merge(target: TopicSink, hour: str, manifests: Sequence[Manifest], way: Way = Way()) -> Iterator[Merged]:
    """Merge commits of `hour`, each time when the next is asked for; none if nothing is to be gained.

    Replaced objects that cannot be deleted yet stay, and the tile lists them.

    Args:
        target: the sink and topic.
        hour: an hour that is complete.
        manifests: of its commits.
        way: how it is done.

    Raises:
        Unjoinable: the hour stays as it is, and why.
        S3LakeError: the store was in the way, or another writer was faster; the hour is as it was, or whoever comes
            next finishes.
    """
    for run, packed_files in planned(target.sink, target.topic, manifests, way.rule):
        write = partial(_staged, target, run, packed_files, way)
        done = replace_commits(target, hour, run, way.reason, write, keeps_garbage=True)
        if done is not None:
            yield Merged(done.manifest, done.tile, len(run), sum(map(count_data_files, run)))


def _staged(target: TopicSink, run: Sequence[Manifest], packed_files: list[Pack], way: Way, attempt: Attempt) -> Staged:
    rule = binding.file_rule(target.sink)
    keys = binding.key_rule(target.sink.after_transforms, target.topic, attempt.suffix)
    shapes = _shapes(run[-1], rule.formats) if way.digests else {}
    joining = Joining(target.stores, target.sink.bucket, attempt.commit, keys, rule, shapes)
    files = _joined(target.index, joining, packed_files, way.large_at_once)
    return replace(carry_over(run), files=tuple(sorted(files, key=attrgetter("key"))))


def planned(
    sink: Sink, topic: str, manifests: Sequence[Manifest], rule: Rule | None = None
) -> list[tuple[list[Manifest], list[Pack]]]:
    """Commits that become one, and how their files do; none where nothing is to be gained.

    Raises:
        Unjoinable: the hour stays as it is, and why.
    """
    files = binding.file_rule(sink)
    rule = rule or Rule(files.size, files.count)
    packed = [(run, packs(run, rule)) for run in runs(manifests, rule.fewest)]
    worthy = [(run, packed_files) for run, packed_files in packed if rule.worth_it(packed_files)]
    obstacle_text = obstacle(sink, topic, manifests) if worthy else None
    if obstacle_text is not None:
        raise Unjoinable(obstacle_text)
    return worthy


def _shapes(manifest: Manifest, streams: Iterable[str]) -> dict[str, Shape]:
    shape = Shape.of(manifest)
    of_streams = {stream: shape if stream == "data" else shape.sidecar(stream) for stream in streams}
    return {**of_streams, LETTERS: LETTERS_SHAPE}


def _joined(index: TopicIndex, joining: Joining, packed_files: list[Pack], large_at_once: int) -> list[File]:
    files: list[File] = []

    def join(pack: Pack) -> None:
        files.extend(joining(pack))

    try:
        with ThreadPoolExecutor(_AT_ONCE, "s3lake-merge") as pool:
            small = [pool.submit(join, pack) for pack in packed_files if pack.bytes < PART_BYTES]
        for joined in small:
            joined.result()
        with ThreadPoolExecutor(large_at_once, "s3lake-merge") as pool:
            list(pool.map(join, (pack for pack in packed_files if pack.bytes >= PART_BYTES)))
        if len(files) > MOST_FILES:
            raise Unjoinable(f"{len(files):,} files would be left, and one commit has at most {MOST_FILES:,}")
    except BaseException:
        abort(index.store, files)
        raise
    return files
