"""Accept: go on with a topic that was deleted and created again, or whose log was cut off, knowingly."""

from s3lake import hours
from s3lake.commit.index import TopicHead, TopicIndex
from s3lake.commit.opening import finish_creation
from s3lake.commit.recovery import PACE, Pace, tidy
from s3lake.commit.truncated import cut_below
from s3lake.errors import ConfigurationError
from s3lake.plan import tile as tiles
from s3lake.plan.tile import Span, Tile
from s3lake.source.offsets import Offsets, Snapshot


def accept(index: TopicIndex, offsets: Offsets, pace: Pace = PACE) -> str:
    """Give up what the former topic had not landed, and begin anew: the first hour of the present topic.

    Every unfinished tile ends where it was committed; the rest is recorded as expired. The present topic's tiles begin
    at its log start, in the hour after the last tile, under names with a suffix, because its offsets repeat. Of the
    same topic with a log that was cut off, they begin where it was cut, and elsewhere where landing had come to.

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
        begins = _begins(index, offsets, head, kafka, pace) if kafka.topic_id == head.topic_id else {}
        if not kafka.exists or (kafka.topic_id == head.topic_id and not begins):
            state = "is the one that the index was cut from" if kafka.exists else "does not exist in Kafka"
            raise ConfigurationError(f"topic {index.topic!r} {state}: there is nothing to accept")
        for hour in hours.expand(head.hours):
            if head.since is None or hour >= head.since:
                _give_up(index, hour, pace)
        since = hours.shift(last, 1)
        earlier = head.earlier if head.since is None else (*head.earlier, head.since)
        anew = head.changed(topic_id=kafka.topic_id, since=since, earlier=earlier, begins=begins, new=None)
        if index.swap(index.head_key, anew, etag):
            return since


def _begins(index: TopicIndex, offsets: Offsets, head: TopicHead, kafka: Snapshot, pace: Pace) -> dict[int, int]:
    """Where landing goes on in a topic whose log was cut below what is landed; empty where it was not.

    What an hour had not landed is landed now, unless a later hour has landed since: offsets of one hour are an
    interval, and one from there on would hold what is landed a second time.
    """
    existing = [hour for hour in hours.expand(head.hours) if head.since is None or hour >= head.since]
    last = tidy(index, existing[-1], pace) if existing else None  # what is pending may be landed in a moment
    cut = cut_below(index, offsets, last[0], kafka) if last else {}
    if last is None or not cut:
        return {}
    begins: dict[int, int] = {}
    for hour in existing:
        tile = tidy(index, hour, pace)
        for partition, span in tile[0].partitions.items() if tile else ():
            if span.committed > span.start:
                begins.pop(partition, None)
            if span.end is None or span.committed < span.end:
                begins.setdefault(partition, span.committed)
    landed = {partition: span.committed for partition, span in last[0].partitions.items()}
    return {one: min(begins.get(one, at), cut.get(one, at)) for one, at in landed.items()}


def _give_up(index: TopicIndex, hour: str, pace: Pace) -> None:
    while (stored := tidy(index, hour, pace)) is not None and not stored[0].landed:
        tile, etag = stored
        if index.swap_tile(_ended(tile), etag):
            return


def _ended(tile: Tile) -> Tile:
    spans = tile.partitions or {0: tiles.NOTHING}
    return tile.changed(
        partitions={partition: Span(span.start, _until(span), _until(span)) for partition, span in spans.items()},
        expired=tiles.joined(
            (
                *tile.expired,
                *(
                    (partition, span.committed, span.end)
                    for partition, span in spans.items()
                    if span.end is not None and span.end > span.committed
                ),
            )
        ),
    )


def _until(span: Span) -> int:
    return span.committed if span.end is None else span.end
