"""What columns that are found in records may become."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from s3lake.records.schema.columns.changes import find_differences
from s3lake.records.schema.columns.types import UNKNOWN, Columns, Decimal, Primitive, Struct, Unknown, fold
from s3lake.records.schema.columns.union import drop_empty, find_illegal_name, format_type

Rule = Literal["", "flat", "avro", "iceberg"]
"""What a format asks of columns: none that is nested (`flat`), or only names that Avro allows."""

LANDED_HOUR = "landed_hour"
"""A column that no file has: a table that is partitioned by the hour of landing gives it to every row."""

IN_TABLE = "the sink's Iceberg table has it, and makes no doubles of integers"
"""Why a column stays one of integers."""

_PROMOTED = ({Primitive.INT32, Primitive.INT64}, {Primitive.FLOAT, Primitive.DOUBLE})
"""Types of which Iceberg makes one the other."""

HAS_LARGE = "it has integers beyond 2^53, which a column of doubles would round"
"""Why a column stays one of integers."""


@dataclass(frozen=True)
class Limits:
    """Limits of columns.

    Attributes:
        rule: the rule of the format.
        most: a record whose new fields would make more columns is refused.
        integral: path of a column that stays one of integers -> why.
    """

    rule: Rule = ""
    most: int = sys.maxsize
    integral: Mapping[str, str] = field(default_factory=dict)


NO_LIMITS = Limits()


def explain_unsupported(columns: Columns, rule: Rule) -> str | None:
    """Return why a format cannot hold these columns. Return None if it can."""
    if rule == "flat":
        for name, type in columns.items():
            if not isinstance(type, Primitive | Decimal | Unknown):
                return f"field {name!r} is {format_type(type)}, which a row of CSV cannot hold: use another format"
    elif rule == "avro" and (path := find_illegal_name(drop_empty(columns))):
        return f"field {path!r} has a name that Avro forbids: letters, digits and '_', no digit first: rename it"
    elif rule == "iceberg":
        columns = drop_empty(columns)
        if LANDED_HOUR in columns:
            return f"field {LANDED_HOUR!r} is a column that the sink's table has of its own: rename it"
        if twice := [name for name, count in Counter(_full_names(columns)).items() if count > 1]:
            return f"field {twice[0]!r} is two fields to the sink's table, as one name holds a dot: rename it"
    return None


def find_unpromotable(recorded: Columns, seen: Columns) -> str | None:
    """Return why an Iceberg table with recorded columns cannot take files with the others; None if it can."""
    for path, old, new in find_differences(recorded, seen):
        is_wider = isinstance(old, Decimal) and isinstance(new, Decimal) and old.scale == new.scale
        if old != UNKNOWN and not is_wider and {old, new} not in _PROMOTED:
            types = f"is {format_type(new)}, and {format_type(old)} in the sink's table"
            return f"field {path!r} {types}, which cannot hold both"
    return None


def _full_names(columns: Columns) -> list[str]:
    """Return the names by which Iceberg knows each field."""

    def of_list(item: list[str]) -> list[str]:
        return ["", *(f".element{name}" for name in item)]

    def of_struct(fields: dict[str, list[str]]) -> list[str]:
        return ["", *(f".{name}{inner}" for name, names in fields.items() for inner in names)]

    def of_map(value: list[str]) -> list[str]:
        return ["", ".key", *(f".value{name}" for name in value)]

    return [name[1:] for name in fold(Struct(columns), lambda _: [""], of_list, of_struct, of_map)[1:]]
