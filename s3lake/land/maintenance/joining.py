"""Join files: several become one, as uploads that are not visible yet; more than one if they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import BinaryIO

import msgspec

from s3lake.commit.documents import LETTERS, File
from s3lake.encode import FileFormat
from s3lake.encode.joined import Behind, Joiner, Likeness, joiner, likeness
from s3lake.errors import S3LakeError
from s3lake.land.maintenance.file_sets import FileSet
from s3lake.land.task.staging import FileRule, key_of
from s3lake.layout.key import KeyLayout, Span
from s3lake.objects.digest import Digest
from s3lake.objects.shape import Shape
from s3lake.store import COMMIT, Store
from s3lake.store.reading import opened
from s3lake.store.upload import PART_BYTES, Spill, Upload

_DEAD_LETTERS = FileFormat("json", "none", framing=("", "\n", "\n"))
_Form = tuple[tuple[str, Likeness], ...]
"""By stream; files of the same form can be joined."""


class CannotJoin(Exception):
    """Files cannot be joined; the message says which, and why."""


def _ignore(_: object) -> None:
    """Take rows of which no digest is needed."""


@dataclass
class _Stream:
    """One object that is being written; `sending` makes the requests of its upload."""

    upload: Upload
    joiner: Joiner
    sending: Behind


@dataclass
class _Output:
    """One file set that is being written."""

    streams: dict[str, _Stream]
    partition: int
    group: str | None
    span: Span
    digests: dict[str, Digest]


@dataclass(frozen=True)
class FileJoiner:
    """Joins file sets.

    Attributes:
        commit: the new commit.
        shapes: of the streams whose files get a digest of their records.
    """

    store: Store
    commit: str
    keys: KeyLayout
    rule: FileRule
    shapes: Mapping[str, Shape]

    def __call__(self, sources: Sequence[FileSet]) -> list[File]:
        """Stage the files that the sources become.

        Raises:
            CannotJoin: a file is not what its commit says.
            S3LakeError: the store did not answer, refused, or has another object there.
        """
        spill, outputs = Spill(), dict[_Form, _Output]()
        try:
            with ExitStack() as stack:
                encoding = stack.enter_context(Behind(self.rule.budget // 8))
                ahead = stack.enter_context(ThreadPoolExecutor(1, "s3lake-ahead"))
                for source, opening in self._open(sources, ahead):
                    try:
                        bodies, form = opening.result()
                        output = outputs.get(form)
                        if output is None:
                            output = outputs[form] = self._begin(spill, encoding, source, form)
                            for stream in output.streams.values():
                                stack.enter_context(stream.sending)
                        _add(output, source, bodies)
                        self._add_digests(output, source, bodies)
                    except S3LakeError:
                        raise
                    except Exception as error:  # each format's library has errors of its own
                        raise CannotJoin(f"{source.first.key} of commit {source.manifest.id}: {error}") from error
                return list(chain.from_iterable(map(self._finish, outputs.values())))
        except BaseException:
            with suppress(S3LakeError):
                for output in outputs.values():
                    for stream in output.streams.values():
                        stream.upload.abort()
            raise
        finally:
            spill.close()

    def _open(
        self, sources: Sequence[FileSet], ahead: ThreadPoolExecutor
    ) -> Iterator[tuple[FileSet, Future[tuple[Mapping[str, BinaryIO], _Form]]]]:
        """Yield each source, while the one after it is being opened."""

        def open_source(source: FileSet) -> tuple[Mapping[str, BinaryIO], _Form]:
            commit = source.manifest.id
            bodies = {name: opened(self.store, one.key, one.bytes, commit) for name, one in source.files.items()}
            return bodies, tuple((name, likeness(self._format(name), body)) for name, body in bodies.items())

        opening = ahead.submit(open_source, sources[0])
        for source, following in zip_longest(sources, sources[1:]):
            ready = opening
            if following is not None:
                opening = ahead.submit(open_source, following)
            yield source, ready

    def _format(self, stream: str) -> FileFormat:
        return _DEAD_LETTERS if stream == LETTERS else self.rule.formats[stream]

    def _begin(self, spill: Spill, encoding: Behind, source: FileSet, form: _Form) -> _Output:
        first = source.first
        span = Span(first.first_offset, first.last_offset, 0, 0, 0)
        streams: dict[str, _Stream] = {}
        digests = {name: Digest() for name, _ in form if name in self.shapes}
        for name, like in form:
            key = None if self.keys.deferred else self._key(first.partition, first.group, span, name)
            upload = Upload(self.store, key, {COMMIT: self.commit}, spill)
            see = digests[name].rows if name in digests else _ignore
            sending = Behind(PART_BYTES)
            write, chunk = partial(_send, sending, upload), self.rule.budget // 8
            joining = joiner(self._format(name), like, write, spill, encoding, chunk=chunk, see=see)
            streams[name] = _Stream(upload, joining, sending)
        return _Output(streams, first.partition, first.group, span, digests)

    def _add_digests(self, output: _Output, source: FileSet, bodies: Mapping[str, BinaryIO]) -> None:
        """Read a source again, with other code than joins it; of Parquet the joiner has shown the rows."""
        for name, digest in output.digests.items():
            if self.shapes[name].format != "parquet":
                bodies[name].seek(0)
                digest.add(self.shapes[name], bodies[name], source.files[name].key)

    def _key(self, partition: int, group: str | None, span: Span, stream: str) -> str:
        if group is None:
            return self.keys.dead_letters_key(partition, span.first)
        return key_of(self.keys, self.rule, group, span, stream)

    def _finish(self, output: _Output) -> list[File]:
        partition, group, span = output.partition, output.group, output.span
        files = []
        for name, stream in output.streams.items():
            stream.joiner.close()
            stream.sending.settle()
            key, upload = self._key(partition, group, span, name), stream.upload
            identity, parts = upload.finish(key)
            file = File(key, identity, parts, partition, span.first, span.last, span.records, upload.size, name, group)
            files.append(msgspec.structs.replace(file, digest=str(output.digests.get(name, ""))))
        return files


def _send(sending: Behind, upload: Upload, data: bytes) -> None:
    sending.do(partial(upload.write, data), len(data))


def _add(output: _Output, source: FileSet, bodies: Mapping[str, BinaryIO]) -> None:
    for name, body in bodies.items():
        listed = source.files[name].records
        records = output.streams[name].joiner.add(body)
        if records not in (None, listed):
            raise ValueError(f"it holds {records} records, its manifest says {listed}")
    first, span = source.first, output.span
    last = max(span.last, first.last_offset)
    output.span = Span(span.first, last, 0, 0, span.records + first.records)
