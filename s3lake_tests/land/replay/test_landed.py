"""Poison of every kind on real parts: to the record, before a replay, after it, and after the rest was landed anew."""

import json
from typing import Any

import pytest

from s3lake.land.replay import replay
from s3lake.land.replay.letters import Chosen
from s3lake_tests.lake import START, Lake, at

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.s3]

COUNT, EVERY = 20_000, 100
"""Records, of which each hundredth is poison."""
MENDED = [b'{"id": 1}', b'{"at": "noon", "id": 2}', None]
"""What another layout and another `nulls` accept."""
NEVER_JSON = [b"{ broken", b"\xff\xfe", b"", rb'"\ud800"', b"[" * 100_000, b"1 2"]
"""What no configuration reads as JSON."""
POISON = [*MENDED, *NEVER_JSON]
TEMPLATE = "{topic}/{time:yyyy-MM-dd}/{partition}-{offset:012}"
STRICT = f'layout: {{template: "{TEMPLATE}", time: {{source: field, field: at}}}}, nulls: fail'
LOOSE = f'layout: {{template: "{TEMPLATE}"}}, nulls: write'
TOLERANT = "errors: {tolerance: all}, flush: {count: 5000}"


def record(number: int) -> bytes | None:
    if number % EVERY == number // EVERY % 2:  # in both topic-partitions
        return POISON[number // EVERY % len(POISON)]
    return json.dumps({"at": at(START, 5), "id": number}).encode()


def test_every_record_is_accounted_for_before_and_after_a_replay(lake: Lake) -> None:
    topic = lake.topic(partitions=2)
    for partition in range(2):
        values = [record(number) for number in range(partition, COUNT, 2)]
        lake.produce(topic, values, at(START, 5), partition)
    poison = COUNT // EVERY
    kinds = [POISON[number % len(POISON)] for number in range(poison)]
    mended = sum(kind in MENDED for kind in kinds)

    def landing(settings: str) -> Any:
        return lake.landing(topic, f"{settings}, {TOLERANT}", at("2026-01-06T00"))

    def counted(lander: Any) -> tuple[int, int, int]:
        report = lake.verify(lander)
        assert report.differences == ()
        assert report.compared == COUNT
        return report.landed, report.dead_letters, report.skipped

    strict = landing(STRICT)
    strict.land([START])
    assert counted(strict) == (COUNT - poison, poison, 0)
    stages = {one.stage for each in strict.report(START).manifests for one in each.letters}
    assert stages == {"layout", "convert"}

    loose = landing(LOOSE)
    (would,) = replay(loose, START, Chosen(), dry_run=True)
    assert (would.landed, would.commit) == (mended, None)
    assert counted(strict) == (COUNT - poison, poison, 0)
    (done,) = replay(loose, START, Chosen())
    assert (done.chosen, done.landed) == (poison, mended)
    assert counted(loose) == (COUNT - poison + mended, poison - mended, 0)
    assert lake.uploads() == []

    anything = landing(f"{LOOSE}, converter: {{value: bytes}}")
    anything.rewrite(START)
    assert counted(anything) == (COUNT, 0, 0)
