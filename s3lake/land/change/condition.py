"""A condition in SQL over the rows of an object, asked of DuckDB.

DuckDB and not Spark: a row is looked at where its object is read, batch by batch, in this process and without a JVM;
nothing is shuffled, and objects that hold none of the rows cost a look and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from s3lake.errors import ConfigurationError
from s3lake.plugins import require_extra

_ROW = "s3lake row"
_ROWS_WHERE = f'SELECT "{_ROW}" FROM rows POSITIONAL JOIN "s3lake numbers" WHERE '
"""The numbers are no column of `rows`: a condition over all of a row, CAST(rows AS VARCHAR), must not see them."""


class Condition:
    """The rows to find, as an SQL condition."""

    def __init__(self, sql: str, option: str = "--where") -> None:
        """`option` is what the user calls it.

        Raises:
            ConfigurationError: DuckDB is not installed, or this is not one condition, or it has a query inside.
        """
        with require_extra("duckdb", option):
            import duckdb
        self.sql, self._option, self._error = sql, option, duckdb.Error
        self._database: Any = duckdb.connect(config={"enable_external_access": "false", "threads": "1"})
        condition, others = self._parse(sql)
        nodes = list(_list_nodes(condition))
        # `n = 1 group by n` ends the condition early, and a query inside reads other rows, tables and files.
        if others != self._parse("true")[1] or any(node.get("class") in ("SUBQUERY", "PARAMETER") for node in nodes):
            raise self._refuse(sql, "it is more than one condition, or has a query or a parameter inside")
        self._column_names = {name.lower() for node in nodes for name in node.get("column_names", ())}
        # The text of a constant is in `value` until DuckDB 1, in `text` since DuckDB 2.
        self._texts = {str(node[name]).lower() for node in nodes for name in ("value", "text") if name in node}
        self._reads_all = (
            "rows" in self._column_names
            or any(node.get("class") == "STAR" for node in nodes)
            or sql.strip().lower() in ("true", "false")  # which needs none
        )

    def _parse(self, sql: str) -> tuple[Any, Any]:
        """Return the condition as DuckDB's parser has it, and all the rest of the query that is run for it."""
        ((text,),) = self._database.execute("SELECT json_serialize_sql(?::VARCHAR)", [_ROWS_WHERE + sql]).fetchall()
        tree = json.loads(text)
        if tree["error"]:
            raise self._refuse(sql, tree["error_message"].splitlines()[0])
        return tree["statements"][0]["node"].pop("where_clause", None), tree

    def _refuse(self, sql: str, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._option} {sql!r}: {why}; expected one condition over the columns of a row, such as user_id = 4711"
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
            ConfigurationError: it cannot be asked of the columns that there are, which are named.
        """
        if not self.columns(batch.schema):  # `user` alone is a function in SQL
            raise self._unfit(key, batch.schema, "it names none of its columns")
        twin = next(self._find_twins(batch.schema), None)
        if twin is not None:
            why = f"it names {twin!r}, which SQL does not tell from a name that differs in case only: use other columns"
            raise self._unfit(key, batch.schema, why)
        self._database.register("rows", pa.Table.from_batches([batch]))
        self._database.register("s3lake numbers", pa.table({_ROW: range(batch.num_rows)}))
        try:
            answer = self._database.execute(_ROWS_WHERE + self.sql).fetchall()
        except self._error as error:
            raise self._unfit(key, batch.schema, _describe_error(error)) from None
        finally:
            self._database.unregister("rows")
            self._database.unregister("s3lake numbers")
        return sorted(row for (row,) in answer)

    def _find_twins(self, fields: Sequence[pa.Field], *, inside: bool = False) -> Iterator[str]:
        """Yield the names in the condition that DuckDB would confuse: it compares names without their case.

        A field inside a column may be named by a string too: `user['name']`.
        """
        named = self._column_names | self._texts if inside else self._column_names
        names = [field.name.lower() for field in fields]
        for field in fields:
            if field.name.lower() in named and names.count(field.name.lower()) > 1:
                yield field.name
            yield from self._find_twins([field.type.field(at) for at in range(field.type.num_fields)], inside=True)

    def _unfit(self, key: str, schema: pa.Schema, why: str) -> ConfigurationError:
        there = ", ".join(f"{field.name} {field.type}" for field in schema)
        return ConfigurationError(f"{self._option} cannot be asked of {key}: {why}. Its columns are: {there}")


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
        return str(error).splitlines()[0].rstrip(".!")
    return f"a value does not fit it ({type(error).__name__}); try(...) around an expression makes such a value null"
