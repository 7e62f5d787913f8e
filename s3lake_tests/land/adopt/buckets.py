"""Buckets and groups made by hand, as connectors leave them."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from s3lake.config.model import Sink
from s3lake.index.store.memory import MemoryStore
from s3lake.land.adopt.group_offsets import GroupOffsets
from s3lake.source.offsets import LogRange, TopicOffsets

CONNECTOR = "lake"
LOCKS = f".indexes/{CONNECTOR}/.locks"
CONFLUENT = "{topic}/partition={partition}/{topic}+{partition}+{offset:010}"
BY_FIELD = "{topic}/type={field:type}/{topic}+{partition}+{offset:010}"
BY_HOUR = "{topic}/{time:yyyy/HH}/{topic}+{partition}+{offset:010}"
AIVEN = "{topic}-{partition}-{offset}"


def sink(root="", layout=None, **settings):
    """The sink that a connector's configuration becomes."""
    named = {"name": "s", "topics": ("orders",), "bucket": "lake", "prefix": root, "start": "2026-01-01T00"}
    return Sink.model_validate({**named, "layout": {"template": None, **(layout or {})}, **settings})


def lines(count):
    return b'{"a": 1}\n' * count


def bucket(objects=()):
    """A bucket with these keys; a number is an object with this number of JSON lines."""
    store = MemoryStore("lake")
    given = objects.items() if isinstance(objects, dict) else ((key, 1) for key in objects)
    for key, body in given:
        put(store, key, body)
    return store


def put(store, key, body):
    if isinstance(body, int):
        body = gzip.compress(lines(body), mtime=0) if key.endswith(".gz") else lines(body)
    elif isinstance(body, dict):
        body = json.dumps(body).encode()
    store.put(key, body)


def lock(committed, pending=None, operations=()):
    """A lock's document, as the connector writes it."""
    state = None if pending is None else {"pendingOffset": pending, "pendingOperations": list(operations)}
    return {"owner": "8a2a", "committedOffset": committed, "pendingState": state}


def copy(store, source, destination, bucket="lake"):
    head = store.head(source)
    etag = head.etag if head else '"deleted"'
    return {"type": "copy", "bucket": bucket, "source": source, "destination": destination, "eTag": etag}


def delete(source, bucket="lake"):
    return {"type": "delete", "bucket": bucket, "source": source, "eTag": '"any"'}


@dataclass
class Groups:
    """Consumer groups without a broker; `meanwhile` is called at each request."""

    groups: dict[str, GroupOffsets] = field(default_factory=dict)
    meanwhile: Callable[[int], None] | None = None
    asked: int = 0

    def read(self, name, topic):
        assert topic == "orders"
        self.asked += 1
        if self.meanwhile:
            self.meanwhile(self.asked)
        return self.groups.get(name, GroupOffsets())


@dataclass
class AdoptedTopic:
    """One topic without a broker."""

    partitions: dict[int, tuple[int, int]]
    topic_id: str = "id-1"

    def snapshot(self, topic, hour, *, existed=False):  # noqa: ARG002
        assert (topic, len(hour)) == ("orders", 13)
        return TopicOffsets(
            self.topic_id, {one: LogRange(low, end, low, end) for one, (low, end) in self.partitions.items()}
        )

    def log_ranges(self, topic):
        assert topic == "orders"
        return self.partitions

    def find_offset_since(self, topic, epoch_ms):
        raise NotImplementedError
