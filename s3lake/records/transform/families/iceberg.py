"""Transforms of Apache Iceberg's sink, and of Tabular's, which it was before.

https://github.com/apache/iceberg/tree/main/kafka-connect/kafka-connect-transforms
"""

from __future__ import annotations

from typing import Any, NamedTuple

from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import Record, Step, change_object, later, require_object
from s3lake.records.transform.step.record_values import TransformError, describe
from s3lake.text.option_values import parse_bool

CDC = "_cdc"
OPERATIONS = {"u": "U", "d": "D"}
"""What an operation of Debezium is called; all others are I."""

_VALUE = frozenset({"value"})


def unwrap_debezium(options: OptionReader) -> Step:
    """Take the row out of a change event, with an object `_cdc` of its operation, time, offset, table and key."""
    pattern = options.text("cdc.target.pattern", "") or "{db}.{table}"

    def apply(record: Record) -> bool | None:
        if record.value is None:
            return None
        event = require_object(record.value, "value")
        operation, source = event.get("op"), event.get("source")
        if not isinstance(operation, str) or not isinstance(source, dict):
            raise TransformError(
                "the value is not a change event of Debezium: a text op and an object source are needed"
            )
        row = event.get("before" if operation == "d" else "after")
        if not isinstance(row, dict):
            return True
        database, table = source["schema"] if "schema" in source else source.get("db"), source.get("table")
        added: dict[str, Any] = {
            "op": OPERATIONS.get(operation, "I"),
            "ts": event.get("ts_ms"),
            "offset": record.offset,
            **name_table(database, table, pattern),
        }
        if isinstance(record.key, dict):
            added["key"] = record.key
        record.value = row | {CDC: added}
        return None

    typed = later("iceberg", "unwrap_debezium", pattern)
    return Step(apply, frozenset({"key", "value"}), _VALUE, typed=typed, decided_by="value")


def name_table(database: Any, table: Any, pattern: str) -> dict[str, str]:
    """Return what a table is called, and what it is called by a pattern.

    Raises:
        TransformError: one of its names is not a text.
    """
    for what, name in (("schema or db", database), ("table", table)):
        if not isinstance(name, str):
            raise TransformError(f"{what} in the source of the change event is {describe(name)}, a text is needed")
    target = pattern.replace("{db}", database).replace("{table}", table)
    return {"source": f"{database}.{table}", "target": target}


class Metadata(NamedTuple):
    """The options of KafkaMetadataTransform: the object or the prefix of its fields, and a constant one."""

    name: str
    nested: bool
    constant: tuple[str, str] | None


def insert_metadata(options: OptionReader) -> Step:
    """Insert topic, partition, offset and timestamp."""
    constant = None
    if "external_field" in options:
        name, comma, text = options.text("external_field").partition(",")
        if not name or not comma or not text or "," in text:
            raise OptionError("external_field: write a name and a text, as cluster,eu-1", "external_field")
        constant = (name, text)
    metadata = Metadata(
        options.text("field_name", "_kafka_metadata"), options.parse("nested", parse_bool, "false"), constant
    )

    def apply(record: Record) -> None:
        if record.value is None:
            return
        value = require_object(record.value, "value")
        added: dict[str, Any] = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        if record.timestamp is not None:
            added["timestamp"] = record.timestamp
        if metadata.constant:
            added[metadata.constant[0]] = metadata.constant[1]
        nested = {metadata.name: added}
        flat = {f"{metadata.name}_{name}": one for name, one in added.items()}
        record.value = value | (nested if metadata.nested else flat)

    return Step(apply, _VALUE, _VALUE, typed=later("iceberg", "insert_metadata", metadata))


def copy_value(options: OptionReader) -> Step:
    """Copy a field to another one."""
    source, target = options.text("source.field", example="id"), options.text("target.field", example="id_copy")
    typed = later("iceberg", "copy_value", source, target)
    return change_object("value", lambda value: value | {target: value.get(source)}, typed=typed)
