"""What a schema says of its fields in words.

That is `doc` in Avro, `description` or `title` in JSON Schema, and comments in Protobuf.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def of_fields(language: str, text: str, references: Mapping[str, str]) -> dict[str, str]:
    """Words by field of the outermost record; those without any are left out.

    Args:
        language: AVRO, JSON or PROTOBUF.
        text: of the schema.
        references: name -> text of what it refers to.

    >>> of_fields("AVRO", '{"type": "record", "fields": [{"name": "id", "type": "long", "doc": "a key"}]}', {})
    {'id': 'a key'}
    """
    if language == "PROTOBUF":
        from s3lake.schema import protobuf  # Google's library, which other schemas do not need

        return protobuf.prose(text, references)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    fields = _of_avro(schema) if language == "AVRO" else _of_json(schema)
    return {name: words.strip() for name, words in fields if isinstance(words, str) and words.strip()}


def _of_avro(schema: Any) -> Iterator[tuple[str, Any]]:
    branches = schema if isinstance(schema, list) else [schema]
    records = [one for one in branches if isinstance(one, Mapping) and one.get("type") == "record"]
    if len(records) == 1:
        for field in records[0].get("fields", ()):
            yield field["name"], field.get("doc")


def _of_json(schema: Any) -> Iterator[tuple[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, property in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(property, Mapping):
            yield name, property.get("description", property.get("title"))
