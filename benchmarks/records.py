"""Fills a topic: `records.py BOOTSTRAP TOPIC HOUR RECORDS PARTITIONS VALUES KEYED SCHEMA_ID EACH`.

Events of about 200 bytes as JSON, or the same as Avro with a registry's SCHEMA_ID in front where that is not 0; with
timestamps that run through one hour. Number, time, session and amount are each record's own; the rest comes from a
pool, whose columns have few values in real data as well. With VALUES above 0 there is a field `shard` of so many
values, drawn at random; KEYED is 1 for records with a key and a header.
With EACH above 0 one of so many values is cut off in its middle: poison.
"""

import io
import json
import random
import struct
import sys
import time
from typing import Any

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake import hours

_POOL = 20_000
_TYPES = ("view", "click", "add_to_cart", "purchase", "refund")
_CITIES = ("Zürich", "Łódź", "Lyon", "Osaka", "Austin", "Malmö", "Bogotá", "Nairobi")
_HEADERS: list[tuple[str, str | bytes | None]] = [("source", b"shop-eu"), ("version", b"12")]


SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "session", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "type", "type": {"type": "enum", "name": "Type", "symbols": list(_TYPES)}},
        {"name": "user", "type": "string"},
        {"name": "city", "type": "string"},
        {"name": "quantity", "type": "int"},
        {"name": "member", "type": "boolean"},
        {"name": "campaign", "type": ["null", "string"], "default": None},
        {"name": "referrer", "type": "string"},
    ],
}
"""What a shop's producer would register: its values are about 200 bytes too."""


def main(
    servers: str,
    topic: str,
    hour: str,
    records: int,
    partitions: int,
    values: int,
    keyed: int,
    schema_id: int,
    each: int = 0,
) -> None:
    """Makes the topic and fills it."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, num_partitions=partitions)])[topic].result()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 50,
            "batch.size": 900_000,
            "queue.buffering.max.messages": 500_000,
            "compression.type": "lz4",
        }
    )
    rng = random.Random(7)
    made = events(rng)
    pool = [json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()[1:] for event in made]
    tails = [_tail(event) for event in made]
    frame = struct.pack(">bI", 0, schema_id)
    start, opening = hours.start_ms(hour), b'{"id":%d,"ts":"%b.%03dZ","session":"%020x","amount":%d.%02d,%b'
    second, text = -1, b""
    for number in range(records):
        ms = start + number * hours.HOUR_MS // records
        if ms // 1000 != second:
            second = ms // 1000
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
        drawn = rng.getrandbits(80)
        if schema_id:
            amount = struct.pack("<d", drawn % 997 + drawn % 97 / 100)
            session = b"%020x" % drawn
            own = (_long(number), _long(ms), _long(len(session)) + session, amount)
            value = b"".join((frame, *own, tails[drawn % _POOL]))
        else:
            value = opening % (number, text, ms % 1000, drawn, drawn % 997, drawn % 97, pool[drawn % _POOL])
        if values and not schema_id:
            value = b'{"shard":"s%05d",%b' % (rng.randrange(values), value[1:])
        if each and number % each == 0:
            value = value[: len(value) // 2]
        key, headers = (b"k-%010d" % (drawn % 10**10), _HEADERS) if keyed else (None, None)
        while True:
            try:
                producer.produce(topic, value, key, partition=number % partitions, timestamp=ms, headers=headers)
                break
            except BufferError:
                producer.poll(0.02)
    if left := producer.flush(300):
        raise SystemExit(f"Kafka did not take {left} records")


def events(rng: random.Random) -> list[dict[str, Any]]:
    """A pool of what records share."""
    return [
        {
            "type": rng.choice(_TYPES),
            "user": f"u-{rng.randrange(10**6):06d}",
            "city": rng.choice(_CITIES),
            "quantity": rng.randrange(1, 9),
            "member": rng.random() < 0.3,
            "campaign": rng.choice((None, "spring", "newsletter")),
        }
        for _ in range(_POOL)
    ]


def _tail(event: dict[str, Any]) -> bytes:
    """The fields that stand behind those of each record's own."""
    written = io.BytesIO()
    tail = {**SCHEMA, "fields": SCHEMA["fields"][4:]}
    fastavro.schemaless_writer(written, tail, {**event, "referrer": _referrer(event)})
    return written.getvalue()


def _referrer(event: dict[str, Any]) -> str:
    return "https://shop.example/" + "/".join([event["city"], event["type"], event["user"]] * 3)


def _long(number: int) -> bytes:
    """Avro's zigzag of a number that is not negative."""
    encoded, left = bytearray(), number << 1
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:10]))
