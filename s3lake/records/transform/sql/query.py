"""A sink's SQL as plain values, and what it makes of a value: its members, copied byte by byte or computed by Spark.

A value is taken apart into its members and never decoded further, so what the SQL does not compute keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter

import msgspec
from msgspec import Raw

_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_read_items = msgspec.json.Decoder(list[Raw]).decode
_encode_name = lru_cache(maxsize=4096)(msgspec.json.encode)

META = ("_key", "_headers", "_topic", "_partition", "_offset", "_timestamp")
"""Columns that every record has in addition to its value's fields."""

Path = tuple[str, ...]
"""A field of the value, outermost name first."""

Members = Mapping[str, Raw | bytes]
"""The encoded values of an object's fields by name."""


@dataclass(frozen=True)
class CopiedField:
    """A field of the value that the select list only names: its bytes are copied."""

    name: str
    path: Path


@dataclass(frozen=True)
class ComputedField:
    """An entry of the select list that Spark computes.

    Attributes:
        name: the name of the field that it becomes.
        number: its place in `Query.expressions`.
    """

    name: str
    number: int


@dataclass(frozen=True)
class Star:
    """`*` with what is taken out of it.

    Attributes:
        of: the object whose fields it means; the value if it is empty.
        without: fields that are left out, with their paths from there.
        replaced: expressions that take the place of fields with their names.
    """

    of: Path = ()
    without: tuple[Path, ...] = ()
    replaced: tuple[ComputedField, ...] = ()


@dataclass(frozen=True)
class Query:
    """A parsed projection and filter.

    Attributes:
        items: the select list.
        expressions: what Spark computes, in the words of the configuration.
        where: the filter; None for all records.
        leaves: fields that the expressions and the filter read; no path is within another.
        meta: columns of `META` that they read.
        fields: names of the value's fields that any part of the query names.
    """

    items: tuple[CopiedField | ComputedField | Star, ...] = (Star(),)
    expressions: tuple[str, ...] = ()
    where: str | None = None
    leaves: tuple[Path, ...] = ()
    meta: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()

    @property
    def keeps_values(self) -> bool:
        """True if values are landed as they are: there is only a filter."""
        return self.items == (Star(),)

    @property
    def computed(self) -> list[ComputedField]:
        """Every entry that Spark computes, by its number."""
        entries = [item for item in self.items if isinstance(item, ComputedField)]
        entries += chain.from_iterable(item.replaced for item in self.items if isinstance(item, Star))
        return sorted(entries, key=attrgetter("number"))

    @property
    def needs_spark(self) -> bool:
        """True if something has to be computed for each record."""
        return bool(self.expressions) or self.where is not None


@dataclass(frozen=True)
class Projection:
    """A sink's SQL as a task applies it.

    Attributes:
        query: the SQL.
        converter: the converter of values before it: `json`, or how else they are encoded.
        shapes: shape of a record (`land.sql.sql_table`) -> why Spark refuses the SQL for it; empty if it does not.
        is_full: True if records of other shapes are refused; otherwise their shapes become known and all is read again.
    """

    query: Query
    converter: str
    shapes: Mapping[str, str] = field(default_factory=dict)
    is_full: bool = False


def read_fields(value: bytes | None, converter: str) -> Members:
    """Return the fields of a value. A value that is not a JSON object is the field `value`.

    Args:
        value: the value as Kafka has it, or as transforms left it; None for a record without one.
        converter: `json`, or how else the value is encoded.
    """
    if value is None:
        return {}
    if converter == "json":
        return _read_members(value) if _is_object(value) else {"value": value.strip()}
    return {"value": msgspec.json.encode(value.decode() if converter == "string" else value)}


def find(fields: Members, path: Path) -> Raw | bytes | None:
    """Return the encoded value of a field. Return None if it, or an object on the way to it, is missing or null.

    A field of the same name comes first, else one whose name differs in case only.

    Raises:
        ValueError: the name fits several fields, or a value on the way is not an object.
    """
    name, *rest = path
    member = fields.get(name)
    if member is None:
        alike = [other for other in fields if other.lower() == name.lower()]
        if len(alike) > 1:
            raise ValueError(f"{name!r} fits the fields {', '.join(map(repr, alike))}, which differ in case only")
        member = fields[alike[0]] if alike else None
    if member is None or not rest:
        return member
    if _is_null(member):
        return None
    if not _is_object(member):
        raise ValueError(f"{name!r} is not an object, so it has no field {rest[0]!r}")
    return find(_read_members(member), tuple(rest))


def project_value(query: Query, value: bytes | None, converter: str, computed: Sequence[str]) -> bytes | None:
    """Return the value that a query makes of a record's value.

    Args:
        query: the select list.
        value: the value of the record.
        converter: see `read_fields`.
        computed: a JSON object with one field, the result, for each expression of the query.

    Raises:
        ValueError: the select list names something that the value does not have like this.
    """
    if value is None or query.keeps_values:
        return value
    fields = read_fields(value, converter)
    results = [next(iter(_read_members(one).values())) for one in computed]
    members: dict[str, Raw | bytes] = {}
    for item in query.items:
        if isinstance(item, CopiedField):
            member = find(fields, item.path)
            members[item.name] = b"null" if member is None else member
        elif isinstance(item, Star):
            members.update(_expand(item, fields, results))
        else:
            members[item.name] = results[item.number]
    return _write(members)


def _expand(star: Star, fields: Members, results: Sequence[Raw]) -> Iterator[tuple[str, Raw | bytes]]:
    """Yield the members that a star means. Names are compared without their case.

    So a field that is left out is never landed because a producer writes it differently.
    """
    if star.of:
        member = find(fields, star.of)
        if member is None or _is_null(member):
            fields = {}
        elif not _is_object(member):
            raise ValueError(f"{'.'.join(star.of)!r} is not an object, so it has no fields")
        else:
            fields = _read_members(member)
    replaced = {expression.name.lower(): expression for expression in star.replaced}
    for name, member in fields.items():
        inner = [path[1:] for path in star.without if path[0].lower() == name.lower()]
        if () in inner:
            continue
        expression = replaced.pop(name.lower(), None)
        if expression is not None:
            yield expression.name, results[expression.number]
        elif name.lower() not in {one.name.lower() for one in star.replaced}:
            yield name, _leave_out(member, inner)
    for expression in replaced.values():
        yield expression.name, results[expression.number]


def _leave_out(member: Raw | bytes, paths: Sequence[Path]) -> Raw | bytes:
    """Return a value without some of its fields, also if it is a list of objects."""
    if not paths:
        return member
    text = bytes(member).lstrip()
    if text.startswith(b"["):
        return b"[" + b",".join(bytes(_leave_out(item, paths)) for item in _read_items(member)) + b"]"
    return _write(dict(_expand(Star(without=tuple(paths)), _read_members(member), ()))) if _is_object(text) else member


def _write(members: Members) -> bytes:
    return b"{" + b",".join(_encode_name(name) + b":" + bytes(member) for name, member in members.items()) + b"}"


def _is_object(text: Raw | bytes) -> bool:
    return bytes(text).lstrip(b" \t\n\r").startswith(b"{")


def _is_null(text: Raw | bytes) -> bool:
    return bytes(text).strip() == b"null"
