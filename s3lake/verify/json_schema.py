"""Values with a JSON Schema told as Kafka Connect's JSON with a schema: what columns should hold of them."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from s3lake.schema.registry import Connection, client
from s3lake.verify import connect

_HEADER = 5
_NOTHING: Any = object()
_PLAIN = {"boolean": "boolean", "string": "string", "integer": "int64", "number": "double"}
_DEPTH = 32


class _Place(NamedTuple):
    """A part of a schema: what stands there, the address of its document, and the parts around it."""

    schema: Any
    base: str
    around: tuple[int, ...] = ()


class _Documents:
    """Every document that the schema may refer to."""

    def __init__(self, text: str, references: dict[str, str]) -> None:
        self.root = json.loads(text)
        self._by_address: dict[str, Any] = {"": self.root}
        for name, body in {**references, "": text}.items():
            document = self.root if not name else json.loads(body)
            self._by_address[name] = document
            self._note(document, name)

    def _note(self, part: Any, base: str) -> None:
        if isinstance(part, list):
            for inner in part:
                self._note(inner, base)
        if isinstance(part, dict):
            own = part.get("$id") or part.get("id")
            if isinstance(own, str):
                base = urljoin(base, own)
                self._by_address[base.rstrip("#")] = part
            if isinstance(part.get("$anchor"), str):
                self._by_address[urldefrag(base)[0] + "#" + part["$anchor"]] = part
            for inner in part.values():
                self._note(inner, base)

    def at(self, place: _Place) -> _Place | None:
        """The part with its references followed and what `allOf` adds; None where it may be anything."""
        schema, base, around = place
        if not isinstance(schema, dict) or id(schema) in around or len(around) > _DEPTH:
            return None
        around = (*around, id(schema))
        own = schema.get("$id") or schema.get("id")
        base = urljoin(base, own) if isinstance(own, str) else base
        if "$ref" in schema:
            inner = self.at(_Place(*self._target(schema["$ref"], base), around))
            if inner is None:
                return None
            default = {"default": schema["default"]} if "default" in schema else {}
            return inner._replace(schema={**inner.schema, **default})
        if isinstance(schema.get("allOf"), list):
            whole = {name: value for name, value in schema.items() if name != "allOf"}
            for branch in schema["allOf"]:
                self._add(whole, branch, base)
            return self.at(_Place(whole, base, around))
        return _Place(schema, base, around)

    def _add(self, whole: dict[str, Any], branch: Any, base: str) -> None:
        if isinstance(branch, dict) and "$ref" in branch:
            self._add(whole, *self._target(branch["$ref"], base))
            return
        for name, value in branch.items() if isinstance(branch, dict) else ():
            if name == "allOf":
                for inner in value:
                    self._add(whole, inner, base)
            elif name == "properties":
                whole[name] = {**whole.get(name, {}), **value}
            elif name == "required":
                whole[name] = [*whole.get(name, []), *value]
            elif name not in whole:
                whole[name] = value

    def _target(self, reference: str, base: str) -> tuple[Any, str]:
        for address in (urljoin(base, reference), reference):
            if address in self._by_address:
                return self._by_address[address], urldefrag(address)[0]
            document, pointer = urldefrag(address)
            part = self._by_address.get(document, _NOTHING)
            for step in unquote(pointer).split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                part = part.get(step, _NOTHING) if isinstance(part, dict) else _NOTHING
            if part is not _NOTHING:
                return part, document
        raise LookupError(reference)


class _Told(NamedTuple):
    """Connect's schema of a part, whether it may be null, and what becomes of a value."""

    document: dict[str, Any]
    nullable: bool
    payload: Any
    is_of: Any


def told(registry: Connection, value: bytes) -> bytes:
    """A value with its schema; raises a `ValueError`, `TypeError` or `LookupError` where it has none that fits."""
    if value[:1] != b"\0" or len(value) < _HEADER:
        raise ValueError("it is not framed")
    registered = client(registry).schema(int.from_bytes(value[1:_HEADER], "big"))
    schema = _compiled(registered.text, tuple(registered.references.items()))
    payload = json.loads(value[_HEADER:], parse_float=Decimal)
    if schema is None:
        return b'{"schema":null,"payload":%s}' % value[_HEADER:]
    written = connect.exact(None if payload is None else schema.payload(payload))
    document = {**schema.document, "optional": schema.nullable}
    return b'{"schema":%s,"payload":%s}' % (json.dumps(document).encode(), written)


@lru_cache(4096)
def _compiled(text: str, references: tuple[tuple[str, str], ...]) -> _Told | None:
    documents = _Documents(text, dict(references))
    schema = _of(documents, _Place(documents.root, ""))
    return None if schema.document == _ANY.document and schema.payload is _ANY.payload else schema


def _of(documents: _Documents, place: _Place) -> _Told:
    here = documents.at(place)
    if here is None:
        return _ANY
    schema = here.schema
    names = schema.get("type")
    if isinstance(names, list):
        several = [{**schema, "type": name} if name != "null" else {"type": "null"} for name in names]
        return _several(documents, here, several)
    if names is None and "properties" not in schema:
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list):
                return _several(documents, here, schema[word])
    match _name(schema):
        case "object":
            return _object(documents, here)
        case "array":
            items = schema.get("items")
            if not isinstance(items, dict) or "prefixItems" in schema:
                return _ANY
            item = _of(documents, here._replace(schema=items))
            document = {"type": "array", "items": {**item.document, "optional": item.nullable}}
            return _Told(_defaulted(schema, document), False, partial(_each, item), _is(list))
        case "boolean" | "string" | "integer" | "number" as name:
            return _scalar(schema, name)
    return _ANY


def _several(documents: _Documents, here: _Place, branches: list[Any]) -> _Told:
    present = [_of(documents, here._replace(schema=one)) for one in branches if one != {"type": "null"}]
    nullable = len(present) < len(branches) or any(one.nullable for one in present)
    if len(present) == 1:
        return present[0]._replace(document=_defaulted(here.schema, present[0].document), nullable=nullable)
    if not present or any(one is _ANY for one in present):
        return _ANY
    names = [f"connect_union_field_{at}" for at in range(len(present))]

    def payload(value: Any) -> Any:
        at = next(at for at, one in enumerate(present) if one.is_of(value))
        return {names[at]: present[at].payload(value)}

    def is_of(value: Any) -> bool:
        return any(one.is_of(value) for one in present)

    members = zip(names, present, strict=True)
    fields = [{**one.document, "field": name, "optional": True} for name, one in members]
    return _Told({"type": "struct", "fields": fields}, nullable, payload, is_of)


def _object(documents: _Documents, here: _Place) -> _Told:
    schema, more = here.schema, here.schema.get("additionalProperties")
    properties = schema.get("properties") or {}
    if isinstance(more, dict) and (not properties or schema.get("connect.type") == "map"):
        inner = _of(documents, here._replace(schema=more))
        document = {"type": "map", "keys": {"type": "string"}, "values": {**inner.document, "optional": inner.nullable}}
        return _Told(_defaulted(schema, document), False, partial(_each_value, inner), _is(dict))
    if not properties:
        return _ANY
    needed = schema.get("required") if isinstance(schema.get("required"), list) else []
    place = {name: at for at, name in enumerate(properties)}
    place |= {name: one["connect.index"] for name, one in properties.items() if "connect.index" in _dict(one)}
    inside = {
        name: _of(documents, here._replace(schema=properties[name]))
        for name in sorted(properties, key=place.__getitem__)
    }
    fields = [
        {**one.document, "field": name, "optional": one.nullable or name not in needed} for name, one in inside.items()
    ]

    def payload(value: Any) -> Any:
        if more is False and value.keys() - inside.keys():
            raise ValueError("a property that the schema forbids")
        if any(value.get(name) is None and not inside[name].nullable for name in needed if name in inside):
            raise ValueError("a required property is missing")
        return {name: None if value.get(name) is None else one.payload(value[name]) for name, one in inside.items()}

    def is_of(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and not any(value.get(name) is None for name in needed if name in inside)
            and (more is not False or value.keys() <= inside.keys())
            and all(inside[name].is_of(one) for name, one in value.items() if name in inside and one is not None)
        )

    return _Told(_defaulted(schema, {"type": "struct", "fields": fields}), False, payload, is_of)


def _scalar(schema: dict[str, Any], name: str) -> _Told:
    own, title = schema.get("connect.type"), str(schema.get("title", ""))
    type_name = _PLAIN[name]
    document: dict[str, Any]
    if own == "bytes" and title.endswith("connect.data.Decimal"):
        document = {"type": "bytes", "name": title, "parameters": schema.get("connect.parameters", {})}
    else:
        allowed = {"integer": "int8 int16 int32", "number": "int8 int16 int32 int64 float32 float", "string": "bytes"}
        if own in allowed.get(name, "").split():
            type_name = str(own).replace("float32", "float")
        document = {"type": type_name}
        if title.startswith("org.apache.kafka.connect.data.") and type_name in ("int32", "int64"):
            document["name"] = title
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    test = _TESTS[name]

    def is_of(value: Any) -> bool:
        return test(value) and (values is None or value in values)

    return _Told(_defaulted(schema, document), None in (schema.get("enum") or ()), _same, is_of)


def _name(schema: dict[str, Any]) -> Any:
    if "type" in schema:
        return schema["type"]
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = [one for one in (schema.get("enum") or [schema.get("const")]) if one is not None]
    return next((name for name, test in _TESTS.items() if values and all(map(test, values))), None)


def _defaulted(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "default": schema["default"]} if schema.get("default") is not None else document


def _each(item: _Told, found: Any) -> Any:
    return [None if one is None else item.payload(one) for one in found]


def _each_value(inner: _Told, found: Any) -> Any:
    return {name: None if one is None else inner.payload(one) for name, one in found.items()}


def _same(value: Any) -> Any:
    return value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is(type: type) -> Any:
    return lambda value: isinstance(value, type)


_TESTS: dict[str, Any] = {
    "boolean": _is(bool),
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float, Decimal),
    "string": _is(str),
}
_ANY = _Told({"type": "string"}, True, lambda value: connect.exact(value).decode(), lambda _value: True)
