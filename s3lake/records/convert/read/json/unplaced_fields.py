"""Fields of records without a schema that no column holds, though the record is a row: they are counted.

A list or an object that holds nothing shows no type, so it makes no column. If its field has none, or one of another
kind, the row is the same as that of a record without the field. So what becomes of it does not depend on whether
another record has shown a type there.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from s3lake.records.convert.read.json.inferred_types import decode_checked_json
from s3lake.records.schema.columns.types import (
    LEFT_EMPTY,
    UNKNOWN,
    Columns,
    List,
    Map,
    Struct,
    Type,
    Unknown,
    fields_of,
    item_of,
)
from s3lake.records.schema.columns.union import Conflict, join_path

_NULL = msgspec.Raw(b"null")
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.encode


class UnplacedField(NamedTuple):
    """A field of a record that no column holds.

    Attributes:
        path: the path of the field within the key or the value.
        is_empty: True if it holds nothing but nulls, empty lists and empty objects.
        has_column: True if its field has a column, of another kind.
        of_key: True if it is a field of the key.
    """

    path: str
    is_empty: bool
    has_column: bool = False
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


def place_object(text: bytes, columns: Columns, declared: Columns) -> tuple[bytes, frozenset[UnplacedField]]:
    """Return a JSON object as the columns hold it, and its outermost fields, not null, that they do not hold.

    What holds nothing is null where its column is of another kind. That of a declared column stays: its record is
    refused, as the type of a declared column is for all records.
    """
    try:
        fields = find_unplaced(decode_checked_json(text), Struct(columns))
    except Conflict:
        return text, frozenset()  # its row is refused: no column holds such a number, and none nests so deeply
    if any(field.has_column for field in fields):
        text = bytes(_clear_empty(msgspec.Raw(text.strip()), Struct(columns), Struct(declared)))
    return text, fields


def find_unplaced(value: Any, type: Type, path: str = "") -> frozenset[UnplacedField]:
    """Return what is in decoded JSON, outermost first, that a column of this type does not hold."""
    unplaced: set[UnplacedField] = set()
    _add_unplaced(value, type, path, unplaced)
    return frozenset(unplaced)


def _add_unplaced(value: Any, type: Type, path: str, unplaced: set[UnplacedField]) -> None:
    if isinstance(type, Unknown):
        if value is not None:
            unplaced.add(UnplacedField(path, _is_empty(value)))
    elif isinstance(type, Struct) and isinstance(value, dict):
        for name, inner in value.items():
            _add_unplaced(inner, type.fields.get(name, UNKNOWN), join_path(path, name), unplaced)
    elif (isinstance(type, List) and isinstance(value, list)) or (isinstance(type, Map) and isinstance(value, dict)):
        for inner in value if isinstance(value, list) else value.values():
            _add_unplaced(inner, item_of(type), f"{path}[]", unplaced)
    elif isinstance(value, dict | list) and _is_empty(value):
        unplaced.add(UnplacedField(path, is_empty=True, has_column=True))


def _clear_empty(value: msgspec.Raw, type: Type, declared: Type) -> msgspec.Raw:
    """Return JSON with null for what holds nothing where its column is of another kind, and not declared."""
    begin = bytes(value)[:1]
    if begin not in (b"{", b"["):
        return value
    cleared: Any
    if begin == b"{" and isinstance(type, Struct | Map):
        types, declared_types = fields_of(type), fields_of(declared)
        cleared = {
            name: _clear_empty(inner, types.get(name, item_of(type)), declared_types.get(name, item_of(declared)))
            for name, inner in _decode_members(value).items()
        }
    elif begin == b"[" and isinstance(type, List):
        cleared = [_clear_empty(inner, type.item, item_of(declared)) for inner in _decode_items(value)]
    else:
        is_kept = type == UNKNOWN or declared != UNKNOWN or not _is_empty(decode_checked_json(value))
        return value if is_kept else _NULL
    return msgspec.Raw(_encode(cleared))


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if isinstance(value, list) else value is None
