"""Reformat: commits of landed hours in the form that the sink has now, made of their committed objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake import hours as hourly
from s3lake.errors import ConfigurationError
from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, Read, Recorded, collect_files
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.index.plan.batch import Intervals
from s3lake.lake.form import form_of, shape_of
from s3lake.lake.objects import ObjectShape, open_columns
from s3lake.lake.objects.digest import Digest
from s3lake.lake.objects.spark_columns import cast_batch
from s3lake.land.change.committed_dead_letters import read_committed_dead_letters
from s3lake.land.change.file_sets import copy_file, is_placed_as_now, read_whole
from s3lake.land.change.hour_change import (
    CannotChange,
    HourChange,
    Plan,
    carry_over,
    change_hours,
    group_compatible,
)
from s3lake.land.change.kafka_records import Parts, find_least_offsets, read_kafka_records, read_offsets, slack
from s3lake.land.change.row_keys import find_key_blocker as find_blocker_of_places
from s3lake.land.change.row_keys import place
from s3lake.land.change.staged_copies import StagedCopies
from s3lake.land.micro_batch.micro_batch_staging import MicroBatchStaging
from s3lake.land.request import stage_values
from s3lake.land.request.in_process_tasks import Batches, InProcessTaskRunner, to_record_batch
from s3lake.land.request.run_request import run_request
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.task import outcomes
from s3lake.land.task.outcomes import merge_reads
from s3lake.land.task.staging import Staging, StagingRows
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.records.encode.formats import FORMATS
from s3lake.records.layout.object_keys import KeyLayout
from s3lake.records.schema.columns.arrow_types import to_arrow
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

REASON = "reformat"
_EMPTY_NULLS = ("text", "bytes")
"""Formats in which null and an empty value are the same."""


def reformat_hours(target: TopicSink, hours: Iterable[str], *, yes: bool) -> Iterator[HourChange]:
    """Yield what reformatting would do to each hour, or, with `yes`, has done."""
    return change_hours(target, hours, REASON, plan_reformat, yes=yes)


def plan_reformat(target: TopicSink, hour: str, manifests: list[Manifest]) -> Plan | None:
    """Plan to reformat an hour. Return None if it has the sink's present form. Raise CannotChange if it cannot."""
    stale = _find_stale(target, manifests)
    if not stale:
        return None
    files = collect_files(stale)
    size = sum(file.bytes for file in files)
    form = " and ".join(sorted({f"{one.form.format} {one.form.codec}".strip() for one in stale}))
    of_files = f"{format_count(len(files), 'files')} of {format_count(size, 'bytes')}"
    summary = f"{of_files}, {form}, {'is' if len(files) == 1 else 'are'} written again"
    change = HourChange(hour, summary, 0, len(files), size)
    blocker = find_reformat_blocker(target.sink, target.topic, stale)
    if blocker:
        raise CannotChange(blocker)
    return Plan(change, [(group, partial(_write, target, group)) for group in group_compatible(stale)])


def _find_stale(target: TopicSink, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the commits that have another form than the sink would give them."""
    landed = target.sink.after_transforms
    now = form_of(landed).without_transforms
    return [
        manifest
        for manifest in manifests
        if manifest.files
        and (manifest.form.without_transforms != now or not is_placed_as_now(landed, target.topic, manifest))
    ]


def find_reformat_blocker(sink: Sink, topic: str, manifests: Sequence[Manifest]) -> str:
    """Return the reason why the data of commits cannot have the present form of `sink`. Return "" if it can."""
    landed = sink.after_transforms
    keys = stage_values.build_key_layout(landed, topic)
    if keys.numbers & {"min_timestamp", "max_timestamp", "last_offset"} or landed.flush.span is not None:
        return "the layout names timestamps or last offsets of records, which objects need not contain"
    with_data = [one for one in manifests if any(file.stream != DEAD_LETTERS for file in one.files)]
    return next(filter(None, (_find_blocker_of(one, landed, topic) for one in with_data)), "")


def _find_blocker_of(manifest: Manifest, landed: Sink, topic: str) -> str:
    shape, keys = ObjectShape.from_manifest(manifest), stage_values.build_key_layout(landed, topic)
    if shape.sidecars.keys or shape.sidecars.headers or landed.sidecars.types:
        return "key and header files belong to the data row by row"
    if _keeps_rows(shape, landed):
        if keys.needs("key") or keys.needs("header") or keys.needs("timestamp") or keys.has_tombstones:
            return "the layout names parts of a record that its columns do not hold"
        return find_blocker_of_places(keys, shape)
    if manifest.nulls == "write" and shape.format in _EMPTY_NULLS and landed.format.type not in _EMPTY_NULLS:
        return f"records without a value are empty in format {shape.format}, as are those whose value is empty"
    needed = set[str](landed.envelope.fields if landed.envelope else ())
    needed |= {"timestamp", "offset"} if "metadata" in needed else set()
    of_keys = {"key": keys.needs("key"), "headers": keys.needs("header"), "timestamp": keys.needs("timestamp")}
    needed |= {part for part, is_needed in of_keys.items() if is_needed}
    parts = Parts.from_shape(shape)
    lacks = sorted(part for part in needed & {"key", "headers", "timestamp", "offset"} if not getattr(parts, part))
    return parts.lacking or (f"it does not hold the {' and '.join(lacks)}" if lacks else "")


def _keeps_rows(shape: ObjectShape, landed: Sink) -> bool:
    """Return whether rows of columns stay what they are: the same parts of the same records, in another file."""
    now = shape_of(landed)
    same = (shape.envelope, shape.key, shape.value) == (now.envelope, now.key, now.value)
    return same and shape.format in ("parquet", "avro") and FORMATS[landed.format.type].tabular


def _write(target: TopicSink, manifests: Sequence[Manifest], attempt: Attempt, files: list[File]) -> Staged:
    """Stage the data of commits in the present form, and copies of their dead letters."""
    whole, sink = carry_over(manifests), target.sink.after_transforms
    keys = stage_values.build_key_layout(sink, target.topic, attempt.suffix, hour_ms=hourly.start_ms(manifests[0].hour))
    parts = _Reencoder(target, manifests, attempt, files).write()
    for manifest in manifests:
        for file in collect_files([manifest], DEAD_LETTERS):
            key = keys.dead_letters_key(file.partition, file.first_offset)
            files += copy_file(target, manifest, file, attempt.commit, key)
    form, columns = (parts[-1].form, parts[-1].columns) if parts else (form_of(sink), whole.columns)
    transforms = {"transformed": whole.form.transformed, "transforms": whole.form.transforms}
    reads = merge_reads((whole.reads, *(_keep_left_out(part.reads) for part in parts)))
    return replace(whole, reads=reads, form=msgspec.structs.replace(form, **transforms), columns=columns)


def _keep_left_out(reads: Mapping[int, Read]) -> dict[int, Read]:
    """Return only the counts of fields that the new files lack: the records themselves are counted already."""
    return {
        partition: Read(read.start, read.end, fields_left_out=read.fields_left_out) for partition, read in reads.items()
    }


@dataclass
class _Reencoder:
    """Writes the data of commits of one form in the form that the sink has now, and adds its files to `files`.

    Rows of columns stay rows of columns, in another file; texts go through the present converter again. If a file would
    not hold the records that it is made of, `CannotChange` is raised, and the engine drops `files`.
    """

    target: TopicSink
    manifests: Sequence[Manifest]
    attempt: Attempt
    files: list[File]

    def __post_init__(self) -> None:
        self._sink = self.target.sink.after_transforms.model_copy(update={"transforms": (), "sql": None})
        self._shape = ObjectShape.from_manifest(self.manifests[0])
        sources = collect_files(self.manifests, "data")
        self._sources = sorted(sources, key=attrgetter("partition", "first_offset"))
        self._hour = self.manifests[0].hour
        # Offsets of topic-partitions that are dead letters of these commits: so no row is taken for one of them.
        self._dead: dict[int, set[int]] = {}
        for manifest in self.manifests:
            for dead_letter in read_committed_dead_letters(self.target.store, manifest):
                self._dead.setdefault(dead_letter.partition, set()).add(dead_letter.offset)

    def write(self) -> list[Staged]:
        """Stage the data. Return the form and columns of each object's records.

        Raises:
            CannotChange: some of it cannot have this form.
        """
        parts = self._write_each()
        if any(part.columns != parts[-1].columns for part in parts):  # columns that only later objects have
            abort_uploads(self.target.store, self.files)
            self.files.clear()
            parts = self._write_each()
        if sum(file.records for file in self.files) != sum(file.records for file in self._sources):
            raise CannotChange("fewer or more records would be in its files")
        return parts

    def _write_each(self) -> list[Staged]:
        """Write object by object: a file ends where its source does, so what is known of offsets stays what it was."""
        write = self._write_rows if _keeps_rows(self._shape, self._sink) else self._write_texts
        parts = []
        for file in self._sources:
            manifest = next(one for one in self.manifests if file in one.files)
            parts.append(write(file, read_whole(self.target.store, manifest, file)))
        twice = next((key for key, count in Counter(file.key for file in self.files).items() if count > 1), None)
        if twice is not None:
            raise CannotChange(
                f"two files would have the key {twice}: records of its files lie between each other, and rows do "
                "not contain their offsets"
            )
        return parts

    def _add(self, source: File, files: Iterable[File]) -> None:
        """Add the staged files that are made of `source`."""
        more = slack(self._shape, source, self._dead_of(source))
        self.files += (msgspec.structs.replace(file, last_offset=file.last_offset + more) for file in files)

    def _dead_of(self, file: File) -> Set[int]:
        return self._dead.get(file.partition, frozenset())

    def _write_rows(self, file: File, body: bytes) -> Staged:
        """Write rows of columns as they are."""
        try:
            return self._stage_rows(file, body)
        except ConfigurationError as error:  # a value does not fit its column, or a row has no place in the layout
            raise CannotChange(str(error)) from None

    def _stage_rows(self, file: File, body: bytes) -> Staged:
        sink, store, attempt, hour_ms = self._sink, self.target.store, self.attempt, hourly.start_ms(self._hour)
        offsets, has_offsets = find_least_offsets(file, self._dead_of(file)), Parts.from_shape(self._shape).offset
        keys = stage_values.build_key_layout(
            sink, self.target.topic, attempt.suffix, wallclock_ms=attempt.begun_ms, hour_ms=hour_ms
        )
        is_compared = sink.format.type != "csv"  # the text of a value in CSV is not what its column held
        with StagedCopies(store) as copies:
            target = copies.store if is_compared else store
            staging = Staging(target, keys, stage_values.build_file_rule(sink), attempt.commit)
            try:
                for rows in self._read_rows(file, body):
                    numbers = read_offsets(rows) if has_offsets else pa.array(islice(offsets, len(rows)), pa.int64())
                    placed = StagingRows(numbers, pa.array([0] * len(rows), pa.int64()), {"data": rows})
                    staging.add(file.partition, place(keys, file.partition, rows, self._shape), placed)
                files = staging.finish()
            except BaseException:
                staging.abort()
                raise
            self._add(file, files)
            if is_compared:
                self._compare(file, files, self._digest_rows(keys, file, body), copies)
        return Staged(tuple(files), {}, form_of(sink), columns=self.manifests[-1].columns)

    def _read_rows(self, file: File, body: bytes) -> Iterator[pa.RecordBatch]:
        assert self._shape.columns is not None  # else there was a blocker
        schema = to_arrow(self._shape.columns.fields)
        for some in open_columns(self._shape, body, file.key).batches:
            yield cast_batch(some, schema, file.key)

    def _digest_rows(self, keys: KeyLayout, file: File, body: bytes) -> dict[str, Digest]:
        """Return the digest of each group's rows, which are read again."""
        digests: dict[str, Digest] = defaultdict(Digest)
        for rows in self._read_rows(file, body):
            groups = place(keys, file.partition, rows, self._shape)
            if isinstance(groups, str):
                digests[groups].add_batch(rows)
                continue
            for group in groups.unique().to_pylist():
                digests[group].add_batch(rows.filter(pc.equal(groups, group)))
        return digests

    def _compare(self, file: File, files: Sequence[File], digests: Mapping[str, Digest], copies: StagedCopies) -> None:
        """Compare the staged files of each group with the records of `file` that are in it.

        Raises:
            CannotChange: files would not hold these records.
        """
        shape = msgspec.structs.replace(shape_of(self._sink), columns=self._shape.columns)
        in_order = sorted(files, key=attrgetter("first_offset"))
        for group in digests.keys() | {new.group or "" for new in files}:
            own = [new for new in in_order if new.group == group]
            if group not in digests or not copies.hold(own, shape, digests[group]):
                raise CannotChange(f"{', '.join(new.key for new in own)} would not hold the records of {file.key}")

    def _write_texts(self, file: File, body: bytes) -> Staged:
        """Write texts through the present converter."""
        target, sink, attempt, hour = self.target, self._sink, self.attempt, self._hour
        stored, others = target.index.columns(), self._dead_of(file)
        commit, mark, at = attempt.commit, attempt.suffix, attempt.begun_ms
        work = stage_values.build_work(
            sink, target.topic, target.stores, hour, commit=commit, mark=mark, wallclock_ms=at
        )
        work = replace(work, tolerant=True)

        def read(_: Intervals) -> Batches:
            return {
                file.partition: map(to_record_batch, read_kafka_records(self._shape, body, file, target.topic, others))
            }

        runner = InProcessTaskRunner(read, SparkJobs(target.spark))
        reads = {file.partition: (file.first_offset, file.last_offset + 1)}
        record = partial(outcomes.record, target.index, sink.max_columns, hour, commit)
        with StagedCopies(target.store) as copies:
            group = work.keys.fixed_group(file.partition) if self._keeps_texts else None
            if group is not None:
                work = replace(work, stores=lambda _: copies.store)
            staging = MicroBatchStaging(sink, target.topic, partial(run_request, runner))
            part = staging.stage(work, reads, stored[0] if stored else Recorded({}), record)
            self._add(file, part.files)
            if runner.refusals:
                first = runner.refusals[0]
                raise CannotChange(
                    f"the present configuration refuses {format_count(len(runner.refusals), 'records')} of {file.key}, "
                    f"as that near offset {first.offset}: {first.message}"
                )
            if group is not None:
                digest = Digest()
                digest.add(self._shape, body, file.key)
                self._compare(file, part.files, {group: digest}, copies)
        return part

    @property
    def _keeps_texts(self) -> bool:
        """True if records are the same texts in the old form and in the new, whatever was written."""
        was, now = self._shape, shape_of(self._sink)
        form = attrgetter("format", "envelope", "key", "value", "in_columns")
        return not was.in_columns and was.format == "json" and form(was) == form(now)
