"""What columns that are found in records may become."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from s3lake.encode.formats import Rule
from s3lake.schema.types import UNKNOWN, Columns, Decimal, List, Map, Primitive, Struct, Type, Unknown, fold, item_of
from s3lake.schema.unite import find_illegal_name, held, joined, shown

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
    """What columns may become.

    Attributes:
        rule: of the format.
        most: a record whose new fields would make more columns is refused.
        integral: path of a column that stays one of integers -> why.
    """

    rule: Rule = ""
    most: int = sys.maxsize
    integral: Mapping[str, str] = field(default_factory=dict)

    def keep_integers(self, paths: Iterable[str]) -> Limits:
        """Return limits within which these columns stay columns of integers, too."""
        return replace(self, integral={**dict.fromkeys(paths, HAS_LARGE), **self.integral})


NO_LIMITS = Limits()


def misfit(columns: Columns, rule: Rule) -> str | None:
    """Why a format cannot hold these columns, None where it can."""
    if rule == "flat":
        for name, type in columns.items():
            if not isinstance(type, Primitive | Decimal | Unknown):
                return f"field {name!r} is {shown(type)}, which a row of CSV cannot hold: use another format"
    elif rule == "avro" and (path := find_illegal_name(held(columns))):
        return f"field {path!r} has a name that Avro forbids: letters, digits and '_', no digit first"
    elif rule == "iceberg":
        columns = held(columns)
        if LANDED_HOUR in columns:
            return f"field {LANDED_HOUR!r} is a column that the sink's table has of its own: rename it"
        if twice := [name for name, count in Counter(_full_names(columns)).items() if count > 1]:
            return f"field {twice[0]!r} is two fields to the sink's table, as one name holds a dot: rename it"
    return None


def find_unpromotable(known: Type, seen: Type, path: str = "") -> str | None:
    """Return why an Iceberg table with a known column cannot take files with the other type; None if it can."""
    match known, seen:
        case Struct(fields), Struct(others):
            inner = (
                find_unpromotable(fields[name], others[name], joined(path, name)) for name in fields.keys() & others
            )
            return next(filter(None, inner), None)
        case (List(), List()) | (Map(), Map()):
            return find_unpromotable(item_of(known), item_of(seen), f"{path}[]")
    if known == seen or UNKNOWN in (known, seen) or {known, seen} in _PROMOTED:
        return None
    if isinstance(known, Decimal) and isinstance(seen, Decimal) and known.scale == seen.scale:
        return None
    return f"field {path!r} is {shown(seen)}, and {shown(known)} in the sink's table, which cannot hold both"


def _full_names(columns: Columns) -> list[str]:
    """Return the names by which Iceberg knows each field."""

    def of_list(item: list[str]) -> list[str]:
        return ["", *(f".element{name}" for name in item)]

    def of_struct(fields: dict[str, list[str]]) -> list[str]:
        return ["", *(f".{name}{inner}" for name, names in fields.items() for inner in names)]

    def of_map(value: list[str]) -> list[str]:
        return ["", ".key", *(f".value{name}" for name in value)]

    return [name[1:] for name in fold(Struct(columns), lambda _: [""], of_list, of_struct, of_map)[1:]]
