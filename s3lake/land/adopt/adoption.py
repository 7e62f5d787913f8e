"""The whole of an adoption: look, decide, finish what is pending, write the first tile."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from s3lake import hours
from s3lake.commit.index import TopicHead, TopicIndex
from s3lake.commit.opening import finish_creation
from s3lake.config.draft import Connector
from s3lake.errors import ConfigurationError
from s3lake.land.adopt import lenses, objects
from s3lake.land.adopt.claims import Claim, Evidence, Source, Start, decide, exact
from s3lake.land.adopt.group import Group, Groups
from s3lake.land.adopt.locks import recover
from s3lake.land.adopt.names import LensesNames, Naming
from s3lake.plan.tile import Span, Tile
from s3lake.source.offsets import Offsets, Snapshot
from s3lake.store import Store


@dataclass(frozen=True)
class Adoption:
    """The connector that a sink takes over from, and how it names its objects."""

    connector: Connector
    naming: Naming

    @property
    def consumer_group(self) -> str:
        """The group that its tasks read with."""
        return self.connector.group or f"connect-{self.connector.name}"


@dataclass(frozen=True)
class Adopted:
    """What adopting a topic did, or would do.

    Attributes:
        evidence: what each source said.
        hour: whose tile begins at `starts`.
        recovered: steps that finished (or gave up) what the connector left pending.
        written: whether anything was changed; False for a dry run.
    """

    evidence: Evidence
    hour: str
    starts: dict[int, Start]
    recovered: tuple[str, ...]
    written: bool


def adopt(
    adoption: Adoption,
    index: TopicIndex,
    offsets: Offsets,
    groups: Groups,
    *,
    first_hour: str,
    now_ms: int,
    trust: Source | None = None,
    accept_expired: bool = False,
    dry_run: bool = False,
) -> Adopted:
    """Begin the tile of the present hour where the connector stopped; no earlier hour can be opened afterwards.

    Args:
        adoption: the connector.
        index: of the sink and topic; it must not have a tile yet.
        offsets: where Kafka's log stands.
        groups: the consumer groups of the same cluster.
        first_hour: the sink's `start`.
        trust: the source that counts where the sources contradict each other.
        accept_expired: go on although Kafka no longer has the records from where the connector stopped; the first run
            records them as expired.
        dry_run: only say what would be done.

    Raises:
        ConfigurationError: the index has tiles, the connector runs still, the sources contradict each other, Kafka
            does not have the offsets, or the sink starts later; there is no such topic, the connector's index cannot be
            read, or an operation in it can neither be finished nor undone.
    """
    topic, store = index.topic, index.store
    hour = hours.key_of_ms(now_ms)
    if hour < first_hour:
        raise ConfigurationError(
            f"topic {topic}: the sink starts at {first_hour}, later than the present hour {hour}, in which it would "
            f"go on: set start: {hour} or earlier"
        )
    _refuse_begun(index)
    before = _look(adoption, topic, store, offsets, groups)
    if not dry_run:
        _refuse_running(before.evidence)
    starts = decide(before.evidence, trust)
    _refuse_against_pending(topic, before.index, starts)
    kafka = offsets.snapshot(topic, hour)
    _within(topic, starts, kafka, accept_expired)
    steps = tuple(f"{one.key}: {step}" for one in before.index.recoveries for step in one.steps)
    if dry_run:
        return Adopted(before.evidence, hour, starts, steps, written=False)
    for recovery in before.index.recoveries:
        recover(store, recovery)
    # The objects are not listed once more: who writes any has a group that is not empty, or a lock that changed.
    now = _index(adoption, topic, store), groups.of(adoption.consumer_group, topic)
    if now != (lenses.Found(before.index.claims), before.group):
        raise ConfigurationError(f"topic {topic}: the connector has gone on meanwhile: stop it, then adopt again")
    _write(index, hour, kafka, starts)
    return Adopted(before.evidence, hour, starts, steps, written=True)


@dataclass(frozen=True)
class _Look:
    """What was found, with what is looked at again before anything is written.

    Pending operations count as finished: `adopt` finishes them before it writes anything else.
    """

    index: lenses.Found
    group: Group
    evidence: Evidence


def _look(adoption: Adoption, topic: str, store: Store, offsets: Offsets, groups: Groups) -> _Look:
    log = dict(offsets.ranges(topic))
    if not log:
        raise ConfigurationError(f"topic {topic!r} does not exist in Kafka: there is nothing to go on with")
    index = _index(adoption, topic, store)
    group = groups.of(adoption.consumer_group, topic)
    named = objects.claims(store, adoption.naming, topic, index.copied)
    claims = {}
    for partition in sorted({*index.claims, *group.offsets, *named}):
        of_index = index.claims.get(partition)
        sources = of_index, _group(adoption, group.offsets.get(partition), of_index), named.get(partition)
        claims[partition] = tuple(one for one in sources if one is not None)
    running = f"consumer group {adoption.consumer_group} is {group.running}" if group.running else ""
    return _Look(index, group, Evidence(topic, claims, log, running, _places(adoption, topic, store)))


def _places(adoption: Adoption, topic: str, store: Store) -> dict[Source, str]:
    names = adoption.naming.names(topic)
    places: dict[Source, str] = {
        "group": f"consumer group {adoption.consumer_group}",
        "objects": f"s3://{store.bucket}/{names.prefix}" if names else "not at all: the names do not tell offsets",
    }
    if adoption.connector.indexes is None:
        return places
    return {"index": f"s3://{store.bucket}/{adoption.connector.indexes}/{adoption.connector.name}/", **places}


def _index(adoption: Adoption, topic: str, store: Store) -> lenses.Found:
    connector = adoption.connector
    if connector.indexes is None:
        return lenses.Found({})
    by_value = isinstance(adoption.naming, LensesNames) and adoption.naming.partition_by
    return lenses.look(store, connector.indexes, connector.name, topic, by_value=by_value)


def _group(adoption: Adoption, committed: int | None, index: Claim | None) -> Claim | None:
    if committed is None:
        return None
    if not adoption.connector.lenses:
        return exact("group", committed)
    if index is not None and index.certain:
        note = "the connector goes by its index and commits to Kafka afterwards, so its group may lag behind"
        return Claim("group", committed, committed, None, note)
    note = "versions before 10.0.3 committed the offset of the last record, later ones the one after it"
    return Claim("group", committed, committed, committed + 1, note)


def first_tile(index: TopicIndex) -> str | None:
    """The first hour of the topic that was landed, or adopted; None where none was."""
    head = index.head()
    return head[0].hours[0][0] if head and head[0].hours else None


def _refuse_begun(index: TopicIndex) -> None:
    first = first_tile(index)
    if first is not None:
        raise ConfigurationError(
            f"topic {index.topic}: s3://{index.store.bucket}/{index.root}/ has tiles already, the first of hour "
            f"{first}: a sink adopts a topic before it has landed any of it. Give the sink another name "
            "to begin anew"
        )


def _refuse_running(evidence: Evidence) -> None:
    if evidence.running:
        raise ConfigurationError(
            f"topic {evidence.topic}: {evidence.running}: the connector runs still. Stop it and wait until its tasks "
            "are gone"
        )


def _refuse_against_pending(topic: str, index: lenses.Found, starts: dict[int, Start]) -> None:
    """A copy lands records: where something else is trusted than the index, they would land twice."""
    for recovery in (recovery for recovery in index.recoveries if recovery.copies):
        claim, start = index.claims.get(recovery.partition), starts[recovery.partition]
        if (claim.next if claim else None) != start.offset:
            raise ConfigurationError(
                f"topic {topic}: partition {recovery.partition} would go on at {start.offset} ({start.source}), but "
                f"{recovery.key} has a copy pending, which only fits the index: use --trust index, or write null for "
                "pendingState into that lock"
            )


def _within(topic: str, starts: dict[int, Start], kafka: Snapshot, accept_expired: bool) -> None:
    """Refuse offsets that Kafka no longer has, or never had."""
    wrong = []
    for partition, start in starts.items():
        log = kafka.partitions.get(partition)
        start_text = f"partition {partition} goes on at {start.offset} ({start.source})"
        if log is None:
            wrong.append(f"{start_text}, but Kafka's topic has no such partition: it was created anew with fewer")
        elif start.offset > log.end:
            wrong.append(
                f"{start_text}, but Kafka's log ends at {log.end}: the topic was created anew (then take another "
                "prefix and do not adopt), or a transaction is open (then adopt again when it has ended)"
            )
        elif start.offset < log.low and not accept_expired:
            wrong.append(
                f"{start_text}, but Kafka's log starts at {log.low}: {log.low - start.offset} offsets have expired and "
                "cannot be landed any more; --accept-expired goes on without them and records them as expired"
            )
    if wrong:
        raise ConfigurationError("\n".join([f"topic {topic}: Kafka does not have these offsets", *wrong]))


def _write(index: TopicIndex, hour: str, kafka: Snapshot, starts: dict[int, Start]) -> None:
    spans = {partition: Span(start.offset, start.offset) for partition, start in sorted(starts.items())}
    tile = Tile(hour, spans)
    # What lies before `since` is not opened: it would land once more what the connector has landed.
    head = TopicHead(topic_id=kafka.topic_id, hours=((hour, hour),), new=tile, since=hour)
    while True:
        present = index.head()
        _refuse_begun(index)
        # A head without hours is left behind by a run that found no topic.
        written = (
            index.swap(index.head_key, msgspec.structs.replace(head, rev=present[0].rev + 1), present[1])
            if present
            else index.create(index.head_key, head)
        )
        if written:
            break
    finish_creation(index, head)
