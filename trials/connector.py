"""A connector that has stopped: the objects that it left, and how far its group had come."""

import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import boto3
from confluent_kafka import Consumer, TopicPartition

from s3lake.demo.embedded_s3 import EmbeddedS3

LAYOUT = {"template": "{topic}/partition={partition}/{topic}+{partition}+{offset:010}"}
"""Of a sink that takes over from it."""


def objects(prefix: str, topic: str, lines: Mapping[int, Sequence[bytes]], each: int) -> dict[str, bytes]:
    """Records from the first offset of each topic-partition on, so many in a file."""
    return {
        f"{prefix}/{topic}/partition={partition}/{topic}+{partition}+{first:010}.json": b"\n".join(
            [*held[first : first + each], b""]
        )
        for partition, held in lines.items()
        for first in range(0, len(held), each)
    }


def zipped(bodies: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same objects, of a connector that compressed them."""
    return {f"{key}.gz": gzip.compress(body) for key, body in bodies.items()}


def leave(s3: EmbeddedS3, bucket: str, bodies: Mapping[str, bytes]) -> None:
    """Write its objects."""
    keys = {"aws_access_key_id": s3.access_key_id, "aws_secret_access_key": s3.secret_access_key}
    client: Any = boto3.client("s3", endpoint_url=s3.endpoint_url, region_name=s3.region, **keys)
    for key, body in bodies.items():
        client.put_object(Bucket=bucket, Key=key, Body=body)


def commit(servers: str, connector: str, topic: str, ends: Mapping[int, int]) -> None:
    """Its group has come so far in each topic-partition."""
    group = Consumer({"bootstrap.servers": servers, "group.id": f"connect-{connector}", "log_level": 0})
    at = [TopicPartition(topic, partition, end) for partition, end in ends.items()]
    group.commit(offsets=at, asynchronous=False)
    group.close()
