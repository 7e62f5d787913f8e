"""Sensors: one per topic. Looks at offsets and at the index, never at messages, and asks for hours.

The cursor is advice; the index is the truth. A lost cursor costs one slow tick.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
import msgspec
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES  # the same list that Dagster itself guards with

from s3lake import hours
from s3lake.errors import S3LakeError
from s3lake.orchestration import names
from s3lake.orchestration.resources import landing
from s3lake.plan import due
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.landing import Landing
    from s3lake.plan.tile import Tile

INTERVAL_S = 30
OBSERVE_EVERY_MS = 300_000
ASK_AGAIN_MS = 600_000
TILES_PER_TICK = 240


class Cursor(msgspec.Struct):
    """What a sensor remembers.

    Attributes:
        observed_ms: when the topic was last observed.
        ends: end offsets then.
        complete: per sink, ranges of hours known to be complete.
    """

    observed_ms: int = 0
    ends: dict[int, int] = {}
    complete: dict[str, list[tuple[str, str]]] = {}


def topic_sensor(
    topic: str, sinks: Sequence[Sink], jobs: Mapping[str, Any], status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    """Asks for every hour of `topic` that the index calls incomplete, and for the one under way when enough waits.

    Args:
        topic: the topic.
        sinks: those that land it.
        jobs: by sink; one for all would need one start and one backfill policy.
        status: before anybody switches it in the UI.
    """

    @dg.sensor(
        name=names.identifier("kafka", topic),
        jobs=[jobs[sink.name] for sink in sinks],
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        description=f"Lands topic {topic}: {', '.join(sink.name for sink in sinks)}.",
    )
    def sense(
        context: dg.SensorEvaluationContext, kafka: dg.ResourceParam[Any], s3: dg.ResourceParam[Any]
    ) -> dg.SensorResult | dg.SkipReason:
        cursor = _cursor(context.cursor)
        try:
            # Kafka first: it answers, or fails, within its own short time.
            ends = {partition: end for partition, (_, end) in kafka.offsets.ranges(topic).items()}
            if not ends:
                return dg.SkipReason(f"topic {topic} does not exist")
            asked = [
                _ask(context.instance, landing(sink, topic, kafka, s3, spark=None), ends, cursor) for sink in sinks
            ]
        except S3LakeError as error:
            raise dg.Failure(str(error)) from error
        requests = [request for one in asked for request in one]
        clock = landing(sinks[0], topic, kafka, s3, spark=None).clock()
        events = []
        if requests or clock - cursor.observed_ms >= OBSERVE_EVERY_MS:
            events.append(_observation(topic, ends, cursor, clock))
            cursor.observed_ms, cursor.ends = clock, ends
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else f"{sum(ends.values())} offsets, nothing due",
            cursor=msgspec.json.encode(cursor).decode(),
            asset_events=events,
        )

    return sense


def _ask(
    instance: dg.DagsterInstance, lander: "Landing", ends: Mapping[int, int], cursor: Cursor
) -> list[dg.RunRequest]:
    sink, now = lander.sink, lander.clock()
    policy = due.Policy(sink.start, int(sink.close_grace * 1000), sink.flush.count, sink.flush.size)
    head = lander.index.head()
    existing = hours.expand(head[0].hours) if head else []
    known = cursor.complete.get(sink.name, [])
    looked = [tile for tile in map(_tile_of(lander), _to_look_at(existing, known)) if tile]
    complete = [*hours.expand(known), *(tile.hour for tile in looked if tile.complete)]
    cursor.complete[sink.name] = hours.ranges(hour for hour in complete if hour in set(existing))
    wanted = {
        *due.incomplete(looked, now, policy.grace_ms),
        *due.unopened(existing[-1] if existing else None, policy, now),
    }
    last = next((tile for tile in looked if existing and tile.hour == existing[-1]), None)
    reason = "hours that the index calls incomplete"
    if last is not None and not last.closed and last.hour not in wanted:
        why = _flush_due(lander, last, ends, policy)
        if why:
            wanted.add(last.hour)
            reason = why
    if not wanted or _under_way(instance, lander):
        return []
    first, final = due.chunks(wanted, sink.hours_per_run)[0]
    return [
        dg.RunRequest(
            run_key=_run_key(lander, first, final, ends, looked, now),
            asset_selection=[names.sink_key(sink, lander.topic)],
            tags={
                names.RANGE_START: first,
                names.RANGE_END: final,
                "s3lake/sink": sink.name,
                "s3lake/topic": lander.topic,
                "s3lake/reason": reason,
            },
        )
    ]


def _to_look_at(existing: Sequence[str], known: Sequence[tuple[str, str]]) -> list[str]:
    """Hours not known to be complete, the oldest of a long list first, and always the last one."""
    rest = [hour for hour in existing if not hours.in_ranges(hour, known)]
    return sorted({*rest[:TILES_PER_TICK], *existing[-1:]})


def _tile_of(lander: "Landing") -> Any:
    def read(hour: str) -> "Tile | None":
        found = lander.index.tile(hour)
        return found[0] if found else None

    return read


def _flush_due(lander: "Landing", tile: "Tile", ends: Mapping[int, int], policy: due.Policy) -> str | None:
    since = lander.offsets.first_since(lander.topic, lander.clock() - int(lander.sink.flush.interval * 1000))
    return due.flush_due(due.waiting(tile, ends, since, _bytes_per_record(lander, tile)), policy)


def _bytes_per_record(lander: "Landing", tile: "Tile") -> float:
    manifest = lander.index.manifest(tile.hour, tile.commits[-1]) if tile.commits else None
    records = sum(file.records for file in manifest.files) if manifest else 0
    return sum(file.bytes for file in manifest.files) / records if manifest and records else 0.0


def _under_way(instance: dg.DagsterInstance, lander: "Landing") -> bool:
    """Whether a run that this sensor asked for has not ended; its outcome decides what is due next."""
    filters = dg.RunsFilter(
        tags={"s3lake/sink": lander.sink.name, "s3lake/topic": lander.topic}, statuses=list(IN_PROGRESS_RUN_STATUSES)
    )
    return bool(instance.get_run_records(filters, limit=1))


def _run_key(
    lander: "Landing", first: str, last: str, ends: Mapping[int, int], tiles: Sequence["Tile"], now: int
) -> str:
    # A run that failed is asked for again, but not at every tick: the time is in the key, coarsely.
    revisions = {tile.hour: tile.rev for tile in tiles if first <= tile.hour <= last}
    state = json.dumps([sorted(ends.items()), sorted(revisions.items()), now // ASK_AGAIN_MS])
    return f"{lander.sink.name}/{lander.topic}/{first}..{last}/{hashlib.sha256(state.encode()).hexdigest()[:16]}"


def _observation(topic: str, ends: Mapping[int, int], cursor: Cursor, clock: int) -> dg.AssetObservation:
    new = sum(ends.values()) - sum(cursor.ends.get(partition, 0) for partition in ends)
    seconds = (clock - cursor.observed_ms) / 1000
    digest = hashlib.sha256(json.dumps(sorted(ends.items())).encode()).hexdigest()
    return dg.AssetObservation(
        names.topic_key(topic),
        metadata={
            "end_offsets": dg.MetadataValue.json({str(partition): end for partition, end in sorted(ends.items())}),
            "offsets": sum(ends.values()),
            "records_per_second": round(new / seconds, 3) if cursor.ends and seconds > 0 else 0.0,
        },
        tags={"dagster/data_version": digest[:32]},
    )


def _cursor(text: str | None) -> Cursor:
    try:
        return msgspec.json.decode(text or "{}", type=Cursor)
    except msgspec.MsgspecError:
        return Cursor()  # another version's: advice that is not understood is no advice
