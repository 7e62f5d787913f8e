"""What a Spark task returns to the driver: one encoded outcome a row, because exceptions lose their type on the way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from s3lake import errors
from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import Changed, File, Read, Recorded, RefusalReason
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.records.schema.columns.changes import Change, find_column_type, list_changes, list_conflicts
from s3lake.records.schema.columns.types import FLOATING, Columns, from_document, to_document
from s3lake.records.schema.columns.union import (
    Conflict,
    count_leaf_columns,
    keep_integers,
    merge_columns,
    unify_columns,
)

_MOST_SHAPES = 400
OUTCOME = "outcome binary"
"""Spark schema of the rows that a task returns."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The first record of a task that fails it; the task has dropped its uploads.

    Attributes:
        forbidden: True if the sink's contract forbids the record, whatever is tolerated.
    """

    partition: int
    offset: int
    stage: str
    reason: str
    forbidden: bool = False


class Grown(msgspec.Struct, frozen=True, tag="grown"):
    """The columns of a topic-partition whose task saw some that it was not given.

    The task has dropped its uploads, and read on to see them all.

    Attributes:
        shapes: shapes of records that SQL reads (`land.sql.sql_table`).
        large: paths of columns in which records have integers beyond 2^53.
    """

    partition: int
    offset: int
    columns: dict[str, Any]
    shapes: tuple[str, ...] = ()
    large: tuple[str, ...] = ()


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Everything of one task is staged.

    Attributes:
        seen: columns of records that brought their own schema.
        shared: the parts, `key` or `value`, whose columns all files of the commit share.
        refusal_reasons: why records were refused.
        retries: requests of the store that had to be repeated.
        broken: records that lack a required field or break a rule.
        words: descriptions of columns, from the records' own schemas.
        large: see `Grown`.
    """

    files: list[File]
    reads: dict[int, Read]
    requests: dict[str, int]
    seen: dict[str, Any] = {}
    refusal_reasons: tuple[RefusalReason, ...] = ()
    retries: int = 0
    broken: int = 0
    words: dict[str, str] = {}
    shared: tuple[str, ...] = ()
    large: tuple[str, ...] = ()


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The task met an error of `errors.py`; it has dropped its uploads."""

    error: str
    message: str

    @property
    def exception(self) -> S3LakeError:
        """The error as it was raised in the task."""
        return errors.rebuild_error(self.error, self.message)


Outcome = Refused | Grown | Done | Failed
_decoder: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)


def encode_outcome(outcome: Outcome) -> bytes:
    """Encode an outcome as a task returns it."""
    return msgspec.json.encode(outcome)


def outcome_of(encoded: bytes) -> Outcome:
    """An outcome as the driver gets it."""
    return _decoder.decode(encoded)


def unite_columns(columns: Columns, grown: Iterable[Grown], most: int, exact: Collection[str] = ()) -> Columns:
    """Columns of the tasks that `list_agreeing` returns."""
    return reduce(
        unify_columns, (from_document(task.columns) for task in list_agreeing(columns, grown, most, exact)), columns
    )


def list_agreeing(columns: Columns, grown: Iterable[Grown], most: int, exact: Collection[str] = ()) -> list[Grown]:
    """List tasks by topic-partition and offset, up to the first one that would see other columns by now.

    That is one whose columns disagree with those before it, are more than `most` with them, or are doubles at the paths
    `exact`, which hold integers. It refuses records that it has taken, and with them go columns that only they have. So
    it and the tasks behind it wait until they read again, beginning with the columns of these: in the end there are the
    ones that one task finds which reads all records.
    """
    agreeing = []
    for task in sorted(grown, key=attrgetter("partition", "offset")):
        seen = from_document(task.columns)
        try:
            columns = unify_columns(columns, seen)
        except Conflict:
            break
        has_doubles = any(find_column_type(columns, path) in FLOATING for path in exact)
        if has_doubles or count_leaf_columns(columns) > max(most, count_leaf_columns(seen)):
            break
        agreeing.append(task)
    return agreeing


def record(index: TopicIndex, most: int, hour: str, commit: str, outcomes: Sequence[Outcome]) -> Recorded:
    """Record the columns that tasks of an attempt at a commit of `hour` saw, `most` at most: what is recorded then."""
    while True:
        present = index.columns()
        if present is None:
            columns = msgspec.structs.replace(unite_recorded(Recorded({}), outcomes, most, hour, commit), rev=0)
            written = index.create(index.columns_key, columns)
        else:
            columns = unite_recorded(present[0], outcomes, most, hour, commit)
            written = columns == present[0] or index.swap(index.columns_key, columns, present[1]) is not None
        if written:
            return columns


def unite_recorded(
    have: Recorded, outcomes: Sequence[Outcome], most: int, hour: str = "", commit: str = ""
) -> Recorded:
    """Columns that are recorded, united with what tasks saw; the same revision where nothing is new.

    Each task keeps to `most` columns, all together need not: what there is no room for is refused when they read again.
    A column in which some task saw integers beyond 2^53 is not recorded as one of doubles, unless it is one already.
    """
    grown = [one for one in outcomes if isinstance(one, Grown)]
    done = [one for one in outcomes if isinstance(one, Done)]
    before = from_document(have.columns)
    exact = _exact(have.exact, before, [*list_agreeing(before, grown, most, have.exact), *done])
    columns = with_seen(unite_columns(before, grown, most, exact), done, exact)
    apart = [change for one in done for change in list_conflicts(columns, from_document(one.seen))]
    history = chain.from_iterable(one.changes for one in have.history)
    noted_before = {(change.column, change.after) for change in history}
    new_conflicts = [change for change in apart if (change.column, change.after) not in noted_before]
    seen = list_changes(before, columns) + new_conflicts
    words = dict(have.words)
    for task in done:
        words |= task.words
    new = {shape for one in grown for shape in one.shapes} - {*have.shapes}
    shapes = (*have.shapes, *sorted(new))[-_MOST_SHAPES:]
    noted = to_document(columns), _history(have.history, hour, commit, seen), words, exact, shapes
    present = have.columns, have.history, have.words, have.exact, have.shapes
    return have if noted == present else Recorded(*noted, have.rev + 1)


def _exact(recorded: tuple[str, ...], columns: Columns, outcomes: Iterable[Grown | Done]) -> tuple[str, ...]:
    """Paths of columns that have held integers beyond 2^53, with those seen now; a column of doubles stays one."""
    seen = {path for one in outcomes for path in one.large} - {*recorded}
    return (*recorded, *sorted(path for path in seen if find_column_type(columns, path) not in FLOATING))


def _history(history: tuple[Changed, ...], hour: str, commit: str, seen: Sequence[Change]) -> tuple[Changed, ...]:
    """A history that goes on: what an attempt sees in several steps is one entry."""
    if not seen:
        return history
    last = history[-1] if history else None
    if last is None or last.commit != commit:
        return (*history, Changed(hour, commit, tuple(seen)))
    by_column = {change.column: change for change in last.changes}
    for change in seen:
        first = by_column.get(change.column, change)
        by_column[change.column] = Change(change.column, first.before, change.after)
    return (*history[:-1], Changed(last.hour, commit, tuple(by_column.values())))


def with_seen(columns: Columns, done: Iterable[Done], integral: Collection[str] = ()) -> Columns:
    """Columns, also of records that brought their own schema; `integral` are paths that stay integers.

    The results of tasks come in any order; the earlier topic-partition and offset decides.
    """
    in_order = sorted(
        done, key=lambda one: min(((number, read.start) for number, read in one.reads.items()), default=())
    )
    return keep_integers(reduce(merge_columns, (from_document(one.seen) for one in in_order), columns), integral)


def is_judged_by(recorded: Recorded, columns: Columns, integral: Collection[str], done: Iterable[Done]) -> bool:
    """Return whether no task would refuse more integers, or more fractions, by what is recorded by now.

    Records with a schema bring the types of their files: other tasks of the micro-batch, or another hour that lands at
    the same time, may have seen integers beyond 2^53 where these saw fractions, or fractions where these saw such.

    Args:
        recorded: the columns that the index has recorded by now.
        columns: the columns of the files when the tasks began.
        integral: paths that stayed integers for them.
        done: what they staged.
    """
    present, unknown = from_document(recorded.columns), {*recorded.exact} - {*integral}
    seen = [from_document(one.seen) for one in done]
    if any(find_column_type(of_task, path) in FLOATING for of_task in seen for path in unknown):
        return False
    widened = {path for one in done for path in one.large if find_column_type(present, path) in FLOATING}
    return all(find_column_type(columns, path) in FLOATING for path in widened)


def merge_reads(reads: Iterable[Mapping[int, Read]]) -> dict[int, Read]:
    """Counts of all tasks per topic-partition; a long range is read by several."""
    total: dict[int, Read] = {}
    for counts in reads:
        for partition, read in counts.items():
            have = total.get(partition)
            total[partition] = read if have is None else have + read
    return total
