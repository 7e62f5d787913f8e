"""Keys that stand in connectors' files and that the connector does not read: of other components, or of other times."""

from __future__ import annotations

import re
from collections.abc import Collection

_WORKER = "is a setting of the Kafka Connect worker, which a connector's file cannot say"
_OTHER = "is a key of another connector; the S3 sink does not read it"
_COMPONENTS = tuple(
    (re.compile(pattern), told)
    for pattern, told in (
        (r"schema\.generator\.class", "was a key of Confluent's storage library until 2017, and is read by nothing"),
        (r"schema\.enable", "is a key of no Lenses connector; schemas.enable is an option of JsonConverter"),
        (r"schemas\.enable", "is an option of a converter: write value.converter.schemas.enable"),
        (r"confluent\.(topic|license|metadata|monitoring|metrics|support)(\..+)?", "is about Confluent's licence"),
        (r"confluent\..+", "is Confluent Platform's own; nothing of it is here"),
        (r"reporter\..+", "is Confluent's reporter, which the S3 sink never had; errors.deadletterqueue.* is the way"),
        (r"tasks\.max\.enforce", "bounds the tasks of Kafka Connect; s3lake has none"),
        (r"((key|value|header)\.converter|connector|transforms\..+|predicates\..+)\.plugin\.version", "names a plugin"),
        (r"(producer|admin)\.override\..+", "only dead letters are written to Kafka, acknowledged by all replicas"),
        (r"internal\.(key|value)\.converter(\..+)?", _WORKER),
        (r"(config|offset|status)\.storage\..+|offset\.flush\..+|rest\..+|listeners|advertised\..+", _WORKER),
        (r"(task|worker|connector)\.(shutdown|client|sync|unsync)\..+|connections\..+|log4j\..+", _WORKER),
        (r"metrics?\.(recording|num|sample|reporters?|context).*|topic\.(creation|tracking)\..+", _WORKER),
        (
            r"exactly\.once\.(source\.)?support|transaction\.boundary.*|key\.(de)?serializer|value\.(de)?serializer",
            _WORKER,
        ),
        (r"hive\..+|hdfs\..+|hadoop\..+|logs\.dir|gcs\..+|azblob\..+|elastic.*|connection\..+", _OTHER),
        (r"(insert|pk)\.(mode|fields)|auto\.(create|evolve)|behavior\.on\.malformed\.documents|database\..+", _OTHER),
        (r"compression\.type", "is a key of Kafka's producer; s3.compression.type is the S3 sink's"),
        (r"batch\.size|linger\.ms|compression\.codec|max\.in\.flight.*|table\..+|mode|poll\.interval\.ms", _OTHER),
        (r"kafka\.(api\.(key|secret)|auth\.mode|endpoint|region|service\.account\.id)", "is Confluent Cloud's own"),
        (r"(input|output)\.data\.format|time\.interval|authentication\.method", "is Confluent Cloud's own"),
        (r"environment|provider\.integration\.id|cloud\..+", "is Confluent Cloud's own"),
        (r"description|comments?|_comment.*|__.+|labels?|tags?|owner|version|\$schema", "is a remark"),
    )
)
_MEANT = {
    "s3.endpoint": "store.url",
    "s3.endpoint.url": "store.url",
    "aws.s3.endpoint.url": "aws.s3.endpoint",
    "topics.directory": "topics.dir",
    "aws.endpoint": "store.url",
    "connect.s3.endpoint": "connect.s3.custom.endpoint",
    "connect.s3.flush.size": "'flush.size' in PROPERTIES of connect.s3.kcql",
    "connect.s3.flush.count": "'flush.count' in PROPERTIES of connect.s3.kcql",
    "connect.s3.flush.interval": "'flush.interval' in PROPERTIES of connect.s3.kcql",
}


def reason(key: str) -> str | None:
    """Why nothing here reads a key that some component knows; None where none does."""
    return next((message for pattern, message in _COMPONENTS if pattern.fullmatch(key)), None)


def usual(key: str, keys: Collection[str]) -> str | None:
    """What a key is called by a connector that knows `known`, where another name is often written."""
    name = _MEANT.get(key)
    return name if name is not None and (name in keys or " " in name) else None
