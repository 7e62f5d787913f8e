"""Accept: go on with a topic that was deleted and created again, or whose log was cut off, knowingly."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from s3lake import hours
from s3lake.commit.index import TopicIndex
from s3lake.commit.opening import finish_creation
from s3lake.commit.recovery import PACE, Pace, tidy
from s3lake.commit.truncated import cut_below
from s3lake.errors import ConfigurationError
from s3lake.plan import tile as tiles
from s3lake.plan.tile import NOTHING, Span, Tile
from s3lake.source.offsets import Offsets


class _Onward(NamedTuple):
    """What is landed on from the hours of a log that was cut, of one topic-partition.

    Attributes:
        hour: the one that has landed something of it last.
        landed: up to where.
        at: the first offset that this hour, or one after it, has not landed; the new hour begins there.
    """

    hour: str
    landed: int
    at: int


def accept(index: TopicIndex, offsets: Offsets, pace: Pace = PACE) -> str:
    """Give up what the former topic had not landed, and begin anew: the first hour of the present topic.

    Every unfinished tile ends where it was committed; the rest is recorded as expired. The present topic's tiles begin
    at its log start, in the hour after the last tile, under names with a suffix, because its offsets repeat. Of the
    same topic with a log that was cut off, they begin where it was cut, and elsewhere where landing had come to: what
    they land then is no earlier hour's any more.

    Raises:
        ConfigurationError: the topic is the one that the index knows, and whole, or does not exist.
    """
    while True:
        stored = index.head()
        last = stored[0].hours[-1][1] if stored and stored[0].hours else None
        if stored is None or last is None:
            raise ConfigurationError(f"topic {index.topic!r} has no index yet: there is nothing to accept")
        head, etag = stored
        kafka = offsets.snapshot(index.topic, last)
        finish_creation(index, head)
        existing = [hour for hour in hours.expand(head.hours) if head.since is None or hour >= head.since]
        ending = [found for hour in existing if (found := tidy(index, hour, pace))]  # what is pending may be landed
        same = kafka.topic_id == head.topic_id and ending and ending[-1][0].hour == last
        cut = cut_below(index, offsets, ending[-1][0], kafka) if same else {}
        if not kafka.exists or (kafka.topic_id == head.topic_id and not cut):
            state = "is the one that the index was cut from" if kafka.exists else "does not exist in Kafka"
            raise ConfigurationError(f"topic {index.topic!r} {state}: there is nothing to accept")
        onward = _onward([tile for tile, _ in ending]) if cut else {}
        given_on = {one: on for one, on in onward.items() if one not in cut or on.at < cut[one]}
        # The last hour first: what a later one lands meanwhile is known before an earlier one gives anything on.
        if not all(_end(index, *found, given_on) for found in reversed(ending)):
            continue
        begins = {one: min(on.at, cut.get(one, on.at)) for one, on in onward.items()}
        since = hours.shift(last, 1)
        earlier = head.earlier if head.since is None else (*head.earlier, head.since)
        anew = head.changed(topic_id=kafka.topic_id, since=since, earlier=earlier, begins=begins, new=None)
        if index.swap(index.head_key, anew, etag):
            return since


def _onward(existing: Sequence[Tile]) -> dict[int, _Onward]:
    """What an hour had not landed is landed from there on, unless a later hour has landed since.

    Offsets of one hour are an interval: one from there on would hold what is landed a second time.
    """
    onward = {}
    for partition in existing[-1].partitions:
        spans = [(tile.hour, tile.partitions[partition]) for tile in existing if partition in tile.partitions]
        last = max((place for place, (_, span) in enumerate(spans) if span.committed > span.start), default=0)
        at = spans[-1][1].committed
        for (hour, span), (later, _) in reversed(list(pairwise(spans[last:]))):
            # Adjacent hours meet, unless somebody opened one while another `accept` was under way.
            if span.committed != span.end or hours.shift(hour, 1) == later:
                at = span.committed
        hour, landed = spans[last][0], spans[last][1].committed
        onward[partition] = _Onward(hour, landed, max(landed, at))
    return onward


def _end(index: TopicIndex, tile: Tile, etag: str, given_on: Mapping[int, _Onward]) -> bool:
    """Whether the tile is over, and nobody has changed it before."""
    spans, expired, burnt = {}, list(tile.expired), tile.burnt
    for partition, span in (tile.partitions or {0: NOTHING}).items():
        on, end = given_on.get(partition), span.committed if span.end is None else span.end
        if on is not None and tile.hour >= on.hour:
            at = max(on.landed, min(span.committed, on.at))
            spans[partition] = Span(span.start if span.committed > span.start else at, at, at)
            burnt = tiles.burning(burnt, {partition: end})  # the next tile may not use its names again
        else:
            spans[partition] = Span(span.start, end, end)
            if end > span.committed:
                expired.append((partition, span.committed, end))
    if spans == tile.partitions:
        return True
    return bool(index.swap_tile(tile.changed(partitions=spans, expired=tiles.joined(expired), burnt=burnt), etag))
