"""Records that a task refuses: as dead letters in the bucket and in Kafka, by reason, and in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from s3lake.errors import printable
from s3lake.index.commit.dead_letter_reasons import ReasonTally
from s3lake.land.task.staging import Staging
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.encode.dead_letter_lines import DeadLetter
from s3lake.records.record_timestamps import to_epoch_ms
from s3lake.source.kafka.dead_letter_topic import DeadLetterProducer, DeadLetterTarget

if TYPE_CHECKING:
    from s3lake.records.layout.object_keys import KeyLayout

_logger = logging.getLogger(__name__)
Witness = Callable[[int, int, str, str], None]
"""A function that gets topic-partition, offset, stage and reason of each refused record."""


class RefusedRecords:
    """Dead letters of one task, held until there are about `most` bytes of a topic-partition, or until its end."""

    def __init__(self, staging: Staging, topic: DeadLetterTarget | None, witness: Witness | None, most: int) -> None:
        self.tally = ReasonTally()
        self._staging = staging
        self._outbox = DeadLetterProducer(topic) if topic else None
        self._witness = witness
        self._most = most
        self._lines: dict[int, list[tuple[int, bytes]]] = {}
        self._size: dict[int, int] = {}

    def add(self, topic: str, partition: int, rows: pa.RecordBatch, stage: str, refusals: Refusals) -> None:
        """Note refused rows; ones that do not fit are sent."""
        refused = rows.take(pa.array(refusals, pa.int64()))
        columns = (
            refused.column("offset"),
            to_epoch_ms(refused.column("timestamp")),
            *map(refused.column, ("key", "value", "headers")),
        )
        reasons = map(printable, refusals.values())  # they quote what strangers wrote, such as half a character
        records = zip(*(column.to_pylist() for column in columns), reasons, strict=True)
        lines, size = self._lines.setdefault(partition, []), self._size.get(partition, 0)
        for offset, timestamp_ms, key, value, headers, reason in records:
            dead_letter = DeadLetter(topic, partition, offset, timestamp_ms, key, value, headers, stage, reason)
            line = dead_letter.to_line()
            lines.append((offset, line))
            size += len(line)
            self.tally.add(stage, reason, partition, offset)
            if self._witness is not None:
                self._witness(partition, offset, stage, reason)
            if self._outbox is not None:
                self._outbox.add(dead_letter)
        self._size[partition] = size
        if size >= self._most:
            self._stage(partition)
            self._send()

    def finish(self) -> None:
        """Give away what is held."""
        for partition in list(self._lines):
            self._stage(partition)
        self._send()

    def _stage(self, partition: int) -> None:
        del self._size[partition]
        self._staging.add_dead_letters(partition, self._lines.pop(partition))

    def _send(self) -> None:
        if self._outbox is not None:
            self._outbox.send()


def log(keys: KeyLayout, partition: int, rows: pa.RecordBatch, stage: str, refusals: Refusals, *, place: bool) -> None:
    """Log which rows are refused, and why; with `place`, also when they were written."""
    offsets, stamps = rows.column("offset"), to_epoch_ms(rows.column("timestamp"))
    for row, reason in refusals.items():
        timestamp = f", timestamp {stamps[row]}" if place else ""
        where = f"{keys.topic}, partition {partition}, offset {offsets[row]}{timestamp}, stage {stage}"
        _logger.error("sink %s: record refused in topic %s: %s", keys.sink, where, printable(reason))
