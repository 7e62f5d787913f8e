"""JSON Schema read as a schema of Connect, as Confluent's JsonSchemaData does, from draft-04 to 2020-12.

If Confluent has no column for a value, s3lake still keeps it: a value that may be anything, or nests in itself, is a
text of its JSON. A property that is not required may be null; one that the schema does not have is left out, and
counted.
"""

from __future__ import annotations

import decimal
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import msgspec

from s3lake.records.schema.columns import time_units
from s3lake.records.schema.columns.types import MOST_LEVELS
from s3lake.records.schema.columns.union import join_path
from s3lake.records.schema.connect_schema import SchemaError, compile_schema
from s3lake.records.schema.json_schema_parts import Documents, SchemaPart, SchemaParts, id_of

Document = dict[str, Any]
"""A schema of Connect: `anything` marks a text of JSON, and `closed` is whether other properties are errors."""

_ANYTHING: Document = {"type": "string", "anything": True}
_TIMES = time_units.CONNECT | time_units.DEBEZIUM
_LOGICAL = "org.apache.kafka.connect.data."
_FULL_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_NUMBERS = {"float32": "float", "float64": "double", "float": "float", "double": "double"}
_INTEGERS = ("int8", "int16", "int32", "int64")
_MOST_DIGITS = 20
_encode = msgspec.json.Encoder(decimal_format="number").encode


def to_connect(text: str, references: Mapping[str, str]) -> Document | None:
    """Return a registered schema as one of Connect. Return None if a value may be anything.

    Args:
        references: name -> text of what it refers to.

    Raises:
        SchemaError: it is not valid, or has a reference that leads nowhere.
    """
    try:
        documents, root = Documents.parse(text, references)
        document, optional = _SchemaReader(documents).read(root, "", "the schema", ())
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError("it is nested too deeply, or refers to itself without end") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SchemaError(f"a keyword of it holds what it cannot hold: {error}") from None
    return None if "anything" in document else _leave_out_misfits({**document, "optional": optional})


def has_anything(document: Document) -> bool:
    """Return whether a value may have parts that are texts of their JSON, so that it is never the payload itself."""
    inner = [*document.get("fields", ()), *(document[name] for name in ("items", "values") if name in document)]
    return "anything" in document or any(map(has_anything, inner))


def has_default(document: Document) -> bool:
    """Return whether a value may lack something that has a default."""
    inner = [*document.get("fields", ()), *(document[name] for name in ("items", "values") if name in document)]
    return document.get("default") is not None or any(map(has_default, inner))


def adapt_defaults(document: Document) -> Document:
    """Return the document with defaults as payloads have them."""
    changed = _change_inner(document, adapt_defaults)
    return {**changed, "default": adapt(document["default"], document, set())} if "default" in document else changed


def _leave_out_misfits(document: Document) -> Document:
    """Return the document without defaults that its values cannot be: JSON Schema does not check them."""
    changed = _change_inner(document, _leave_out_misfits)
    default = changed.pop("default", None)
    if default is None:
        return changed
    compiled = compile_schema(_encode({**adapt_defaults(changed), "optional": False}), tabular=True)
    if not isinstance(compiled, str):  # what else is wrong with it is reported with its place
        try:
            compiled[1](_encode(adapt(default, changed, set())))
        except msgspec.ValidationError:
            return changed
    return {**changed, "default": default}


def _change_inner(document: Document, change: Callable[[Document], Document]) -> Document:
    """Return a copy of the document in which what is within it is changed."""
    changed = dict(document)
    for name in ("items", "values"):
        if name in document:
            changed[name] = change(document[name])
    if "fields" in document:
        changed["fields"] = [change(field) for field in document["fields"]]
    return changed


def fill_json_defaults(value: Any, document: Document, *, null_to_default: bool) -> Any:
    """Return a decoded value with the defaults of what it lacks, as `connect.compile_schema` reads it.

    What lacks nothing is the same object.
    """

    def fill(value: Any, document: Document) -> Any:
        if value is None:
            keeps_null = document["optional"] and not null_to_default
            default = None if keeps_null else document.get("default")
            return None if default is None else fill(default, document)
        match document["type"], value:
            case "array", list():
                items = [fill(item, document["items"]) for item in value]
                return items if any(map(operator.is_not, items, value)) else value
            case "map", dict():
                filled = {name: fill(inner, document["values"]) for name, inner in value.items()}
            case "struct", dict():
                filled = dict(value)
                for field in document["fields"]:
                    name, default = field["field"], field.get("default")
                    if name in value:
                        filled[name] = fill(value[name], field)
                    elif default is not None:
                        filled[name] = fill(default, field)
            case _:
                return value
        return filled if filled.keys() != value.keys() or _differ(filled, value) else value

    return fill(value, document)


def _differ(filled: dict[str, Any], value: dict[str, Any]) -> bool:
    return any(filled[name] is not inner for name, inner in value.items())


def adapt(value: Any, document: Document, left_out: set[str], path: str = "") -> Any:
    """Return Connect's payload of a decoded value. Adds to `left_out` the paths that the schema does not have."""
    if value is None:
        return None
    if "anything" in document:
        return _encode(value).decode()
    match document["type"], value:
        case "array", list():
            return [adapt(item, document["items"], left_out, f"{path}[]") for item in value]
        case "map", dict():
            return {name: adapt(inner, document["values"], left_out, f"{path}[]") for name, inner in value.items()}
        case "struct", dict():
            fields, payload = {field["field"]: field for field in document["fields"]}, {}
            for name, inner in value.items():
                here = join_path(path, name)
                if name in fields:
                    payload[name] = adapt(inner, fields[name], left_out, here)
                elif document["closed"]:
                    payload[name] = inner
                elif inner is not None:
                    left_out.add(here)
            return payload
    return _to_integer(value) if document["type"] in _INTEGERS else value


def _to_integer(value: Any) -> Any:
    """Return a number without a fraction as an integer: `1.0` is one by JSON Schema's specification, from draft-06."""
    if isinstance(value, decimal.Decimal) and abs(value.adjusted()) < _MOST_DIGITS and value == int(value):
        return int(value)
    return value


@dataclass(frozen=True)
class _SchemaReader:
    """Reads the parts of a schema."""

    documents: Documents

    def read(self, schema: Any, base: str, path: str, inside: tuple[int, ...]) -> tuple[Document, bool]:
        """Read a part of a schema. Return whether it may be null, too; `base` is the address of its document."""
        self.documents.count()
        if isinstance(schema, SchemaParts):
            if len(schema.all) > 1:
                merged, parts = self.documents.merge(schema.all, path)
                if not set(parts).isdisjoint(inside):
                    return _ANYTHING, True
                return self.read(merged, base, path, (*inside, *parts))
            schema, base = schema[0]
        if isinstance(schema, bool):
            return _ANYTHING, True
        if not isinstance(schema, dict):
            raise SchemaError(f"{path} is not a JSON Schema: {schema!r:.80}")
        if id(schema) in inside or len(inside) > MOST_LEVELS:
            return _ANYTHING, True
        inside = (*inside, id(schema))
        base = urljoin(base, id_of(schema)) if id_of(schema) else base
        if "$ref" in schema:
            target = self.documents.follow(SchemaPart(schema, base), path)
            schema_of, base_of = target if isinstance(target, SchemaPart) else (target, base)
            document, optional = self.read(schema_of, base_of, path, inside)
            return _add_notes(schema, document), optional
        if isinstance(schema.get("allOf"), list):
            merged, _ = self.documents.merge([SchemaPart(schema, base)], path)
            return self.read(merged, base, path, inside)
        branches = _list_branches(schema)
        if branches is not None:
            return self._read_union(schema, branches, base, path, inside)
        may_be_null = _takes_only_null(schema) or _type_of(schema) is None or None in schema.get("enum", [])
        return self._read_single(schema, base, path, inside), may_be_null

    def _read_union(
        self, schema: dict[str, Any], branches: list[Any], base: str, path: str, inside: tuple[int, ...]
    ) -> tuple[Document, bool]:
        """Read what is one of several, a text of its JSON; of one and null it is that one, which may be null."""
        present = [branch for branch in branches if not self._is_null(branch, base, path)]
        read = [self.read(branch, base, path, inside) for branch in present]
        optional = not read or len(present) < len(branches) or any(nullable for _, nullable in read)
        return _add_notes(schema, read[0][0] if len(read) == 1 else _ANYTHING), optional

    def _is_null(self, branch: Any, base: str, path: str) -> bool:
        """Return whether a branch, or what it refers to, is null alone, whatever words describe it."""
        part = branch[0] if isinstance(branch, SchemaParts) else SchemaPart(branch, base)
        while isinstance(part, SchemaPart) and isinstance(part.schema, dict) and "$ref" in part.schema:
            target = self.documents.follow(part, path)
            part = target if isinstance(target, SchemaPart) else target[1]
        return isinstance(part.schema, dict) and _takes_only_null(part.schema)

    def _read_single(self, schema: dict[str, Any], base: str, path: str, inside: tuple[int, ...]) -> Document:
        match type_name := _type_of(schema):
            case "object":
                return _add_notes(schema, self._read_object(schema, base, path, inside))
            case "array":
                items = schema.get("items")
                if not isinstance(items, dict | SchemaParts) or "prefixItems" in schema:
                    return _add_notes(schema, _ANYTHING)  # items of several types by their places, or of any
                item = self._read_inner(items, base, f"{path}[]", inside)
                return _add_notes(schema, {"type": "array", "items": item})
            case "boolean" | "integer" | "number" | "string":
                return _add_notes(schema, _primitive(schema, type_name))
        return _add_notes(schema, _ANYTHING)

    def _read_inner(self, schema: Any, base: str, path: str, inside: tuple[int, ...]) -> Document:
        document, optional = self.read(schema, base, path, inside)
        return {**document, "optional": optional}

    def _read_object(self, schema: dict[str, Any], base: str, path: str, inside: tuple[int, ...]) -> Document:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        if isinstance(more, dict | SchemaParts) and (not properties or schema.get("connect.type") == "map"):
            values = self._read_inner(more, base, f"{path}{{}}", inside)
            return {"type": "map", "keys": {"type": "string"}, "values": values}
        if not isinstance(properties, dict):
            properties = {}
            if more is not False or "patternProperties" in schema:
                return _ANYTHING
        if not properties and (more is True or "patternProperties" in schema):
            return _ANYTHING
        required = schema["required"] if isinstance(schema.get("required"), list) else []
        patterns = schema.get("patternProperties")  # other properties, which `additionalProperties` does not cover
        fields = []
        for name, described in _sort_properties(properties):
            inner = self._read_inner(described, base, f"{path}.{name}", inside)
            fields.append({**inner, "field": name, "optional": inner["optional"] or name not in required})
        document = {"type": "struct", "fields": fields, "closed": more is False and not patterns}
        if isinstance(schema.get("title"), str) and _FULL_NAME.fullmatch(schema["title"]):
            document["name"] = schema["title"]
        return document


def _list_branches(schema: dict[str, Any]) -> list[Any] | None:
    """Return the types that a value may have, each as a schema. Return None if it has one."""
    if isinstance(schema.get("type"), list):
        types = [name for name in schema["type"] if name != "null"]
        nulls = [{"type": "null"}] if len(types) < len(schema["type"]) else []
        return [*({**schema, "type": name} for name in types), *nulls]
    if "type" in schema or "properties" in schema:
        return None  # the words next to it describe the same value, and give it no other type
    for word in ("oneOf", "anyOf"):
        if isinstance(schema.get(word), list):
            return list(schema[word])
    return None


def _takes_only_null(schema: dict[str, Any]) -> bool:
    is_null_in_words = "const" in schema and schema["const"] is None
    return schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None] or is_null_in_words


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


def _primitive(schema: dict[str, Any], type_name: str) -> dict[str, Any]:
    """Connect's type of a number, a text or a truth value; `connect.type` is more exact than JSON Schema."""
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
    is_time = (document["type"], title) in _TIMES
    return {**document, "name": title} if is_time else document


def _add_notes(schema: dict[str, Any], document: Document) -> Document:
    """Return the document with what the schema, or a reference to it, has besides types."""
    notes = {} if schema.get("default") is None else {"default": schema["default"]}
    if isinstance(schema.get("description"), str):
        # Half a character in a description does not matter to the values.
        notes["doc"] = schema["description"].encode(errors="replace").decode()
    return {**document, **notes}


def _sort_properties(properties: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield properties by `connect.index` if they have one, as Confluent orders them; else as they are."""

    def place(numbered: tuple[int, tuple[str, Any]]) -> int:
        number, (_, described) = numbered
        described = described[0].schema if isinstance(described, SchemaParts) else described
        index = described.get("connect.index") if isinstance(described, dict) else None
        return index if isinstance(index, int) else number

    return (named for _, named in sorted(enumerate(properties.items()), key=place))


_TESTS: dict[str, Callable[[Any], bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: not isinstance(value, bool | str | list | dict) and value is not None,
    "string": lambda value: isinstance(value, str),
}
