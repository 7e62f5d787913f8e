"""An hour that the writer's own code lands in several commits, in memory."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from s3lake import hours
from s3lake.commit.protocol import mark_of
from s3lake.land import binding
from s3lake.land.task.outcomes import with_seen
from s3lake.schema.types import Columns, to_document
from s3lake.store import Store
from s3lake.verify import Report, verify_against
from s3lake_tests.land.task.settled import settled
from s3lake_tests.verify.world import HOUR, IN_TIME, TOPIC, World

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value and headers."""
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Parts(World):
    """Records of topic-partition 0, landed in commits c0, c1 and so on."""

    columns: Columns

    def __init__(self, **sink: Any) -> None:
        super().__init__(**{"errors": {"tolerance": "all"}, **sink})
        self.columns = {}

    def stores(self, _: str) -> Store:
        return self.store

    def land(self, *values: bytes | None, renamed: bool = False, partition: int = 0) -> None:
        """One commit of plain values."""
        self.land_records([(None, value, []) for value in values], renamed=renamed, partition=partition)

    def land_records(self, records: Sequence[Record], *, renamed: bool = False, partition: int = 0) -> None:
        """One commit; `renamed`: its names have its mark."""
        commit, first = f"c{len(self.manifests)}", self.log.end.get(partition, 0)
        self.log.add([value for _, value, _ in records], partition=partition)
        for at, (key, _, headers) in enumerate(records):
            self.log.more[partition, first + at] = (key, headers)
        batch = pa.record_batch(
            {
                "partition": pa.array([partition] * len(records), pa.int32()),
                "offset": pa.array(range(first, first + len(records)), pa.int64()),
                "timestamp": pa.array([IN_TIME * 1000] * len(records), pa.timestamp("us", "UTC")),
                "value": pa.array([value for _, value, _ in records], pa.binary()),
                "key": pa.array([key for key, _, _ in records], pa.binary()),
                "headers": pa.array(
                    [[{"key": name, "value": one} for name, one in headers] or None for _, _, headers in records],
                    HEADERS,
                ),
            }
        )
        work = binding.work(
            self.sink,
            TOPIC,
            self.stores,
            commit=commit,
            renamed=mark_of(commit) if renamed else "",
            hour_start_ms=hours.start_ms(HOUR),
            columns=self.columns,
            wallclock_ms=0,
        )
        outcome, work = settled(work, batch)
        for file in outcome.files:
            self.store.complete_upload(file.key, file.upload, file.parts)
        columns = None if work.file_columns is None else with_seen(work.file_columns, [outcome])
        self.columns = columns or {}
        document = None if columns is None else to_document(columns)
        self.commit(commit, outcome.files, outcome.reads)
        landed = self.sink.after_transforms
        self.change(
            commit,
            converter=landed.converter.value,
            nulls=landed.nulls,
            shape=binding.written_by(landed),
            dropped=outcome.dropped,
            filled=outcome.filled,
            columns=document,
            clocks=tuple((number, read.end, 0) for number, read in outcome.reads.items()) if landed.transforms else (),
        )

    def verified(self) -> Report:
        """What verify says of the hour as the index has it."""
        return verify_against(self.sink, self.index, self.log, self.grid(), lambda _: None)

    def bodies(self) -> dict[str, bytes]:
        """Objects by key, those of the index apart."""
        return {key: body for key, (body, _) in self.store.objects.items() if not key.startswith(".indexes")}
