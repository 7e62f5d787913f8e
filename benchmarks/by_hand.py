"""What people write by hand: a topic into files of S3, by confluent-kafka, pyarrow and boto3, with nothing checked.

`sink.py --by-hand` measures it in turns with ours: the same records in files of the same size, format and codec.
It knows no hours, no commit and no bad record; a crash leaves what was written, and the next run writes it again.
"""

import gzip
import io
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition


def land(servers: str, topic: str, s3: Any, sink: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Write all records of a topic, and yield records and bytes of each file."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "by-hand", "enable.partition.eof": True})
    waiting: dict[int, list[Any]] = {number: [] for number in consumer.list_topics(topic).topics[topic].partitions}
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in waiting])
    ended = 0
    while ended < len(waiting):
        read: list[Any] = consumer.consume(10_000, 1.0)
        for message in read:
            messages = waiting[message.partition()]
            if message.error():
                ended += 1
                yield from write(s3, sink, messages)
                continue
            messages.append(message)
            if len(messages) == sink["flush"]["count"]:
                yield from write(s3, sink, messages)
    consumer.close()


def write(s3: Any, sink: Mapping[str, Any], messages: list[Any]) -> Iterator[tuple[int, int]]:
    """Write one file, if there are records for it."""
    if messages:
        first = messages[0]
        body = encode([message.value() for message in messages], **sink["format"])
        key = f"{sink['prefix']}/{first.topic()}/{first.partition()}/{first.offset():020d}"
        s3.put_object(Bucket=sink["bucket"], Key=key, Body=body)
        yield len(messages), len(body)
        messages.clear()


def encode(values: Sequence[bytes], type: str, codec: str = "none") -> bytes:
    """Return records as a file."""
    lines = b"\n".join(values) + b"\n"
    if type == "json":
        return gzip.compress(lines, 6) if codec == "gzip" else lines
    out = io.BytesIO()
    # Times stay texts, as in our files.
    options = pa.json.ParseOptions(explicit_schema=pa.schema([("ts", pa.string())]))
    pq.write_table(pa.json.read_json(io.BytesIO(lines), parse_options=options), out, compression=codec)
    return out.getvalue()


def main(plan: Mapping[str, Any]) -> None:
    """Land `plan["topic"]` through every sink of `plan["config"]`, as `land.py` does."""
    config = plan["config"]
    s3 = boto3.client("s3", endpoint_url=config["s3"]["endpoint_url"])
    told(did="start")
    for sink in config["sinks"]:
        began = time.perf_counter()
        files = list(land(config["kafka"]["bootstrap_servers"], plan["topic"], s3, sink))
        told(
            did=sink["name"],
            seconds=time.perf_counter() - began,
            rows=sum(records for records, _ in files),
            files=len(files),
            bytes=sum(size for _, size in files),
            s3_requests={"PutObject": len(files)},
            requests_per_file=1.0,
        )


def told(**what: Any) -> None:
    """Say what was done, as `land.py` does, and wait."""
    print(json.dumps(what), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
