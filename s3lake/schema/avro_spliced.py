"""The schema of an Avro file whose datums stay the bytes that the producer wrote.

It is the producer's, without what only people read (`doc`), what only a reader's schema needs (defaults, aliases), and
what no reader of files knows: schemas that differ only in that share files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from s3lake.schema.avro_names import LEGAL_NAME

_NAMED = ("record", "enum", "fixed")


def schema_of(written: Any) -> bytes | None:
    """The schema of files, None where the value's own cannot be one.

    Args:
        written: as `avro.Node` has it.
    """
    if not isinstance(written, dict) or written["type"] != "record" or not all(map(_is_legal, _names(written))):
        return None
    space, _, name = written["name"].rpartition(".")
    found = _once(written, set())
    if space and any("." not in one for one in _types(written)):
        return None  # a type without a namespace would be read as one of the record's
    found |= {"name": name, "namespace": space} if space else {}
    return json.dumps(found, separators=(",", ":")).encode()


def _once(schema: Any, names: set[str]) -> Any:
    """A type that stands in several places is defined in the first and named in the others."""
    if isinstance(schema, list):
        return [_once(one, names) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema["type"] in _NAMED:
        if schema["name"] in names:
            return schema["name"]
        names.add(schema["name"])
    spliced = {member: _once(one, names) if member in ("items", "values") else one for member, one in schema.items()}
    if "fields" in spliced:
        spliced["fields"] = [one | {"type": _once(one["type"], names)} for one in schema["fields"]]
    return spliced


def _names(schema: Any) -> Iterator[str]:
    """Every name in a schema that Avro's rule is for."""
    for part in _parts(schema):
        if part["type"] in _NAMED:
            yield from part["name"].split(".")
        yield from (one["name"] for one in part.get("fields", ()))


def _types(schema: Any) -> Iterator[str]:
    return (part["name"] for part in _parts(schema) if part["type"] in _NAMED)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, list):
        for inner in schema:
            yield from _parts(inner)
    elif isinstance(schema, dict):
        yield schema
        for inner in (
            schema.get("items"),
            schema.get("values"),
            *(inner["type"] for inner in schema.get("fields", ())),
        ):
            yield from _parts(inner)


def _is_legal(name: str) -> bool:
    return LEGAL_NAME.fullmatch(name) is not None
