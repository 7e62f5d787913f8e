"""The defaults that a JSON Schema gives to what a value lacks."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

_MISSING: Any = object()
_MOST_STEPS = 1_000  # a reference may lead to itself

Place = tuple[Any, str]
"""A schema, and the address that its references are relative to."""


@dataclass(frozen=True)
class Defaults:
    """The documents of a schema: its own has no name, the others have those by which it refers to them.

    Attributes:
        null_to_default: whether the files have a default where a value has a null.
    """

    documents: Mapping[str, Any]
    null_to_default: bool

    def fill(self, value: Any) -> Any:
        """Return a value with what it lacks."""
        return self._fill([(self.documents[""], "")], value, is_required=True)

    def _fill(self, places: Sequence[Place], value: Any, *, is_required: bool) -> Any:
        schema = self._resolve(places)
        default = schema.get("default")
        if default is not None and not self._fits(places, default):
            default = None
        if value is _MISSING:
            return _MISSING if default is None else self._fill(places, default, is_required=is_required)
        if value is None:
            stays = not self.null_to_default and (not is_required or _takes_null(schema))
            return None if stays or default is None else self._fill(places, default, is_required=is_required)
        if isinstance(value, list):
            return [self._fill(schema.get("items", ()), item, is_required=True) for item in value]
        if not isinstance(value, dict):
            return value
        properties = schema.get("properties") or {}
        if more := _find_entries(schema):
            return {name: self._fill(more, inner, is_required=True) for name, inner in value.items()}
        filled = dict(value)
        for name, of_name in properties.items():
            inner = self._fill(of_name, value.get(name, _MISSING), is_required=name in (schema.get("required") or ()))
            if inner is not _MISSING:
                filled[name] = inner
        return filled

    def _fits(self, places: Sequence[Place], value: Any) -> bool:
        """Return whether a default can be a value of its schema, which JSON Schema does not ask of it."""
        schema = self._resolve(places)
        connect, required = schema.get("connect.type"), schema.get("required") or ()
        if value is None:
            return _takes_null(schema)
        match _find_type(schema):
            case "boolean":
                return isinstance(value, bool)
            case "integer":
                most = 2 ** (31 if connect in ("int8", "int16", "int32") else 63)
                return (
                    _is_number(value)
                    and Decimal(value).adjusted() < 20
                    and value == int(value)
                    and -most <= value < most
                )
            case "number":
                return _is_number(value) or (connect == "bytes" and isinstance(value, str))
            case "string":
                return isinstance(value, str) and (connect != "bytes" or _is_base64(value))
            case "array":
                return isinstance(value, list) and all(self._fits(schema.get("items", ()), item) for item in value)
            case "object" if not isinstance(value, dict):
                return False
            case "object" if more := _find_entries(schema):
                return all(self._fits(more, inner) for inner in value.values())
            case "object":
                return all(
                    self._fits(inner, value[name]) if value.get(name) is not None else name not in required
                    for name, inner in (schema.get("properties") or {}).items()
                )
        return True

    def _resolve(self, places: Sequence[Place]) -> dict[str, Any]:
        """Return schemas as one object, whose parts are places: all that describes one value, and that may be null."""
        merged: dict[str, Any] = {}
        for schema, base in self._list_all(places, [0]):
            for word, part in schema.items():
                before = merged.get(word)
                if word == "properties" and isinstance(part, dict):
                    earlier = before or {}
                    new = {name: [*earlier.get(name, ()), (inner, base)] for name, inner in part.items()}
                    merged[word] = {**earlier, **new}
                elif word in ("items", "additionalProperties") and isinstance(part, dict):
                    if before is None or before is True or isinstance(before, list):
                        merged[word] = [*(before if isinstance(before, list) else ()), (part, base)]
                elif word in ("oneOf", "anyOf") and isinstance(part, list):
                    merged.setdefault(word, [(branch, base) for branch in part])
                elif word == "required" and isinstance(before, list):
                    merged[word] = [*before, *part]
                elif word == "type" and before is not None:
                    merged[word] = _narrow(before, part)
                elif word != "items" or not isinstance(part, list):
                    merged.setdefault(word, part)
        branches = merged.get("oneOf") or merged.get("anyOf")
        if "type" in merged or "properties" in merged or not branches:
            return merged
        present = [branch for branch in branches if not self._is_only_null(branch)]
        if len(present) != 1:
            return {"default": merged["default"]} if "default" in merged else {}  # one of several: it is a text
        nullable = {"nullable": True} if len(present) < len(branches) else {}
        own = {word: part for word, part in merged.items() if word not in ("oneOf", "anyOf")}
        return {**self._resolve(present), **nullable, **own}

    def _list_all(self, places: Sequence[Place], steps: list[int]) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield all schemas that a value has to fit; of a reference what it leads to, with the default next to it."""
        for schema, base in places:
            steps[0] += 1
            if not isinstance(schema, dict) or steps[0] > _MOST_STEPS:
                continue
            base = urljoin(base, _id_of(schema)) if _id_of(schema) else base
            if "$ref" in schema:
                next_to = {word: part for word, part in schema.items() if word != "$ref"}
                counts = any(draft in str(self.documents[""].get("$schema")) for draft in ("2019-09", "2020-12"))
                yield {word: part for word, part in next_to.items() if counts or word == "default"}, base
                yield from self._list_all([self._follow(schema["$ref"], base)], steps)
                continue
            yield schema, base
            if isinstance(schema.get("allOf"), list):
                yield from self._list_all([(branch, base) for branch in schema["allOf"]], steps)

    def _is_only_null(self, place: Place) -> bool:
        """Return whether a branch takes null only; a title or a description does not count."""
        for schema, _ in self._list_all([place], [0]):
            names = schema.get("type")
            allowed = schema.get("enum", [schema["const"]] if "const" in schema else [])
            if names in ("null", ["null"]) or allowed == [None]:
                return True
        return False

    def _follow(self, reference: str, base: str) -> Place:
        """Return what a reference leads to; an empty schema if that is nowhere."""
        for address in (urljoin(base, reference), reference):
            if address in self._addresses:
                return self._addresses[address], address.partition("#")[0]
            name, _, pointer = address.partition("#")
            part = self._addresses.get(name)
            for step in unquote(pointer).split("/")[1:] if part is not None else ():
                step = step.replace("~1", "/").replace("~0", "~")
                if isinstance(part, list):
                    part = part[int(step)] if step.isdecimal() and int(step) < len(part) else None
                else:
                    part = part.get(step) if isinstance(part, dict) else None
            if part is not None:
                return part, name
        return {}, base

    @cached_property
    def _addresses(self) -> dict[str, Any]:
        """The targets of references: documents, and parts of them with an id or an anchor."""
        by_address = dict(self.documents)

        def look(part: Any, base: str) -> None:
            if isinstance(part, dict):
                if _id_of(part):
                    base = urljoin(base, _id_of(part))
                    by_address.setdefault(base.removesuffix("#"), part)
                if isinstance(part.get("$anchor"), str):
                    by_address.setdefault(f"{base.partition('#')[0]}#{part['$anchor']}", part)
            for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
                look(inner, base)

        for name, document in self.documents.items():
            look(document, name)
        return by_address


def _id_of(schema: dict[str, Any]) -> str:
    address = schema.get("$id", schema.get("id"))
    return address if isinstance(address, str) else ""


def _find_entries(schema: dict[str, Any]) -> list[Place]:
    """Return the schemas of a map's values; nothing if it is not a map."""
    more = schema.get("additionalProperties")
    is_map = isinstance(more, list) and (not schema.get("properties") or schema.get("connect.type") == "map")
    return more if is_map and isinstance(more, list) else []


def _narrow(first: Any, second: Any) -> Any:
    """Return the types that both allow, and an integer for a number; the first if there are none."""
    ours, theirs = ([names] if isinstance(names, str) else names for names in (first, second))
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return first
    both = [name for name in ours if name in theirs]
    if {"integer", "number"} <= {*ours, *theirs} and "integer" not in both and "number" not in both:
        both.append("integer")
    return (both[0] if len(both) == 1 else both) or first


def _find_type(schema: dict[str, Any]) -> str | None:
    """Return the one type of a schema besides null; None if it has several, or any, and is a text."""
    names = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else None)
    present = [name for name in (names if isinstance(names, list) else [names]) if name != "null"]
    if len(present) != 1 or (present == ["array"] and ("items" not in schema or "prefixItems" in schema)):
        return None
    if present == ["object"] and not schema.get("properties") and not _find_entries(schema):
        return "object" if schema.get("additionalProperties") is False else None
    return present[0] if isinstance(present[0], str) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _takes_null(schema: dict[str, Any]) -> bool:
    type = schema.get("type")
    names = type if isinstance(type, list) else [type]
    return "null" in names or None in names or schema.get("nullable") is True or None in (schema.get("enum") or ())


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True
