"""Poison of every kind on real parts: to the record, before a replay, after it, and once everything may land.

`S3LAKE_POISONED=1000000` makes it a million records a case.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from s3lake.land.maintenance.dead_letters import ReasonFilter
from s3lake.land.maintenance.reformat import reformat
from s3lake.land.maintenance.replay import replay
from s3lake_tests.conftest import slow_after
from s3lake_tests.lake import START, Lake, at
from s3lake_tests.schema.registry.server import SchemaRegistry, datum, framed

COUNT, EVERY = int(os.environ.get("S3LAKE_POISONED", "100000")), 100
"""Records, of which each hundredth is poison."""
BY_OFFSET, BY_TIME = "{topic}/{partition}-{offset:012}", "{topic}/{time:yyyy-MM-dd}/{partition}-{offset:012}"
TIME = at(START, 5)
STRICT = f'layout: {{template: "{BY_TIME}", time: {{source: field, field: at}}}}, nulls: fail'
MENDED = [b'{"id": 1}', b'{"at": "noon", "id": 2}', None]
"""What another layout and another `nulls` accept."""
NEVER_JSON = [b"{ broken", b"\xff\xfe", b"", rb'"\ud800"', b"[" * 100_000, b"1 2"]
"""What no configuration reads as JSON."""
EVENT = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}, {"name": "at", "type": "long"}]}


@dataclass(frozen=True)
class Case:
    """Records of one kind, and what a sink has to say for them.

    Attributes:
        sound: the record of a number.
        mended: poison that `loose` accepts.
        never: poison that no converter but `bytes` accepts.
        strict: settings, to begin with.
        loose: with the fault mended.
    """

    sound: Callable[[int], bytes]
    mended: Sequence[bytes | None]
    never: Sequence[bytes]
    strict: str
    loose: str

    def record(self, number: int) -> bytes | None:
        if number % EVERY == number // EVERY % 2:  # in both topic-partitions
            kinds = [*self.mended, *self.never]
            return kinds[number // EVERY % len(kinds)]
        return self.sound(number)


def json_lines(_: SchemaRegistry) -> Case:
    loose = f'layout: {{template: "{BY_OFFSET}"}}, nulls: write'
    return Case(lambda number: json.dumps({"at": TIME, "id": number}).encode(), MENDED, NEVER_JSON, STRICT, loose)


def json_in_columns(registry: SchemaRegistry) -> Case:
    lines = json_lines(registry)
    never = [*NEVER_JSON, b"[1]", b'"text"', b'{"at": %d, "id": "no number"}' % TIME]
    more = "format: {type: parquet}, columns: {id: int64, at: int64}"
    return Case(lines.sound, [MENDED[0], None], never, f"{STRICT}, {more}", f"{lines.loose}, {more}")


def avro_in_columns(registry: SchemaRegistry) -> Case:
    known, late = registry.add(EVENT), registry.add({**EVENT, "name": "Late"})
    registry.withheld.add(late)

    def sound(number: int) -> bytes:
        return framed(known, datum(EVENT, {"id": number, "at": TIME}))

    whole = sound(10**6)
    never = [b"", b"no frame", whole[:5], whole[:-1], whole + b"\0", framed(10**6, b"")]
    more = f"format: {{type: parquet}}, converter: {{value: avro, registry: {{url: '{registry.url}'}}}}"
    mended = [framed(late, datum(EVENT, {"id": 1, "at": TIME})), None]
    return Case(sound, mended, never, f"nulls: fail, {more}", f"nulls: write, {more}")


@pytest.mark.timeout(300 + COUNT // 500)
@pytest.mark.parametrize(
    "of",
    slow_after(0, "its rules are tried in memory", [json_lines, json_in_columns, avro_in_columns]),
    ids=lambda of: str(of.__name__),
)
def test_every_record_is_accounted_for_before_and_after_a_replay(
    lake: Lake, registry: SchemaRegistry, of: Callable[[SchemaRegistry], Case]
) -> None:
    case, topic = of(registry), lake.topic(partitions=2)
    for partition in range(2):
        for first in range(partition, COUNT, 50_000):  # more than the producer's queue takes
            numbers = range(first, min(first + 50_000, COUNT), 2)
            lake.produce(topic, [case.record(number) for number in numbers], TIME, partition)
    poison, kinds = COUNT // EVERY, [*case.mended, *case.never]
    mended = sum(number % len(kinds) < len(case.mended) for number in range(poison))

    def landing(settings: str) -> Any:
        tolerant = "errors: {tolerance: all}, flush: {count: 5000}"
        return lake.landing(topic, f"{settings}, {tolerant}", at("2026-01-06T00"))

    def counted(lander: Any) -> tuple[int, int, int]:
        report = lake.verify(lander)
        assert report.differences == ()
        assert report.compared == COUNT
        return report.landed, report.dead_letters, report.skipped

    strict = landing(case.strict)
    strict.land([START])
    assert counted(strict) == (COUNT - poison, poison, 0)
    registry.withheld.clear()

    loose = landing(case.loose)
    (would,) = replay(loose.target, START, ReasonFilter(), loose.spark, dry_run=True)
    assert (would.chosen, would.landed, would.commit) == (poison, mended, None)
    (done,) = replay(loose.target, START, ReasonFilter(), loose.spark)
    assert (done.chosen, done.landed) == (poison, mended)
    assert counted(loose) == (COUNT - poison + mended, poison - mended, 0)
    assert lake.uploads() == []

    anything = landing(f'layout: {{template: "{BY_OFFSET}"}}, nulls: write, converter: {{value: bytes}}')
    if of is json_lines:  # the texts of the others are not kept, so they are landed once more
        reformat(anything.target, START)
        (rest,) = replay(anything.target, START, ReasonFilter(), anything.spark)
        assert rest.landed == poison - mended
    else:
        anything.rewrite(START)
    assert counted(anything) == (COUNT, 0, 0)
