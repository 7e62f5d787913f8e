"""Sensors: one per topic. Looks at offsets and at the index, never at messages, and asks for hours.

The cursor is advice; the index is the truth. A lost cursor costs one slow tick.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import chain
from typing import TYPE_CHECKING, Any

import dagster as dg
import msgspec

from s3lake import hours
from s3lake.commit.sealing import Sealing
from s3lake.errors import S3LakeError
from s3lake.land.missing import refuse_absent
from s3lake.orchestration import names, runs
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.connections import open_topic
from s3lake.orchestration.metadata import freshness
from s3lake.orchestration.sealed import left_behind
from s3lake.plan import due
from s3lake.plan.freshness import Wait
from s3lake.sink import Sink
from s3lake.source import opening

if TYPE_CHECKING:
    from s3lake.commit.index import TopicHead
    from s3lake.land.landing import Landing
    from s3lake.plan.tile import Tile

INTERVAL_S = 30
OBSERVE_EVERY_MS = 300_000
TICK_S = 20  # Dagster gives a tick 60 seconds, and a sink that cannot be reached takes up to 20
TILES_PER_TICK = 240
SECOND_LOOKS_PER_TICK = 1


class Seen(msgspec.Struct):
    """A backlog: of which revision of which tile, and when it was first seen."""

    hour: str
    rev: int
    since_ms: int


class Cursor(msgspec.Struct):
    """What a sensor remembers.

    Attributes:
        observed_ms: when the topic was last observed.
        ends: end offsets then.
        complete: per sink, ranges of hours known to be complete.
        looked: per sink, up to which of those a second look has come: a rewrite that died makes one incomplete again.
        waiting: per sink, the backlog of the open tile.
        announced: per sink, ranges of hours known to be announced as sealed.
        sweeping_ms: per sink, when hours were asked for last that only keep objects which a table may list.
    """

    observed_ms: int = 0
    ends: dict[int, int] = {}
    complete: dict[str, list[tuple[str, str]]] = {}
    looked: dict[str, str] = {}
    waiting: dict[str, Seen] = {}
    announced: dict[str, list[tuple[str, str]]] = {}
    sweeping_ms: dict[str, int] = {}


def topic_sensor(
    catalogue: Catalogue, topic: str, sinks: Sequence[Sink], jobs: Mapping[str, Any], status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    """Asks for every hour of `topic` that the index calls incomplete, and for the one under way when enough waits.

    Args:
        catalogue: what all is called.
        topic: the topic.
        sinks: those that land it.
        jobs: by sink; one job for all sinks would need them to have one start and one backfill policy.
        status: before anybody switches it in the UI.
    """

    @dg.sensor(
        name=catalogue.name("kafka", topic),
        required_resource_keys={catalogue.keys.s3},
        jobs=[jobs[sink.name] for sink in sinks],
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        description=f"Asks for runs that land topic {topic}, into {' and '.join(sink.name for sink in sinks)}.",
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        now, cursor = hours.now_ms(), _cursor(context.cursor)
        offsets = opening.opened(catalogue.config).offsets
        try:
            # Kafka first: it answers, or fails, within its own short time.
            ends = {partition: end for partition, (_, end) in offsets.ranges(topic).items()}
            if not ends:
                for sink in sinks:
                    lander = open_topic(context.resources, catalogue, sink, topic, fail_fast=True)
                    refuse_absent(sink, lander.index, lander.offsets)
                return dg.SkipReason(f"topic {topic} does not exist yet")
        except S3LakeError as error:
            raise dg.Failure(str(error)) from error
        asked: list[_Asked] = []
        failed: list[S3LakeError] = []
        began = time.monotonic()
        for sink in sinks:
            if failed and time.monotonic() - began > TICK_S:
                context.log.warning(f"sink {sink.name}: not looked at, S3 took too long")
                continue
            try:
                lander = open_topic(context.resources, catalogue, sink, topic, fail_fast=True)
                asked.append(_ask(context.instance, catalogue, lander, jobs[sink.name].name, ends, cursor, now))
            except S3LakeError as error:  # one sink's bucket is no reason to keep the others waiting
                context.log.error(f"sink {sink.name}: {error}")
                failed.append(error)
        if not asked:
            raise dg.Failure(str(failed[0])) from failed[0]
        requests = [one.request for one in asked if one.request]
        for one in asked if requests else ():
            context.log.info(f"{one.sink}: {one.why}")
        events: list[dg.AssetObservation | dg.AssetMaterialization] = list(
            chain.from_iterable(one.sealed for one in asked)
        )
        if requests or now - cursor.observed_ms >= OBSERVE_EVERY_MS:
            lags = {one.sink: one.lag for one in asked if one.lag is not None}
            waits = list(chain.from_iterable(one.waits for one in asked))
            events.append(observation(catalogue, topic, ends, lags, cursor, now, waits))
            cursor.observed_ms, cursor.ends = now, ends
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(f"{one.sink}: {one.why}" for one in asked),
            cursor=msgspec.json.encode(cursor).decode(),
            asset_events=events,
        )

    return sense


@dataclass(frozen=True)
class _Asked:
    """What one sink needs.

    Attributes:
        lag: offsets that wait in the tiles looked at; None while there is none.
        waits: how long the records of the newest tile had waited.
        sealed: hours that nobody else announces.
    """

    sink: str
    why: str
    lag: int | None
    request: dg.RunRequest | None = None
    waits: Sequence[Wait] = ()
    sealed: Sequence[dg.AssetMaterialization] = ()


def _ask(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    lander: "Landing",
    job: str,
    ends: Mapping[int, int],
    cursor: Cursor,
    now: int,
) -> _Asked:
    head = lander.index.head()
    looked = look(lander, head[0], cursor) if head else []
    asked = _due(instance, catalogue, lander, job, head[0] if head else None, looked, ends, cursor, now)
    if head is None:
        return asked
    name, sealing = lander.sink.name, Sealing.of(lander.index, head[0], looked)
    known, complete = cursor.announced.get(name, []), cursor.complete[name]
    found, cursor.announced[name] = left_behind(instance, catalogue, lander, sealing, looked, known, complete, now)
    return replace(asked, sealed=found, waits=looked[-1].sums.waits if looked and looked[-1].sums else ())


def _due(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    lander: "Landing",
    job: str,
    head: "TopicHead | None",
    looked: Sequence["Tile"],
    ends: Mapping[int, int],
    cursor: Cursor,
    now: int,
) -> _Asked:
    sink, topic = lander.sink, lander.topic
    found = wanted(catalogue, lander, head, looked, ends, cursor, now)
    lag = found.lag
    if found.why is None:
        waiting = f"{lag or 'no'} offsets wait"
        return _Asked(sink.name, waiting if found.due_ms is None else f"{waiting}; {at_the_latest(found.due_ms)}", lag)
    held = runs.held(instance, catalogue, sink, topic, now, lambda first, last: _state(lander, first, last, looked))
    if held:
        return _Asked(sink.name, held, lag)
    first, final = due.chunks(found.hours, sink.hours_per_run)[0]
    state, minute = _state(lander, first, final, looked), now // runs.SOON_MS
    request = dg.RunRequest(
        run_key=f"{catalogue.tag(sink)}/{topic}/{first}..{final}/{state}/{minute}",
        job_name=job,
        asset_selection=[catalogue.key(sink, topic)],
        tags={
            names.RANGE_START: first,
            names.RANGE_END: final,
            names.SINK: catalogue.tag(sink),
            names.TOPIC: topic,
            names.STATE: state,
            names.REASON: found.why.word,
        },
    )
    return _Asked(sink.name, f"{first} to {final}: {found.why.sentence}", lag, request)


@dataclass(frozen=True)
class Wanted:
    """Hours that are to be landed now, and why.

    Attributes:
        why: None if there are no such hours.
        lag: offsets that wait in the tiles looked at; None while there is none.
        due_ms: when what waits is due at the latest; None if nothing waits, or has to wait.
    """

    hours: Set[str]
    why: due.Reason | None
    lag: int | None
    due_ms: int | None


def wanted(
    catalogue: Catalogue,
    lander: "Landing",
    head: "TopicHead | None",
    looked: Sequence["Tile"],
    ends: Mapping[int, int],
    cursor: Cursor,
    now: int,
) -> Wanted:
    """What the index and Kafka's ends make due."""
    sink = lander.sink
    policy = due.Policy(sink.start, int(sink.close_grace * 1000), sink.flush.count, sink.flush.size)
    latest = head.hours[-1][1] if head and head.hours else None
    lag = sum(sum(due.backlog(tile, ends).values()) for tile in looked) if looked else None
    asked_ms = cursor.sweeping_ms.get(sink.name, 0) if sink.table is not None else 0
    unswept = {tile.hour for tile in looked if tile.landed and tile.pending is None and tile.garbage}
    if now - asked_ms < hours.HOUR_MS:  # its catalog may be away, and a run for nothing at each tick
        looked = [tile for tile in looked if tile.hour not in unswept]
    elif unswept:
        cursor.sweeping_ms[sink.name] = now
    over = due.unopened(latest, policy, now, sink.hours_per_run)
    found = {*due.incomplete(looked, now, policy.grace_ms), *over}
    why, due_ms = due.HOUR_OVER if over else due.INCOMPLETE if found else None, None
    last = next((tile for tile in looked if tile.hour == latest), None)
    if last is not None and not last.closed and last.hour not in found:
        flush, due_ms = _flush_due(lander, last, ends, policy, cursor, now)
        if flush is not None:
            found.add(last.hour)
            why = why or flush
    hours_due = catalogue.within(sink, lander.topic, found)
    return Wanted(hours_due, why if hours_due else None, lag, due_ms)


def look(lander: "Landing", head: "TopicHead", cursor: Cursor, *, again: bool = True) -> list["Tile"]:
    """The tiles not known to be complete, the newest of a long list; the last one; and some others in turn.

    A tile that is gone, as by a lifecycle rule that expires the index with the objects, is nobody's to come back to.
    """
    name = lander.sink.name
    rest = hours.without(head.hours, cursor.complete.get(name, []))
    known = hours.without(head.hours, rest)
    chosen = {*hours.latest(rest, TILES_PER_TICK), *hours.latest(head.hours, 1)}
    if again:
        second = hours.earliest(_later(known, cursor.looked.get(name, "")), SECOND_LOOKS_PER_TICK)
        cursor.looked[name] = second[-1] if second else ""
        chosen.update(second)
    tiles = [tile for hour in sorted(chosen) if (tile := _tile(lander, head, hour))]
    incomplete = hours.ranges(tile.hour for tile in tiles if not tile.complete)
    cursor.complete[name] = hours.without(hours.united([*known, *hours.ranges(chosen)]), incomplete)
    return tiles


def soon_ms(sink: Sink) -> int:
    """How long before an hour is closed nothing more of it is asked for: the run that closes it lands what is left."""
    return int(min(sink.close_grace, max(INTERVAL_S, sink.flush.interval / 3)) * 1000)


def patience_ms(sink: Sink) -> int:
    """How long records wait before they are due: with the next tick it would be longer than `flush.interval`."""
    return max(0, int((sink.flush.interval - INTERVAL_S) * 1000))


def at_the_latest(due_ms: int) -> str:
    """Say when a tick will ask for what is due at `due_ms`."""
    moment = datetime.fromtimestamp(due_ms / 1000 + INTERVAL_S, timezone.utc)
    return f"due at {moment:%H:%M:%S} UTC at the latest"


def _tile(lander: "Landing", head: "TopicHead", hour: str) -> "Tile | None":
    found = lander.index.tile(hour)
    if found is None and head.new is not None and head.new.hour == hour:
        return head.new  # announced, and not written yet: its creator died, and the next run writes it
    return found[0] if found else None


def _later(among: "Sequence[hours.Range]", hour: str) -> "Sequence[hours.Range]":
    return hours.between(hours.shift(hour, 1), among[-1][1], among) if hour and among else among


def _flush_due(
    lander: "Landing", tile: "Tile", ends: Mapping[int, int], policy: due.Policy, cursor: Cursor, now: int
) -> tuple[due.Reason | None, int | None]:
    """Return why the open tile is due now, and when what waits in it is due at the latest."""
    closing_ms = hours.end_ms(tile.hour) + policy.grace_ms
    if due.past(tile.hour, now, policy.grace_ms - soon_ms(lander.sink)):
        return None, closing_ms
    name, behind = lander.sink.name, due.backlog(tile, ends)
    if behind and now >= hours.end_ms(tile.hour):  # open for late records; others wait for the next hour's tile
        following = lander.offsets.first_since(lander.topic, hours.end_ms(tile.hour))
        behind = due.backlog(tile, {one: min(end, following.get(one, end)) for one, end in ends.items()})
    if not behind:
        cursor.waiting.pop(name, None)
        return None, None
    seen = cursor.waiting.get(name)
    if seen is None or (seen.hour, seen.rev) != (tile.hour, tile.rev):
        seen = cursor.waiting[name] = Seen(tile.hour, tile.rev, now)
    interval_ms = patience_ms(lander.sink)
    sums = lander.recent(tile)
    size = sums.bytes / sums.records if sums.records else 0.0
    age = due.Age(now, interval_ms, sums.landed_ms, seen.since_ms)
    # Where the times of landing and of seeing decide, records' own need not be asked for.
    since = {} if due.decided(age) else lander.offsets.first_since(lander.topic, now - interval_ms)
    waiting = due.Waiting(
        records=sum(behind.values()),
        bytes=int(sum(behind.values()) * size),
        partitions=len(behind),
        overdue=due.overdue(tile, {partition: since.get(partition, 0) for partition in behind}, age),
    )
    waited_ms = max(sums.landed_ms, seen.since_ms) + interval_ms
    return due.flush_due(waiting, policy), min(closing_ms, waited_ms)


def _state(lander: "Landing", first: str, last: str, tiles: Sequence["Tile"]) -> str:
    """The configuration and what the index has of these hours: every run that lands anything makes a new revision."""
    revisions = sorted((tile.hour, tile.rev) for tile in tiles if first <= tile.hour <= last)
    text = json.dumps([lander.sink.model_dump_json(by_alias=True), revisions])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def observation(
    catalogue: Catalogue,
    topic: str,
    ends: Mapping[int, int],
    lags: Mapping[str, int],
    cursor: Cursor,
    now: int,
    waits: Iterable[Wait] = (),
) -> dg.AssetObservation:
    new = sum(ends.values()) - sum(cursor.ends.get(partition, 0) for partition in ends)
    seconds = (now - cursor.observed_ms) / 1000
    digest = hashlib.sha256(json.dumps(sorted(ends.items())).encode()).hexdigest()
    return dg.AssetObservation(
        catalogue.topic(topic).key,
        metadata={
            "end_offsets": dg.MetadataValue.json({str(partition): end for partition, end in sorted(ends.items())}),
            "offsets": sum(ends.values()),
            "records_per_second": round(new / seconds, 3) if cursor.ends and seconds > 0 else 0.0,
            **({"lag": max(lags.values())} if lags else {}),
            **({f"lag of {sink}": lag for sink, lag in lags.items()} if len(lags) > 1 else {}),
            **freshness(waits),
        },
        tags={names.DATA_VERSION: digest[:32]},
    )


def _cursor(text: str | None) -> Cursor:
    try:
        cursor = msgspec.json.decode(text or "{}", type=Cursor)
        cursor.complete = {sink: hours.united(known) for sink, known in cursor.complete.items()}
        cursor.announced = {sink: hours.united(known) for sink, known in cursor.announced.items()}
        cursor.looked = {sink: hour for sink, hour in cursor.looked.items() if not hour or hours.parse(hour)}
        return cursor
    except (msgspec.MsgspecError, ValueError):
        return Cursor()  # another version's: advice that is not understood is no advice
