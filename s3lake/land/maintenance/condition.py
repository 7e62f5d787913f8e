"""A condition in SQL over the rows of an object, asked of DuckDB.

DuckDB and not Spark: a row is looked at where its object is read, batch by batch, in this process and without a JVM;
nothing is shuffled, and objects that hold none of the rows cost a look and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from s3lake.errors import ConfigurationError

_ROW = "s3lake row"
_STRING = re.compile(r"'(?:[^']|'')*'")
_WHOLE = re.compile(r"\*|\b(?:rows|columns)\b|^\s*(?:true|false)\s*$", re.IGNORECASE)
"""What names all columns, or needs none."""


class Condition:
    """The rows to find, as an SQL condition."""

    def __init__(self, sql: str, option: str = "--where") -> None:
        """`option` is what the user calls it.

        Raises:
            ConfigurationError: DuckDB is not installed.
        """
        try:
            import duckdb
        except ImportError:
            raise ConfigurationError(f"{option} is asked of DuckDB: pip install 's3lake[duckdb]'") from None
        self.sql, self._option, self._error = sql, option, duckdb.Error
        self._database: Any = duckdb.connect(config={"enable_external_access": "false", "threads": "1"})

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of a schema that the condition may name."""
        every = '"' in self.sql or _WHOLE.search(self.sql)
        return pa.schema([field for field in schema if every or _names(self.sql, field.name)])

    def find_missing(self, schema: pa.Schema, existing: pa.Schema) -> list[str]:
        """Return the columns of `schema` that the condition names and `existing` does not have."""
        sql = _STRING.sub("''", self.sql)
        return [name for name in schema.names if name not in existing.names and _names(sql, name)]

    def rows(self, batch: pa.RecordBatch, key: str) -> list[int]:
        """Return the numbers of the rows for which the condition is true, in order.

        Raises:
            ConfigurationError: it cannot be asked of the columns that there are, which are said.
        """
        if not self.columns(batch.schema):  # `user` alone is a function in SQL
            raise self._unfit(key, batch.schema, "it names none of its columns")
        numbers = pa.array(range(batch.num_rows), pa.int64())
        twin = next(self._find_twins([*batch.schema, pa.field(_ROW, numbers.type)]), None)
        if twin is not None:
            why = f"it names {twin!r}, which SQL does not tell from a name that differs in case only: use other columns"
            raise self._unfit(key, batch.schema, why)
        numbered = pa.Table.from_batches([batch]).append_column(_ROW, numbers)
        self._database.register("rows", numbered)
        try:
            answer = self._database.execute(f'SELECT "{_ROW}" FROM rows WHERE ({self.sql}\n) ORDER BY 1').fetchall()
        except self._error as error:
            raise self._unfit(key, batch.schema, _describe_error(error)) from None
        finally:
            self._database.unregister("rows")
        return [row for (row,) in answer]

    def _find_twins(self, fields: Sequence[pa.Field]) -> Iterator[str]:
        """Yield the names in the condition that DuckDB would confuse: it compares names without their case."""
        names = [field.name.lower() for field in fields]
        for field in fields:
            if names.count(field.name.lower()) > 1 and _names(self.sql, field.name):
                yield field.name
            yield from self._find_twins([field.type.field(at) for at in range(field.type.num_fields)])

    def _unfit(self, key: str, schema: pa.Schema, why: str) -> ConfigurationError:
        there = ", ".join(f"{field.name} {field.type}" for field in schema)
        return ConfigurationError(f"{self._option} cannot be asked of {key}: {why}. Its columns are: {there}")


def _names(sql: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", sql, re.IGNORECASE) is not None


def _describe_error(error: Exception) -> str:
    """Return DuckDB's message about the statement, but not one about a value, because it quotes the value."""
    import duckdb

    if isinstance(error, duckdb.BinderException | duckdb.ParserException | duckdb.CatalogException):
        return str(error).splitlines()[0].rstrip(".")
    return f"a value does not fit it ({type(error).__name__}); try(...) around an expression makes such a value null"
