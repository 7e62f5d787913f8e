"""The output of a task: what it has open in the store from one batch to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from s3lake.index.commit.documents import File, RefusalReason
from s3lake.land.task.placed_rows import PlacedRows
from s3lake.land.task.refused_records import RefusedRecords
from s3lake.land.task.staging import Staging, StagingRows, StreamSchemas
from s3lake.records.convert.read.value_checks import Refusals

_Where = tuple[int, StreamSchemas]


@dataclass
class _WaitingRows:
    """Rows of one topic-partition and one kind that wait to be sorted into output partitions together."""

    groups: list[str] = field(default_factory=list)
    rows: list[StagingRows] = field(default_factory=list)
    size: int = 0


class TaskOutput:
    """The files, waiting rows and dead letters of a task.

    It is all that changes while a task works: a file takes the rows of many batches, and so does an object of dead
    letters. Everything else that a task has found out is a value (`pipeline.Progress`).

    Attributes:
        is_discarded: True if the task writes nothing: its records will all be read again.
    """

    def __init__(self, staging: Staging, dead_letters: RefusedRecords, most_waiting: int) -> None:
        """`most_waiting` is the size in bytes at which waiting rows are sorted into their files."""
        self.is_discarded = False
        self._staging, self._refused = staging, dead_letters
        self._most_waiting = most_waiting
        self._waiting: dict[_Where, _WaitingRows] = {}

    def add(self, partition: int, placed: PlacedRows) -> None:
        """Add rows of one topic-partition to the files of their output partitions."""
        if not len(placed.rows):
            return
        if isinstance(placed.groups, str):
            self._staging.add(partition, placed.groups, placed.rows)
            return
        where = (partition, placed.rows.schemas)
        waiting = self._waiting.setdefault(where, _WaitingRows())
        waiting.groups.extend(placed.groups)
        waiting.rows.append(placed.rows)
        waiting.size += placed.rows.nbytes
        # Sorting much at once makes long runs per output partition, whatever their number.
        if waiting.size >= self._most_waiting:
            self._sort(where)

    def add_dead_letters(
        self, topic: str, partition: int, records: pa.RecordBatch, stage: str, refusals: Refusals
    ) -> None:
        """Add refused records as dead letters."""
        self._refused.add(topic, partition, records, stage, refusals)

    def discard(self) -> None:
        """Drop all uploads and waiting rows: nothing of this task will be visible."""
        self.is_discarded = True
        self._staging.abort()
        self._waiting.clear()

    def close_files(self, partition: int) -> None:
        """Close the files of a topic-partition whose records are over, so that they need no memory any more.

        If more of its records come nevertheless, they get files of their own.
        """
        for where in [one for one in self._waiting if one[0] == partition]:
            self._sort(where)
        self._staging.close_files(partition)

    def finish(self) -> list[File]:
        """Close all files. Return them, ready to be made visible."""
        for where in list(self._waiting):
            self._sort(where)
        self._refused.finish()  # before staging does, which makes files visible if the sink is not exactly once
        return self._staging.finish()

    @property
    def refusal_reasons(self) -> tuple[RefusalReason, ...]:
        """Why records became dead letters."""
        return self._refused.tally.reasons

    def _sort(self, where: _Where) -> None:
        waiting = self._waiting.pop(where)
        self._staging.add(where[0], pa.array(waiting.groups, pa.string()), StagingRows.concat(waiting.rows))
