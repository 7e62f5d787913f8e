"""How engines write the types and the names of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from s3lake.records.schema.columns.types import Decimal, Primitive, Type, Unknown, fold


@dataclass(frozen=True)
class Spelling:
    """How an engine writes types and names.

    Attributes:
        struct: form of a struct around its fields.
        field: a name and a type.
        quote: the character around names; empty if names are not quoted.
        backslash: True if it escapes in texts; else a quote is escaped by another quote.
    """

    primitives: Mapping[Primitive, str]
    struct: str
    field: str
    list: str
    map: str
    quote: str
    backslash: bool = False

    def type(self, type: Type) -> str:
        return fold(type, self._leaf, self.list.format, self._struct, self.map.format)

    def columns(self, columns: Mapping[str, Type]) -> str:
        return ",\n".join(f"  {self.name(name)} {self.type(type)}" for name, type in columns.items())

    def strings(self, names: Sequence[str]) -> str:
        return ", ".join(f"{self.name(name)} {self.primitives[Primitive.STRING]}" for name in names)

    def name(self, name: str) -> str:
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}" if self.quote else name

    def text(self, text: str) -> str:
        """Return a literal."""
        if self.backslash:  # two quotes are the end of one literal and the beginning of the next
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        return "'" + text.replace("'", "''") + "'"

    def _struct(self, fields: Mapping[str, str]) -> str:
        return self.struct.format(",".join(self.field.format(self.name(name), type) for name, type in fields.items()))

    def _leaf(self, leaf: Primitive | Decimal | Unknown) -> str:
        if isinstance(leaf, Unknown):  # nothing was seen in it yet: nulls, whatever the type
            return self.primitives[Primitive.STRING]
        return str(leaf) if isinstance(leaf, Decimal) else self.primitives[leaf]


_PLAIN = {
    Primitive.BOOL: "boolean",
    Primitive.INT32: "int",
    Primitive.INT64: "bigint",
    Primitive.FLOAT: "float",
    Primitive.DOUBLE: "double",
    Primitive.STRING: "string",
    Primitive.BINARY: "binary",
    Primitive.DATE: "date",
    Primitive.TIME: "int",
    Primitive.TIME_US: "bigint",
    Primitive.TIMESTAMP: "timestamp",
    Primitive.TIMESTAMP_US: "timestamp",
    Primitive.TIMESTAMP_NS: "bigint",  # Spark reads no such Parquet but with nanosAsLong
    Primitive.UUID: "binary",
}
_TRINO = _PLAIN | {
    Primitive.INT32: "integer",
    Primitive.FLOAT: "real",
    Primitive.STRING: "varchar",
    Primitive.BINARY: "varbinary",
    Primitive.TIME: "integer",
    Primitive.TIMESTAMP: "timestamp(3)",
    Primitive.TIMESTAMP_US: "timestamp(6)",
    Primitive.TIMESTAMP_NS: "timestamp(9)",
    Primitive.UUID: "varbinary",
}


HIVE = Spelling(_PLAIN, "struct<{}>", "{}:{}", "array<{}>", "map<string,{}>", "`", backslash=True)
GLUE = replace(HIVE, quote="")
ROWS = Spelling(_TRINO, "row({})", "{} {}", "array({})", "map(varchar, {})", '"')
