"""Encode the data of commits in the form that the sink has now, from their committed objects.

Rows of columns stay rows of columns, in whatever file; texts go through the present converter again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake import hours as hourly
from s3lake.commit.documents import File, Manifest, Recorded, files_of
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import abort
from s3lake.encode.formats import FORMATS
from s3lake.errors import ConfigurationError
from s3lake.land import binding
from s3lake.land.given import Batches, GivenEngine, batch
from s3lake.land.job import Job
from s3lake.land.maintenance.file_sets import read_whole
from s3lake.land.maintenance.kafka_records import Parts, offsets_of, read_offsets, records, slack
from s3lake.land.maintenance.replace import CannotChange
from s3lake.land.maintenance.staged_copies import StagedCopies
from s3lake.land.target import TopicSink
from s3lake.land.task import outcomes
from s3lake.land.task.rows import place_rows
from s3lake.land.task.staging import FileRule, Rows, Staging
from s3lake.layout.key import KeyLayout
from s3lake.objects import Shape, open_columns
from s3lake.objects.columns import cast_batch
from s3lake.objects.digest import Digest
from s3lake.plan.batch import Intervals
from s3lake.schema.arrow import to_arrow

if TYPE_CHECKING:
    from s3lake.sink import Sink

_NO_LIMIT = 2**63 - 1


def keeps_rows(shape: Shape, landed: Sink) -> bool:
    """Return whether rows of columns stay what they are: the same parts of the same records, in another file."""
    now = binding.shape_of(landed)
    same = (shape.envelope, shape.key, shape.value) == (now.envelope, now.key, now.value)
    return same and shape.format in ("parquet", "avro") and FORMATS[landed.format.type].tabular


def _refuse_session() -> NoReturn:
    raise AssertionError("no SQL is needed here")


@dataclass
class Reencoder:
    """Writes the data of commits of one form in the form that the sink has now.

    Attributes:
        dead: offsets of topic-partitions that are dead letters of these commits: so no row is taken for one of them.
    """

    target: TopicSink
    manifests: Sequence[Manifest]
    dead: Mapping[int, Set[int]]

    def __post_init__(self) -> None:
        self._sink = self.target.sink.after_transforms.model_copy(update={"transforms": (), "sql": None})
        self._shape = Shape.from_manifest(self.manifests[0])
        sources = files_of(self.manifests, "data")
        self._sources = sorted(sources, key=attrgetter("partition", "first_offset"))

    def write(self, attempt: Attempt, files: list[File]) -> Staged:
        """Stage the data, add its files to `files`, and return their form and columns.

        Raises:
            CannotChange: some of it cannot have this form.
        """
        parts = self._write_each(attempt, files)
        if any(part.columns != parts[-1].columns for part in parts):  # columns that only later objects have
            abort(self.target.store, files)
            files.clear()
            parts = self._write_each(attempt, files)
        if sum(file.records for file in files) != sum(file.records for file in self._sources):
            raise CannotChange("fewer or more records would be in its files")
        last = self.manifests[-1]
        done = parts[-1] if parts else Staged((), {}, last.form, last.nulls, last.columns)
        form = msgspec.structs.replace(done.form, transformed=last.form.transformed, transforms=last.form.transforms)
        return replace(done, form=form, nulls=last.nulls)

    def _write_each(self, attempt: Attempt, files: list[File]) -> list[Staged]:
        """Write object by object: a file ends where its source does, so what is known of offsets stays what it was."""
        parts: list[Staged] = []
        write = self._write_rows if keeps_rows(self._shape, self._sink) else self._write_texts
        for file in self._sources:
            manifest = next(one for one in self.manifests if file in one.files)
            part = write(attempt, file, read_whole(self.target.store, manifest, file))
            more = slack(self._shape, file, self._dead_of(file))
            files += (msgspec.structs.replace(new, last_offset=new.last_offset + more) for new in part.files)
            parts.append(part)
        twice = next((key for key, count in Counter(file.key for file in files).items() if count > 1), None)
        if twice is not None:
            raise CannotChange(
                f"two files would have the key {twice}: records of its files lie between each other, and rows do "
                "not say their offsets"
            )
        return parts

    def _dead_of(self, file: File) -> Set[int]:
        return self.dead.get(file.partition, frozenset())

    @cached_property
    def _overlapping(self) -> set[str]:
        """Keys of data files whose offset ranges overlap that of another file of their topic-partition."""
        keys: set[str] = set()
        last: File | None = None  # the file so far whose range ends last
        for file in self._sources:
            if last is None or last.partition != file.partition:
                last = file
                continue
            if file.first_offset <= last.last_offset:
                keys |= {last.key, file.key}
            last = max(last, file, key=attrgetter("last_offset"))
        return keys

    def _file_rule(self, rule: FileRule, file: File) -> FileRule:
        """Return when files made of `file` are closed.

        A second file is named after its least possible offset, which may be that of a record in another file. So an
        overlapping file whose rows do not say their offsets becomes one file.
        """
        if file.key not in self._overlapping or Parts.from_shape(self._shape).offset:
            return rule
        return replace(rule, count=_NO_LIMIT, size=_NO_LIMIT)

    def _write_rows(self, attempt: Attempt, file: File, body: bytes) -> Staged:
        """Write rows of columns as they are."""
        sink, store, hour_ms = self._sink, self.target.store, hourly.start_ms(self.manifests[0].hour)
        offsets, has_offsets = offsets_of(file, self._dead_of(file)), Parts.from_shape(self._shape).offset
        keys = binding.key_rule(sink, self.target.topic, attempt.suffix, wallclock_ms=attempt.begun_ms, hour_ms=hour_ms)
        is_compared = sink.format.type != "csv"  # the text of a value in CSV is not what its column held
        with StagedCopies(store) as copies:
            target = copies.store if is_compared else store
            staging = Staging(target, keys, self._file_rule(binding.file_rule(sink), file), attempt.commit)
            try:
                for rows in self._read_rows(file, body):
                    numbers = read_offsets(rows) if has_offsets else pa.array(islice(offsets, len(rows)), pa.int64())
                    placed = Rows(numbers, pa.array([0] * len(rows), pa.int64()), {"data": rows})
                    staging.add(file.partition, _place(keys, file.partition, rows), placed)
                files = staging.finish()
            except BaseException:
                staging.abort()
                raise
            if is_compared:
                self._compare(file, files, self._digest_rows(keys, file, body), copies)
        return Staged(tuple(files), {}, binding.form_of(sink), columns=self.manifests[-1].columns)

    def _read_rows(self, file: File, body: bytes) -> Iterator[pa.RecordBatch]:
        assert self._shape.columns is not None  # else there was a blocker
        schema = to_arrow(self._shape.columns.fields)
        for some in open_columns(self._shape, body, file.key).batches:
            try:
                yield cast_batch(some, schema, file.key)
            except ConfigurationError as error:
                raise CannotChange(str(error)) from None

    def _digest_rows(self, keys: KeyLayout, file: File, body: bytes) -> dict[str, Digest]:
        """Return the digest of each group's rows, which are read again."""
        digests: dict[str, Digest] = defaultdict(Digest)
        for rows in self._read_rows(file, body):
            groups = _place(keys, file.partition, rows)
            if isinstance(groups, str):
                digests[groups].add_batch(rows)
                continue
            for group in groups.unique().to_pylist():
                digests[group].add_batch(rows.filter(pc.equal(groups, group)))
        return digests

    def _compare(self, file: File, files: Sequence[File], digests: Mapping[str, Digest], copies: StagedCopies) -> None:
        """Compare the staged files of each group with the records of `file` that are in it; drop all if they differ.

        Raises:
            CannotChange: files would not hold these records.
        """
        shape = msgspec.structs.replace(binding.shape_of(self._sink), columns=self._shape.columns)
        in_order = sorted(files, key=attrgetter("first_offset"))
        for group in digests.keys() | {new.group or "" for new in files}:
            own = [new for new in in_order if new.group == group]
            if group not in digests or not copies.hold(own, shape, digests[group]):
                abort(self.target.store, files)
                raise CannotChange(f"{', '.join(new.key for new in own)} would not hold the records of {file.key}")

    def _write_texts(self, attempt: Attempt, file: File, body: bytes) -> Staged:
        """Write texts through the present converter."""
        target, sink, others = self.target, self._sink, self._dead_of(file)
        stored, hour = target.index.columns(), self.manifests[0].hour
        at = attempt.begun_ms
        work = binding.build_work(
            sink, target.topic, target.stores, hour, commit=attempt.commit, mark=attempt.suffix, wallclock_ms=at
        )
        work = replace(work, files=self._file_rule(work.files, file), tolerant=True)

        def read(_: Intervals) -> Batches:
            return {file.partition: map(batch, records(self._shape, body, file, target.topic, others))}

        engine = GivenEngine(read, _refuse_session)
        reads = {file.partition: (file.first_offset, file.last_offset + 1)}
        record = partial(outcomes.record, target.index, sink.max_columns, hour, attempt.commit)
        job = Job(sink, target.topic, engine, _refuse_session)
        with StagedCopies(target.store) as copies:
            group = work.keys.fixed_group(file.partition) if self._keeps_texts else None
            if group is not None:
                work = replace(work, stores=lambda _: copies.store)
            commit = job.stage(work, reads, stored[0] if stored else Recorded({}), record)
            if engine.refusals:
                abort(target.store, commit.files)
                first = engine.refusals[0]
                raise CannotChange(
                    f"{len(engine.refusals):,} records of {file.key} are refused by the present configuration, as that "
                    f"near offset {first.offset}: {first.message}"
                )
            if group is not None:
                digest = Digest()
                digest.add(self._shape, body, file.key)
                self._compare(file, commit.files, {group: digest}, copies)
        return commit

    @property
    def _keeps_texts(self) -> bool:
        """True if records are the same texts in the old form and in the new, whatever was written."""
        was, now = self._shape, binding.shape_of(self._sink)
        form = attrgetter("format", "envelope", "key", "value", "in_columns")
        return not was.in_columns and was.format == "json" and form(was) == form(now)


def _place(keys: KeyLayout, partition: int, rows: pa.RecordBatch) -> str | pa.Array:
    """Return the group of all rows of columns, or of each.

    Raises:
        CannotChange: a row has no place in the layout.
    """
    try:
        return place_rows(keys, partition, rows)
    except ConfigurationError as error:
        raise CannotChange(str(error)) from None
