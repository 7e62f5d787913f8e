"""Transforms of Aiven, Confluent and J. Custenborder that name the topic after a part of the record.

https://github.com/Aiven-Open/transforms-for-apache-kafka-connect
https://docs.confluent.io/kafka-connectors/transforms/current/extracttopic.html
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from s3lake.records.transform.families.casts import cast_value
from s3lake.records.transform.families.java_regex import compile_java
from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import Record, Step, later, require_topic
from s3lake.records.transform.step.record_values import Side, TransformError, describe
from s3lake.text.option_values import parse_bool

_TOPIC = frozenset({"topic"})
_JSON_PATH = re.compile(r"""\.(?P<name>[^.\[\]'"*?@()]+)|\[(?P<quote>['"])(?P<quoted>[^'"]+)(?P=quote)\]""")


def extract_topic_of_aiven(options: OptionReader, side: Side) -> Step:
    """Name the topic after a key or value, or a field of it."""
    name = options.text("field.name", "")
    skips = options.parse("skip.missing.or.null", parse_bool, "false")
    paths = [(name,), *([tuple(name.split("."))] if "." in name[1:] else [])] if name else []

    def rename(record: Record) -> str | None:
        whole = getattr(record, side)
        if not name:
            return _to_topic(whole, f"the {side}", skips=skips)
        if not isinstance(whole, dict):
            raise TransformError(f"the {side} is {describe(whole)}, an object is needed for field {name!r}")
        value = next((one for one in (_find(whole, path) for path in paths) if one is not None), None)
        return _to_topic(value, f"field {name!r}", skips=skips)

    return _name_topic(rename, frozenset({side}), paths)


def extract_topic_of_confluent(options: OptionReader, side: Side) -> Step:
    """Name the topic after a key or value, or a field of it."""
    name, skips = options.text("field", ""), options.parse("skip.missing.or.null", parse_bool, "false")
    nested = options.choice("field.format", ("PLAIN", "JSON_PATH"), "PLAIN") == "JSON_PATH"
    if nested and not name:
        raise OptionError("field is missing; field.format JSON_PATH needs it, for example $.a.b", "field")
    path = options.parse("field", _parse_json_path) if nested else (name,)

    def rename(record: Record) -> str | None:
        whole = getattr(record, side)
        if not name or whole is None:
            return _to_topic(whole, f"the {side}", skips=skips)
        if not isinstance(whole, dict):
            raise TransformError(f"the {side} is {describe(whole)}, an object is needed for field {name!r}")
        return _to_topic(_find(whole, path), f"field {name!r}", skips=skips)

    return _name_topic(rename, frozenset({side}), [path] if name else [])


def extract_topic_of_header(options: OptionReader) -> Step:
    """Name the topic after a header: the last one of its name."""
    name, skips = options.text("field", example="table"), options.parse("skip.missing.or.null", parse_bool, "false")
    options.choice("field.format", ("PLAIN",), "PLAIN")

    def rename(record: Record) -> str | None:
        data = next((value for header, value in reversed(record.headers) if header == name), None)
        try:
            return _to_topic(None if data is None else data.decode(), f"header {name!r}", skips=skips)
        except UnicodeDecodeError:
            raise TransformError(f"header {name!r} is not UTF-8, so it cannot name a topic") from None

    return _name_topic(rename, frozenset({"headers"}), [])


def _name_topic(rename: Callable[[Record], str | None], reads: frozenset[str], paths: list[tuple[str, ...]]) -> Step:
    def apply(record: Record) -> None:
        topic = rename(record)
        if topic is not None:
            record.topic = require_topic(topic)

    only = paths[0][0] if len(paths) == 1 else None
    return Step(apply, reads, _TOPIC, field=only)


def _parse_json_path(text: str) -> tuple[str, ...]:
    r"""Parse a JsonPath of names.

    >>> _parse_json_path("$.a['b c']")
    ('a', 'b c')
    """
    names: list[str] = []
    at = 1
    while text.startswith("$") and (step := _JSON_PATH.match(text, at)):
        names.append(step["name"] or step["quoted"])
        at = step.end()
    if not names or at != len(text):
        raise ValueError("is not a path of names: write $.a.b or $['a']['b']")
    return tuple(names)


def _find(value: Any, path: tuple[str, ...]) -> Any:
    """Return the field at a path, None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _to_topic(value: Any, what: str, *, skips: bool) -> str | None:
    """Return a value as a topic's name. Return None for null or an empty text, if these are skipped.

    Raises:
        TransformError: it is null and not skipped, or neither a text, a number nor a truth value.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        if skips:
            return None
        raise TransformError(f"{what} is {'missing or null' if value is None else 'empty'}: it names the topic")
    if isinstance(value, dict | list | bytes):
        raise TransformError(f"{what} is {describe(value)}: a text, a number or a truth value names a topic")
    return str(cast_value(value, "string", what))


def extract_topic_from_schema_name(options: OptionReader) -> Step:
    """Name the topic after the schema of the value: by a map, else by a part of its name, else by its whole name."""
    topics: dict[str, str] = {}
    for entry in options.names("schema.name.topic-map"):
        schema, colon, topic = entry.partition(":")
        if not schema or not colon or not topic:
            raise OptionError(
                f"schema.name.topic-map: {entry!r} is not schema:topic; write for example shop.Order:orders",
                "schema.name.topic-map",
            )
        topics[schema] = topic
    expression = None
    if "schema.name.regex" in options:
        expression = options.parse("schema.name.regex", compile_java)
        if expression.engine.groups != 1:
            raise OptionError(
                "schema.name.regex: it needs one group in brackets, which is the topic", "schema.name.regex"
            )

    def find_topic(name: str) -> str:
        if name in topics or expression is None:
            return topics.get(name, name)
        match = expression.search(name)
        return str(match[1]) if match and match[1] else name

    return _name_topic_by_schema("value", find_topic)


def name_topic_by_schema(_: OptionReader, side: Side) -> Step:
    """Name the topic after the schema of a key or value."""
    return _name_topic_by_schema(side, lambda name: name)


def _name_topic_by_schema(side: Side, find_topic: Callable[[str], str]) -> Step:
    def refuse(_: Record) -> None:
        raise TransformError(f"the {side} has no schema, whose name is the topic")

    return Step(refuse, frozenset({side}), _TOPIC, typed=later("topic_names", "name_by_schema", side, find_topic))
