"""What an operator decides: to go on with a topic that was created again or cut off, to give up a pending commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from s3lake import hours
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.log_checks import find_truncated_offsets
from s3lake.index.commit.recovery import roll_commit_back, settle_and_sweep_hour, sweep_garbage
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import NOTHING, Tile, TileRange
from s3lake.source.offsets import Offsets, TopicOffsets
from s3lake.text.quantities import format_count


class _ResumePoint(NamedTuple):
    """The place in the hours of one topic-partition, whose log was cut, from which landing continues.

    Attributes:
        hour: the last hour that has landed something of it.
        offset: the first offset that this hour, or one after it, has not landed.
    """

    hour: str
    offset: int


class _Continuation(NamedTuple):
    """How landing continues after a log was cut.

    Attributes:
        passed_on: the topic-partitions whose remaining offsets go from existing hours to the new hour, and from where.
        begins: the offset where the new hour begins, for each topic-partition.
    """

    passed_on: Mapping[int, _ResumePoint]
    begins: dict[int, int]


def accept_present_log(index: TopicIndex, offsets: Offsets, *, dry_run: bool = False) -> str:
    """Give up what the former topic had not landed, and begin again: the first hour of the present topic.

    Every unfinished tile ends where it was committed; the rest is recorded as expired. The present topic's tiles begin
    at its log start, in the hour after the last tile, under names with a suffix, because its offsets repeat. Of the
    same topic with a log that was cut off, they begin where it was cut, and elsewhere where landing had come to: what
    they land then belongs to no earlier hour any more.

    Args:
        index: the index of the sink and topic.
        offsets: the offsets of the source.
        dry_run: only return the hour; what is pending in the index stays as it is.

    Raises:
        ConfigurationError: the topic is the one that the index knows, and whole, or does not exist.
    """
    while True:
        stored = index.head()
        last = stored[0].hours[-1][1] if stored and stored[0].hours else None
        if stored is None or last is None:
            raise ConfigurationError(f"topic {index.topic!r} has no index yet: there is nothing to accept")
        head, etag = stored
        if not dry_run:
            index.create_announced_tile(head)
        existing = [hour for hour in hours.expand(head.hours) if head.since is None or hour >= head.since]
        # Settled first: what is pending may be landed. And before Kafka is asked, whose logs grow meanwhile.
        settled: list[tuple[Tile, str]] = []
        for hour in existing:
            if not dry_run:
                stored_tile = settle_and_sweep_hour(index, hour)
                settled += [stored_tile] if stored_tile else []
            elif tile := index.announced_tile(head, hour):
                settled.append((tile, ""))
        kafka = offsets.snapshot(index.topic, last)
        continuation: _Continuation | None = None
        if kafka.topic_id == head.topic_id and settled and settled[-1][0].hour == last:
            continuation = _plan_continuation(index, offsets, [tile for tile, _ in settled], kafka)
        if not kafka.exists or (kafka.topic_id == head.topic_id and continuation is None):
            state = "is the one that the index was cut from" if kafka.exists else "does not exist in Kafka"
            raise ConfigurationError(f"topic {index.topic!r} {state}: there is nothing to accept")
        since = hours.shift(last, 1)
        if dry_run:
            return since
        passed_on, begins = continuation or _Continuation({}, {})
        # The last hour first: what a later one lands meanwhile is known before an earlier one passes anything on.
        ending = [(_end_tile(tile, passed_on), of_tile) for tile, of_tile in reversed(settled) if not tile.landed]
        if ending:
            all(index.swap_tile(tile, of_tile) for tile, of_tile in ending)
            continue
        # The first hour first: that the log was cut is known by the last one.
        moving = [(moved, of_tile) for tile, of_tile in settled if (moved := _move_tile(tile, passed_on)) is not tile]
        if not all(index.swap_tile(tile, of_tile) for tile, of_tile in moving):
            continue
        earlier = head.earlier if head.since is None else (*head.earlier, head.since)
        led = tiles.collect_epochs(kafka, begins)
        revised = head.revise(topic_id=kafka.topic_id, since=since, earlier=earlier, begins=begins, led=led, new=None)
        if index.swap(index.head_key, revised, etag):
            return since


def _plan_continuation(
    index: TopicIndex, offsets: Offsets, existing: Sequence[Tile], kafka: TopicOffsets
) -> _Continuation | None:
    """Plan how landing continues after a log was cut below landed or planned offsets. Return None if none was."""
    cut = find_truncated_offsets(index, offsets, existing[-1], kafka)
    if not cut:
        _refuse_if_cut_before(index.topic, existing[-1], kafka)
        return None
    surviving, points = _find_surviving_ends(index, offsets, existing, kafka), _find_resume_points(existing)
    passed_on, begins = {}, {}
    for partition, point in points.items():
        cut_at = cut.get(partition)
        if cut_at is None or point.offset < cut_at:
            passed_on[partition] = point
        # The new hour begins at the cut at the latest, unless offsets after the cut were landed since.
        latest = point.offset if cut_at is None else min(point.offset, cut_at)
        begins[partition] = max(surviving.get(partition, 0), latest)
    return _Continuation(passed_on, begins)


def _refuse_if_cut_before(topic: str, last: Tile, kafka: TopicOffsets) -> None:
    """Refuse if a log was cut below the end of the last hour, and no landed record was lost."""
    for partition, span in last.partitions.items():
        log = kafka.partitions.get(partition)
        if log is not None and log.log_end < span.committed:
            raise ConfigurationError(
                f"topic {topic!r} is the one that the index was cut from, and what is landed is in it still: there "
                f"is nothing to accept. Its topic-partition {partition} ends at offset {log.log_end}, {last.hour} "
                f"begins at {span.committed}: landing goes on by itself once that many are there"
            )


def _find_resume_points(existing: Sequence[Tile]) -> dict[int, _ResumePoint]:
    """Find per topic-partition where landing continues: after the last hour that has landed something.

    Offsets of one hour are an interval: one from there on would hold what is landed a second time.
    """
    points = {}
    for partition in existing[-1].partitions:
        ranges = [(tile, tile.partitions[partition]) for tile in existing if partition in tile.partitions]
        last = max((place for place, (_, span) in enumerate(ranges) if span.committed > span.start), default=0)
        # An `accept` that did not finish, because it crashed or an hour was opened meanwhile, has left ends below what
        # is burnt: that hour still lacks the rest.
        unlanded = (
            span.committed
            for tile, span in ranges[last:]
            if span.committed != span.end or tiles.is_burnt(tile.burnt, {partition: (span.committed, span.committed)})
        )
        points[partition] = _ResumePoint(ranges[last][0].hour, next(unlanded, ranges[-1][1].committed))
    return points


def _find_surviving_ends(
    index: TopicIndex, offsets: Offsets, existing: Sequence[Tile], kafka: TopicOffsets
) -> dict[int, int]:
    """Return up to which offsets landed records are in the present logs.

    Hours need not have been landed in their order: the last one may have been cut, and one before it landed since.
    """
    reached: dict[int, dict[int | None, int]] = {}
    for tile in existing:
        for partition, span in tile.partitions.items():
            if span.committed > span.start and partition in kafka.partitions:
                reached.setdefault(partition, {})[tile.epochs.get(partition)] = span.committed
    surviving = dict.fromkeys(reached, 0)
    while asked := {one: of_leaders.popitem() for one, of_leaders in reached.items() if of_leaders}:
        elected = {
            partition: (at, epoch)
            for partition, (epoch, at) in asked.items()
            if epoch is not None and epoch != kafka.partitions[partition].epoch
        }
        cut = offsets.find_truncations(index.topic, elected) if elected else {}
        for partition, (_, at) in asked.items():
            cut_at = cut.get(partition, min(at, kafka.partitions[partition].log_end))
            surviving[partition] = max(surviving[partition], cut_at)
    return surviving


def _end_tile(tile: Tile, passed_on: Mapping[int, _ResumePoint]) -> Tile:
    """End a tile where it is committed. The rest has expired, or lands in the new hour, under names not used here."""
    spans, expired, burnt = {}, list(tile.expired), tile.burnt
    for partition, span in (tile.partitions or {0: NOTHING}).items():
        point, end = passed_on.get(partition), _end(span)
        if point is not None and tile.hour >= point.hour:
            spans[partition] = TileRange(span.start, span.committed, span.committed)
            burnt = tiles.extend_burnt(burnt, {partition: end})
        else:
            spans[partition] = TileRange(span.start, end, end)
            if end > span.committed:
                expired.append((partition, span.committed, end))
    return tile.revise(partitions=spans, expired=tiles.join_offset_ranges(expired), burnt=burnt)


def _move_tile(tile: Tile, passed_on: Mapping[int, _ResumePoint]) -> Tile:
    """Let an hour that has landed nothing since begin and end where the new one begins, so that all hours meet."""
    spans = {
        partition: TileRange(point.offset, point.offset, point.offset)
        for partition, point in passed_on.items()
        if tile.partitions.get(partition, NOTHING).start > point.offset
    }
    if not spans:
        return tile
    ends = {partition: _end(span) for partition, span in tile.partitions.items() if partition in spans}
    return tile.revise(partitions={**tile.partitions, **spans}, burnt=tiles.extend_burnt(tile.burnt, ends))


def _end(span: TileRange) -> int:
    return span.committed if span.end is None else span.end


@dataclass(frozen=True)
class RolledBack:
    """The result of a roll back; `offsets` are read from Kafka again, except for the `expired` ones."""

    commit: str
    offsets: int
    expired: int


def roll_back_by_hand(
    index: TopicIndex,
    offsets: Offsets,
    hour: str,
    *,
    give_up_expired: bool = False,
    dry_run: bool = False,
) -> RolledBack:
    """Roll the pending commit of `hour` back, whether it could be completed or not, and sweep what it had completed.

    Args:
        index: the index of the sink and topic.
        offsets: asked whether Kafka still has the commit's records.
        hour: the hour whose commit is pending.
        give_up_expired: also where Kafka has expired some of the records; the next run records them as expired.
        dry_run: only return what would be done.

    Raises:
        ConfigurationError: nothing is pending in this hour.
        DataLossError: Kafka has expired some of the commit's records.
    """
    while True:
        stored = index.tile(hour)
        if stored is None or stored[0].pending is None:
            state = "has no tile" if stored is None else "has no pending commit"
            raise ConfigurationError(f"{index.topic} {hour} {state}: there is nothing to roll back")
        tile, etag = stored
        commit = stored[0].pending
        manifest = index.manifest(hour, commit)
        expired = _count_expired(index, offsets, manifest) if manifest else 0
        if expired and not give_up_expired:
            raise DataLossError(
                f"{index.topic} {hour}: Kafka has expired {format_count(expired, 'offsets')} "
                f"that commit {commit} holds; to give them up use --give-up-expired, and the next run "
                "records them as expired"
            )
        reads = manifest.partitions.values() if manifest else ()
        result = RolledBack(commit, sum(read.end - read.start for read in reads), expired)
        if dry_run:
            return result
        if index.swap_tile(roll_commit_back(tile, manifest, ()), etag):
            sweep_garbage(index, hour)
            return result


def _count_expired(index: TopicIndex, offsets: Offsets, manifest: Manifest) -> int:
    """Count the expired offsets that only this commit holds; the commits that a rewrite would replace stay."""
    if manifest.replaces:
        return 0
    logs = offsets.log_ranges(index.topic)
    return sum(
        max(0, min(read.end, logs.get(partition, (read.end, read.end))[0]) - read.start)
        for partition, read in manifest.partitions.items()
    ) - sum(end - start for _, start, end in tiles.join_offset_ranges(manifest.expired))
