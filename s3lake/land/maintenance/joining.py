"""Join files: several become one, as uploads that are not visible yet; more than one if they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import BinaryIO

from s3lake.commit.documents import LETTERS, File
from s3lake.encode import FileFormat
from s3lake.encode.joined import Behind, Joiner, Likeness, joiner, likeness
from s3lake.errors import S3LakeError
from s3lake.land.maintenance.file_sets import FileSet
from s3lake.land.maintenance.replace import CannotChange
from s3lake.land.maintenance.staged_copies import StagedCopies, copy_object
from s3lake.land.task.staging import FileRule, key_of
from s3lake.layout.key import KeyLayout, Span
from s3lake.objects.digest import Digest
from s3lake.objects.shape import Shape
from s3lake.store import COMMIT, Store
from s3lake.store.reading import open_object
from s3lake.store.upload import PART_BYTES, Spill, Upload

_DEAD_LETTERS = FileFormat("json", "none", framing=("", "\n", "\n"))
_Form = tuple[tuple[str, Likeness], ...]
"""By stream; files of the same form can be joined."""


def _ignore(_: object) -> None:
    """Take rows that are not compared."""


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
        shapes: of the streams whose new files are compared with their sources.
    """

    store: Store
    commit: str
    keys: KeyLayout
    rule: FileRule
    shapes: Mapping[str, Shape]

    def __call__(self, sources: Sequence[FileSet]) -> list[File]:
        """Stage the files that the sources become.

        Raises:
            CannotChange: a file is not what its commit says, or a new one does not hold what its sources hold.
            S3LakeError: the store did not answer, refused, or has another object there.
        """
        spill, outputs = Spill(), dict[_Form, _Output]()
        try:
            with ExitStack() as stack:
                copies = stack.enter_context(StagedCopies(self.store))
                store = copies.store if self.shapes else self.store
                encoding = stack.enter_context(Behind(self.rule.budget // 8))
                ahead = stack.enter_context(ThreadPoolExecutor(1, "s3lake-ahead"))
                for source, opening in self._open(sources, ahead):
                    try:
                        bodies, form = opening.result()
                        output = outputs.get(form)
                        if output is None:
                            output = outputs[form] = self._begin(store, spill, encoding, source, form)
                            for stream in output.streams.values():
                                stack.enter_context(stream.sending)
                        self._add(output, source, bodies)
                    except S3LakeError:
                        raise
                    except Exception as error:  # each format's library has errors of its own
                        raise CannotChange(f"{source.first.key} of commit {source.manifest.id}: {error}") from error
                return list(chain.from_iterable(self._finish(output, copies) for output in outputs.values()))
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
            bodies = {name: open_object(self.store, one.key, one.bytes, commit) for name, one in source.files.items()}
            return bodies, tuple((name, likeness(self._format(name), body)) for name, body in bodies.items())

        opening = ahead.submit(open_source, sources[0])
        for source, following in zip_longest(sources, sources[1:]):
            ready = opening
            if following is not None:
                opening = ahead.submit(open_source, following)
            yield source, ready

    def _format(self, stream: str) -> FileFormat:
        return _DEAD_LETTERS if stream == LETTERS else self.rule.formats[stream]

    def _begin(self, store: Store, spill: Spill, encoding: Behind, source: FileSet, form: _Form) -> _Output:
        first = source.first
        span = Span(first.first_offset, first.last_offset, 0, 0, 0)
        streams: dict[str, _Stream] = {}
        digests = {name: Digest() for name, _ in form if name in self.shapes}
        for name, like in form:
            key = None if self.keys.deferred else self._key(first.partition, first.group, span, name)
            upload = Upload(store, key, {COMMIT: self.commit}, spill)
            see = digests[name].rows if name in digests else _ignore
            sending = Behind(PART_BYTES)
            write, chunk = partial(_send, sending, upload), self.rule.budget // 8
            joining = joiner(self._format(name), like, write, spill, encoding, chunk=chunk, see=see)
            streams[name] = _Stream(upload, joining, sending)
        return _Output(streams, first.partition, first.group, span, digests)

    def _add(self, output: _Output, source: FileSet, bodies: Mapping[str, BinaryIO]) -> None:
        """Add a source. It is read again, with other code than joins it; of Parquet the joiner has shown the rows."""
        for name, body in bodies.items():
            file, digest = source.files[name], output.digests.get(name)
            if digest is None or self.shapes[name].format == "parquet":
                _join(output.streams[name].joiner, body, file)
                continue
            with copy_object(body, file.bytes) as copy:
                _join(output.streams[name].joiner, copy, file)
                copy.seek(0)
                digest.add(self.shapes[name], copy, file.key)
        first, span = source.first, output.span
        output.span = Span(span.first, max(span.last, first.last_offset), 0, 0, span.records + first.records)

    def _key(self, partition: int, group: str | None, span: Span, stream: str) -> str:
        if group is None:
            return self.keys.dead_letters_key(partition, span.first)
        return key_of(self.keys, self.rule, group, span, stream)

    def _finish(self, output: _Output, copies: StagedCopies) -> list[File]:
        partition, group, span = output.partition, output.group, output.span
        files = []
        for name, stream in output.streams.items():
            stream.joiner.close()
            stream.sending.settle()
            key, upload = self._key(partition, group, span, name), stream.upload
            identity, parts = upload.finish(key)
            file = File(key, identity, parts, partition, span.first, span.last, span.records, upload.size, name, group)
            digest = output.digests.get(name)
            if digest is not None and not copies.hold([file], self.shapes[name], digest):
                raise CannotChange(f"{key} would not hold the records of the files that it is made of")
            files.append(file)
        return files


def _send(sending: Behind, upload: Upload, data: bytes) -> None:
    sending.do(partial(upload.write, data), len(data))


def _join(joiner: Joiner, body: BinaryIO, file: File) -> None:
    records = joiner.add(body)
    if records not in (None, file.records):
        raise ValueError(f"it holds {records} records, its manifest says {file.records}")
