"""A topic that is to be landed and does not exist."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

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
    near = get_close_matches(index.topic, offsets.topics(), 1)
    raise ConfigurationError(
        f"sink {sink.name}: topic {index.topic!r} does not exist, so there is nothing to land: "
        f"{f'did you mean {near[0]!r}? ' if near else ''}Correct topics, create the topic, or set missing_topic: "
        "wait, and its hours stay empty until it exists"
    )
