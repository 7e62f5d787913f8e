"""JSON Schema told as a schema of Connect, as Confluent's JsonSchemaData does, from draft-04 to 2020-12.

Where that has no column, ours says what the value is all the same: what may be anything, or nests in itself, is a text
of its JSON. A property that is not required may be null; one that the schema does not name is left out, and told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import msgspec

from s3lake.schema.connect import SchemaError
from s3lake.schema.types import MOST_LEVELS

Adapt = Callable[[Any, str, list[str]], Any]
"""Takes a decoded value, its path, and the paths of what is left out, which it adds to; gives Connect's payload."""

_LOGICAL = "org.apache.kafka.connect.data."
_FULL_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_NUMBERS = {"float32": "float", "float64": "double", "float": "float", "double": "double"}
_INTEGERS = ("int8", "int16", "int32", "int64")
_ANNOTATIONS = ("title", "description", "default", "connect.index")
_PARTS = 10_000
_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True)
class Part:
    """A part of a JSON Schema, told as Connect's.

    Attributes:
        document: Connect's schema.
        adapt: makes its payload of a value; None where it is the value.
        plain: whether the payload is the value itself, unless something is left out of it.
    """

    document: dict[str, Any]
    adapt: Adapt | None = None
    plain: bool = True


def told(text: str, references: Mapping[str, str]) -> Part | None:
    """A registered schema; None where a value may be anything.

    Args:
        text: the schema.
        references: name -> text of what it refers to.

    Raises:
        SchemaError: it is none, or has a reference that leads nowhere.
    """
    named = {name: _parsed(body, f"reference {name}") for name, body in references.items()}
    root = _parsed(text, "the schema")
    try:
        teller = _Teller(named)
        teller.learn("", root)
        part, optional = teller.part(root, "", "the schema", ())
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError("it is nested too deeply, or refers to itself without end") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SchemaError(f"a keyword of it holds what it cannot hold: {error}") from None
    return None if part is _ANYTHING else replace(part, document={**part.document, "optional": optional})


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(f"{what} is no JSON: {text[:80]!r}") from None


@dataclass
class _Teller:
    """Documents by the names and the ids that references may call them by."""

    named: dict[str, Any]
    by_address: dict[str, Any] = field(default_factory=dict)
    parts: int = 0

    def __post_init__(self) -> None:
        for name, document in self.named.items():
            self.learn(name, document)

    def learn(self, address: str, document: Any) -> None:
        """Note a document, and every part of it that has an id or an anchor of its own."""
        self.by_address.setdefault(address, document)
        waiting = [(document, address)]
        while waiting:
            inner, base = waiting.pop()
            if isinstance(inner, dict):
                for word in ("$id", "id"):
                    if isinstance(inner.get(word), str):
                        base = urljoin(base, inner[word])
                        self.by_address.setdefault(base.removesuffix("#"), inner)
                if isinstance(inner.get("$anchor"), str):
                    self.by_address.setdefault(f"{urldefrag(base)[0]}#{inner['$anchor']}", inner)
                waiting += [(part, base) for part in inner.values()]
            elif isinstance(inner, list):
                waiting += [(part, base) for part in inner]

    def part(self, schema: Any, base: str, path: str, inside: tuple[int, ...]) -> tuple[Part, bool]:
        """A part of a schema, and whether it may be null; `base` is the address of the document that it stands in."""
        self._count()
        if isinstance(schema, bool):
            return _ANYTHING, True
        if not isinstance(schema, dict):
            raise SchemaError(f"{path} is no JSON Schema: {schema!r:.80}")
        if id(schema) in inside or len(inside) > MOST_LEVELS:
            return _ANYTHING, True
        inside = (*inside, id(schema))
        base = urljoin(base, _id(schema)) if _id(schema) else base
        if "$ref" in schema:
            target, its_base = self._referred(schema["$ref"], base, path)
            part, optional = self.part(target, its_base, path, inside)
            notes = {name: schema[name] for name in _ANNOTATIONS if name in schema}
            return _noted(part, notes), optional
        if isinstance(schema.get("allOf"), list):
            return self.part(self._merged(schema, base, path), base, path, inside)
        branches = _branches(schema)
        if branches is not None:
            return self._union(schema, branches, base, path, inside)
        return self._single(schema, base, path, inside), _takes_null(schema)

    def _count(self) -> None:
        self.parts += 1
        if self.parts > _PARTS:
            raise SchemaError(f"the schema has more than {_PARTS} parts")

    def _referred(self, reference: Any, base: str, path: str) -> tuple[Any, str]:
        """What a reference leads to, and the address of the document that it stands in."""
        if not isinstance(reference, str):
            raise SchemaError(f"{path}: $ref is {reference!r:.80}: a text is expected")
        for address in (urljoin(base, reference), reference):
            document, pointer = urldefrag(address)
            if address in self.by_address:
                return self.by_address[address], document
            if document in self.by_address:
                target = _at(self.by_address[document], unquote(pointer))
                if target is not None:
                    return target, document
        raise SchemaError(f"{path} refers to {reference!r}, which neither the schema nor its references have")

    def _merged(self, schema: dict[str, Any], base: str, path: str) -> dict[str, Any]:
        """A schema and all that `allOf` adds to it as one."""
        merged = {name: value for name, value in schema.items() if name != "allOf"}
        for branch in schema["allOf"]:
            while isinstance(branch, dict) and "$ref" in branch:
                self._count()  # a reference may lead to itself
                branch, base = self._referred(branch["$ref"], base, path)
            if isinstance(branch, dict) and isinstance(branch.get("allOf"), list):
                branch = self._merged(branch, base, path)
            for name, value in branch.items() if isinstance(branch, dict) else ():
                if name == "properties" and isinstance(merged.get(name), dict):
                    merged[name] = {**merged[name], **value}
                elif name == "required" and isinstance(merged.get(name), list):
                    merged[name] = [*merged[name], *value]
                else:
                    merged.setdefault(name, value)
        return merged

    def _union(
        self, schema: dict[str, Any], branches: list[Any], base: str, path: str, inside: tuple[int, ...]
    ) -> tuple[Part, bool]:
        """What is one of several is a text of its JSON; of one and null it is that one, which may be null."""
        present = [branch for branch in branches if branch != {"type": "null"}]
        told_branches = [self.part(branch, base, path, inside) for branch in present]
        optional = len(present) < len(branches) or any(nullable for _, nullable in told_branches)
        parts = [part for part, _ in told_branches]
        notes = {name: schema[name] for name in _ANNOTATIONS if name in schema}
        if not parts:
            return _ANYTHING, True
        if len(parts) == 1:
            return _noted(parts[0], notes), optional
        return _ANYTHING, optional

    def _single(self, schema: dict[str, Any], base: str, path: str, inside: tuple[int, ...]) -> Part:
        match type_name := _type_of(schema):
            case "object":
                return self._object(schema, base, path, inside)
            case "array":
                return self._array(schema, base, path, inside)
            case "boolean" | "integer" | "number" | "string":
                return Part(_described(schema, _primitive(schema, type_name)))
        return _ANYTHING

    def _array(self, schema: dict[str, Any], base: str, path: str, inside: tuple[int, ...]) -> Part:
        items = schema.get("items")
        if not isinstance(items, dict) or "prefixItems" in schema:
            return _ANYTHING  # items of several types by their places, or of any
        item, nullable = self.part(items, base, f"{path}[]", inside)
        inner = item.adapt

        def adapt(value: Any, at: str, left_out: list[str]) -> Any:
            if not isinstance(value, list) or inner is None:
                return value
            return [None if one is None else inner(one, f"{at}[]", left_out) for one in value]

        document = {"type": "array", "items": {**item.document, "optional": nullable}}
        return Part(_described(schema, document), adapt if inner else None, item.plain)

    def _object(self, schema: dict[str, Any], base: str, path: str, inside: tuple[int, ...]) -> Part:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        if isinstance(more, dict) and (not properties or schema.get("connect.type") == "map"):
            return self._map(schema, more, base, path, inside)
        if not isinstance(properties, dict) or not properties:
            return _ANYTHING
        required = schema.get("required") if isinstance(schema.get("required"), list) else []
        parts: dict[str, Part] = {}
        fields = []
        for name, described in _ordered(properties):
            part, nullable = self.part(described, base, f"{path}.{name}", inside)
            parts[name] = part
            fields.append({**part.document, "field": name, "optional": nullable or name not in (required or [])})
        closed = more is False

        def adapt(value: Any, at: str, left_out: list[str]) -> Any:
            if not isinstance(value, dict):
                return value
            adapted = {}
            for name, inner in value.items():
                here, part = f"{at}.{name}" if at else name, parts.get(name)
                if part is not None:
                    adapted[name] = inner if inner is None or part.adapt is None else part.adapt(inner, here, left_out)
                elif closed:
                    adapted[name] = inner
                elif inner is not None:
                    left_out.append(here)
            return adapted

        document: dict[str, Any] = {"type": "struct", "fields": fields}
        if isinstance(schema.get("title"), str) and _FULL_NAME.fullmatch(schema["title"]):
            document["name"] = schema["title"]
        plain = all(part.plain for part in parts.values())
        return Part(_described(schema, document), adapt, plain)

    def _map(self, schema: dict[str, Any], more: Any, base: str, path: str, inside: tuple[int, ...]) -> Part:
        value, nullable = self.part(more, base, f"{path}{{}}", inside)
        inner = value.adapt

        def adapt(found: Any, at: str, left_out: list[str]) -> Any:
            if not isinstance(found, dict) or inner is None:
                return found
            return {name: None if one is None else inner(one, f"{at}[]", left_out) for name, one in found.items()}

        document = {"type": "map", "keys": {"type": "string"}, "values": {**value.document, "optional": nullable}}
        return Part(_described(schema, document), adapt if inner else None, value.plain)


def _id(schema: dict[str, Any]) -> str:
    address = schema.get("$id", schema.get("id"))
    return address if isinstance(address, str) else ""


def _at(document: Any, pointer: str) -> Any:
    """The part of a document that a pointer names; None where there is none."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document


def _branches(schema: dict[str, Any]) -> list[Any] | None:
    """The types that a value may be of, each as a schema; None where it is of one."""
    if isinstance(schema.get("type"), list):
        types = [name for name in schema["type"] if name != "null"]
        nulls = [{"type": "null"}] if len(types) < len(schema["type"]) else []
        return [*({**schema, "type": name} for name in types), *nulls]
    if "type" in schema or "properties" in schema:
        return None  # what stands beside it says more of the same value, and gives it no other type
    for word in ("oneOf", "anyOf"):
        if isinstance(schema.get(word), list):
            return list(schema[word])
    return None


def _type_of(schema: dict[str, Any]) -> str | None:
    name = schema.get("type")
    if isinstance(name, str):
        return name
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = [value for value in schema.get("enum", [schema.get("const")]) if value is not None]
    fitting = [name for name in ("boolean", "integer", "number", "string") if values and all(map(_TESTS[name], values))]
    return fitting[0] if fitting else None


def _takes_null(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "null" or _type_of(schema) is None or None in schema.get("enum", [])


def _primitive(schema: dict[str, Any], type_name: str) -> dict[str, Any]:
    """Connect's type of a number, a text or a truth value; `connect.type` says more than JSON Schema has words for."""
    connect, title = schema.get("connect.type"), schema.get("title")
    if connect == "bytes" and title == f"{_LOGICAL}Decimal":
        return {"type": "bytes", "name": title, "parameters": schema.get("connect.parameters") or {}}
    document: dict[str, Any]
    if type_name == "integer":
        document = {"type": connect if connect in _INTEGERS else "int64"}
    elif type_name == "number":
        document = {"type": connect if connect in _INTEGERS else _NUMBERS.get(str(connect), "double")}
    else:
        document = {"type": "bytes" if type_name == "string" and connect == "bytes" else type_name}
    is_time = isinstance(title, str) and title.startswith(_LOGICAL) and document["type"] in ("int32", "int64")
    return {**document, "name": title} if is_time else document


def _described(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    notes = {
        "default": schema.get("default"),
        "doc": schema.get("description"),
        "version": schema.get("connect.version"),
    }
    return {**document, **{name: value for name, value in notes.items() if value is not None}}


def _noted(part: Part, notes: dict[str, Any]) -> Part:
    """A part with what is said where it is referred to."""
    return part if part is _ANYTHING or not notes else replace(part, document=_described(notes, part.document))


def _ordered(properties: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Properties by `connect.index` where they have one, as Confluent orders them; else as they stand."""

    def place(numbered: tuple[int, tuple[str, Any]]) -> int:
        number, (_, described) = numbered
        index = described.get("connect.index") if isinstance(described, dict) else None
        return index if isinstance(index, int) else number

    return (named for _, named in sorted(enumerate(properties.items()), key=place))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: not isinstance(value, bool | str | list | dict) and value is not None,
    "string": lambda value: isinstance(value, str),
}


def _as_text(value: Any, _path: str, _left_out: list[str]) -> str:
    return _encode(value).decode()


_ANYTHING = Part({"type": "string"}, _as_text, plain=False)
"""What may be anything: a text of its JSON."""
