"""Files of commits that hold the same records, and files of a new commit that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from s3lake.commit.documents import LETTERS, File, Manifest
from s3lake.commit.protocol import mark_of
from s3lake.encode import Out
from s3lake.encode.formats import FORMATS
from s3lake.land.maintenance.without_rows import write_without
from s3lake.objects.shape import Shape
from s3lake.store import COMMIT, Store
from s3lake.store.reading import open_object
from s3lake.store.upload import PART_BYTES, Spill, stage_object

if TYPE_CHECKING:
    from s3lake.land.target import TopicSink

_AT_ONCE = 8
"""Small objects: most of their time is spent waiting for the store."""


@dataclass(frozen=True)
class FileSet:
    """Files of one commit that hold the same records: data and sidecars by stream, or dead letters."""

    manifest: Manifest
    files: Mapping[str, File]

    @property
    def first(self) -> File:
        """One of the files: all have the same records."""
        return next(iter(self.files.values()))

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files.values())


def list_file_sets(manifests: Iterable[Manifest]) -> list[FileSet]:
    """Return the file sets of commits."""
    file_sets: list[FileSet] = []
    for manifest in manifests:
        sets: dict[tuple[int, str | None, int], dict[str, File]] = {}
        for file in manifest.files:  # dead letters have no group
            sets.setdefault((file.partition, file.group, file.first_offset), {})[file.stream] = file
        file_sets += (FileSet(manifest, files) for files in sets.values())
    return file_sets


def shape_of_stream(manifest: Manifest, stream: str) -> Shape:
    """Return the shape of a commit's files of one stream."""
    if stream == LETTERS:
        return Shape("json")
    shape = Shape.from_manifest(manifest)
    return shape if stream == "data" else shape.sidecar(stream)


def read_whole(store: Store, manifest: Manifest, file: File) -> bytes:
    """Read a file of a commit.

    Raises:
        DataLossError: the object is gone, or is another one.
    """
    with open_object(store, file.key, file.bytes, manifest.id) as body:
        return body.read()


def key_in_commit(target: TopicSink, manifest: Manifest, file: File, commit: str) -> str:
    """Return the key of a file that `commit` makes of this one: with its mark instead of the mark of `manifest`.

    A key without a mark gets it before its ending.
    """
    old, new = mark_of(manifest.id), mark_of(commit)
    if old in file.key:
        return file.key.replace(old, new)
    landed, shape = target.sink.after_transforms, shape_of_stream(manifest, file.stream)
    own = FORMATS[shape.format].extension(shape.codec)
    endings = (*landed.sidecars.endings, f".{file.stream}{own}", landed.extension, own)
    ending = max((one for one in endings if one and file.key.endswith(one)), key=len, default="")
    return file.key.removesuffix(ending) + new + ending


def copy_file(
    target: TopicSink, manifest: Manifest, file: File, commit: str, key: str = "", without: Set[int] = frozenset()
) -> list[File]:
    """Stage a file of `manifest` as one of `commit`: byte by byte, or without some rows, counted from 0.

    Args:
        target: the sink and topic.
        manifest: the commit of the file.
        file: the file.
        commit: the id of the new commit.
        key: of the new object; empty for `key_in_commit`.
        without: the rows that are left out; not all of them.

    Raises:
        DataLossError: the object is gone, or is another one.
        UnreadableError: it is not a file of its shape.
    """
    key = key or key_in_commit(target, manifest, file, commit)

    def write(out: Out, disk: Spill) -> None:
        with open_object(target.store, file.key, file.bytes, manifest.id) as body:
            if without:
                write_without(without, shape_of_stream(manifest, file.stream), body, file.key, out, disk)
                return
            while block := body.read(PART_BYTES):
                out(block)

    new = stage_object(target.store, key, {COMMIT: commit}, write)
    changes = {"upload": new.upload, "parts": new.parts, "records": file.records - len(without), "bytes": new.size}
    return [msgspec.structs.replace(file, key=key, **changes)]


def stage_files(
    tasks: Iterable[tuple[int, Callable[[], Iterable[File]]]], files: list[File], large_at_once: int = 1
) -> None:
    """Run tasks that stage files, several at once. Adds what they stage to `files`, also if one of them fails.

    Args:
        tasks: bytes of the sources, and the task.
        files: of the new commit.
        large_at_once: tasks with sources above the size of a part; each holds parts and row groups in memory.
    """
    parts: dict[bool, list[Callable[[], Iterable[File]]]] = {True: [], False: []}
    for size, task in tasks:
        parts[size < PART_BYTES].append(task)
    for is_small, some in parts.items():
        with ThreadPoolExecutor(_AT_ONCE if is_small else large_at_once, "s3lake-maintenance") as pool:
            running = [pool.submit(lambda stage: files.extend(stage()), task) for task in some]
        for stage in running:
            stage.result()
