"""The types of columns as values, whatever the format of the files that hold them.

`str(type)` is the one spelling, in settings as in messages and in Dagster; `schema.grammar` reads it.

>>> str(Struct({"id": Primitive.INT64, "tags": List(Primitive.STRING)}))
'struct<id: int64, tags: list<string>>'
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec

MOST_DIGITS = 38
"""Of a decimal: what 128 bits hold, and every reader of Parquet takes."""

MOST_TEXT_DIGITS = 76
"""Of a decimal that only becomes a text, not a column: what 256 bits hold."""

MOST_LEVELS = 32
"""How deep types nest: Parquet's readers go to 100 levels, of which a list takes two."""

TOO_DEEP = f"nests deeper than {MOST_LEVELS} levels, which Parquet's readers refuse"

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_SEPARATORS = re.compile(r'[.\[\]{}"]')
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
Result = TypeVar("Result")


class Primitive(Enum):
    """A type without parameters. Times are to the millisecond unless they name another unit, timestamps in UTC."""

    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIME = "time"
    TIME_US = "time_us"
    TIMESTAMP = "timestamp"
    TIMESTAMP_US = "timestamp_us"
    TIMESTAMP_NS = "timestamp_ns"
    UUID = "uuid"

    def __str__(self) -> str:
        return str(self.value)


FLOATING = frozenset({Primitive.FLOAT, Primitive.DOUBLE})

TICKS = {
    Primitive.TIME: 10**3,
    Primitive.TIME_US: 10**6,
    Primitive.TIMESTAMP: 10**3,
    Primitive.TIMESTAMP_US: 10**6,
    Primitive.TIMESTAMP_NS: 10**9,
}
"""How many ticks of each type of times are in a second."""

UNITS = {"milliseconds": 10**3, "seconds": 1, "microseconds": 10**6, "nanoseconds": 10**9}
"""How many of each unit of time are in a second; milliseconds, Kafka's own, are first."""


class Decimal(msgspec.Struct, frozen=True):
    """`decimal(10,2)`: ten digits, two of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class Unknown(msgspec.Struct, frozen=True):
    """The type of nulls, and of items of empty lists. It gets no column until something is seen in it."""

    def __str__(self) -> str:
        return "unknown"


class List(msgspec.Struct, frozen=True):
    """`list<string>`."""

    item: Type

    def __str__(self) -> str:
        return f"list<{self.item}>"


class Map(msgspec.Struct, frozen=True):
    """`map<string, int64>`: the keys of a map are strings."""

    value: Type

    def __str__(self) -> str:
        return f"map<string, {self.value}>"


class Struct(msgspec.Struct, frozen=True, eq=False):
    """`struct<a: int64, b: string>`: the order of its fields is the order of a file's columns, so it counts."""

    fields: dict[str, Type]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{_quote(name)}: {field}' for name, field in self.fields.items())}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and list(self.fields.items()) == list(other.fields.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self.fields.items()))


PLACEHOLDER = "__dummy_field_in_empty_struct"
"""The one member, always null, of a struct whose schema has no fields: Parquet has no group without members.

Spark's `from_protobuf` calls it so (`retain.empty.message.types`).
"""

LEFT_EMPTY = "empty:"
"""The prefix of a path in the counts of fields that were left out, if only an empty list or object was there."""


def make_struct_type(fields: dict[str, Type]) -> Struct:
    """Return the struct of a schema's fields; one without any has the placeholder, so that set and unset differ."""
    return Struct(fields or {PLACEHOLDER: Primitive.STRING})


Type = Primitive | Decimal | List | Struct | Map | Unknown
"""Every field may be null."""

Columns = dict[str, Type]
"""Name -> type."""

UNKNOWN = Unknown()


def fold(
    type: Type,
    leaf: Callable[[Primitive | Decimal | Unknown], Result],
    list: Callable[[Result], Result],
    struct: Callable[[dict[str, Result]], Result],
    map: Callable[[Result], Result],
) -> Result:
    """A type from its leaves up: each function makes a result of the results of what is inside.

    >>> fold(List(Primitive.DATE), str, lambda item: f"[{item}]", repr, repr)
    '[date]'
    """

    def fold_type(type: Type) -> Result:  # mypy knows that no type is left out: there would be no result
        match type:
            case Primitive() | Decimal() | Unknown():
                return leaf(type)
            case List(item):
                return list(fold_type(item))
            case Struct(fields):
                return struct({name: fold_type(field) for name, field in fields.items()})
            case Map(value):
                return map(fold_type(value))

    return fold_type(type)


def contains(type: Type, leaf: Callable[[Primitive | Decimal | Unknown], bool], *, maps: bool = False) -> bool:
    """Return whether a type is, or holds, such a leaf; with `maps` also whether it holds a map."""

    def of_list(item: bool) -> bool:
        return item

    def of_struct(fields: dict[str, bool]) -> bool:
        return any(fields.values())

    def of_map(value: bool) -> bool:
        return maps or value

    return fold(type, leaf, of_list, of_struct, of_map)


def leaf_paths(columns: Columns, leaves: Collection[Primitive]) -> list[str]:
    """Return the paths of all such leaves, as `orders.items[].id`. What is in maps has none."""

    def leaf(leaf: Primitive | Decimal | Unknown) -> list[str]:
        return [""] if leaf in leaves else []

    def of_list(item: list[str]) -> list[str]:
        return [f"[]{path}" for path in item]

    def of_struct(fields: dict[str, list[str]]) -> list[str]:
        return [f".{write_name(name)}{path}" for name, paths in fields.items() for path in paths]

    return [path[1:] for path in fold(Struct(columns), leaf, of_list, of_struct, lambda _: [])]


@functools.lru_cache(maxsize=4096)
def write_name(name: str) -> str:
    """Return a name as a step of a path: in quotes if it could be taken for several steps.

    So two fields never have one path: the key `"a.b"` is not the field `b` of `a`.

    >>> write_name("a"), write_name("a.b")
    ('a', '"a.b"')
    """
    return name if name and not _SEPARATORS.search(name) else '"' + name.replace('"', '""') + '"'


def fields_of(type: Type | None) -> Columns:
    """Return the fields of a struct; any other type has none."""
    return type.fields if isinstance(type, Struct) else {}


def item_of(type: Type) -> Type:
    """Return the type that a list or a map holds, unknown for any other type."""
    match type:
        case List(inner) | Map(inner):
            return inner
    return UNKNOWN


def to_document(columns: Mapping[str, Type]) -> dict[str, Any]:
    """Columns as the index writes them down: `{"id": "int64", "tags": {"list": "string"}}`."""

    def of_leaf(leaf: Primitive | Decimal | Unknown) -> Any:
        return None if leaf == UNKNOWN else str(leaf)

    def of_struct(fields: dict[str, Any]) -> Any:
        return {"struct": fields}

    whole = Struct(dict(columns))
    document: dict[str, Any] = fold(
        whole, of_leaf, lambda item: {"list": item}, of_struct, lambda value: {"map": value}
    )
    return dict(document["struct"])


def from_document(document: Mapping[str, Any]) -> Columns:
    """Columns that the index wrote down.

    Raises:
        ValueError: a type is unknown, as one of a later version is.
    """
    return {name: _from_document(type) for name, type in document.items()}


def _from_document(document: Any) -> Type:
    match document:
        case None:
            return UNKNOWN
        case str():
            digits = _DECIMAL.fullmatch(document)
            return Decimal(int(digits[1]), int(digits[2])) if digits else Primitive(document)
        case {"list": item}:
            return List(_from_document(item))
        case {"map": value}:
            return Map(_from_document(value))
        case {"struct": fields}:
            return Struct(from_document(fields))
    raise ValueError(f"{document!r:.80} is not the type of a column")


def _quote(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
