"""What stands in the bucket against what stood in Kafka, with no code of the product's: `soak.py` ends with it.

Files are read by pyarrow, fastavro and the standard library, the index as JSON by what docs/design/commit.md says of
it, Kafka by a consumer of its own that has followed every topic from the first record on.
"""

import gzip
import io
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import fastavro
import numpy as np
import pyarrow.parquet as pq
from botocore.config import Config
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

INDEX = ".indexes"
_TILE = len("2026-11-22T10.json")

Place = tuple[str, int, int]
"""Topic, topic-partition, offset."""


@dataclass
class Truth:
    """What readers of committed data saw of the topics, however much of it Kafka has deleted since.

    Attributes:
        seen_at: by the id of each good record, when it could be read; its timestamp may be hours older.
        poison: the places of records that nothing can convert.
        reached: by topic and topic-partition, the offset after the last record.
        gone: ids and places of records that Kafka has compacted away, whether or not anybody had read them.
    """

    servers: str
    topics: tuple[str, ...]
    seen_at: dict[str, float] = field(default_factory=dict)
    poison: set[Place] = field(default_factory=set)
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    gone: set[str | Place] = field(default_factory=set)
    tombstones: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def compacted(self, topic: str) -> None:
        """Note what of a topic Kafka has no more, now that nothing is sent any more."""
        consumer = self._consumer()
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        kept: set[str | Place] = set()
        for number in partitions:
            at = TopicPartition(topic, number, OFFSET_BEGINNING)
            consumer.assign([at])
            end = self.reached.get((topic, number), 0)
            _, high = consumer.get_watermark_offsets(at, timeout=30)
            position = 0
            while position < min(end, high):
                for message in consumer.consume(1000, 5):
                    position = int(message.offset() or 0) + 1
                    if message.error() is None:
                        kept.update(_identities(message))
        consumer.close()
        held = {one for one in self.seen_at if one.startswith(f"{topic}-")}
        self.gone = (held | {one for one in self.poison if one[0] == topic}) - kept

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "the-checker-follows",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )

    def _follow(self) -> None:
        consumer = self._consumer()
        assigned: set[tuple[str, int]] = set()
        looked = 0.0
        while not self._over.is_set():
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                assigned |= self._assign_new(consumer, assigned)
            for message in consumer.consume(1000, 0.2):
                if message.error() is None:
                    self._see(message)
        consumer.close()

    def _assign_new(self, consumer: Consumer, assigned: set[tuple[str, int]]) -> set[tuple[str, int]]:
        try:
            topics = consumer.list_topics(timeout=2).topics
        except Exception:  # the broker is stopped just now: the next second asks again
            return set()
        new = {(topic, number) for topic in self.topics for number in topics[topic].partitions} - assigned
        if new:
            consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(new)])
        return new

    def _see(self, message: Message) -> None:
        topic, partition, offset = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
        self.reached[topic, partition] = offset + 1
        value = message.value()
        if value is None:
            self.tombstones += 1
        elif value.startswith(b"{"):
            self.seen_at[str(json.loads(value)["id"])] = time.time()
        else:
            self.poison.add((topic, partition, offset))


def _identities(message: Message) -> Iterator[str | Place]:
    """What the record is called in a file, or where it stood."""
    value = message.value()
    if value is not None and value.startswith(b"{"):
        yield str(json.loads(value)["id"])
    yield str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)


@dataclass
class Found:
    """What is wrong with one sink; all zero and empty where nothing is."""

    lost: int = 0
    duplicated: int = 0
    made_up: int = 0
    unlisted: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    rows: int = 0
    files: int = 0
    sealed: int = 0
    freshness_p95_s: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.made_up or self.unlisted or self.absent)


class Bucket:
    """An S3 bucket, read by boto3."""

    def __init__(self, endpoint_url: str, key: str, secret: str, name: str) -> None:
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint_url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 10}),
        )
        self.name = name

    def objects(self) -> dict[str, float]:
        """Every key, and when it was written."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {one["Key"]: one["LastModified"].timestamp() for page in pages for one in page.get("Contents", ())}

    def body(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def uploads(self) -> list[str]:
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self.name)
        return [one["Key"] for page in pages for one in page.get("Uploads", ())]


def committed(bucket: Bucket, sinks: Iterable[str], topics: Iterable[str]) -> dict[tuple[str, str, int], int]:
    """How far each sink has come, by sink, topic and topic-partition."""
    objects = bucket.objects()
    reached: dict[tuple[str, str, int], int] = {}
    for sink in sinks:
        for topic in topics:
            for tile in _tiles(bucket, objects, sink, topic):
                for number, part in tile["partitions"].items():
                    place = sink, topic, int(number)
                    reached[place] = max(reached.get(place, 0), int(part["committed"]))
    return reached


def check(bucket: Bucket, sink: str, topics: Iterable[str], truth: Truth) -> Found:
    """One sink, whose files lie below a prefix of its own name."""
    found, objects = Found(), bucket.objects()
    files: dict[str, Mapping[str, Any]] = {}
    ages: list[float] = []
    for topic in topics:
        for tile in _tiles(bucket, objects, sink, topic):
            ends = [part["end"] for part in tile["partitions"].values()]
            found.sealed += None not in ends and all(
                part["end"] == part["committed"] for part in tile["partitions"].values()
            )
            for commit in tile["commits"]:
                manifest = json.loads(bucket.body(f"{INDEX}/{sink}/{topic}/{tile['hour']}/{commit}.json"))
                files |= {file["key"]: file for file in manifest["files"]}
    visible = {key for key in objects if key.startswith(f"{sink}/")}
    found.unlisted, found.absent = sorted(visible - files.keys()), sorted(files.keys() - visible)
    rows: Counter[str] = Counter()
    letters: Counter[Place] = Counter()
    for key, file in files.items():
        if key not in visible:
            continue
        found.files += 1
        if file["kind"] == "dead_letters":
            letters.update(_letters(bucket.body(key)))
        elif file["kind"] == "data":
            ids = list(_ids(key, bucket.body(key)))
            rows.update(ids)
            if not _holds_anew(file, key):
                ages += [objects[key] - truth.seen_at[name] for name in ids if name in truth.seen_at]
    found.rows = rows.total()
    _compare(found, rows, _wanted(Counter(truth.seen_at.keys()), truth, rows))
    _compare(found, letters, _wanted(Counter(truth.poison), truth, letters))
    found.freshness_p95_s = round(float(np.percentile(ages, 95)), 1) if ages else 0.0
    return found


def _holds_anew(file: Mapping[str, Any], key: str) -> bool:
    """Whether a file took the place of others: its name says so, and its age is not that of its records."""
    return bool(file.get("digest")) or "~" in key


def _wanted(seen: Counter[Any], truth: Truth, held: Counter[Any]) -> Counter[Any]:
    """What Kafka has compacted away may have been landed before, once."""
    return Counter({one: count for one, count in seen.items() if one not in truth.gone or one in held})


def _compare(found: Found, held: Counter[Any], wanted: Counter[Any]) -> None:
    lost, surplus = wanted - held, held - wanted
    unknown = {name: count for name, count in surplus.items() if name not in wanted}
    found.lost += lost.total()
    found.made_up += sum(unknown.values())
    found.duplicated += surplus.total() - sum(unknown.values())
    for what, names in (("lost", lost), ("surplus", surplus)):
        found.examples += [f"{what}: {name}" for name in list(names)[:5]]


def _tiles(bucket: Bucket, objects: Iterable[str], sink: str, topic: str) -> Iterator[dict[str, Any]]:
    root = f"{INDEX}/{sink}/{topic}/"
    for key in sorted(objects):
        name = key.removeprefix(root)
        if key.startswith(root) and len(name) == _TILE and name.endswith(".json") and name.startswith("20"):
            yield json.loads(bucket.body(key))


def _ids(key: str, body: bytes) -> Iterator[str]:
    if key.endswith(".parquet"):
        yield from (str(name) for name in pq.read_table(io.BytesIO(body), columns=["id"]).column("id").to_pylist())
    elif key.endswith(".avro"):
        yield from (str(row["id"]) for row in fastavro.reader(io.BytesIO(body)) if isinstance(row, dict))
    else:
        text = gzip.decompress(body) if key.endswith(".gz") else body
        yield from (str(json.loads(line)["id"]) for line in text.splitlines() if line)


def _letters(body: bytes) -> Iterator[Place]:
    for line in body.splitlines():
        letter = json.loads(line)
        yield letter["topic"], int(letter["partition"]), int(letter["offset"])
