"""What a commit has landed beside its dead letters, in the commit that takes its place: its objects once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from s3lake.commit.documents import LETTERS, File, Manifest
from s3lake.commit.protocol import mark_of
from s3lake.commit.recovery import abort
from s3lake.land import binding
from s3lake.store import COMMIT, Store
from s3lake.store.reading import opened
from s3lake.store.upload import PART_BYTES, Spill, uploaded

if TYPE_CHECKING:
    from s3lake.sink import Sink

_AT_ONCE = 8
"""Small objects; a large one holds parts in memory."""


def find_form_difference(sink: Sink, manifest: Manifest) -> str:
    """Return why files of the sink cannot be in one commit with the data of `manifest`; empty if they can."""
    landed = sink.after_transforms
    if all(file.kind == LETTERS for file in manifest.files):
        return ""
    if manifest.nulls not in (landed.nulls, "fail"):
        return f"its nulls are {manifest.nulls!r} then and {landed.nulls!r} now"
    form = binding.written_by(landed).form
    now = {"format": landed.format.type, "value converter": landed.converter.value, "codec and envelope": form}
    then = {"format": manifest.format, "value converter": manifest.converter, "codec and envelope": manifest.shape.form}
    for what, setting in now.items():
        if setting != then[what]:
            words = f"{then[what]!r} then and {setting!r} now" if isinstance(setting, str) else "others now than then"
            return f"{what} are {words}" if " and " in what else f"its {what} is {words}"
    return ""


def copied(sink: Sink, store: Store, manifest: Manifest, commit: str) -> list[File]:
    """The data and sidecars of `manifest`, staged as files of `commit`.

    Raises:
        DataLossError: an object is gone, or is another one.
    """
    landed = sink.after_transforms
    endings = sorted((*landed.sidecars.endings, landed.extension), key=len, reverse=True)
    sources = [file for file in manifest.files if file.kind != LETTERS]
    small = [file for file in sources if file.bytes < PART_BYTES]
    large = [file for file in sources if file.bytes >= PART_BYTES]
    done: list[File] = []

    def copy(file: File) -> None:
        key = named(file.key, mark_of(manifest.id), mark_of(commit), endings)
        done.append(copied_as(store, manifest, file, key, commit))

    try:
        with ThreadPoolExecutor(_AT_ONCE, "s3lake-replay") as pool:
            for under_way in [pool.submit(copy, file) for file in small]:
                under_way.result()
        for file in large:
            copy(file)
    except BaseException:
        abort(store, done)
        raise
    return done


def named(key: str, mark: str, new: str, endings: Sequence[str]) -> str:
    """The key with the new commit's mark: in the place of the old one's, else before the ending."""
    if mark in key:
        return key.replace(mark, new)
    ending = next((one for one in endings if one and key.endswith(one)), "")
    return key.removesuffix(ending) + new + ending


def copied_as(store: Store, manifest: Manifest, file: File, key: str, commit: str) -> File:
    """A file of `manifest`, staged as one of `commit` under another key, byte by byte."""

    def copy(write: Callable[[bytes], None], _: Spill) -> None:
        with opened(store, file.key, file.bytes, manifest.id) as body:
            while block := body.read(PART_BYTES):
                write(block)

    copied = uploaded(store, key, {COMMIT: commit}, copy)
    return msgspec.structs.replace(file, key=key, upload=copied.upload, parts=copied.parts)
