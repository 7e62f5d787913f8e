"""Reformat: commits of landed hours in the form that the sink has now, made of their committed objects.

Rows of columns stay rows of columns, whatever the file; texts go through the present converter once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import msgspec
import pyarrow as pa

from s3lake import hours as hourly
from s3lake.commit.index import Columns as Recorded
from s3lake.commit.index import File, Manifest
from s3lake.commit.letters import LETTERS
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import abort
from s3lake.encode.formats import FORMATS
from s3lake.land import binding
from s3lake.land.change.holding import Holding, alike
from s3lake.land.change.records import Parts, records, slack
from s3lake.land.given import Batches, GivenEngine, batch
from s3lake.land.job import Job
from s3lake.land.merge import carried
from s3lake.land.replay.beside import copied_as
from s3lake.land.staged import staged
from s3lake.land.task import outcomes
from s3lake.land.task.staging import Rows, Staging
from s3lake.layout.key import Fields, KeyRule
from s3lake.layout.pieces import Time
from s3lake.objects import Shape, fit, tables
from s3lake.plan.batch import Intervals
from s3lake.schema.arrow import to_arrow
from s3lake.store.reading import opened

if TYPE_CHECKING:
    from s3lake.sink import Sink

REASON = "reformat"


class Unformattable(Exception):
    """Objects that cannot be written in another form; the message says why."""


@dataclass(frozen=True)
class Reformation:
    """What becomes of an hour.

    Attributes:
        commits: that are written anew.
        files: of them.
        bytes: of these.
        was: their form.
        obstacle: why it stays; empty where it does not.
    """

    hour: str
    commits: int
    files: int
    bytes: int
    was: str
    obstacle: str = ""

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.hour}: it stays {self.was}: {self.obstacle}"
        return f"{self.hour}: {self.files:,} files of {self.bytes:,} bytes, {self.was}, are written anew"


def reformations(holding: Holding, hours: Iterable[str]) -> Iterator[Reformation]:
    """What reformatting would do; nothing is said of hours that have the sink's present form."""
    for hour in hours:
        stored = holding.index.tile(hour)
        manifests = holding.manifests(hour)
        if manifests is None:
            if stored is not None and stored[0].commits:
                yield Reformation(hour, 0, 0, 0, "as it is", "it is not landed as a whole")
            continue
        stale = _stale(holding, manifests)
        if stale:
            yield _reformation(hour, stale, _obstacle(holding, stale))


def reformat(holding: Holding, hour: str) -> Reformation:
    """Write an hour anew where it has another form than the sink: one commit for each form that it has.

    Raises:
        FencedError: another writer was faster.
        S3LakeError: the store or the table was in the way; the hour is as it was, or this can be repeated.
    """
    holding.tidied(hour)
    stale = _stale(holding, holding.manifests(hour) or [])
    obstacle = _obstacle(holding, stale)
    try:
        for group in () if obstacle else alike(stale):
            holding.exchange(hour, group, REASON, _Writing(holding, hour, group).staged)
    except Unformattable as error:
        obstacle = str(error)
    return _reformation(hour, stale, obstacle)


def _reformation(hour: str, stale: Sequence[Manifest], obstacle: str) -> Reformation:
    files = [file for manifest in stale for file in manifest.files]
    forms = sorted({f"{one.format} {one.shape.codec or ''}".strip() for one in stale})
    return Reformation(hour, len(stale), len(files), sum(one.bytes for one in files), " and ".join(forms), obstacle)


def _stale(holding: Holding, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Commits that have another form than the sink would give them."""
    landed, topic = holding.sink.landed, holding.index.topic
    now = (landed.format.type, landed.converter.value)
    return [
        manifest
        for manifest in manifests
        if manifest.files
        and (
            (manifest.format, manifest.converter) != now
            or msgspec.structs.replace(manifest.shape, changed=False)
            != msgspec.structs.replace(binding.written_by(landed), changed=False)
            or not _placed_so(landed, topic, manifest)
        )
    ]


def _placed_so(landed: Sink, topic: str, manifest: Manifest) -> bool:
    """Whether the present layout has places like those of a commit's files."""
    if any(isinstance(piece, Time) and piece.clock == "wallclock" for piece in landed.layout.pieces):
        return True  # the time of another micro-batch is no other layout
    keys = binding.key_rule(landed, topic, hour_ms=hourly.start_ms(manifest.hour))
    return all(
        keys.may_be(file.group, file.partition) for file in manifest.files if file.kind != LETTERS and file.group
    )


def _obstacle(holding: Holding, stale: Sequence[Manifest]) -> str:
    landed = holding.sink.landed
    keys = binding.key_rule(landed, holding.index.topic)
    if keys.numbers & {"min_timestamp", "max_timestamp", "last_offset"} or landed.flush.span is not None:
        return "the layout names timestamps or last offsets of records, which objects need not say"
    for manifest in stale:
        shape = Shape.of(manifest, key=landed.converter.key, value=landed.converter.value)
        if shape.sidecars.keys or shape.sidecars.headers or landed.sidecars.types:
            return "keys and headers beside the data belong to it row by row"
        if _in_columns(shape, landed):
            if keys.needs("key") or keys.needs("header") or keys.needs("timestamp") or keys.has_tombstones:
                return "the layout names parts of a record that its columns do not hold"
            if shape.columns is None:
                return "its commit, of an earlier s3lake, does not say which columns it has"
            continue
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
class _Writing:
    """One commit in the making, of commits of one form."""

    holding: Holding
    hour: str
    manifests: Sequence[Manifest]

    def staged(self, attempt: Attempt) -> Staged:
        """What takes the place of the commits."""
        sink = self.holding.sink.landed.model_copy(update={"transforms": (), "sql": None})
        keys = binding.key_rule(
            sink,
            self.holding.index.topic,
            attempt.suffix,
            wallclock_ms=attempt.begun_ms,
            hour_ms=hourly.start_ms(self.hour),
        )
        parts = self._all_written(sink, keys, attempt)
        files = [file for one in parts for file in one.files]
        try:
            if sum(file.records for file in files if file.kind == "data") != sum(file.records for file in self._files):
                raise Unformattable("fewer or more records would be in its files")
            for manifest in self.manifests:
                for file in manifest.files:
                    if file.kind == LETTERS:
                        key = keys.dead_letters_key(file.partition, file.first_offset)
                        store = self.holding.index.store
                        files.append(copied_as(store, manifest, file, key, attempt.commit))
        except BaseException:
            abort(self.holding.index.store, files)
            raise
        changed = any(one.shape.changed is True for one in self.manifests)
        form = parts[-1] if parts else self.manifests[-1]
        return replace(
            carried(self.manifests),
            files=tuple(sorted(files, key=lambda file: file.key)),
            format=form.format,
            converter=form.converter,
            nulls=form.nulls,
            shape=msgspec.structs.replace(form.shape, changed=changed),
            columns=form.columns,
        )

    @property
    def _shape(self) -> Shape:
        return Shape.of(self.manifests[0], key=self.holding.sink.converter.key, value=self.holding.sink.converter.value)

    @property
    def _files(self) -> list[File]:
        """Files of data in the order of their records."""
        files = [file for manifest in self.manifests for file in manifest.files if file.kind == "data"]
        return sorted(files, key=lambda file: (file.partition, file.first_offset))

    def _body(self, file: File) -> bytes:
        commit = next(one.id for one in self.manifests if file in one.files)
        with opened(self.holding.index.store, file.key, file.bytes, commit) as body:
            return body.read()

    def _all_written(self, sink: Sink, keys: KeyRule, attempt: Attempt) -> list[Staged]:
        """Object by object: where one ends another begins, so what is known of offsets stays what it was."""
        parts: list[Staged] = []
        try:
            for file in self._files:
                write = self._columns if _in_columns(self._shape, sink) else self._texts
                written = write(sink, keys, attempt, file)
                more = slack(self._shape, file)
                longer = (msgspec.structs.replace(new, last_offset=new.last_offset + more) for new in written.files)
                parts.append(replace(written, files=tuple(longer)))
        except BaseException:
            abort(self.holding.index.store, [file for one in parts for file in one.files])
            raise
        return parts

    def _columns(self, sink: Sink, keys: KeyRule, attempt: Attempt, file: File) -> Staged:
        """Rows of columns as they are."""
        shape, last = self._shape, self.manifests[-1]
        assert shape.columns is not None  # else there was an obstacle
        schema, offset = to_arrow(shape.columns.fields), file.first_offset
        staging = Staging(self.holding.index.store, keys, binding.file_rule(sink), attempt.commit)
        try:
            for some in tables.opened(shape, self._body(file), file.key).batches:
                rows = fit.fitted(some, schema, file.key, fit.widened)
                offsets = pa.array(range(offset, offset + len(rows)), pa.int64())
                offset += len(rows)
                times = pa.array([0] * len(rows), pa.int64())
                _stage(staging, keys, file.partition, Rows(offsets, times, {"data": rows}))
            files = staging.finish()
        except BaseException:
            staging.abort()
            raise
        return Staged(
            files=tuple(files),
            reads={},
            format=sink.format.type,
            converter=sink.converter.value,
            nulls=last.nulls,
            shape=binding.written_by(sink),
            columns=last.columns,
        )

    def _texts(self, sink: Sink, _: KeyRule, attempt: Attempt, file: File) -> Staged:
        """Texts through the present converter."""
        holding, index = self.holding, self.holding.index
        stored = index.columns()
        work = binding.work(
            sink,
            index.topic,
            holding.stores,
            commit=attempt.commit,
            renamed=attempt.suffix,
            hour_start_ms=hourly.start_ms(self.hour),
            columns={},
            wallclock_ms=attempt.begun_ms,
        )
        body = self._body(file)

        def read(_: Intervals) -> Batches:
            return {file.partition: map(batch, records(self._shape, body, file, index.topic))}

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
        return commit


def _stage(staging: Staging, keys: KeyRule, partition: int, rows: Rows) -> None:
    group = keys.fixed_group(partition)
    if group is not None:
        staging.add(partition, group, rows)
        return
    values = [msgspec.json.encode(row, enc_hook=str) for row in rows.streams["data"].to_pylist()]
    groups = keys.groups(partition, Fields(values=values), len(rows))
    strange = next((one for one in groups if not isinstance(one, str)), None)
    if strange is not None:
        raise Unformattable(f"a record has no place in the present layout: {strange}")
    staging.add_sorted(partition, pa.array(groups, pa.string()), rows)
