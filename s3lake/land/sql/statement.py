"""The SQL that runs over a `Tabulate`'s table, and what Spark says of it."""

from __future__ import annotations

import re
from typing import Any

from s3lake.land.sql.star import columns_of, quoted
from s3lake.land.sql.table import RAW, VALUE, Tabulate
from s3lake.transform.sql import META, Star

_KINDS = "Arithmetic|DateTime|NumberFormat|Runtime|ArrayIndexOutOfBounds|IllegalArgument|UnsupportedOperation"
# As the JVM prints it from inside a task, and as PySpark gives it from the driver.
_LOST = re.compile(rf"(?:Spark(?:{_KINDS})Exception: |^)(\[[A-Z_.]+\] [^\n]*)")
_CAPTURED = re.compile(rf"(?:{_KINDS}|SparkRuntime)Exception")


def statement(tabulate: Tabulate, view: str) -> str:
    """The SQL that Spark runs over the table `view`: rows as the second stage takes them."""
    where = tabulate.query.where or "true"
    alive = "__refused IS NULL AND __grown IS NULL AND NOT __dropped"
    carried = [f"__{name} AS {name}" for name in RAW if name in tabulate.carried]
    rows = ", ".join(
        [
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_timestamp AS timestamp",
            *carried,
            "__original AS original",
            "__refused AS refused",
            "__grown AS grown",
            f"CASE WHEN {alive} THEN coalesce({where}, false) ELSE coalesce(NOT __dropped, true) END AS kept",
            f"CASE WHEN {alive} AND NOT __null THEN {_json(tabulate)} END AS value",
        ]
    )
    return f"SELECT {rows} FROM ({_flat(tabulate, view)})"


def select_list(tabulate: Tabulate) -> str:
    """The select list with `*` written out."""
    fields = tabulate.fields
    items = tabulate.query.items
    return ", ".join(
        entry for item in items for entry in (columns_of(item, fields) if isinstance(item, Star) else [item])
    )


def projected(tabulate: Tabulate, view: str) -> str:
    """The SQL that gives the projected row as it is: its types are what JSON does not show."""
    return f"SELECT struct({select_list(tabulate)}) AS value FROM ({_flat(tabulate, view)})"


_SPARK_TYPES = {
    "BooleanType": "bool",
    "LongType": "int64",
    "DoubleType": "double",
    "StringType": "string",
    "ByteType": "int32",
    "ShortType": "int32",
    "IntegerType": "int32",
    "FloatType": "float",
    "BinaryType": "binary",
    "DateType": "date",
    "TimestampType": "timestamp",
    "TimestampNTZType": "timestamp",
}


def table_types(schema: Any) -> dict[str, str]:
    """Columns of a Spark schema whose types JSON does not show, as `Sink.columns` spells them."""
    return {field.name: _type_text(field.dataType) for field in schema if not _shown(field.dataType)}


def _shown(data_type: Any) -> bool:
    """Whether JSON shows values of a type as what they are."""
    match type(data_type).__name__:
        case "ArrayType":
            return _shown(data_type.elementType)
        case "StructType":
            return all(_shown(one.dataType) for one in data_type)
        case name:
            return name in ("BooleanType", "LongType", "DoubleType", "StringType", "NullType", "VoidType")


def _type_text(data_type: Any) -> str:
    match type(data_type).__name__:
        case "DecimalType":
            return f"decimal({data_type.precision},{data_type.scale})"
        case "ArrayType":
            return f"list<{_type_text(data_type.elementType)}>"
        case "MapType":
            return f"map<string, {_type_text(data_type.valueType)}>"
        case "StructType":
            return f"struct<{', '.join(f'{quoted(one.name)}: {_type_text(one.dataType)}' for one in data_type)}>"
        case name:
            return _SPARK_TYPES.get(name, "string")


def _flat(tabulate: Tabulate, view: str) -> str:
    """The value's fields as columns, beside the others."""
    fields = [f"{VALUE}.{quoted(name)} AS {quoted(name)}" for name in tabulate.fields if name not in META]
    others = [quoted(name) for name in tabulate.schema.names if name != VALUE]
    return f"SELECT {', '.join([*fields, *others])} FROM {view}"


def _json(tabulate: Tabulate) -> str:
    options = "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")"
    return f"CAST(to_json(struct({select_list(tabulate)}), {options}) AS BINARY)"


def failure(error: Exception) -> str | None:
    """Why SQL failed on a record, None where the error is another one."""
    lost = _LOST.search(str(error))
    inside = lost is not None and lost.start() > 0
    return lost[1] if lost and (inside or _CAPTURED.fullmatch(type(error).__name__)) else None
