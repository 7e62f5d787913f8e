"""The parts of JSON Schemas: where references lead, and what several parts together state about one value."""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from s3lake.records.schema.connect_schema import SchemaError

_MOST_PARTS = 10_000
_BESIDE_REFERENCES = ("2019-09", "2020-12")
"""Drafts in which the words next to `$ref` count; in earlier ones they are ignored."""
_DESCRIBING = frozenset(
    ("additionalProperties", "allOf", "anyOf", "const", "enum", "items", "oneOf", "properties", "required", "type")
)


class SchemaPart(NamedTuple):
    """A part of a document, and the address of that document, which its references are relative to."""

    schema: Any
    base: str


@dataclass(frozen=True)
class SchemaParts:
    """Everything that one value has to fit."""

    all: tuple[SchemaPart, ...]

    def __getitem__(self, at: int) -> SchemaPart:
        return self.all[at]


@dataclass
class Documents:
    """Documents by the names and the ids that references may call them by.

    Attributes:
        named: what a schema refers to, by names.
        with_siblings: whether the words next to `$ref` count.
    """

    named: dict[str, Any]
    with_siblings: bool
    by_address: dict[str, Any] = field(default_factory=dict)
    parts: int = 0

    @classmethod
    def parse(cls, text: str, references: Mapping[str, str]) -> tuple[Documents, Any]:
        """Return the documents of a schema and of all that it refers to, and the schema.

        Raises:
            SchemaError: one of them is not JSON.
        """
        named = {name: _parse(body, f"reference {name}") for name, body in references.items()}
        root = _parse(text, "the schema")
        draft = str(root.get("$schema")) if isinstance(root, dict) else ""
        documents = cls(named, any(name in draft for name in _BESIDE_REFERENCES))
        for name, document in (*named.items(), ("", root)):
            documents.learn(name, document)
        return documents, root

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

    def count(self) -> None:
        """Count one more part.

        Raises:
            SchemaError: there are too many.
        """
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise SchemaError(f"the schema has more than {_MOST_PARTS} parts")

    def follow(self, part: SchemaPart, path: str) -> SchemaParts | SchemaPart:
        """Return the target of a part that is a reference, with the words next to it if these count."""
        schema, base = part
        target = self._find_target(schema["$ref"], base, path)
        if self.with_siblings and not _DESCRIBING.isdisjoint(schema):
            return SchemaParts(
                (SchemaPart({word: value for word, value in schema.items() if word != "$ref"}, base), target)
            )
        return target

    def _find_target(self, reference: Any, base: str, path: str) -> SchemaPart:
        self.count()  # a reference may lead to itself
        if not isinstance(reference, str):
            raise SchemaError(f"{path}: $ref is {reference!r:.80}: a text is expected")
        for address in (urljoin(base, reference), reference):
            document, pointer = urldefrag(address)
            if address in self.by_address:
                return SchemaPart(self.by_address[address], document)
            if document in self.by_address:
                target = _follow_pointer(self.by_address[document], unquote(pointer))
                if target is not None:
                    return SchemaPart(target, document)
        raise SchemaError(f"{path} refers to {reference!r}, which neither the schema nor its references have")

    def merge(self, parts: Sequence[SchemaPart], path: str) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Return what parts, and all that their `allOf` adds, state together; and the identities of all of them.

        The schemas within it are `SchemaParts`, each with the address of its own document. Of two words that cannot
        both be meant the first counts.
        """
        merged: dict[str, Any] = {}
        seen: list[int] = []
        for schema, base in self._list_parts(parts, path):
            seen.append(id(schema))
            for word, value in schema.items() if isinstance(schema, dict) else ():
                before = merged.get(word)
                match word, value:
                    case "properties", dict():
                        earlier = before if isinstance(before, dict) else {}
                        merged[word] = {
                            **earlier,
                            **{name: _join(earlier.get(name), part, base) for name, part in value.items()},
                        }
                    case "items" | "additionalProperties", dict():
                        merged[word] = (
                            _join(before, value, base) if before in (None, True) or _is_parts(before) else before
                        )
                    case "oneOf" | "anyOf", list():
                        merged.setdefault(word, [_join(None, branch, base) for branch in value])
                    case "required", list():
                        merged[word] = [*before, *value] if isinstance(before, list) else value
                    case "type", _ if before is not None:
                        merged[word] = _intersect_types(before, value)
                    case "allOf", list():
                        pass
                    case _:
                        merged.setdefault(word, value)
        return merged, tuple(seen)

    def _list_parts(self, parts: Sequence[SchemaPart], path: str) -> Iterator[SchemaPart]:
        """Yield parts, each before the ones that its `allOf` adds, and what a reference leads to instead of it."""
        for schema, base in parts:
            self.count()
            if not isinstance(schema, dict):
                continue
            base = urljoin(base, id_of(schema)) if id_of(schema) else base
            if "$ref" in schema:
                target = self.follow(SchemaPart(schema, base), path)
                yield from self._list_parts(target.all if isinstance(target, SchemaParts) else [target], path)
                continue
            yield SchemaPart(schema, base)
            if isinstance(schema.get("allOf"), list):
                yield from self._list_parts([SchemaPart(branch, base) for branch in schema["allOf"]], path)


def id_of(schema: dict[str, Any]) -> str:
    """Return the id of a schema, an empty text without one."""
    address = schema.get("$id", schema.get("id"))
    return address if isinstance(address, str) else ""


def _parse(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_float=decimal.Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        raise SchemaError(f"{what} is not JSON: {text[:80]!r}") from None


def _is_parts(value: Any) -> bool:
    return isinstance(value, SchemaParts)


def _join(before: Any, schema: Any, base: str) -> SchemaParts:
    return SchemaParts((*(before.all if isinstance(before, SchemaParts) else ()), SchemaPart(schema, base)))


def _intersect_types(first: Any, second: Any) -> Any:
    """Return the types that a value may have by both; the first one's if it could have none."""
    ours, theirs = (names if isinstance(names, list) else [names] for names in (first, second))
    both = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    if "integer" in theirs and "number" in ours and "integer" not in both:
        both.append("integer")
    if not both:
        return first
    return both[0] if len(both) == 1 else both


def _follow_pointer(document: Any, pointer: str) -> Any:
    """Return the part of a document that a pointer names. Return None if it has no such part."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            document = document[int(step)] if step.isdecimal() and int(step) < len(document) else None
        else:
            document = document.get(step) if isinstance(document, dict) else None
    return document
