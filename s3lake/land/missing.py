"""A topic that is to be landed and does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from s3lake.commit.opening import asked
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.commit.index import TopicIndex
    from s3lake.sink import Sink
    from s3lake.source.offsets import Offsets


def refuse_missing(sink: Sink, index: TopicIndex, offsets: Offsets) -> None:
    """Refuse a topic that never existed, unless the sink waits for it; one that is gone has its hours to say so.

    Raises:
        ConfigurationError: there is no such topic, and never was one.
    """
    head = index.head()
    if sink.missing_topic == "wait" or (head and head[0].topic_id):
        return
    raise ConfigurationError(
        f"{describe_missing(sink, index.topic, offsets.topics())} Correct topics, create the topic, or set "
        "missing_topic: wait, and its hours stay empty until it exists"
    )


def describe_missing(sink: Sink, topic: str, known: Sequence[str]) -> str:
    """Return a sentence that the topic does not exist, with the nearest name of those that are known."""
    near = get_close_matches(topic, known, 1)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return f"sink {sink.name}: topic {topic!r} does not exist, so there is nothing to land{hint}"


def refuse_absent(sink: Sink, index: TopicIndex, offsets: Offsets) -> None:
    """Refuse a topic of which Kafka knows no offsets, unless its sink waits for it.

    Raises:
        DataLossError: it was deleted after hours of it were landed.
        ConfigurationError: there is no such topic, and never was one.
    """
    head = index.head()
    if head and head[0].topic_id and head[0].hours:
        asked(index, offsets, head[0], head[0].hours[-1][1])
    refuse_missing(sink, index, offsets)
