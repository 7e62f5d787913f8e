"""Fills a topic with what is rare: `odd_records.py BOOTSTRAP TOPIC HOUR RECORDS PARTITIONS BYTES SCHEMAS`.

With SCHEMAS 0 JSON values of BYTES each; else Avro records, in turns of so many schemas, whose ids are 1 to SCHEMAS.
"""

import io
import json
import random
import struct
import sys
from typing import Any

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake import hours

_LARGEST = 100_000_000


def schema(number: int) -> dict[str, Any]:
    """One of many: each has a column of its own."""
    own = {"name": f"own_{number}", "type": ["null", "string"], "default": None}
    return {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}, own]}


def main(servers: str, topic: str, hour: str, records: int, partitions: int, size: int, schemas: int) -> None:
    """Makes the topic and fills it."""
    admin = AdminClient({"bootstrap.servers": servers})
    largest = {"max.message.bytes": str(_LARGEST)}
    admin.create_topics([NewTopic(topic, num_partitions=partitions, config=largest)])[topic].result()
    settings = {"message.max.bytes": _LARGEST, "queue.buffering.max.kbytes": 400_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": servers, **settings})
    text = random.Random(7).randbytes(size // 2).hex() if size else ""
    parsed = [fastavro.parse_schema(schema(number)) for number in range(1, schemas + 1)]
    for number in range(records):
        value = json.dumps({"id": number, "text": text}).encode() if not schemas else _avro(number, parsed)
        while True:
            try:
                stamp = hours.start_ms(hour) + number * hours.HOUR_MS // records
                producer.produce(topic, value, partition=number % partitions, timestamp=stamp)
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(600):
        raise SystemExit(f"Kafka did not take {left} records")


def _avro(number: int, parsed: list[Any]) -> bytes:
    written, at = io.BytesIO(), number % len(parsed)
    written.write(struct.pack(">bI", 0, at + 1))
    fastavro.schemaless_writer(written, parsed[at], {"id": number, f"own_{at + 1}": f"text {number}"})
    return written.getvalue()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:8]))
