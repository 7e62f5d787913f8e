"""Topics that do not exist: a landing refuses them, unless the sink waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError
from s3lake.index.commit.log_checks import ask_kafka

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.index.commit.topic_index import TopicIndex
    from s3lake.source.offsets import Offsets


def refuse_missing(sink: Sink, index: TopicIndex, offsets: Offsets) -> None:
    """Refuse a topic that never existed, unless the sink waits for it. The hours of a deleted topic report its state.

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


def describe_missing(sink: Sink, topic: str, topics: Sequence[str]) -> str:
    """Return a sentence that the topic does not exist, with the nearest known name."""
    near = get_close_matches(topic, topics, 1)
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
        ask_kafka(index, offsets, head[0], head[0].hours[-1][1])
    refuse_missing(sink, index, offsets)
