"""Two brokers: a topic-partition whose leader changes while it is read."""

import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.process import GuardedProcess, free_ports, spawn
from s3lake.land.spark import jars
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.record_batches import OffsetRange
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until

pytestmark = pytest.mark.slow("starts two brokers and stops each")

RECORDS = 60_000


@pytest.fixture
def first(jvm: Path, tmp_path: Path) -> Iterator[EmbeddedKafka]:  # noqa: ARG001 (it needs Java)
    with EmbeddedKafka.start(tmp_path / "first") as broker:
        yield broker


@pytest.fixture
def second(first: EmbeddedKafka, tmp_path: Path) -> Iterator[GuardedProcess]:
    """A broker that joins the first one's cluster."""
    home = tmp_path / "second"
    home.mkdir()
    (port,) = free_ports(1)
    text = (first.directory / "server.properties").read_text()
    voters = re.search(r"^controller\.quorum\.voters=.*$", text, re.MULTILINE)
    cluster = re.search(r"^cluster\.id=(\S+)$", (first.directory / "data/meta.properties").read_text(), re.MULTILINE)
    assert voters is not None
    assert cluster is not None
    config = home / "server.properties"
    config.write_text(
        f"{voters[0]}\nprocess.roles=broker\nnode.id=2\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={home}/data\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
    )
    java = [str(jars.find_java()), "-Xmx384m", "-XX:+UseSerialGC", "-cp", ":".join(map(str, jars.kafka_broker_jars()))]
    tool = [*java, "kafka.tools.StorageTool", "format", "-t", cluster[1], "-c", str(config)]
    subprocess.run(tool, check=True, capture_output=True)
    with spawn([*java, "kafka.Kafka", config], home / "kafka.log", grace_s=8.0) as broker:
        admin = AdminClient({"bootstrap.servers": first.bootstrap_servers, "log_level": 0})
        until(lambda: len(admin.list_topics(timeout=PATIENCE_S).brokers) == 2)
        yield broker


def test_no_record_is_lost_or_doubled_when_the_leader_stops(first: EmbeddedKafka, second: GuardedProcess) -> None:
    topic = f"t-{uuid.uuid4()}"
    plain = {"bootstrap.servers": first.bootstrap_servers, "log_level": 0}
    admin = AdminClient(plain)
    admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[2, 1]])])[topic].result()
    offsets = KafkaOffsets(first.bootstrap_servers, timeout_s=PATIENCE_S)
    until(lambda: offsets.log_ranges(topic) == {0: (0, 0)})
    producer = Producer({**plain, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, b"%d %b" % (number, os.urandom(1000)), partition=0)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0

    found = KafkaReader(first.bootstrap_servers).batches(topic, [OffsetRange(0, 0, RECORDS)], ("offset", "value"))
    batch = next(found)
    read = list(zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True))
    assert admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions[0].leader == 2
    second.stop()
    for batch in found:
        read += zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True)

    assert admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions[0].leader == 1
    assert [offset for offset, _ in read] == list(range(RECORDS))
    assert [int(value.split(b" ", 1)[0]) for _, value in read] == list(range(RECORDS))
