"""What columns are in words, from the schemas of a topic's keys and values."""

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
_OF_KAFKA = {
    "headers": "The record's headers.",
    "metadata": "Where the record stands in Kafka, and its timestamp in milliseconds since 1970.",
    "offset": "The record's offset in its topic-partition.",
    "timestamp": "The record's timestamp, in milliseconds since 1970.",
}


def of_columns(sink: Sink, topic: str, index: TopicIndex) -> Mapping[str, str]:
    """Words by column, from the newest schemas of a topic, by the names that serializers give them.

    They only say more of what is landed: without an answer of the registry there are none. In an envelope the words of
    a key's or a value's fields are those of its column. Where records bring their schemas, the index has their words.
    """
    if CONVERTERS[sink.converter.value].enveloped:
        recorded = index.columns()
        return recorded[0].words if recorded else {}
    envelope = sink.envelope
    if envelope is None:
        return _of_part(sink, topic, "value")
    if envelope.bare:
        return _of_part(sink, topic, envelope.fields[0])
    words: dict[str, str] = {name: text for name, text in _OF_KAFKA.items() if name in envelope.fields}
    for part in ("key", "value"):
        if part in envelope.fields and (fields := _of_part(sink, topic, part)):
            words[part] = "\n".join(f"{name}: {text}" for name, text in fields.items())
    return words


def _of_part(sink: Sink, topic: str, part: str) -> Mapping[str, str]:
    registry = sink.converter.registry
    converter = {"key": sink.converter.key, "value": sink.converter.value}.get(part)
    if registry is None or converter is None or not CONVERTERS[converter].framed:
        return {}
    if registry.descriptor_set is not None:
        return _of_descriptors(registry)
    return _of_subject(registry, f"{topic}-{part}")


@functools.lru_cache(maxsize=1024)
def _of_subject(registry: Registry, subject: str) -> Mapping[str, str]:
    from s3lake.schema.connect import SchemaError
    from s3lake.schema.registry import UnknownSchema, client

    try:
        schema = client(registry.connection).newest(subject)
        return of_fields(schema.kind, schema.text, schema.references)
    except (S3LakeError, UnknownSchema, SchemaError) as error:
        _log.info("columns have no descriptions: %s", error)
        return {}


@functools.lru_cache(maxsize=1024)
def _of_descriptors(registry: Registry) -> Mapping[str, str]:
    from s3lake.schema import protobuf

    connection = registry.connection
    return protobuf.prose_of_set(connection.descriptors, connection.message)
