"""Erase: rows of landed hours for which a condition holds, from data, sidecars and dead letters.

Objects that hold such a row are written again without it, the others of their commit are copied. In the end nothing of
the old ones is left: neither objects nor the manifests that name them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import pyarrow as pa

from s3lake import hours as hourly
from s3lake.config.model.key_space import KeySpace
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.index.commit.clean import clean_index, delete_replaced_manifests
from s3lake.index.commit.dead_letter_reasons import ReasonTally, merge_reasons
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, Read, RefusalReason
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.index.store import Store
from s3lake.lake.objects import ObjectShape, content, open_columns, read_batches, spark_columns
from s3lake.lake.objects.dead_letter_objects import StoredDeadLetter, read_dead_letters
from s3lake.land.change.condition import Condition
from s3lake.land.change.file_sets import (
    FileSet,
    copy_file,
    key_in_commit,
    list_file_sets,
    read_whole,
    shape_of_stream,
    stage_files,
)
from s3lake.land.change.hour_change import (
    CannotChange,
    ErasedObject,
    HourChange,
    Plan,
    carry_over,
    change_hour,
    group_compatible,
    plan_hour,
)
from s3lake.land.task.outcomes import merge_reads
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.records.schema.columns.types import Columns, from_document
from s3lake.text.quantities import format_count

REASON = "erase"
_DEAD_LETTER_COLUMNS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))),
        ("stage", pa.string()),
        ("message", pa.string()),
    ]
)


@dataclass(frozen=True)
class EraseConditions:
    """The conditions for rows to be erased.

    Attributes:
        where: the condition for rows of data and sidecars.
        dead_letters: the condition for dead letters, which have other columns; None for `where`, if it fits them.
    """

    where: Condition
    dead_letters: Condition | None = None


@dataclass(frozen=True)
class _Found:
    """A file set, and the rows that are erased.

    Attributes:
        rows: their numbers.
        unasked: dead letters that stay, and are not read.
        reasons: why the other dead letters were refused.
    """

    file_set: FileSet
    rows: frozenset[int] = frozenset()
    unasked: int = 0
    reasons: tuple[RefusalReason, ...] = ()

    @property
    def is_dead_letters(self) -> bool:
        return DEAD_LETTERS in self.file_set.files


def erase_hours(
    target: TopicSink, hours: Iterable[str], conditions: EraseConditions, *, yes: bool
) -> Iterator[HourChange]:
    """Yield what erasing would do to each hour, or, with `yes`, has done; then also what crashed writers left goes.

    Raises:
        ConfigurationError: the condition cannot be asked of the columns of an hour.
        DataLossError: an object is missing, or cannot be read; what is not done is as it was.
        TransientError: the store, the table or another writer was in the way: this can be repeated.
    """
    for hour in hours:
        if yes and target.manifests(hour) is not None:
            change = erase_hour(target, hour, conditions)
            if change.records or change.blocker or change.uncounted:
                yield change
        elif planned := plan_hour(target, hour, partial(plan_erase, conditions=conditions, new_keys={})):
            yield planned.change
    if yes:
        clean_index(target.index, now_ms=hourly.now_ms(), keys=KeySpace.from_sink(target.sink, target.topic))


def erase_hour(target: TopicSink, hour: str, conditions: EraseConditions) -> HourChange:
    """Erase rows of an hour that is complete, and all that is left of the objects that held them."""
    new_keys: dict[str, str] = {}
    change = change_hour(target, hour, REASON, partial(plan_erase, conditions=conditions, new_keys=new_keys))
    delete_replaced_manifests(target.index, hour, REASON)
    objects = tuple(replace(one, replaced_by=new_keys.get(one.key, "")) for one in change.objects)
    return replace(change, objects=objects)


def plan_erase(
    target: TopicSink,
    hour: str,
    manifests: list[Manifest],
    conditions: EraseConditions,
    new_keys: dict[str, str],
) -> Plan | None:
    """Plan what an hour loses. Adds to `new_keys` the key of each object that lost rows once it is written."""
    with target.index.reading(hour, [manifest.id for manifest in manifests]):
        stored = target.index.columns()
        recorded = from_document(stored[0].columns) if stored else {}
        searched = [_find_in(target.store, entry, conditions, recorded) for entry in list_file_sets(manifests)]
    with_rows = {entry.file_set.manifest.id: entry.file_set.manifest for entry in searched if entry.rows}
    replacements = []
    for group in group_compatible(list(with_rows.values())):
        own = [entry for entry in searched if entry.file_set.manifest in group]
        replacements.append((group, partial(_write, target, own, new_keys)))
    unasked = sum(entry.unasked for entry in searched)
    stay = (
        f"--where does not apply to {format_count(unasked, 'dead letters')} without the columns that it names. Choose "
        "by --dead-letters which of them are meant"
    )
    if not replacements:
        if unasked:
            raise CannotChange(stay)
        return None
    objects = tuple(
        ErasedObject(file.key, file.stream, len(entry.rows), file.records)
        for entry in searched
        if entry.rows
        for file in entry.file_set.files.values()
    )
    kept = [entry.file_set for entry in searched if not entry.rows and entry.file_set.manifest.id in with_rows]
    copied, records = sum(len(entry.files) for entry in kept), sum(len(entry.rows) for entry in searched)
    summary = f"{format_count(records, 'records')}; {format_count(copied, 'other objects')} "
    summary += "is copied" if copied == 1 else "are copied"
    summary += "".join(f"\n  {entry.rows:,} of {format_count(entry.of, 'rows')} of {entry.key}" for entry in objects)
    summary += f"\n  {stay}" if unasked else ""
    return Plan(HourChange(hour, summary, records, objects=objects), replacements)


def _find_in(store: Store, file_set: FileSet, conditions: EraseConditions, recorded: Columns) -> _Found:
    where, manifest = conditions.where, file_set.manifest
    if DEAD_LETTERS not in file_set.files:
        return _Found(file_set, frozenset(_find_data(store, file_set, where, recorded)))
    file = file_set.files[DEAD_LETTERS]
    if conditions.dead_letters is None and where.find_missing(_columns_of(manifest, recorded), _DEAD_LETTER_COLUMNS):
        return _Found(file_set, unasked=file.records)
    dead_letters = list(read_dead_letters(io.BytesIO(read_whole(store, manifest, file)), file.key))
    batch = pa.RecordBatch.from_pylist(list(map(_to_row, dead_letters)), _DEAD_LETTER_COLUMNS)
    try:
        rows = frozenset((conditions.dead_letters or where).rows(batch, file.key))
    except ConfigurationError as error:
        if conditions.dead_letters is not None:
            raise
        raise ConfigurationError(
            f"{error}. Dead letters hold what could not be converted: choose them by --dead-letters, "
            "for example --dead-letters \"contains(value, 'alice@example.org')\""
        ) from None
    tally = ReasonTally()
    for row, dead_letter in enumerate(dead_letters):
        if row not in rows:
            tally.add(dead_letter.stage, dead_letter.message, dead_letter.partition, dead_letter.offset)
    return _Found(file_set, rows, reasons=tally.reasons)


def _columns_of(manifest: Manifest, recorded: Columns) -> pa.Schema:
    """Return the columns that rows of a commit's data may have."""
    return spark_columns.build_read_schema(ObjectShape.from_manifest(manifest), recorded)


def _find_data(store: Store, file_set: FileSet, where: Condition, recorded: Columns) -> Iterator[int]:
    """Yield the rows for which a condition holds. Columns that their hour has, and not these records, are null."""
    table: dict[str, pa.ChunkedArray] = {}
    first, manifest = file_set.first, file_set.manifest
    for stream in sorted(file_set.files):  # data before keys
        file = file_set.files[stream]
        shape, body = shape_of_stream(manifest, stream).for_file(file), read_whole(store, manifest, file)
        if not shape.separable and sum(map(len, content.split_records(shape, body, file.key))) != file.records:
            raise ConfigurationError(
                f"{file.key}: its records cannot be separated, because one of them contains their separator: "
                "nothing can be taken out of it. Retention takes out whole hours"
            )
        read = _read_table(shape, body, file.key, where, recorded)
        if read.num_columns and read.num_rows != file.records:
            raise DataLossError(
                f"{file.key} has {format_count(read.num_rows, 'rows')}, its manifest states {file.records}"
            )
        table = {**{name: read[name] for name in read.column_names}, **table}
    declared = _columns_of(manifest, recorded)
    for column in where.columns(declared) or declared:
        table.setdefault(column.name, pa.chunked_array([pa.nulls(first.records, column.type)]))
    row = 0
    for batch in pa.table(table).combine_chunks().to_batches():
        yield from (row + at for at in where.rows(batch, first.key))
        row += batch.num_rows


def _read_table(shape: ObjectShape, body: bytes, key: str, where: Condition, recorded: Columns) -> pa.Table:
    """Read the columns that a condition names, as far as a file really has them."""
    if shape.format in ("parquet", "avro"):
        asked = where.columns(open_columns(shape, body, key).schema)
        read = open_columns(shape, body, key, asked.names).batches
    elif shape.format == "bytes":
        name = shape.envelope.fields[0] if shape.envelope else "value"
        asked = where.columns(pa.schema([(name, pa.binary())]))
        read = (
            pa.record_batch([pa.array(some, pa.binary())], [name]) for some in content.split_records(shape, body, key)
        )
    else:
        asked = where.columns(spark_columns.build_read_schema(shape, recorded))
        read = read_batches(shape, body, key, asked)
    return pa.Table.from_batches(read, asked) if asked else asked.empty_table()


def _to_row(dead_letter: StoredDeadLetter) -> Mapping[str, object]:
    return {
        "topic": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "timestamp": dead_letter.timestamp_ms,
        "key": _to_text(dead_letter.key),
        "value": _to_text(dead_letter.value),
        "headers": [{"name": name, "value": _to_text(value)} for name, value in dead_letter.headers],
        "stage": dead_letter.stage,
        "message": dead_letter.message,
    }


def _to_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _write(
    target: TopicSink, searched: Sequence[_Found], new_keys: dict[str, str], attempt: Attempt, files: list[File]
) -> Staged:
    """Stage the files that are left. Adds to `new_keys` the key of each that lost rows."""
    commit, tasks = attempt.commit, []
    for entry in searched:
        manifest, rows = entry.file_set.manifest, entry.rows
        for file in entry.file_set.files.values():
            if len(rows) == file.records:
                continue
            key = key_in_commit(target, manifest, file, commit)
            tasks.append((file.bytes, partial(copy_file, target, manifest, file, commit, key, rows)))
            if rows:
                new_keys[file.key] = key
    stage_files(tasks, files)
    manifests = {entry.file_set.manifest.id: entry.file_set.manifest for entry in searched}
    return replace(
        carry_over(list(manifests.values())),
        reads=_count(searched),
        refusal_reasons=merge_reasons(_merge_reasons(manifest, searched) for manifest in manifests.values()),
    )


def _count(searched: Sequence[_Found]) -> dict[int, Read]:
    manifests = {entry.file_set.manifest.id: entry.file_set.manifest for entry in searched}
    reads = merge_reads(manifest.partitions for manifest in manifests.values())
    for entry in searched:
        read, rows = reads[entry.file_set.first.partition], len(entry.rows)
        landed, dead = (read.landed, read.dead - rows) if entry.is_dead_letters else (read.landed - rows, read.dead)
        erased = read.erased + rows
        reads[entry.file_set.first.partition] = msgspec.structs.replace(read, landed=landed, dead=dead, erased=erased)
    return reads


def _merge_reasons(manifest: Manifest, searched: Sequence[_Found]) -> tuple[RefusalReason, ...]:
    """Return the reasons of a commit's dead letters that are left."""
    dead = [entry for entry in searched if entry.file_set.manifest is manifest and entry.is_dead_letters]
    return (
        merge_reasons(entry.reasons for entry in dead)
        if any(entry.rows for entry in dead)
        else manifest.refusal_reasons
    )
