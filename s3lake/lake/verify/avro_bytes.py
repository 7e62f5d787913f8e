"""Whether bytes are exactly one datum of a schema; fastavro's reader takes more, such as any index and any integer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from s3lake.text.quantities import format_count

_SIZES = {"null": 0, "float": 4, "double": 8}
_MOST_EMPTY = 1_000
"""Items without bytes that a datum may have: more are refused, because a few bytes could encode any number."""


def has_empty_items(schema: Any, types: Mapping[str, Any]) -> bool:
    """Return whether some array of a schema has items that take no bytes."""
    if isinstance(schema, list):
        return any(has_empty_items(branch, types) for branch in schema)
    if not isinstance(schema, dict):
        return False
    match schema["type"]:
        case "record":
            return any(has_empty_items(field["type"], types) for field in schema["fields"])
        case "array":
            return _is_empty(schema["items"], types) or has_empty_items(schema["items"], types)
        case "map":
            return has_empty_items(schema["values"], types)
    return False


def require_datum(schema: Any, types: Mapping[str, Any], data: bytes) -> None:
    """Walk through a datum.

    Raises:
        ValueError: it does not fit the schema, or something is left after it.
    """
    walk = _Walk(types, data)
    walk.pass_value(schema)
    if walk.at != len(data):
        raise ValueError(f"{format_count(len(data) - walk.at, 'bytes')} left")


def _is_empty(schema: Any, types: Mapping[str, Any]) -> bool:
    schema = types.get(schema, schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict):
        return bool(schema == "null")
    match schema["type"]:
        case "record":
            return all(_is_empty(field["type"], types) for field in schema["fields"])
        case "fixed":
            return bool(schema["size"] == 0)
    return bool(schema["type"] == "null")


class _Walk:
    def __init__(self, types: Mapping[str, Any], data: bytes) -> None:
        self._types, self._data, self.at, self._empty = types, data, 0, 0

    def pass_value(self, schema: Any) -> None:
        if isinstance(schema, list):
            self.pass_value(schema[self._read_index(len(schema))])
            return
        if isinstance(schema, str):
            schema = self._types.get(schema, {"type": schema})
        match schema["type"]:
            case "boolean":
                if self._pass(1)[0] > 1:
                    raise ValueError("a boolean is another byte than 0 and 1")
            case "int" | "long" as name:
                if not -(2**31) <= self._read_long() < 2**31 and name == "int":
                    raise ValueError("an integer has more than 32 bits")
            case "bytes" | "string":
                self._pass(self._read_long())
            case "enum":
                self._read_index(len(schema["symbols"]))
            case "fixed":
                self._pass(schema["size"])
            case "record":
                for field in schema["fields"]:
                    self.pass_value(field["type"])
            case "array":
                self._pass_blocks([schema["items"]], is_empty=_is_empty(schema["items"], self._types))
            case "map":
                self._pass_blocks(["string", schema["values"]])
            case name:
                self._pass(_SIZES[name])

    def _pass(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self._data):
            raise ValueError("it ends too early, or a length is negative")
        return self._data[start : self.at]

    def _read_long(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._pass(1)[0]
            number += (byte % 128) << shift
            if byte < 128:
                if number >= 2**64:
                    break
                return number // 2 if number % 2 == 0 else -(number // 2) - 1
        raise ValueError("an integer has more than 64 bits")

    def _read_index(self, count: int) -> int:
        index = self._read_long()
        if not 0 <= index < count:
            raise ValueError(f"index {index} is outside the {count} choices")
        return index

    def _pass_blocks(self, schemas: Sequence[Any], *, is_empty: bool = False) -> None:
        while count := self._read_long():
            size = None if count > 0 else self._read_long()
            start = self.at
            self._empty += abs(count) if is_empty else 0
            if self._empty > _MOST_EMPTY:
                raise ValueError(f"more than {_MOST_EMPTY} items take no bytes")
            for _ in range(abs(count)):
                for schema in schemas:
                    self.pass_value(schema)
            if size not in (None, self.at - start):
                raise ValueError("a block has another size than it states")
