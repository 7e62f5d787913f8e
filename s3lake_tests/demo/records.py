"""Reading a whole topic back."""

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake_tests.kit.cost import PATIENCE_S


def create_topic(kafka: EmbeddedKafka, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(name, partitions)])[name].result()


def read(kafka: EmbeddedKafka, topic: str) -> list[Message]:
    """Everything that a read_committed consumer reads up to the topic's end, in the order of each topic-partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "tests",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
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
        while len(ended) < count:
            for message in consumer.consume(10_000, timeout=0.1):
                if message.error() is None:
                    records.append(message)
                else:
                    ended.add(message.partition())
        return records
    finally:
        consumer.close()
