"""Descriptions of columns, from the schemas of a topic's keys and values."""

import functools
import logging
from collections.abc import Mapping

from s3lake.commit.index import TopicIndex
from s3lake.convert.converters import CONVERTERS
from s3lake.errors import S3LakeError
from s3lake.schema.prose import of_fields
from s3lake.sink import Sink
from s3lake.sink.converter import Registry

_log = logging.getLogger(__name__)
_ENVELOPE = {
    "headers": "The record's headers.",
    "metadata": "The record's topic, topic-partition and offset, and its timestamp in milliseconds since 1970.",
    "offset": "The record's offset in its topic-partition.",
    "timestamp": "The record's timestamp, in milliseconds since 1970.",
}


def describe_columns(sink: Sink, topic: str, index: TopicIndex) -> Mapping[str, str]:
    """Return the descriptions of columns that have one, from the topic's newest schemas. Empty without a registry.

    In an envelope the descriptions of a key's or a value's fields are lines of its column. If records contain their
    schemas, the index has the descriptions.
    """
    if CONVERTERS[sink.converter.value].enveloped:
        recorded = index.columns()
        return recorded[0].words if recorded else {}
    envelope = sink.envelope
    if envelope is None:
        return _describe_part(sink, topic, "value")
    if envelope.bare:
        return _describe_part(sink, topic, envelope.fields[0])
    descriptions: dict[str, str] = {name: text for name, text in _ENVELOPE.items() if name in envelope.fields}
    for part in ("key", "value"):
        if part in envelope.fields and (fields := _describe_part(sink, topic, part)):
            descriptions[part] = "\n".join(f"{name}: {text}" for name, text in fields.items())
    return descriptions


def _describe_part(sink: Sink, topic: str, part: str) -> Mapping[str, str]:
    registry = sink.converter.registry
    converter = {"key": sink.converter.key, "value": sink.converter.value}.get(part)
    if registry is None or converter is None or not CONVERTERS[converter].framed:
        return {}
    return _describe_fields(registry, f"{topic}-{part}")


@functools.lru_cache(maxsize=1024)
def _describe_fields(registry: Registry, subject: str) -> Mapping[str, str]:
    from s3lake.schema.connect import SchemaError
    from s3lake.schema.registry import UnknownSchema, client

    connection = registry.connection
    if registry.descriptor_set is not None:
        from s3lake.schema import protobuf

        return protobuf.prose_of_set(connection.descriptors, connection.message)
    try:
        schema = client(connection).newest(subject)
        return of_fields(schema.kind, schema.text, schema.references)
    except (S3LakeError, UnknownSchema, SchemaError) as error:
        _log.info("columns have no descriptions: %s", error)
        return {}
