"""The defaults that a JSON Schema gives to what a value lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MISSING: Any = object()


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
        return self._fill(self.documents[""], value, is_required=True)

    def _fill(self, written: Any, value: Any, *, is_required: bool) -> Any:
        schema = self._resolve(written)
        default = schema.get("default")
        if value is _MISSING:
            return _MISSING if default is None else self._fill(written, default, is_required=is_required)
        if value is None:
            stays = not self.null_to_default and (not is_required or _takes_null(schema))
            return None if stays or default is None else self._fill(written, default, is_required=is_required)
        if isinstance(value, list):
            items = schema.get("items")
            return [self._fill(items, item, is_required=True) for item in value]
        if not isinstance(value, dict):
            return value
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        if isinstance(more, dict) and (not properties or schema.get("connect.type") == "map"):
            return {name: self._fill(more, inner, is_required=True) for name, inner in value.items()}
        filled = dict(value)
        for name, part in properties.items():
            inner = self._fill(part, value.get(name, _MISSING), is_required=name in (schema.get("required") or ()))
            if inner is not _MISSING:
                filled[name] = inner
        return filled

    def _resolve(self, schema: Any) -> dict[str, Any]:
        """Return a schema as one object: what it refers to, the one type that may be null, and all parts together."""
        for _ in range(100):  # a reference may lead to itself
            if not isinstance(schema, dict):
                return {}
            own = dict(schema)
            if "$ref" in own:
                schema = {**self._follow(own.pop("$ref")), **own}
            elif isinstance(own.get("allOf"), list):
                schema = self._merge(own, own.pop("allOf"))
            elif "type" not in own and "properties" not in own and (branches := own.get("oneOf") or own.get("anyOf")):
                present = [branch for branch in branches if not self._is_only_null(branch)]
                if len(present) != 1:
                    return {}  # one of several: it is a text, without a default
                nullable = {"nullable": True} if len(present) < len(branches) else {}
                schema = {**self._resolve(present[0]), **nullable, **_without(own, "oneOf", "anyOf")}
            else:
                return own
        return {}

    def _is_only_null(self, branch: Any) -> bool:
        """Return whether a branch takes null only; a title or a description does not count."""
        for _ in range(100):
            if not isinstance(branch, dict) or "$ref" not in branch:
                break
            branch = self._follow(branch["$ref"])
        if not isinstance(branch, dict):
            return False
        names = branch.get("type")
        allowed = branch.get("enum", [branch["const"]] if "const" in branch else [])
        return names in ("null", ["null"]) or allowed == [None]

    def _merge(self, schema: dict[str, Any], branches: list[Any]) -> dict[str, Any]:
        merged = dict(schema)
        for branch in map(self._resolve, branches):
            for name, part in branch.items():
                before = merged.get(name)
                if name == "properties" and isinstance(before, dict):
                    merged[name] = {**before, **part}
                elif name == "required" and isinstance(before, list):
                    merged[name] = [*before, *part]
                else:
                    merged.setdefault(name, part)
        return merged

    def _follow(self, reference: str) -> dict[str, Any]:
        """Return what a reference leads to; an empty schema if that is nowhere."""
        name, _, pointer = reference.partition("#")
        part = self.documents.get(name, {})
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            part = part.get(step, {}) if isinstance(part, dict) else {}
        return part if isinstance(part, dict) else {}


def _takes_null(schema: dict[str, Any]) -> bool:
    type = schema.get("type")
    names = type if isinstance(type, list) else [type]
    return "null" in names or None in names or schema.get("nullable") is True or None in (schema.get("enum") or ())


def _without(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: part for name, part in schema.items() if name not in names}
