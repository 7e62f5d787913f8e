"""Transforms that make, drop or refuse null values: of Aiven and Confluent.

https://github.com/Aiven-Open/transforms-for-apache-kafka-connect
https://docs.confluent.io/kafka-connectors/transforms/current/drop.html and …/tombstonehandler.html
"""

from __future__ import annotations

from s3lake.records.transform.step.option_reader import OptionReader
from s3lake.records.transform.step.record import Record, Step, later
from s3lake.records.transform.step.record_values import Side, TransformError

_SCHEMAS = ("nullify", "retain", "validate", "force_optional")
_TOMBSTONE = frozenset({"tombstone"})


def handle_tombstones_of_aiven(options: OptionReader) -> Step:
    """Drop or refuse records without a value."""
    return _handle_tombstones(options.choice("behavior", ("drop_silent", "drop_warn", "fail")))


def handle_tombstones_of_confluent(options: OptionReader) -> Step:
    """Drop or refuse records without a value."""
    return _handle_tombstones(options.choice("behavior", ("ignore", "warn", "fail"), "warn"))


def _handle_tombstones(behavior: str) -> Step:
    def apply(record: Record) -> bool:
        if record.value is None and behavior == "fail":
            raise TransformError("the record has no value, and behavior is fail")
        return record.value is None

    return Step(apply, reads=_TOMBSTONE)


def drop_side(options: OptionReader, side: Side) -> Step:
    """Take a key or value away; its schema goes with it, or stays, optional or as it is."""
    return _drop_side(side, options.choice("schema.behavior", _SCHEMAS, "nullify"))


def make_tombstone(_: OptionReader) -> Step:
    """Take the value away, with its schema."""
    return _drop_side("value", "nullify")


def _drop_side(side: Side, behavior: str) -> Step:
    def apply(record: Record) -> None:
        setattr(record, side, None)

    written = frozenset({side})
    typed = later("tombstones", "drop_side", side, behavior)
    return Step(apply, written, written, typed=typed, makes_nulls=side == "value")
