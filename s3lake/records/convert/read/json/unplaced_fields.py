"""Fields of records without a schema that no column holds, though the record is a row: they are counted.

A list or an object that holds nothing shows no type, so it makes no column. If its field has none, the row is the same
as that of a record without the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from s3lake.records.convert.read.json.inferred_types import decode_checked_json
from s3lake.records.schema.columns.types import (
    LEFT_EMPTY,
    UNKNOWN,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Unknown,
    fields_of,
    fold,
    item_of,
)
from s3lake.records.schema.columns.union import Conflict, join_path

_LEAVES = (Primitive, Decimal)


class UnplacedField(NamedTuple):
    """A field of a record that no column holds.

    Attributes:
        path: the path of the field within the key or the value.
        is_empty: True if it holds nothing but nulls, empty lists and empty objects.
        of_key: True if it is a field of the key.
    """

    path: str
    is_empty: bool
    of_key: bool = False

    @property
    def counted_path(self) -> str:
        """Return the path as the counts of fields that were left out have it."""
        return f"{'key:' if self.of_key else ''}{LEFT_EMPTY if self.is_empty else ''}{self.path}"


UnplacedFields = Mapping[int, frozenset[UnplacedField]]
"""Row -> its fields that no column holds; without the rows that have none."""
NOTHING_UNPLACED: UnplacedFields = MappingProxyType({})


def mark_keys(unplaced: UnplacedFields) -> UnplacedFields:
    """Return the same fields as fields of keys."""
    return {row: frozenset(field._replace(of_key=True) for field in fields) for row, fields in unplaced.items()}


def split_parts(unplaced: UnplacedFields) -> UnplacedFields:
    """Return fields of objects that have a key and a value as fields of these parts."""
    return {row: frozenset(map(_split_part, fields)) for row, fields in unplaced.items()}


def _split_part(field: UnplacedField) -> UnplacedField:
    part = "key" if field.path.startswith("key") else "value"
    return field._replace(path=field.path.removeprefix(part).removeprefix("."), of_key=part == "key")


def can_have_unplaced(seen: Type, kept: Type) -> bool:
    """Return whether records that showed a type can have fields that the columns do not hold.

    Args:
        seen: the type with lists and objects that hold nothing.
        kept: the type of the columns, without them.
    """
    match seen:
        case Struct(fields):
            columns = fields_of(kept)
            return kept == UNKNOWN or any(
                can_have_unplaced(type, columns.get(name, UNKNOWN)) for name, type in fields.items()
            )
        case List(item):
            return kept == UNKNOWN or can_have_unplaced(item, item_of(kept))
        case Map(value):  # what is in a map is declared, so it gets no more columns
            return fold(value, lambda _: False, lambda item: item, lambda _: True, lambda inner: inner)
    return False


def find_unplaced(text: bytes, type: Struct) -> frozenset[UnplacedField]:
    """Return the outermost fields of a JSON object that are not null, and that columns of this type do not hold."""
    unplaced: set[UnplacedField] = set()
    try:
        _add_unplaced(decode_checked_json(text), type, "", unplaced)
    except Conflict:
        return frozenset()  # its row is refused: no column holds such a number, and none nests so deeply
    return frozenset(unplaced)


def _add_unplaced(value: Any, type: Struct | List | Map, path: str, unplaced: set[UnplacedField]) -> None:
    if isinstance(type, Struct) and isinstance(value, dict):
        fields = type.fields
        for name, inner in value.items():
            column = fields.get(name, UNKNOWN)
            if inner is None or isinstance(column, _LEAVES):
                continue
            here = join_path(path, name)
            if isinstance(column, Unknown):
                unplaced.add(UnplacedField(here, _is_empty(inner)))
            else:
                _add_unplaced(inner, column, here, unplaced)
    elif isinstance(type, List | Map) and isinstance(item := item_of(type), Struct | List | Map):
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        for inner in items:
            _add_unplaced(inner, item, f"{path}[]", unplaced)


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if isinstance(value, list) else value is None
