"""One Spark task: transform, convert, lay out, stage. `_stage_records` has the order of the stages.

Everything that it needs travels in a `Work` of plain values, so a Python worker imports neither Dagster nor pydantic.
The results come back as rows, one encoded outcome each: exceptions would lose their type under Spark Connect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import Read
from s3lake.index.store import Store, Stores
from s3lake.land.task.outcomes import Done, Failed, Grown, Outcome, Refused, with_seen
from s3lake.land.task.placed_rows import lay_out, split_tombstones
from s3lake.land.task.refused_records import RefusedRecords, Witness, log
from s3lake.land.task.staging import FileRule, Staging
from s3lake.land.task.task_output import TaskOutput
from s3lake.land.task.transformed_batch import Prepared, project_batch, read_computed, take_rows
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.convert.read.schema_headers import prepend_schema_ids
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.layout.object_keys import KeyLayout
from s3lake.records.record_timestamps import to_epoch_ms
from s3lake.records.schema.columns.limits import HAS_LARGE, IN_TABLE
from s3lake.records.schema.columns.types import Columns, Primitive, leaf_paths, to_document
from s3lake.records.schema.columns.union import merge_columns
from s3lake.records.transform.chain.apply import apply_chain
from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget

if TYPE_CHECKING:
    from s3lake.records.convert.fit.schema_projection import SchemaProjector
    from s3lake.records.transform.chain.chain import Chain
    from s3lake.records.transform.sql.query import Projection

_INTEGERS = (Primitive.INT32, Primitive.INT64)


@dataclass(frozen=True)
class Work:
    """The work of a task, as plain values.

    Attributes:
        hour_start_ms: records stamped earlier are counted as late.
        columns: the columns of the sink's files; None if the format has no columns that grow.
        wallclock_ms: the micro-batch's time, epoch milliseconds.
        chain: the sink's transforms; if Spark computes, they run before it, in `land.sql.sql_table`.
        projection: the sink's SQL.
        needs: Kafka columns that transforms or SQL ask for.
        identified: the parts of records, `key` or `value`, whose schemas headers may name.
        look_only: read only to see the columns; stage nothing.
        dead_letter_topic: gets refused records too, before the task reports that it is done.
        log: what is logged of a refused record: `none`, its offset, stage and `reason`, or the rest of its `place` too.
        witness: a function that is called with each refused record; only in the driver's process.
    """

    stores: Stores
    bucket: str
    commit: str
    hour_start_ms: int
    conversion: Conversion
    keys: KeyLayout
    files: FileRule
    tolerant: bool
    wallclock_ms: int
    chain: Chain | None = None
    projection: Projection | None = None
    needs: frozenset[str] = frozenset()
    identified: frozenset[str] = frozenset()
    columns: Columns = field(default_factory=dict)
    look_only: bool = False
    dead_letter_topic: DeadLetterTarget | None = None
    log: str = "none"
    witness: Witness | None = None

    @property
    def by_columns(self) -> bool:
        """True if recorded columns matter: columns of files grow, or the contract compares records with them."""
        return self.conversion.has_columns or self.conversion.contract.compares_fields

    def with_contract(self, columns: Columns) -> Work:
        """Return the work with the columns recorded when it began: the contract compares records with them."""
        conversion = self.conversion
        if conversion.table:
            conversion = replace(conversion, integers_of_table=tuple(leaf_paths(columns, _INTEGERS)))
        if conversion.contract.compares_fields:
            contract = replace(conversion.contract, columns=conversion.of_values(columns))
            conversion = replace(conversion, contract=contract)
        return replace(self, conversion=conversion)

    def with_columns(self, columns: Columns, exact: Collection[str] = ()) -> Work:
        """Return the work for files with these columns; columns at the paths `exact` stay integers."""
        of_table = dict.fromkeys(self.conversion.integers_of_table, IN_TABLE)
        conversion = replace(self.conversion, integral={**of_table, **dict.fromkeys(exact, HAS_LARGE)})
        return replace(self, look_only=False, columns=columns, conversion=conversion)

    def has_settled_columns(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether all tasks are done, and have judged records by all columns that files of the commit share.

        Records without a schema, and all of CSV, share the columns of other records' schemas: an empty list is null in
        a column of integers.
        """
        done = [one for one in outcomes if isinstance(one, Done)]
        if len(done) < len(outcomes):
            return False
        shared = set().union(*(one.shared for one in done))
        of_parts = self.conversion.of_parts
        columns = with_seen(self.columns, done, self.conversion.integral)
        return of_parts(shared, columns) == of_parts(shared, self.columns)

    @property
    def file_columns(self) -> Columns | None:
        """Columns of the files, None if the format has none."""
        if self.conversion.has_columns:
            return self.columns
        return self.conversion.fixed_columns

    @property
    def record_columns(self) -> tuple[str, ...]:
        """Columns of `source.records.SCHEMA` that this work needs; each costs, so no others are made."""
        names = ["partition", "offset", "timestamp", "value"]
        needed = self.conversion.needs | self.needs
        if self.tolerant or self.keys.needs("key") or "key" in needed:
            names.append("key")
        if self.tolerant or self.keys.needs("header") or "headers" in needed or self.identified & {*names}:
            names.append("headers")
        return tuple(names)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the encoded results of a task; `mapInArrow` calls this."""
        for outcome in run(self, batches):
            yield pa.record_batch([pa.array([msgspec.json.encode(outcome)], pa.binary())], names=["outcome"])


def run(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[Outcome]:
    """Yield the outcome of one task: its records are staged, or why they are not. Yield nothing if it read nothing."""
    store = work.stores(work.bucket)
    staging = Staging(store, work.keys, work.files, work.commit)
    dead_letters = RefusedRecords(staging, work.dead_letter_topic, work.witness, work.files.budget // 8)
    output = TaskOutput(staging, dead_letters, work.files.budget // 8)
    outcomes: list[Outcome]
    try:
        progress = _stage_batches(work, output, batches)
        outcomes = _describe_growth(progress) if output.is_discarded else [_finish(output, store, progress)]
    except _RecordRefusedError as error:
        output.discard()
        outcomes = [error.refused]
    except S3LakeError as error:
        output.discard()
        outcomes = [Failed(type(error).__name__, str(error))]
    except BaseException:
        output.discard()
        raise
    yield from outcomes


@dataclass(frozen=True)
class SeenColumns:
    """The columns that a task has seen in a topic-partition.

    Attributes:
        of_files: the columns of the files, and of records without a schema.
        of_schemas: columns of records that brought their own schema.
        words: descriptions of columns.
        shared: see `Done`.
        large: see `Grown`.
        shapes: see `Grown`.
    """

    of_files: Columns
    of_schemas: Columns = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    large: frozenset[str] = frozenset()
    shapes: frozenset[str] = frozenset()

    def with_batch(self, ready: Prepared, converted: ConvertedBatch, *, grow: bool) -> SeenColumns:
        """Return the columns together with what one more batch has; with `grow` files may get new ones."""
        words = {path: text for part in converted.parts for path, text in part.words.items()}
        return SeenColumns(
            converted.columns if grow else self.of_files,
            merge_columns(self.of_schemas, converted.seen),
            {**self.words, **words},
            self.shared | converted.shared,
            self.large | converted.large,
            self.shapes | ready.unknown,
        )


@dataclass(frozen=True)
class Progress:
    """How far a task is.

    Attributes:
        seen: columns per topic-partition: which ones a task reads together decides nothing.
        reads: counts per topic-partition.
        broken: see `Done`.
    """

    seen: Mapping[int, SeenColumns] = field(default_factory=dict)
    reads: Mapping[int, Read] = field(default_factory=dict)
    broken: int = 0


class _RecordRefusedError(Exception):
    """A record was refused that the sink does not tolerate."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.reason)
        self.refused = refused


def _stage_batches(work: Work, output: TaskOutput, batches: Iterable[pa.RecordBatch]) -> Progress:
    """Stage all records of a task. Behind the records of a topic-partition its files are closed."""
    progress, projector = Progress(), work.conversion.make_projector()
    if work.look_only:
        output.discard()
    for partition, parts in groupby(_split_by_partition(batches), key=itemgetter(0)):
        for _, records in parts:
            progress = _stage_records(work, output, progress, projector, partition, records)
        output.close_files(partition)
    return progress


def _split_by_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield topic-partitions and their records; a batch that comes through SQL may have records of several."""
    for batch in batches:
        partitions = pc.unique(batch.column("partition")).to_pylist()
        for partition in partitions:
            is_whole = len(partitions) == 1
            yield partition, batch if is_whole else batch.filter(pc.equal(batch.column("partition"), partition))


def _stage_records(
    work: Work,
    output: TaskOutput,
    progress: Progress,
    projector: SchemaProjector | None,
    partition: int,
    batch: pa.RecordBatch,
) -> Progress:
    """Put records of one topic-partition through all stages, in their order. Return the progress after them."""
    ready = prepare_batch(work, batch)
    for stage, refusals in ready.refused.items():
        _refuse(work, output, partition, ready.original, stage, refusals)
    original = take_rows(ready.original, ready.rows)  # row by row what `ready.batch` was made of

    seen_before = progress.seen.get(partition) or SeenColumns(work.columns)
    converted = convert_batch(work.conversion, ready.batch, seen_before.of_files, projector, ready.columns)
    seen = seen_before.with_batch(ready, converted, grow=work.conversion.has_columns)
    if ready.unknown or seen.of_files != seen_before.of_files:
        output.discard()  # all will be read again, with the columns and shapes that are seen now
    _refuse_forbidden(output, partition, original, converted.forbidden)
    _refuse(work, output, partition, original, "convert", converted.refused)

    landed, unplaced = 0, set[int]()
    for part in () if output.is_discarded else converted.parts:
        for rows in split_tombstones(work.keys, partition, ready.batch, original, part):
            placed = lay_out(work.keys, partition, rows, by_span=work.files.span_ms is not None)
            _refuse(work, output, partition, rows.original, "layout", placed.refused)
            output.add(partition, placed)
            landed += len(placed.rows)
            unplaced.update(rows.records["offset"].take(pa.array([*placed.refused], pa.int64())).to_pylist())

    if unplaced and (converted.fields_left_out or converted.fields_filled):  # only fields of records that land count
        rows = pc.indices_nonzero(pc.invert(pc.is_in(ready.batch["offset"], pa.array(unplaced, pa.int64()))))
        changed = {part: column.take(rows) for part, column in ready.columns.items()}
        placed_batch = take_rows(ready.batch, rows)
        again = convert_batch(work.conversion, placed_batch, seen_before.of_files, projector, changed)
        converted = replace(converted, fields_left_out=again.fields_left_out, fields_filled=again.fields_filled)
    read = count_records(work.hour_start_ms, batch, ready, converted, landed=landed, unplaced=len(unplaced))
    before = progress.reads.get(partition)
    reads = {**progress.reads, partition: read if before is None else before + read}
    return Progress({**progress.seen, partition: seen}, reads, progress.broken + converted.broken)


def prepare_batch(work: Work, batch: pa.RecordBatch) -> Prepared:
    """Return a batch as conversion takes it: after transforms and SQL."""
    projection = work.projection
    if projection is not None and projection.query.needs_spark:
        return read_computed(batch, projection)
    named = prepend_schema_ids(batch, work.identified)
    ready = Prepared(batch, named)
    if work.chain is not None:
        done = apply_chain(work.chain, named, work.keys.topic, work.wallclock_ms)
        ready = Prepared(batch, done.batch, done.rows, {"transform": done.refused}, done.filtered, columns=done.columns)
    return ready if projection is None or projection.query.keeps_values else project_batch(ready, projection)


def count_records(
    hour_start_ms: int, batch: pa.RecordBatch, ready: Prepared, converted: ConvertedBatch, *, landed: int, unplaced: int
) -> Read:
    """Count the records of a batch.

    Args:
        landed: rows that are staged.
        unplaced: rows that have no place in the layout.
    """
    offsets, timestamps = batch.column("offset"), to_epoch_ms(batch.column("timestamp"))
    return Read(
        offsets[0].as_py(),
        offsets[-1].as_py() + 1,
        *find_time_range(timestamps),
        read=batch.num_rows,
        landed=landed,
        dead=sum(map(len, ready.refused.values())) + len(converted.refused) + unplaced,
        skipped=converted.skipped,
        filtered=ready.filtered,
        late=pc.sum(pc.less(timestamps, hour_start_ms)).as_py() or 0,
        fields_left_out=dict(converted.fields_left_out),
        fields_filled=dict(converted.fields_filled),
    )


def find_time_range(timestamps: pa.Int64Array) -> tuple[int, int]:
    """Return the earliest and the latest timestamp. One that is not above 0 is unknown; without any it is (0, 0)."""
    ends = pc.min_max(timestamps).as_py()
    if ends["min"] is not None and ends["min"] <= 0:
        ends = pc.min_max(timestamps.filter(pc.greater(timestamps, 0))).as_py()
    return ends["min"] or 0, ends["max"] or 0


def _refuse(
    work: Work, output: TaskOutput, partition: int, records: pa.RecordBatch, stage: str, refusals: Refusals
) -> None:
    """Log refused records and make them dead letters. Raise _RecordRefusedError if the sink tolerates none."""
    if not refusals or output.is_discarded:
        return  # what is read again is judged then, by all columns
    if work.log != "none":
        log(work.keys, partition, records, stage, refusals, place=work.log == "place")
    if not work.tolerant:
        first = min(refusals)
        raise _RecordRefusedError(Refused(partition, records.column("offset")[first].as_py(), stage, refusals[first]))
    output.add_dead_letters(work.keys.topic, partition, records, stage, refusals)


def _refuse_forbidden(output: TaskOutput, partition: int, records: pa.RecordBatch, forbidden: Refusals) -> None:
    """Raise _RecordRefusedError if a record fails the micro-batch, whatever is tolerated."""
    if forbidden and not output.is_discarded:
        row = min(forbidden)
        offset = records.column("offset")[row].as_py()
        raise _RecordRefusedError(Refused(partition, offset, "schema", forbidden[row], forbidden=True))


def _finish(output: TaskOutput, store: Store, progress: Progress) -> Done:
    """Close all files. Return what the driver needs for the commit."""
    files, seen = output.finish(), [one for _, one in sorted(progress.seen.items())]
    of_schemas: Columns = reduce(merge_columns, (one.of_schemas for one in seen), {})
    return Done(
        files=files,
        reads=dict(progress.reads),
        requests=dict(store.requests),
        seen=to_document(of_schemas),
        refusal_reasons=output.refusal_reasons,
        retries=store.retries,
        broken=progress.broken,
        words={path: text for one in seen for path, text in one.words.items()},
        shared=tuple(sorted({part for one in seen for part in one.shared})),
        large=tuple(sorted({path for one in seen for path in one.large})),
    )


def _describe_growth(progress: Progress) -> list[Outcome]:
    """Return the columns of each topic-partition for which all is read again."""
    return [
        Grown(
            partition,
            progress.reads[partition].start,
            to_document(seen.of_files),
            tuple(sorted(seen.shapes)),
            tuple(sorted(seen.large)),
        )
        for partition, seen in progress.seen.items()
    ]
