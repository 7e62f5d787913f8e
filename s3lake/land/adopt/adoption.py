"""Find where a connector stopped, and write the tile that begins there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from s3lake import hours
from s3lake.config.draft import Connector
from s3lake.errors import ConfigurationError
from s3lake.index.commit.documents import TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.land.adopt.group_offsets import GroupOffsets, Groups
from s3lake.land.adopt.lenses_index import read_locks
from s3lake.land.adopt.object_names import build_name_pattern
from s3lake.source.offsets import Offsets, TopicOffsets
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

_REMEDY = (
    "Start the connector again, let it idle until it has written everything and committed, stop it, then adopt again. "
    "Or decide with --topic TOPIC --offset PARTITION=OFFSET, the first offset to land: too low an offset lands records "
    "twice, too high an offset leaves a gap"
)


@dataclass(frozen=True)
class Authority:
    """The offsets of the source that decides.

    Attributes:
        place: the consumer group or the directory of locks, for people.
        offsets: the first offset of each topic-partition that has not landed.
        problems: topic-partition -> why the source has no offset for it.
        group: the connector's consumer group, which shows if the connector runs.
    """

    place: str
    offsets: Mapping[int, int]
    problems: Mapping[int, str]
    group: GroupOffsets


@dataclass(frozen=True)
class Evidence:
    """Everything that was found of a topic.

    Attributes:
        newest: the highest offset of each topic-partition in the name of an object, and the object's key.
        names_place: the place where objects were listed, for people.
        log: log start and last stable offset of each topic-partition that Kafka has.
    """

    topic: str
    authority: Authority
    newest: Mapping[int, tuple[int, str]]
    names_place: str
    log: Mapping[int, tuple[int, int]]

    @property
    def partitions(self) -> list[int]:
        """Every topic-partition that Kafka or the connector has."""
        return sorted({*self.log, *self.authority.offsets, *self.authority.problems, *self.newest})


@dataclass(frozen=True)
class Start:
    """The first offset to land of a topic-partition, and the source of it: `lock`, `group`, `user` or `log start`."""

    offset: int
    source: str


@dataclass(frozen=True)
class Adopted:
    """The result of an adoption, or of a dry run, which writes nothing.

    Attributes:
        hour: the hour whose tile begins at `starts`.
    """

    evidence: Evidence
    hour: str
    starts: dict[int, Start]
    written: bool


def adopt_topic(
    connector: Connector,
    sink: Sink,
    index: TopicIndex,
    offsets: Offsets,
    groups: Groups,
    *,
    now_ms: int,
    chosen: Mapping[int, int] = {},
    accept_expired: bool = False,
    dry_run: bool = False,
) -> Adopted:
    """Begin the tile of the present hour where the connector stopped; no earlier hour can be opened afterwards.

    Args:
        connector: the connector to continue.
        sink: the sink that the connector's configuration becomes.
        index: the index of the sink and topic; it must not have a tile yet.
        offsets: the offsets of Kafka's log.
        groups: the consumer groups of the same cluster.
        now_ms: the present time.
        chosen: topic-partition -> first offset to land, as the user decided.
        accept_expired: continue although Kafka has expired records that were not landed; the first run records them.
        dry_run: only return what would be done.

    Raises:
        ConfigurationError: the index has tiles, the connector runs, what was found contradicts the authority, Kafka
            does not have the offsets, the sink starts later, or the topic does not exist.
    """
    topic, hour = index.topic, hours.key_of_ms(now_ms)
    if hour < sink.start:
        raise ConfigurationError(
            f"topic {topic}: the sink starts at {sink.start}, later than the present hour {hour}, in which it would "
            f"continue: set start: {hour} or earlier"
        )
    _refuse_begun(index)
    log = dict(offsets.log_ranges(topic))
    if not log:
        raise ConfigurationError(f"topic {topic!r} does not exist in Kafka: there is nothing to continue")
    authority = _read_authority(connector, sink, index, groups)
    if authority.group.running and not dry_run:
        raise ConfigurationError(
            f"topic {topic}: consumer group {_name_group(connector)} is {authority.group.running}: the connector still "
            "runs. Stop it and wait until its tasks have stopped"
        )
    evidence = Evidence(topic, authority, *_find_newest(connector, sink, index), log)
    starts = choose_offsets(evidence, chosen, "lock" if connector.indexes is not None else "group")
    kafka = offsets.snapshot(topic, hour)
    _require_in_log(topic, starts, kafka, accept_expired)
    if dry_run:
        return Adopted(evidence, hour, starts, written=False)
    # The objects are not listed again: who writes one has a group that is not empty, or changes a lock.
    if _read_authority(connector, sink, index, groups) != authority:
        raise ConfigurationError(f"topic {topic}: the connector has continued meanwhile: stop it, then adopt again")
    _write(index, hour, kafka, starts)
    return Adopted(evidence, hour, starts, written=True)


def choose_offsets(evidence: Evidence, chosen: Mapping[int, int], source: str) -> dict[int, Start]:
    """Return the first offset to land of each topic-partition.

    A topic-partition of which nothing was found begins at its log start.

    Raises:
        ConfigurationError: nothing of the topic was found, or something contradicts the authority.
    """
    topic, authority, newest = evidence.topic, evidence.authority, evidence.newest
    is_unknown = not (authority.offsets or authority.problems or newest or chosen)
    if is_unknown and any(end > low for low, end in evidence.log.values()):
        raise ConfigurationError(
            f"topic {topic}: nothing of a connector was found, though the topic has records. Looked at:"
            f"\n  {authority.place}\n  {evidence.names_place}\nCorrect the connector's name, bucket or prefix; to land "
            "the topic without a connector before it, do not adopt it"
        )
    starts: dict[int, Start] = {}
    refused = []
    for partition in sorted({*evidence.partitions, *chosen}):
        offset = authority.offsets.get(partition)
        name, key = newest.get(partition, (-1, ""))
        if partition in chosen:
            starts[partition] = Start(chosen[partition], "user")
        elif partition in authority.problems:
            refused.append(f"partition {partition}: {authority.problems[partition]}")
        elif offset is None and key:
            refused.append(f"partition {partition}: {key} exists, but {authority.place} has no offset")
        elif offset is None:
            starts[partition] = Start(evidence.log[partition][0], "log start")
        elif name >= offset:
            refused.append(f"partition {partition}: {authority.place} is at {offset}, but {key} exists")
        else:
            starts[partition] = Start(offset, source)
    if refused:
        raise ConfigurationError("\n".join([f"topic {topic}: the next offset is uncertain", *refused, _REMEDY]))
    return starts


def format_evidence(evidence: Evidence) -> list[str]:
    """Return what was found as text in columns, a line for each topic-partition."""
    lines = [["partition", "next", "newest name", "log"]]
    for partition in evidence.partitions:
        offset, log = evidence.authority.offsets.get(partition), evidence.log.get(partition)
        newest = evidence.newest.get(partition)
        cells = "-" if offset is None else offset, newest[0] if newest else "-", "missing" if log is None else log
        lines.append(
            [str(partition), *(f"{one[0]} to {one[1]}" if isinstance(one, tuple) else str(one) for one in cells)]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def first_tile(index: TopicIndex) -> str | None:
    """Return the first hour of the topic that was landed or adopted. Return None if there is none."""
    head = index.head()
    return head[0].hours[0][0] if head and head[0].hours else None


def _read_authority(connector: Connector, sink: Sink, index: TopicIndex, groups: Groups) -> Authority:
    name = _name_group(connector)
    group = groups.read(name, index.topic)
    if connector.indexes is None:
        return Authority(f"consumer group {name}", group.offsets, {}, group)
    root = f"{connector.indexes}/{connector.name}/.locks/Topic({index.topic})/"
    offsets, problems = read_locks(
        index.store, root, index.topic, group.offsets, by_value=bool(sink.layout.partition_by)
    )
    place = f"s3://{index.store.bucket}/{root}"
    for partition in group.offsets.keys() - offsets.keys() - problems.keys():
        problems[partition] = f"consumer group {name} is at {group.offsets[partition]}, but {place} has no offset"
    return Authority(place, offsets, problems, group)


def _name_group(connector: Connector) -> str:
    return connector.group or f"connect-{connector.name}"


def _find_newest(connector: Connector, sink: Sink, index: TopicIndex) -> tuple[dict[int, tuple[int, str]], str]:
    """Return the highest offset in a name of each topic-partition with its key, and the place that was listed."""
    names = build_name_pattern(sink, index.topic, lenses=connector.lenses)
    if names is None:
        return {}, "no objects: their names do not tell offsets"
    newest: dict[int, tuple[int, str]] = {}
    for key in index.store.list(names.prefix):
        numbers = names.parse(key)
        if numbers is not None:
            partition, offset = numbers
            newest[partition] = max(newest.get(partition, (-1, "")), (offset, f"s3://{index.store.bucket}/{key}"))
    return newest, f"s3://{index.store.bucket}/{names.prefix}"


def _refuse_begun(index: TopicIndex) -> None:
    first = first_tile(index)
    if first is not None:
        raise ConfigurationError(
            f"topic {index.topic}: s3://{index.store.bucket}/{index.root}/ has tiles already, the first of hour "
            f"{first}: a sink adopts a topic before it has landed any of it. Give the sink another name "
            "to begin again"
        )


def _require_in_log(topic: str, starts: dict[int, Start], kafka: TopicOffsets, accept_expired: bool) -> None:
    """Refuse offsets that Kafka no longer has, or never had."""
    wrong = []
    for partition, start in starts.items():
        log = kafka.partitions.get(partition)
        text = f"partition {partition} continues at {start.offset} ({start.source})"
        if log is None:
            wrong.append(f"{text}, but Kafka's topic has no such partition: it was created again with fewer")
        elif start.offset > log.log_end:
            wrong.append(
                f"{text}, but Kafka's log ends at {log.log_end}: the topic was created again (then take another prefix "
                "and do not adopt), or a transaction is open (then adopt again when it has ended)"
            )
        elif start.offset < log.log_start and not accept_expired:
            wrong.append(
                f"{text}, but Kafka's log starts at {log.log_start}: "
                f"{format_count(log.log_start - start.offset, 'offsets')} expired before they could be landed; "
                "--accept-expired continues without them and records them as expired"
            )
    if wrong:
        raise ConfigurationError("\n".join([f"topic {topic}: Kafka does not have these offsets", *wrong]))


def _write(index: TopicIndex, hour: str, kafka: TopicOffsets, starts: dict[int, Start]) -> None:
    spans = {partition: TileRange(start.offset, start.offset) for partition, start in sorted(starts.items())}
    # Hours before `since` are not opened: they would land again what the connector has landed.
    head = TopicHead(topic_id=kafka.topic_id, hours=((hour, hour),), new=Tile(hour, spans), since=hour)
    while True:
        present = index.head()
        _refuse_begun(index)
        # A run that found no topic leaves a head without hours.
        written = (
            index.swap(index.head_key, msgspec.structs.replace(head, rev=present[0].rev + 1), present[1])
            if present
            else index.create(index.head_key, head)
        )
        if written:
            break
    index.create_announced_tile(head)
