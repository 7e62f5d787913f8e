"""Fields that a commit's sink left out of some records, or filled with a default: they are compared in none.

A path is `order.id`; `[]` stands behind a list for its items, and behind a map for its values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from s3lake.verify import connect

_STEP = re.compile(r"\[\]|[^.\[]+")


class LeftOut:
    """The fields of one commit."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = [_STEP.findall(path) for path in sorted(paths)]

    def of_kafka(self, value: bytes | None) -> bytes | None:
        """A value of JSON, or of Connect's with its schema, without them; what is neither stays as it is."""
        try:
            schema, payload = connect.unwrapped(value) if value is not None and self._paths else (None, None)
        except (ValueError, msgspec.DecodeError):
            return value
        if payload is None or value is None:
            return value
        for path in self._paths:
            _take(payload, path)
        if schema is None:
            return connect.exact(payload)
        document = json.loads(schema)
        for path in self._paths:
            _take_field(document, path)
        return b'{"schema":%s,"payload":%s}' % (json.dumps(document).encode(), connect.exact(payload))

    def of_column(self, name: str, cells: Iterable[Any], *, enveloped: bool) -> list[Any]:
        """The cells of a column of a file, in which they are null; an envelope's values have one column."""
        rows = [{name: cell} for cell in cells]
        for path in self._paths:
            for row in rows:
                _take(row, ["value", *path] if enveloped else path, nulls=True)
        return [row[name] for row in rows]


def _take(value: Any, path: list[str], *, nulls: bool = False) -> None:
    """Take what is at a path out of a decoded value, in place."""
    step, *rest = path
    if step == "[]":
        for inner in _inside(value) if rest else ():
            _take(inner, rest, nulls=nulls)
        if not rest and isinstance(value, list):
            value[:] = [None] * len(value)
    elif isinstance(value, dict) and step in value:
        if rest:
            _take(value[step], rest, nulls=nulls)
        elif nulls:
            value[step] = None
        else:
            del value[step]


def _inside(value: Any) -> Iterable[Any]:
    """The items of a list, or the values of a map, which files have as pairs."""
    if isinstance(value, dict):
        return list(value.values())
    items = value if isinstance(value, list) else ()
    return [item[1] if isinstance(item, tuple) else item for item in items]


def _take_field(schema: dict[str, Any], path: list[str]) -> None:
    """Take a field out of a schema of Connect, in place."""
    step, *rest = path
    if step == "[]":
        inner = schema.get("items") or schema.get("values")
        if inner and rest:
            _take_field(inner, rest)
        return
    fields = schema.get("fields") or []
    if not rest:
        schema["fields"] = [field for field in fields if field["field"] != step]
    for field in fields if rest else ():
        if field["field"] == step:
            _take_field(field, rest)
