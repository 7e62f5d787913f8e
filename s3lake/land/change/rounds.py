"""Each change over the hours of a holding: what it would do, or, with `yes`, what it has done.

Each gives what becomes of an hour, and whether anything does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3lake import hours as hourly
from s3lake.commit.clean import clean
from s3lake.land.change.compact import SIZE, Compaction, compact, compactions
from s3lake.land.change.erase import Erasure, Person, erase, erasures
from s3lake.land.change.holding import Holding
from s3lake.land.change.reformat import Reformation, reformat, reformations
from s3lake.land.change.retention import Expiry, expire, expired, forget, kept_s
from s3lake.sink.collisions import Keys


def compacted(
    holding: Holding, hours: Iterable[str], *, yes: bool, size: int = SIZE
) -> Iterator[tuple[Compaction, bool]]:
    """Make few large files of theirs."""
    for plan in compactions(holding, _finished(holding, hours) if yes else hours, size):
        yield (compact(holding, plan.hour, size) if yes and not plan.obstacle else plan), not plan.obstacle


def reformatted(holding: Holding, hours: Iterable[str], *, yes: bool) -> Iterator[tuple[Reformation, bool]]:
    """Write them in the form that the sink has now."""
    for plan in reformations(holding, _finished(holding, hours) if yes else hours):
        yield (reformat(holding, plan.hour) if yes and not plan.obstacle else plan), not plan.obstacle


def erased(holding: Holding, hours: Iterable[str], person: Person, *, yes: bool) -> Iterator[tuple[Erasure, bool]]:
    """Take rows out of them, and what writers that died have left in objects, uploads and manifests."""
    for hour in hours:
        if yes and holding.manifests(hour) is not None:
            done = erase(holding, hour, person)
            if done.records or done.unasked:
                yield done, bool(done.records)
            continue
        for plan in erasures(holding, [hour], person):
            yield plan, bool(plan.records)
    if yes:
        clean(holding.index, now_ms=hourly.now_ms(), keys=Keys.of(holding.sink, holding.index.topic))


def expired_hours(holding: Holding, *, yes: bool, older_than_s: float | None = None) -> Iterator[tuple[Expiry, bool]]:
    """Let those go that are too old, by what was asked for, else by what the sink says."""
    seconds, now_ms = kept_s(holding, older_than_s), hourly.now_ms()
    for plan in expired(holding, holding.hours(), seconds, now_ms):
        if yes and not plan.obstacle:
            expire(holding, plan.hour)
        yield plan, not plan.obstacle
    if yes:
        forget(holding, seconds, now_ms)


def _finished(holding: Holding, hours: Iterable[str]) -> Iterator[str]:
    """Hours, each once nothing is left of an earlier try, which may have ended before what it replaced was swept."""
    for hour in hours:
        stored = holding.index.tile(hour)
        if stored is not None and stored[0].landed and stored[0].garbage:
            holding.tidied(hour)
        yield hour
