"""A sink and topic of an index, for what changes or reads what has landed."""

from typing import Any, NoReturn

from s3lake.config.model import Sink
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store import Store
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.kafka.reader import KafkaReader


def target_of(sink: Sink, index: TopicIndex, store: Store | None = None) -> TopicSink:
    """Return the sink with the topic of `index`; its tasks open `store`, else the store of the index."""
    offsets: Any = None
    opened, table = store or index.store, getattr(index.follower, "table", None)
    reader = KafkaReader("nowhere:1")
    target = TopicSink(sink, index.topic, refuse_session, lambda _: opened, offsets, lambda: reader, table=table)
    target.__dict__["index"] = index  # in place of the one that it would open
    return target


def refuse_session() -> NoReturn:
    """Fail: nothing in this process needs Spark."""
    raise AssertionError("a session is started for nothing")
