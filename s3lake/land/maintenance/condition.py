"""A condition in SQL over the rows of an object, asked of DuckDB.

DuckDB and not Spark: a row is looked at where its object is read, batch by batch, in this process and without a JVM;
nothing is shuffled, and objects that hold none of the rows cost a look and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from s3lake.errors import ConfigurationError

_ROW = "s3lake row"


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
        query = f"SELECT 1 FROM rows WHERE ({sql}\n)"
        ((text,),) = self._database.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
        tree = json.loads(text)
        nodes = list(_list_nodes(tree))
        self._column_names = {name.lower() for node in nodes for name in node.get("column_names", ())}
        self._reads_all = (
            tree["error"]  # which is raised with the columns that there are
            or "rows" in self._column_names
            or any(node.get("class") == "STAR" for node in nodes)
            or sql.strip().lower() in ("true", "false")  # which needs none
        )

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of a schema that the condition may name."""
        return pa.schema([field for field in schema if self._reads_all or field.name.lower() in self._column_names])

    def find_missing(self, schema: pa.Schema, existing: pa.Schema) -> list[str]:
        """Return the columns of `schema` that the condition names and `existing` does not have."""
        return [name for name in schema.names if name not in existing.names and name.lower() in self._column_names]

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

    def _find_twins(self, fields: Sequence[pa.Field], *, inside: bool = False) -> Iterator[str]:
        """Yield the names in the condition that DuckDB would confuse: it compares names without their case.

        A field inside a column may be named by a string too: `user['name']`.
        """
        names = [field.name.lower() for field in fields]
        for field in fields:
            is_named = _mentions(self.sql, field.name) if inside else field.name.lower() in self._column_names
            if is_named and names.count(field.name.lower()) > 1:
                yield field.name
            yield from self._find_twins([field.type.field(at) for at in range(field.type.num_fields)], inside=True)

    def _unfit(self, key: str, schema: pa.Schema, why: str) -> ConfigurationError:
        there = ", ".join(f"{field.name} {field.type}" for field in schema)
        return ConfigurationError(f"{self._option} cannot be asked of {key}: {why}. Its columns are: {there}")


def _mentions(sql: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE) is not None


def _list_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a statement as DuckDB's parser has it."""
    if isinstance(tree, dict):
        yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _list_nodes(inner)


def _describe_error(error: Exception) -> str:
    """Return DuckDB's message about the statement, but not one about a value, because it quotes the value."""
    import duckdb

    if isinstance(error, duckdb.BinderException | duckdb.ParserException | duckdb.CatalogException):
        return str(error).splitlines()[0].rstrip(".")
    return f"a value does not fit it ({type(error).__name__}); try(...) around an expression makes such a value null"
