"""Accept: go on with a topic that was deleted and created again, knowingly."""

from s3lake import hours
from s3lake.commit.index import TopicIndex
from s3lake.commit.protocol import finish_creation
from s3lake.commit.recovery import PACE, Pace, tidy
from s3lake.errors import ConfigurationError
from s3lake.kafka.offsets import Offsets
from s3lake.plan import tile as tiles
from s3lake.plan.tile import Span, Tile


def accept(index: TopicIndex, offsets: Offsets, pace: Pace = PACE) -> str:
    """Give up what the former topic had not landed, and begin anew: the first hour of the present topic.

    Every unfinished tile ends where it was committed; the rest is recorded as expired. The present topic's tiles begin
    at its log start, in the hour after the last tile, under names with a suffix, because its offsets repeat.

    Raises:
        ConfigurationError: the topic is the one that the index knows, or does not exist.
    """
    while True:
        found = index.head()
        last = found[0].hours[-1][1] if found and found[0].hours else None
        if found is None or last is None:
            raise ConfigurationError(f"topic {index.topic!r} has no index yet: there is nothing to accept")
        head, etag = found
        kafka = offsets.snapshot(index.topic, last)
        if not kafka.exists or kafka.topic_id == head.topic_id:
            state = "is the one that the index was cut from" if kafka.exists else "does not exist in Kafka"
            raise ConfigurationError(f"topic {index.topic!r} {state}: there is nothing to accept")
        finish_creation(index, head)
        for hour in hours.expand(head.hours):
            if head.since is None or hour >= head.since:
                _give_up(index, hour, pace)
        since = hours.shift(last, 1)
        if index.swap(index.head_key, head.changed(topic_id=kafka.topic_id, since=since, new=None), etag):
            return since


def _give_up(index: TopicIndex, hour: str, pace: Pace) -> None:
    while (found := tidy(index, hour, pace)) is not None and not found[0].landed:
        tile, etag = found
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
