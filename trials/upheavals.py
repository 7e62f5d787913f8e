"""What needs a person's word while the services run: a topic created again, and one that a connector had begun."""

import json
import time
from collections.abc import Iterator, Sequence

import yaml
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake.config import native
from trials import connector
from trials.checker import Bucket, Former, Left, landed, since
from trials.commands import Commands
from trials.production import BUCKET, Production
from trials.sender import Sender
from trials.truth import Truth

CONNECTOR = "the-one-before"
_SEEN_S = 20.0
_APART_S = 100.0
_BEFORE, _EACH = 200, 40


class Rebirths:
    """A topic that is deleted and created again, which a person then accepts for each sink.

    Attributes:
        formers: those that were deleted.
    """

    def __init__(
        self, made: Production, truth: Truth, sender: Sender, bucket: Bucket, sinks: Sequence[str], commands: Commands
    ) -> None:
        self.formers: list[Former] = []
        self._made, self._truth, self._sender, self._commands = made, truth, sender, commands
        self._bucket, self._sinks, self._last = bucket, sinks, 0.0

    def again(self, partitions: int) -> bool:
        """Whether it was; not twice in a short time, and not while a sink has nothing of it or Kafka is away."""
        topic = self._sender.topic
        begun = all(since(self._bucket, sink, topic) is not None for sink in self._sinks)
        if not begun or (self._last and time.monotonic() < self._last + _APART_S):
            return False
        try:
            if not self._sender.pause() or not self._truth.is_whole(topic, _SEEN_S):
                return False
            self._truth.leave(topic)
            self._last = time.monotonic()
            kept = {sink: landed(self._bucket, sink, topic) for sink in self._sinks}
            self._create(topic, partitions)
            self._truth.follow(topic)
        finally:
            self._sender.go_on()
        self._commands.insist(("index", "accept", "--topic", topic, "--yes"), done_before="there is nothing to accept")
        first = {sink: since(self._bucket, sink, topic) or "" for sink in self._sinks}
        self.formers.append(Former(topic, kept, first))
        return True

    def _create(self, topic: str, partitions: int) -> None:
        """The old one may be going still."""
        admin = AdminClient({"bootstrap.servers": self._made.kafka.bootstrap_servers, "log_level": 0})
        admin.delete_topics([topic])[topic].result(60)
        for _ in range(200):
            try:
                admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
            except KafkaException:
                time.sleep(0.1)
            else:
                return
        raise SystemExit(f"topic {topic} could not be created again")


def connected(made: Production, sink: str, topic: str, partitions: int, stamp_ms: int) -> Left:
    """A connector that was stopped has landed the first records of a topic, of an earlier hour, in a sink's place."""
    lines = {number: [*_lines(topic, number)] for number in range(partitions)}
    servers = made.kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    for partition, held in lines.items():
        for number, line in enumerate(held):
            producer.produce(topic, line, partition=partition, timestamp=stamp_ms + number)
    if missing := producer.flush(60):
        raise SystemExit(f"Kafka did not take {missing} records")
    bodies = connector.zipped(connector.objects(sink, topic, lines, _EACH))
    connector.leave(made.s3, BUCKET, bodies)
    connector.commit(servers, CONNECTOR, topic, {number: len(held) for number, held in lines.items()})
    return Left(topic, bodies)


def _lines(topic: str, partition: int) -> Iterator[bytes]:
    for number in range(_BEFORE):
        yield json.dumps({"id": f"{topic}-before-{partition}-{number}", "amount": number}).encode()


def adopted(made: Production, commands: Commands, sink: str, topic: str) -> None:
    """The sink goes on where the connector stopped, and the topic is one of its own from then on."""
    path, before = made.home / "s3lake.yaml", made.home / "with-the-connectors.yaml"
    written = yaml.safe_load(path.read_text())
    for one in written["sinks"]:
        if one["name"] == sink:
            one["topics"].append(topic)
    before.write_text(yaml.safe_dump(written))
    words = ("adopt", "--name", CONNECTOR, "--sink", sink, "--topic", topic, "--yes", str(before))
    commands.insist(words, done_before="has tiles already")
    before.replace(path)
    made.config = native.load_text(path.read_text(), str(path))
