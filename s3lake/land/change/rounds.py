"""Each change over the hours of a target: what it would do, or, with `yes`, what it has done.

Each gives what becomes of an hour, and whether anything does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3lake import hours as hourly
from s3lake.commit.clean import clean
from s3lake.land.change.compact import SIZE, Compaction, compact, compactions
from s3lake.land.change.erase import Erasure, Person, erase, erasures
from s3lake.land.change.reformat import Reformation, reformat, reformations
from s3lake.land.change.retention import Expiry, expire, expired, forget, kept_s
from s3lake.land.replace import settle_hour
from s3lake.land.target import TopicSink
from s3lake.sink.key_space import KeySpace


def compacted(
    target: TopicSink, hours: Iterable[str], *, yes: bool, size: int = SIZE
) -> Iterator[tuple[Compaction, bool]]:
    """Make few large files of theirs."""
    for plan in compactions(target, _finished(target, hours) if yes else hours, size):
        yield (compact(target, plan.hour, size) if yes and not plan.obstacle else plan), not plan.obstacle


def reformatted(target: TopicSink, hours: Iterable[str], *, yes: bool) -> Iterator[tuple[Reformation, bool]]:
    """Write them in the form that the sink has now."""
    for plan in reformations(target, _finished(target, hours) if yes else hours):
        yield (reformat(target, plan.hour) if yes and not plan.obstacle else plan), not plan.obstacle


def erased(target: TopicSink, hours: Iterable[str], person: Person, *, yes: bool) -> Iterator[tuple[Erasure, bool]]:
    """Take rows out of them, and what writers that died have left in objects, uploads and manifests."""
    for hour in hours:
        if yes and target.manifests(hour) is not None:
            done = erase(target, hour, person)
            if done.records or done.unasked:
                yield done, bool(done.records)
            continue
        for plan in erasures(target, [hour], person):
            yield plan, bool(plan.records)
    if yes:
        clean(target.index, now_ms=hourly.now_ms(), keys=KeySpace.from_sink(target.sink, target.topic))


def expired_hours(target: TopicSink, *, yes: bool, older_than_s: float | None = None) -> Iterator[tuple[Expiry, bool]]:
    """Let those go that are too old, by what was asked for, else by what the sink says."""
    seconds, now_ms = kept_s(target, older_than_s), hourly.now_ms()
    for plan in expired(target, target.hours(), seconds, now_ms):
        if yes and not plan.obstacle:
            expire(target, plan.hour)
        yield plan, not plan.obstacle
    if yes:
        forget(target, seconds, now_ms)


def _finished(target: TopicSink, hours: Iterable[str]) -> Iterator[str]:
    """Hours, each once nothing is left of an earlier try, which may have ended before what it replaced was swept."""
    for hour in hours:
        stored = target.index.tile(hour)
        if stored is not None and stored[0].landed and stored[0].garbage:
            settle_hour(target, hour)
        yield hour
