"""Names in Avro: which it allows of fields, and what types are called in full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from s3lake.schema.types import Columns, Struct, Type, fold
from s3lake.schema.unite import joined

LEGAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def illegal_name(columns: Columns) -> str | None:
    """The path of the first field whose name Avro forbids, None where all are allowed."""
    return fold(Struct(columns), _legal, _inside, _illegal_name, _inside)


def definitions(schema: Any, space: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The named types that are defined within a schema, each with the namespace around it."""
    waiting = [(schema, space)]
    while waiting:
        inner, at = waiting.pop()
        if isinstance(inner, list):
            waiting += [(branch, at) for branch in inner]
        if not isinstance(inner, dict):
            continue
        if inner.get("type") in ("record", "error", "enum", "fixed") and isinstance(inner.get("name"), str):
            yield inner, at
            at = space_of(full_name(inner["name"], inner, at))
        fields = inner.get("fields")
        types = [each.get("type") for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []
        waiting += [(part, at) for part in (*types, inner.get("items"), inner.get("values"), inner.get("type"))]


def full_name(name: str, schema: dict[str, Any], space: str) -> str:
    """A name with its namespace: its own, that of its definition, or the one around it."""
    if "." in name:
        return name
    space = schema.get("namespace", space)
    return f"{space}.{name}" if space else name


def space_of(name: str) -> str:
    """The namespace of a full name, which those within have as well."""
    return name.rpartition(".")[0]


def _legal(_leaf: Type) -> str | None:
    return None


def _inside(inner: str | None) -> str | None:
    return inner


def _illegal_name(fields: dict[str, str | None]) -> str | None:
    for name, inner in fields.items():
        if not LEGAL_NAME.fullmatch(name):
            return name or "''"
        if inner is not None:
            return joined(name, inner)
    return None
