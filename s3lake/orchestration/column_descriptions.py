"""Descriptions of columns, from the schemas of a topic's keys and values."""

import functools
import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from s3lake.config.model import Sink
from s3lake.config.model.converter import Registry
from s3lake.errors import S3LakeError
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.records.convert.read.converters import CONVERTERS

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
    return describe_fields(registry, f"{topic}-{part}")


@functools.lru_cache(maxsize=1024)
def describe_fields(registry: Registry, subject: str) -> Mapping[str, str]:
    from s3lake.records.convert.read.wire_format import compile_foreign
    from s3lake.records.schema.registry import get_client
    from s3lake.records.schema.registry.registry_answers import UnknownSchema

    connection = registry.connection
    if registry.descriptor_set is not None:
        from s3lake.records.schema.protobuf import compiler

        return compiler.read_comments_of_set(connection.descriptors, connection.message)
    try:
        schema = get_client(connection).newest(subject)
        described = compile_foreign(
            lambda text, references: read_descriptions(schema.language, text, dict(references)),
            schema.text,
            tuple(schema.references.items()),
        )
    except (S3LakeError, UnknownSchema) as error:
        described = str(error)
    if isinstance(described, str):
        _log.info("columns have no descriptions: %s", described)
        return {}
    return described


def read_descriptions(language: str, text: str, references: Mapping[str, str]) -> dict[str, str]:
    """Return the descriptions of the fields of a schema's outermost record; fields without one are left out.

    That is `doc` in Avro, `description` or `title` in JSON Schema, and comments in Protobuf. `references` are the texts
    of other schemas that it names.

    >>> read_descriptions("AVRO", '{"type": "record", "fields": [{"name": "id", "type": "long", "doc": "a key"}]}', {})
    {'id': 'a key'}
    """
    if language == "PROTOBUF":
        from s3lake.records.schema.protobuf import compiler

        return compiler.read_comments(text, references)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    fields = _read_avro(schema) if language == "AVRO" else _read_json_schema(schema)
    texts = {name: words.strip() for name, words in fields if isinstance(words, str) and words.strip()}
    # Dagster cannot store half a character, which JSON can have.
    return {name: words.encode(errors="backslashreplace").decode() for name, words in texts.items()}


def _read_avro(schema: Any) -> Iterator[tuple[str, Any]]:
    branches = schema if isinstance(schema, list) else [schema]
    records = [one for one in branches if isinstance(one, Mapping) and one.get("type") == "record"]
    if len(records) == 1:
        for field in records[0].get("fields", ()):
            yield field["name"], field.get("doc")


def _read_json_schema(schema: Any) -> Iterator[tuple[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, property in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(property, Mapping):
            yield name, property.get("description", property.get("title"))
