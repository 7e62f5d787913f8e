"""How long planning takes: `python -m benchmarks.planning --partitions 100`.

To plan an hour is to give it a tile and to decide what its first micro-batch reads: questions to Kafka and requests to
S3, no record. Prints one JSON line: seconds of the first hour, which connects, and of the slowest one after it.
"""

import argparse
import functools
import json
import time
from datetime import datetime, timezone

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake_tests.kit.s3 import start_s3

TOPIC = "planned"
HOURS = 6
RECORDS = 10
"""Of one topic-partition in one hour."""


def main(partitions: int, server: str) -> None:
    """Measures, and prints one JSON line."""
    now = hours.key(datetime.now(timezone.utc))
    wanted = [hours.shift(now, back - HOURS) for back in range(HOURS)]
    with EmbeddedKafka.start() as kafka, start_s3("versitygw" if server == "versitygw" else "moto") as s3:
        s3.create_bucket("lake")
        fill(kafka.bootstrap_servers, partitions, wanted)
        connection = S3Connection(s3.endpoint_url, s3.region, True, 50, s3.access_key_id, s3.secret_access_key)
        index = TopicIndex(functools.partial(S3Store, connection)("lake"), ".indexes/planning", TOPIC)
        offsets = KafkaOffsets(kafka.bootstrap_servers)
        took = [plan(index, offsets, hour, partitions) for hour in wanted]
    print(json.dumps({"partitions": partitions, "first_s": round(took[0], 3), "slowest_s": round(max(took[1:]), 3)}))


def plan(index: TopicIndex, offsets: KafkaOffsets, hour: str, partitions: int) -> float:
    """Seconds that planning `hour` takes."""
    began = time.perf_counter()
    head = open_and_close.open_hour(index, offsets, hour)
    assert head is not None
    attempt = protocol.begin_micro_batch(index, offsets, head, hour, limit=10**9, now_ms=hours.end_ms(hour))
    took = time.perf_counter() - began
    if attempt is None or sum(end - start for start, end in attempt.batch.reads.values()) != partitions * RECORDS:
        raise SystemExit(f"{hour}: planned something else than what was produced")
    return took


def fill(servers: str, partitions: int, wanted: list[str]) -> None:
    """Makes the topic, with records in every hour of every topic-partition."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, num_partitions=partitions)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 50})
    for hour in wanted:
        for number in range(RECORDS):
            for partition in range(partitions):
                producer.produce(TOPIC, b"{}", partition=partition, timestamp=hours.start_ms(hour) + number)
            producer.poll(0)
    if left := producer.flush(60):
        raise SystemExit(f"Kafka did not take {left} records")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=100, help="of the topic (default: %(default)s)")
    parser.add_argument("--server", choices=("moto", "versitygw"), default="moto", help="which S3 server to start")
    options = parser.parse_args()
    main(options.partitions, options.server)
