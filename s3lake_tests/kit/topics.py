"""Topics of a broker, created and read back by confluent-kafka's own consumer."""

import time

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake_tests.kit.cost import PATIENCE_S


def create_topic(servers: str, name: str, partitions: int = 1) -> None:
    """Create a topic, which is there when this returns."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, partitions)])[name].result()


def read_topic(servers: str, topic: str) -> list[Message]:
    """Return all that a read_committed consumer reads up to the topic's end, in the order of each topic-partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "tests",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        count = len(consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)
        starts = [TopicPartition(topic, number) for number in range(count)]
        for start in starts:
            start.offset = consumer.get_watermark_offsets(start, timeout=PATIENCE_S)[0]
        consumer.assign(starts)
        records: list[Message] = []
        ended: set[int] = set()
        deadline = time.monotonic() + PATIENCE_S
        while len(ended) < count:
            assert time.monotonic() < deadline, f"a timeout: {topic} did not end within {PATIENCE_S} s"
            for message in consumer.consume(10_000, timeout=0.1):
                if message.error() is None:
                    records.append(message)
                else:
                    ended.add(int(message.partition() or 0))
        return records
    finally:
        consumer.close()
