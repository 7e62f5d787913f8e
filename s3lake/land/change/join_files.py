"""Join files: several become one, as uploads that are not visible yet; more than one if they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, zip_longest
from typing import BinaryIO

from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import DEAD_LETTERS, File
from s3lake.index.store import COMMIT, Store
from s3lake.index.store.reading import open_object
from s3lake.index.store.upload import PART_BYTES, Spill, Upload
from s3lake.lake.objects.digest import Digest
from s3lake.lake.objects.shape import ObjectShape
from s3lake.land.change.file_sets import FileSet
from s3lake.land.change.hour_change import CannotChange
from s3lake.land.change.staged_copies import StagedCopies, copy_object
from s3lake.land.task.staging import FileRule, key_of
from s3lake.records.encode import FileFormat
from s3lake.records.encode.background_work import BackgroundWork
from s3lake.records.encode.joined_files import Joiner, JoinKey, open_joiner, read_join_key
from s3lake.records.layout.object_keys import FileNumbers, KeyLayout
from s3lake.text.quantities import format_count

_DEAD_LETTERS = FileFormat("json", "none", framing=("", "\n", "\n"))
_Form = tuple[tuple[str, JoinKey], ...]
"""By stream; files of the same form can be joined."""


@dataclass
class _NewObject:
    """One object that is being written; `sending` makes the requests of its upload.

    Attributes:
        shape: the shape of the object if it is compared with its sources; else None.
        sources: the digest of their records.
    """

    upload: Upload
    joiner: Joiner
    sending: BackgroundWork
    shape: ObjectShape | None
    sources: Digest = field(default_factory=Digest)

    def add(self, body: BinaryIO, file: File) -> None:
        """Add a file. To be compared, it is copied to local disk and read again, with other code than joins it."""
        with body if self.shape is None else copy_object(body, file.bytes) as source:
            records = self.joiner.add(source)
            if records not in (None, file.records):
                raise ValueError(f"it holds {format_count(records, 'records')}, its manifest states {file.records}")
            if self.shape is not None:
                source.seek(0)
                self.sources.add(self.shape, source, file.key)


@dataclass
class _NewFileSet:
    """One file set that is being written, by stream."""

    objects: dict[str, _NewObject]
    partition: int
    group: str | None
    span: FileNumbers

    def add(self, source: FileSet, bodies: Mapping[str, BinaryIO]) -> None:
        """Add a file set."""
        for stream, body in bodies.items():
            self.objects[stream].add(body, source.files[stream])
        first, span = source.first, self.span
        self.span = FileNumbers(span.first, max(span.last, first.last_offset), 0, 0, span.records + first.records)


@dataclass(frozen=True)
class FileJoiner:
    """Joins file sets.

    Attributes:
        commit: the new commit.
        shapes: the shapes of the streams whose new files are compared with their sources.
    """

    store: Store
    commit: str
    keys: KeyLayout
    rule: FileRule
    shapes: Mapping[str, ObjectShape]

    def __call__(self, sources: Sequence[FileSet]) -> list[File]:
        """Stage the files that the sources become.

        Raises:
            CannotChange: a file differs from its commit's record of it, or a new one does not hold what its sources
                hold.
            S3LakeError: the store did not answer, refused, or has another object there.
        """
        spill, outputs = Spill(), dict[_Form, _NewFileSet]()
        try:
            with ExitStack() as stack:
                copies = stack.enter_context(StagedCopies(self.store))
                store = copies.store if self.shapes else self.store
                encoding = stack.enter_context(BackgroundWork(self.rule.budget // 8))
                ahead = stack.enter_context(ThreadPoolExecutor(1, "s3lake-ahead"))
                for source, opening in self._open(sources, ahead):
                    try:
                        bodies, form = opening.result()
                        output = outputs.get(form)
                        if output is None:
                            output = outputs[form] = self._begin(store, spill, encoding, source, form)
                            for new in output.objects.values():
                                stack.enter_context(new.sending)
                        output.add(source, bodies)
                    except S3LakeError:
                        raise
                    except Exception as error:  # each format's library has errors of its own
                        raise CannotChange(f"{source.first.key} of commit {source.manifest.id}: {error}") from error
                return list(chain.from_iterable(self._finish(output, copies) for output in outputs.values()))
        except BaseException:
            with suppress(S3LakeError):
                for output in outputs.values():
                    for new in output.objects.values():
                        new.upload.abort()
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
            return bodies, tuple((name, read_join_key(self._format(name), body)) for name, body in bodies.items())

        opening = ahead.submit(open_source, sources[0])
        for source, following in zip_longest(sources, sources[1:]):
            ready = opening
            if following is not None:
                opening = ahead.submit(open_source, following)
            yield source, ready

    def _format(self, stream: str) -> FileFormat:
        return _DEAD_LETTERS if stream == DEAD_LETTERS else self.rule.formats[stream]

    def _begin(self, store: Store, spill: Spill, encoding: BackgroundWork, source: FileSet, form: _Form) -> _NewFileSet:
        first, chunk = source.first, self.rule.budget // 8
        span = FileNumbers(first.first_offset, first.last_offset, 0, 0, 0)
        objects: dict[str, _NewObject] = {}
        for stream, like in form:
            key = None if self.keys.deferred else self._key(first.partition, first.group, span, stream)
            upload, sending = Upload(store, key, {COMMIT: self.commit}, spill), BackgroundWork(PART_BYTES)
            new = open_joiner(self._format(stream), like, partial(_send, sending, upload), spill, encoding, chunk=chunk)
            objects[stream] = _NewObject(upload, new, sending, self.shapes.get(stream))
        return _NewFileSet(objects, first.partition, first.group, span)

    def _key(self, partition: int, group: str | None, span: FileNumbers, stream: str) -> str:
        if group is None:
            return self.keys.dead_letters_key(partition, span.first)
        return key_of(self.keys, self.rule, group, span, stream)

    def _finish(self, output: _NewFileSet, copies: StagedCopies) -> list[File]:
        partition, group, span = output.partition, output.group, output.span
        files = []
        for stream, new in output.objects.items():
            new.joiner.close()
            new.sending.settle()
            key, size = self._key(partition, group, span, stream), new.upload.size
            identity, parts = new.upload.finish(key)
            file = File(key, identity, parts, partition, span.first, span.last, span.records, size, stream, group)
            if new.shape is not None and not copies.hold([file], new.shape, new.sources):
                raise CannotChange(f"{key} would not hold the records of the files that it is made of")
            files.append(file)
        return files


def _send(sending: BackgroundWork, upload: Upload, data: bytes) -> None:
    sending.do(partial(upload.write, data), len(data))
