"""Recast: the data of commits in the form that the sink has now, made of their committed objects.

Rows of columns stay rows of columns, whatever the file; texts go through the present converter once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake import hours as hourly
from s3lake.commit.documents import LETTERS, File, Manifest, Recorded, files_of
from s3lake.commit.index import TopicIndex
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import abort
from s3lake.encode.formats import FORMATS
from s3lake.errors import ConfigurationError
from s3lake.land import binding
from s3lake.land.given import Batches, GivenEngine, batch
from s3lake.land.job import Job, staged
from s3lake.land.recast.records import Parts, offsets_of, read_offsets, records, slack
from s3lake.land.task import outcomes
from s3lake.land.task.pipeline import Stores
from s3lake.land.task.rows import place_rows
from s3lake.land.task.staging import FileRule, Rows, Staging
from s3lake.layout.key import KeyLayout
from s3lake.objects import Shape, content, tables
from s3lake.objects.columns import cast_batch
from s3lake.objects.digest import Digest
from s3lake.plan.batch import Intervals
from s3lake.schema.arrow import to_arrow
from s3lake.store.reading import opened

if TYPE_CHECKING:
    from s3lake.sink import Sink

_EMPTY_NULLS = ("text", "bytes")
"""Formats in which null and an empty value are the same."""
_NO_LIMIT = 2**63 - 1


class Unformattable(Exception):
    """Objects that cannot be written in another form; the message says why."""


def obstacle(sink: Sink, topic: str, manifests: Sequence[Manifest]) -> str:
    """Why the data of these commits cannot have the form of `sink` as it is now; empty where it can."""
    landed = sink.after_transforms
    keys = binding.key_rule(landed, topic)
    if keys.numbers & {"min_timestamp", "max_timestamp", "last_offset"} or landed.flush.span is not None:
        return "the layout names timestamps or last offsets of records, which objects need not say"
    for manifest in manifests:
        if all(file.kind == LETTERS for file in manifest.files):
            continue
        shape = Shape.of(manifest)
        if shape.base64_decimals != (landed.format.decimals == "base64"):
            return "its decimals are spelled otherwise, and only the schemas of Kafka's records say what is a decimal"
        if shape.sidecars.keys or shape.sidecars.headers or landed.sidecars.types:
            return "keys and headers beside the data belong to it row by row"
        if _in_columns(shape, landed):
            if keys.needs("key") or keys.needs("header") or keys.needs("timestamp") or keys.has_tombstones:
                return "the layout names parts of a record that its columns do not hold"
            continue
        if manifest.nulls == "write" and shape.format in _EMPTY_NULLS and landed.format.type not in _EMPTY_NULLS:
            return f"records without a value are empty in format {shape.format}, as are those whose value is empty"
        has = Parts.of(shape)
        envelope = set(landed.envelope.fields) if landed.envelope else set()
        lacking = {"key": has.key, "headers": has.headers, "timestamp": has.timestamp, "offset": has.offset}
        lacks = [name for name, there in lacking.items() if not there]
        if "metadata" in envelope:
            envelope |= {"timestamp", "offset"}
        needed = {"header": "headers"}
        asked = {needed.get(one, one) for one in ("key", "header", "timestamp") if keys.needs(one)}
        if has.lacking or (envelope | asked) & set(lacks):
            return has.lacking or f"it does not hold the {' and '.join(sorted((envelope | asked) & set(lacks)))}"
    return ""


def _in_columns(shape: Shape, landed: Sink) -> bool:
    """Whether rows of columns can stay what they are: the same parts of the same records, in another file."""
    now = binding.shape_of(landed)
    same = (shape.envelope, shape.key, shape.value) == (now.envelope, now.key, now.value)
    return same and shape.format in ("parquet", "avro") and FORMATS[landed.format.type].tabular


def _no_session() -> NoReturn:
    raise AssertionError("nothing here is asked in SQL")


@dataclass
class Recast:
    """The data of commits of one form in the form that the sink has now.

    Attributes:
        dead: offsets of topic-partitions that are dead letters of these commits: so no row is taken for one of them.
    """

    sink: Sink
    index: TopicIndex
    stores: Stores
    hour: str
    manifests: Sequence[Manifest]
    dead: Mapping[int, Set[int]] = field(default_factory=dict)

    @property
    def columns_stay(self) -> bool:
        """Whether rows keep the columns that their commits recorded."""
        return _in_columns(self._shape, self.sink.after_transforms)

    def staged(self, attempt: Attempt) -> Staged:
        """Their data: files, form and columns. It holds nothing else of the commits.

        Raises:
            Unformattable: some of it cannot have this form; nothing is left of the rest.
        """
        sink = self.sink.after_transforms.model_copy(update={"transforms": (), "sql": None})
        parts = self._all_written(sink, attempt)
        files = files_of(parts)
        data = (file for file in files if file.kind == "data")
        if sum(file.records for file in data) != sum(file.records for file in self._files):
            abort(self.index.store, files)
            raise Unformattable("fewer or more records would be in its files")
        last = self.manifests[-1]
        form = parts[-1] if parts else Staged((), {}, last.format, last.converter, last.nulls, last.shape, last.columns)
        then = last.shape
        shape = msgspec.structs.replace(form.shape, transformed=then.transformed, transforms=then.transforms)
        # What was skipped then was not read again now.
        return replace(form, files=tuple(files), reads={}, nulls=last.nulls, shape=shape, dropped={}, filled={})

    @property
    def _shape(self) -> Shape:
        return Shape.of(self.manifests[0])

    @property
    def _files(self) -> list[File]:
        """Files of data in the order of their records."""
        files = files_of(self.manifests, "data")
        return sorted(files, key=attrgetter("partition", "first_offset"))

    @cached_property
    def _overlapping(self) -> set[str]:
        """Keys of data files whose offset ranges overlap that of another file of their topic-partition."""
        keys: set[str] = set()
        last: File | None = None  # the file so far whose range ends last
        for file in self._files:
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
        if file.key not in self._overlapping or Parts.of(self._shape).offset:
            return rule
        return replace(rule, count=_NO_LIMIT, size=_NO_LIMIT)

    def _body(self, file: File) -> bytes:
        commit = next(one.id for one in self.manifests if file in one.files)
        with opened(self.index.store, file.key, file.bytes, commit) as body:
            return body.read()

    def _all_written(self, sink: Sink, attempt: Attempt) -> list[Staged]:
        """All of them, with the columns of all: those that only later objects have are known once they were written."""
        parts = self._each_written(sink, attempt)
        if any(part.columns != parts[-1].columns for part in parts):
            abort(self.index.store, files_of(parts))
            parts = self._each_written(sink, attempt)
        return parts

    def _each_written(self, sink: Sink, attempt: Attempt) -> list[Staged]:
        """Object by object: where one ends another begins, so what is known of offsets stays what it was."""
        parts: list[Staged] = []
        try:
            for file in self._files:
                write = self._columns if self.columns_stay else self._texts
                written = write(sink, attempt, file, self._body(file))
                more = slack(self._shape, file, self.dead.get(file.partition, frozenset()))
                longer = (msgspec.structs.replace(new, last_offset=new.last_offset + more) for new in written.files)
                parts.append(replace(written, files=tuple(longer)))
            keys = Counter(file.key for file in files_of(parts))
            twice = next((key for key, files in keys.items() if files > 1), None)
            if twice is not None:
                raise Unformattable(
                    f"two files would have the key {twice}: records of its files lie between each other, and rows do "
                    "not say their offsets"
                )
        except BaseException:
            abort(self.index.store, files_of(parts))
            raise
        return parts

    def _columns(self, sink: Sink, attempt: Attempt, file: File, body: bytes) -> Staged:
        """Rows of columns as they are."""
        last = self.manifests[-1]
        offsets = offsets_of(file, self.dead.get(file.partition, frozenset()))
        keys = binding.key_rule(
            sink,
            self.index.topic,
            attempt.suffix,
            wallclock_ms=attempt.begun_ms,
            hour_ms=hourly.start_ms(self.hour),
        )
        rule, has_offsets = self._file_rule(binding.file_rule(sink), file), Parts.of(self._shape).offset
        staging = Staging(self.index.store, keys, rule, attempt.commit)
        try:
            for rows in self._rows(file, body):
                times = pa.array([0] * len(rows), pa.int64())
                numbers = read_offsets(rows) if has_offsets else pa.array(islice(offsets, len(rows)), pa.int64())
                groups = _place(keys, file.partition, rows)
                if isinstance(groups, str):
                    staging.add(file.partition, groups, Rows(numbers, times, {"data": rows}))
                else:
                    staging.add_sorted(file.partition, groups, Rows(numbers, times, {"data": rows}))
            files = staging.finish()
        except BaseException:
            staging.abort()
            raise
        return Staged(
            # The text of a value in CSV is not what its column held.
            files=tuple(files if sink.format.type == "csv" else self._digested(keys, file, body, files)),
            reads={},
            format=sink.format.type,
            converter=sink.converter.value,
            shape=binding.written_by(sink),
            columns=last.columns,
        )

    def _rows(self, file: File, body: bytes) -> Iterator[pa.RecordBatch]:
        shape = self._shape
        assert shape.columns is not None  # else there was an obstacle
        schema = to_arrow(shape.columns.fields)
        for some in tables.opened(shape, body, file.key).batches:
            try:
                yield cast_batch(some, schema, file.key)
            except ConfigurationError as error:
                raise Unformattable(str(error)) from None

    def _digested(self, keys: KeyLayout, file: File, body: bytes, files: Sequence[File]) -> Iterator[File]:
        """The new files with the digests of the rows that they were made of, which are read once more."""
        left: dict[str | None, list[File]] = {}
        for new in sorted(files, key=attrgetter("first_offset")):
            left.setdefault(new.group, []).append(new)
        digests = {new.key: (Digest(), new.records) for new in files}
        for rows in self._rows(file, body):
            groups = _place(keys, file.partition, rows)
            every = [groups] if isinstance(groups, str) else groups.unique().to_pylist()
            for group in every:
                own = rows if isinstance(groups, str) else rows.filter(pc.equal(groups, group))
                while own.num_rows:
                    new = left[group][0]
                    digest, wanted = digests[new.key]
                    taken = digest.rows(own.slice(0, wanted))
                    digests[new.key] = digest, wanted - taken
                    if wanted == taken:
                        left[group].pop(0)
                    own = own.slice(taken)
        return (msgspec.structs.replace(new, digest=str(digests[new.key][0])) for new in files)

    def _texts(self, sink: Sink, attempt: Attempt, file: File, body: bytes) -> Staged:
        """Texts through the present converter."""
        index, others = self.index, self.dead.get(file.partition, frozenset())
        stored = index.columns()
        work = binding.work(
            sink,
            index.topic,
            self.stores,
            commit=attempt.commit,
            renamed=attempt.suffix,
            hour_start_ms=hourly.start_ms(self.hour),
            columns={},
            wallclock_ms=attempt.begun_ms,
        )

        work = replace(work, files=self._file_rule(work.files, file))

        def read(_: Intervals) -> Batches:
            return {file.partition: map(batch, records(self._shape, body, file, index.topic, others))}

        engine = GivenEngine(read, _no_session)
        job = Job(sink, index.topic, engine, _no_session)
        reads = {file.partition: (file.first_offset, file.last_offset + 1)}
        record = partial(outcomes.record, index, sink.max_columns, self.hour, attempt.commit)
        done, work = job.staged(replace(work, tolerant=True), reads, stored[0] if stored else Recorded({}), record)
        commit = staged(sink, index.topic, index.store, work, done)
        if engine.refusals:
            abort(index.store, commit.files)
            first = engine.refusals[0]
            raise Unformattable(
                f"{len(engine.refusals):,} records of {file.key} are refused by the present configuration, as that "
                f"near offset {first.offset}: {first.message}"
            )
        if self._texts_stay and work.keys.fixed_group(file.partition) is not None:
            return replace(commit, files=tuple(self._texts_digested(file, body, commit.files)))
        return commit

    @property
    def _texts_stay(self) -> bool:
        """Whether records are the same texts in the old form and in the new, for all that anybody may have written."""
        was, now = self._shape, binding.shape_of(self.sink.after_transforms)
        form = attrgetter("format", "envelope", "key", "value", "in_columns")
        return not was.in_columns and was.format == "json" and form(was) == form(now)

    def _texts_digested(self, file: File, body: bytes, files: Sequence[File]) -> Iterator[File]:
        texts = chain.from_iterable(content.records(self._shape, body, file.key))
        for new in sorted(files, key=attrgetter("first_offset")):
            digest = Digest()
            digest.texts(list(islice(texts, new.records)))
            yield msgspec.structs.replace(new, digest=str(digest))


def _place(keys: KeyLayout, partition: int, rows: pa.RecordBatch) -> str | pa.Array:
    """Return the group of all rows of columns, or of each.

    Raises:
        Unformattable: a row has no place in the layout.
    """
    try:
        return place_rows(keys, partition, rows)
    except ConfigurationError as error:
        raise Unformattable(str(error)) from None
