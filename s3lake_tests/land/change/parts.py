"""An hour that the writer's own code lands in several commits, in memory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from s3lake.index.commit.protocol import build_name_suffix
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store import Store
from s3lake.lake.form import form_of
from s3lake.lake.verify import VerifyReport, verify_against
from s3lake.land.change import compact, reformat, retention
from s3lake.land.change.hour_change import HourChange, change_hour, change_hours
from s3lake.land.request import in_process_tasks as records_at_hand
from s3lake.land.request import stage_values
from s3lake.land.task.outcomes import with_seen
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.records.schema.columns.types import Columns, to_document
from s3lake_tests.kit.targets import target_of
from s3lake_tests.lake.verify.world import HOUR, IN_TIME, TOPIC, VerifiedTopic
from s3lake_tests.land.task.settled import settled

PLANS = {
    compact.REASON: compact.plan_compact,
    reformat.REASON: reformat.plan_reformat,
    retention.REASON: retention.plan_expire,
}
"""How an hour is changed, by the reason that its manifests give."""
Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value and headers."""
P = TypeVar("P", bound="Parts")


class Parts(VerifiedTopic):
    """Records of topic-partition 0, landed in commits c0, c1 and so on."""

    columns: Columns

    def __init__(self, **sink: Any) -> None:
        super().__init__(**{"errors": {"tolerance": "all"}, **sink})
        self.columns = {}

    def stores(self, _: str) -> Store:
        return self.store

    def land(self: P, *values: bytes | None, renamed: bool = False, partition: int = 0) -> P:
        """One commit of plain values."""
        return self.land_records([(None, value, []) for value in values], renamed=renamed, partition=partition)

    def land_records(self: P, records: Sequence[Record], *, renamed: bool = False, partition: int = 0) -> P:
        """One commit, which the index has then; `renamed`: its names have its mark."""
        commit, first = f"c{len(self.manifests)}", self.log.end.get(partition, 0)
        self.log.add([value for _, value, _ in records], partition=partition)
        for at, (key, _, headers) in enumerate(records):
            self.log.more[partition, first + at] = (key, headers)
        rows = [
            records_at_hand.KafkaRecord(TOPIC, partition, first + at, IN_TIME, key, value, tuple(headers))
            for at, (key, value, headers) in enumerate(records)
        ]
        mark = build_name_suffix(commit) if renamed else ""
        work = stage_values.build_work(self.sink, TOPIC, self.stores, HOUR, commit=commit, mark=mark)
        outcome, work = settled(replace(work, columns=self.columns), records_at_hand.to_record_batch(rows))
        for file in outcome.files:
            self.store.complete_upload(file.key, file.upload, file.parts)
        columns = None if work.file_columns is None else with_seen(work.file_columns, [outcome])
        self.columns = columns or {}
        document = None if columns is None else to_document(columns)
        self.commit(commit, outcome.files, outcome.reads)
        landed = self.sink.after_transforms
        self.change(
            commit,
            form=form_of(landed),
            nulls=landed.nulls,
            refusal_reasons=outcome.refusal_reasons,
            columns=document,
            clocks=tuple((number, read.end, 0) for number, read in outcome.reads.items()) if landed.transforms else (),
        )
        self.write_index()
        return self

    def verified(self) -> VerifyReport:
        """What verify reports of the hour as the index has it."""
        return verify_against(self.sink, self.index, self.log, self.grid(), lambda _: None)

    def verify_clean(self) -> VerifyReport:
        """What verify reports of the hour, in which nothing differs."""
        report = self.verified()
        assert report.clean, report.differences
        return report

    def bodies(self) -> dict[str, bytes]:
        """Return the objects by key, without the documents of the index."""
        return {key: body for key, (body, _) in self.store.objects.items() if not key.startswith(".indexes")}


def holding(world: Parts, store: Store | None = None) -> TopicSink:
    """Return what the world's sink holds, seen through a store."""
    store = store or world.store
    index = TopicIndex(store, ".indexes/events", world.index.topic, world.sink.root)
    return target_of(world.sink, index)


def planned_changes(name: str, target: TopicSink) -> list[HourChange]:
    """Return what a change would do to the hour: one change, or none."""
    return list(change_hours(target, [HOUR], name, PLANS[name], yes=False))


def run_change(name: str, target: TopicSink, hour: str = HOUR) -> HourChange:
    """Change an hour by its plan, whether it is old or not, and report if there is nothing to change."""
    return change_hour(target, hour, name, PLANS[name])


def number_values(*numbers: int) -> list[bytes]:
    return [b'{"id":%d}' % number for number in numbers]


def land_two_commits(**sink: Any) -> Parts:
    """One commit of three files, and another of two."""
    world = Parts(**{"flush": {"count": 2}, **sink}).land(*number_values(*range(6)), b"no JSON")
    world.land(*number_values(*range(6, 10)))
    return world
