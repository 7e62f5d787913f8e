"""Joining: the files of a pack become one, as uploads that are not visible yet; more than one where they differ.

What joins packs travels to Spark's workers as plain values, as a `pipeline.Work` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, zip_longest
from typing import BinaryIO

import msgspec

from s3lake.commit.documents import File
from s3lake.encode import FileFormat
from s3lake.encode.behind import Behind
from s3lake.encode.joined import Joiner, Likeness, joiner, likeness
from s3lake.errors import S3LakeError
from s3lake.land.merge.packs import LETTERS, Pack, Source
from s3lake.land.task.pipeline import Stores
from s3lake.land.task.staging import FileRule, key_of
from s3lake.layout.key import KeyLayout, Span
from s3lake.objects.digest import Digest
from s3lake.objects.shape import Shape
from s3lake.store import COMMIT, Store
from s3lake.store.reading import opened
from s3lake.store.upload import PART_BYTES, Spill, Upload

LETTERS_SHAPE = Shape("json")
_LETTERS = FileFormat("json", "none", framing=("", "\n", "\n"))
_Alike = tuple[tuple[str, Likeness], ...]


class Unjoinable(Exception):
    """Files that cannot be joined; the message says which, and why."""


def _blind(_: object) -> None:
    """Nobody asks what is read."""


@dataclass
class _Stream:
    """One object in the making; `sending` does what its upload asks of the store."""

    upload: Upload
    joiner: Joiner
    sending: Behind


@dataclass
class _Target:
    """One source in the making."""

    streams: dict[str, _Stream]
    partition: int
    group: str | None
    span: Span
    digests: dict[str, Digest]


@dataclass(frozen=True)
class Joining:
    """What joins packs.

    Attributes:
        commit: whose objects they become.
        shapes: of each stream, to note the digest of its records; none where that is not asked for.
    """

    stores: Stores
    bucket: str
    commit: str
    keys: KeyLayout
    files: FileRule
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def __call__(self, pack: Pack) -> list[File]:
        """The files that a pack becomes, staged.

        Raises:
            Unjoinable: a file is not what its commit says.
            S3LakeError: the store did not answer, refused, or has another object there.
        """
        store, spill, targets = self.stores(self.bucket), Spill(), dict[_Alike, _Target]()
        try:
            with ExitStack() as hands:
                encoding = hands.enter_context(Behind(self.files.budget // 8))
                ahead = hands.enter_context(ThreadPoolExecutor(1, "s3lake-ahead"))
                for source, opening in self._opened(store, pack, ahead):
                    try:
                        bodies, alike = opening.result()
                        target = targets.get(alike)
                        if target is None:
                            target = targets[alike] = self._begin(store, spill, encoding, source, alike)
                            for stream in target.streams.values():
                                hands.enter_context(stream.sending)
                        _add(target, source, bodies)
                        self._read(target, source, bodies)
                    except S3LakeError:
                        raise
                    except Exception as error:  # each format's library has errors of its own
                        raise Unjoinable(f"{source.first.key} of commit {source.commit}: {error}") from error
                return list(chain.from_iterable(map(self._finish, targets.values())))
        except BaseException:
            with suppress(S3LakeError):
                for target in targets.values():
                    for stream in target.streams.values():
                        stream.upload.abort()
            raise
        finally:
            spill.close()

    def _opened(
        self, store: Store, pack: Pack, ahead: ThreadPoolExecutor
    ) -> Iterator[tuple[Source, Future[tuple[Mapping[str, BinaryIO], _Alike]]]]:
        """Each source, while the one after it is being opened."""

        def opening(source: Source) -> tuple[Mapping[str, BinaryIO], _Alike]:
            bodies = {name: opened(store, one.key, one.bytes, source.commit) for name, one in source.files.items()}
            return bodies, tuple((name, likeness(self._form(name), body)) for name, body in bodies.items())

        under_way = ahead.submit(opening, pack.sources[0])
        for source, following in zip_longest(pack.sources, pack.sources[1:]):
            ready = under_way
            if following is not None:
                under_way = ahead.submit(opening, following)
            yield source, ready

    def _form(self, stream: str) -> FileFormat:
        return _LETTERS if stream == LETTERS else self.files.formats[stream]

    def _begin(self, store: Store, spill: Spill, encoding: Behind, source: Source, alike: _Alike) -> _Target:
        first = source.first
        span = Span(first.first_offset, first.last_offset, 0, 0, 0)
        streams: dict[str, _Stream] = {}
        digests = {name: Digest() for name, _ in alike if name in self.shapes}
        for name, like in alike:
            key = None if self.keys.deferred else self._key(first.partition, first.group, span, name)
            upload = Upload(store, key, {COMMIT: self.commit}, spill)
            form, see = self._form(name), digests[name].rows if name in digests else _blind
            sending = Behind(PART_BYTES)
            write, chunk = partial(_sent, sending, upload), self.files.budget // 8
            streams[name] = _Stream(upload, joiner(form, like, write, spill, encoding, chunk=chunk, see=see), sending)
        return _Target(streams, first.partition, first.group, span, digests)

    def _read(self, target: _Target, source: Source, bodies: Mapping[str, BinaryIO]) -> None:
        """Read a source once more, with other code than joins it; of Parquet the joiner has shown the rows."""
        for name, digest in target.digests.items():
            if self.shapes[name].format == "parquet":
                continue
            bodies[name].seek(0)
            digest.add(self.shapes[name], bodies[name], source.files[name].key)

    def _key(self, partition: int, group: str | None, span: Span, stream: str) -> str:
        if group is None:
            return self.keys.dead_letters_key(partition, span.first)
        return key_of(self.keys, self.files, group, span, stream)

    def _finish(self, target: _Target) -> list[File]:
        partition, group, span = target.partition, target.group, target.span
        files = []
        for name, stream in target.streams.items():
            stream.joiner.close()
            stream.sending.settle()
            key, upload = self._key(partition, group, span, name), stream.upload
            identity, parts = upload.finish(key)
            file = File(key, identity, parts, partition, span.first, span.last, span.records, upload.size, name, group)
            files.append(msgspec.structs.replace(file, digest=str(target.digests.get(name, ""))))
        return files


def _sent(sending: Behind, upload: Upload, data: bytes) -> None:
    sending.do(partial(upload.write, data), len(data))


def _add(target: _Target, source: Source, bodies: Mapping[str, BinaryIO]) -> None:
    for name, body in bodies.items():
        listed = source.files[name].records
        records = target.streams[name].joiner.add(body)
        if records not in (None, listed):
            raise ValueError(f"it holds {records} records, its manifest says {listed}")
    first, span = source.first, target.span
    last = max(span.last, first.last_offset)
    target.span = Span(span.first, last, 0, 0, span.records + first.records)
