"""The SQL that runs over a `Tabulate`'s table, and the meaning of Spark's answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import msgspec

from s3lake.index.plan.batch import Intervals
from s3lake.land.spark.failures import find_sql_refusal
from s3lake.land.sql.sql_table import NULL, RAW, SCALARS, Tabulate, quote

_KINDS = "Arithmetic|DateTime|NumberFormat|Runtime|ArrayIndexOutOfBounds|IllegalArgument|UnsupportedOperation"
# As the JVM prints it from inside a task, and as PySpark gives it from the driver.
_LOST = re.compile(rf"(?:Spark(?:{_KINDS})Exception: |^)(\[[A-Z_.]+\] [^\n]*)")
_CAPTURED = re.compile(rf"(?:{_KINDS}|SparkRuntime)Exception")
# What is wrong whichever types the fields have.
_NEVER_RIGHT = re.compile(r"\[(?:WRONG_NUM_ARGS|UNRESOLVED_ROUTINE|UNRESOLVED_COLUMN|PARSE_|INVALID_SQL)")
_OPTIONS = "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")"
# Spark would leave out a field `_corrupt_record`, and fail on a number of more than 1,000 digits.
_EXACTLY = "map('mode', 'FAILFAST', 'columnNameOfCorruptRecord', '__s3lake_corrupt', 'maxNumLen', '2147483647')"
# A null does not show its type: where Spark does not accept it plain, it may be a list's.
_NULLS = ("NULL", "CAST(NULL AS ARRAY<STRING>)", "CAST(NULL AS STRING)")
_MOST_TRIES = 27


@dataclass(frozen=True)
class Shape:
    """How Spark takes the SQL for records of one shape.

    Attributes:
        sql: computes a record's results; empty if Spark refuses the SQL for these types.
        refusal: the reason then.
        types: types of the results that JSON does not show, by the name of the field.
    """

    sql: str = ""
    refusal: str = ""
    types: tuple[tuple[str, str], ...] = ()


def bind(tabulate: Tabulate, view: str, shape: str, analyse: Callable[[str], Any]) -> Shape:
    """Find how Spark takes the SQL for records of a shape.

    Args:
        tabulate: the first stage.
        view: name of its table.
        shape: types of the leaves, as the table has it.
        analyse: returns the schema of a statement, without running it.

    Raises:
        Exception: an error of Spark's: the SQL is wrong for every record.
    """
    types = read_types(tabulate, shape) or []
    nulls = [number for number, type in enumerate(types) if type == NULL]
    refusal = ""
    for chosen in islice(product(_NULLS, repeat=len(nulls)), _MOST_TRIES):
        cells = [_cell(number, type) for number, type in enumerate(types)]
        for number, text in zip(nulls, chosen, strict=True):
            cells[number] = text
        source = _relation(tabulate, cells)
        sql = _compute(tabulate, source)
        results = ", ".join(tabulate.query.expressions)
        try:
            schema = analyse(
                f"SELECT {sql} AS computed, (SELECT struct({results}) FROM ({source})) AS results FROM {view}"
            )
        except Exception as error:
            reason = find_sql_refusal(error)
            if reason is None or _NEVER_RIGHT.search(str(error)):
                raise
            refusal = refusal or reason
            continue
        return Shape(sql, types=tuple(_hidden_types(tabulate, schema["results"].dataType)))
    return Shape(refusal=refusal)


def read_types(tabulate: Tabulate, shape: str) -> list[str] | None:
    """Return the types of the leaves in a shape. Return None if it is a shape of other SQL."""
    types = msgspec.json.decode(shape, type=dict[str, str]) if shape else {}
    return [types[name] for name in tabulate.names] if types.keys() == {*tabulate.names} else None


def statement(tabulate: Tabulate, view: str, shapes: Mapping[str, Shape]) -> str:
    """Return the SQL that Spark runs over the table `view`: rows as the second stage takes them.

    `computed` is null for records that the filter leaves out, and for shapes that are not bound.
    """
    cases = [f"WHEN {_literal(name)} THEN {shape.sql}" for name, shape in shapes.items() if shape.sql]
    computed = f"CASE __shape {' '.join(cases)} END" if cases else "CAST(NULL AS ARRAY<STRING>)"
    rows = [
        "_topic AS topic",
        "_partition AS partition",
        "_offset AS offset",
        "__timestamp AS timestamp",
        *(f"__{name} AS {name}" for name in RAW if name in tabulate.carried),
        "__original AS original",
        "__value AS value",
        "__dropped AS dropped",
        "__refused AS refused",
        "__shape AS shape",
        f"CASE WHEN __refused IS NULL AND NOT __dropped THEN {computed} END AS computed",
    ]
    return f"SELECT {', '.join(rows)} FROM {view}"


def _compute(tabulate: Tabulate, source: str) -> str:
    """Return the SQL of a record's results, a JSON object for each expression; null if it is left out."""
    results = ", ".join(f"to_json(struct({text}), {_OPTIONS})" for text in tabulate.query.expressions)
    array = f"CAST(array({results}) AS ARRAY<STRING>)"
    where = tabulate.query.where
    return f"(SELECT {array if where is None else f'CASE WHEN ({where}) THEN {array} END'} FROM ({source}))"


def _relation(tabulate: Tabulate, cells: Iterable[str]) -> str:
    """Return the SQL of the columns that the expressions may name."""
    tree: dict[str, Any] = {}
    for path, cell in zip(tabulate.leaves, cells, strict=True):
        at = tree
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = cell
    plain = [name for name in sorted(tabulate.query.meta) if name not in tree]
    columns = [f"{_struct(inner)} AS {quote(name)}" for name, inner in tree.items()]
    return f"SELECT {', '.join([*columns, *(f'{name} AS {name}' for name in plain)]) or '1 AS __one'}"


def _struct(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    return f"struct({', '.join(f'{_struct(inner)} AS {quote(name)}' for name, inner in tree.items())})"


def _cell(number: int, type: str) -> str:
    suffix = SCALARS.get(type)
    return f"__{number}{suffix}" if suffix else f"from_json(__{number}j, {_literal(type)}, {_EXACTLY})"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    escaped = escaped.replace("${", "$\\{")  # which Spark would replace by a variable, also of the environment
    return f"'{escaped}'"


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


def _hidden_types(tabulate: Tabulate, results: Any) -> Iterable[tuple[str, str]]:
    """Yield the results whose types JSON does not show, as `Sink.columns` writes them."""
    names = {each.number: each.name for each in tabulate.query.computed}
    for number, field in enumerate(results):
        if not _is_shown(field.dataType):
            yield names[number], _type_text(field.dataType)


def _is_shown(data_type: Any) -> bool:
    """Return whether JSON shows values of a type as what they are."""
    match type(data_type).__name__:
        case "ArrayType":
            return _is_shown(data_type.elementType)
        case "StructType":
            return all(_is_shown(one.dataType) for one in data_type)
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
            return f"struct<{', '.join(f'{quote(one.name)}: {_type_text(one.dataType)}' for one in data_type)}>"
        case name:
            return _SPARK_TYPES.get(name, "string")


def failure(error: Exception) -> str | None:
    """Return why SQL failed on a record. Return None if the error is another one."""
    lost = _LOST.search(str(error))
    inside = lost is not None and lost.start() > 0
    return lost[1] if lost and (inside or _CAPTURED.fullmatch(type(error).__name__)) else None


def find_failing(reads: Intervals, reason_of: Callable[[Intervals], str | None]) -> Iterator[tuple[int, int, str]]:
    """Yield topic-partition, offset and reason of each record that fails, in order: found by halves.

    Args:
        reads: where to look.
        reason_of: returns why some record of these ranges fails, or None if none does.
    """
    reason = reason_of(reads)
    if reason is None:
        return
    if sum(end - start for start, end in reads.values()) > 1:
        for half in _halve(reads):
            yield from find_failing(half, reason_of)
    else:
        ((partition, (offset, _)),) = reads.items()
        yield partition, offset, reason


def _halve(reads: Intervals) -> tuple[Intervals, Intervals]:
    """Return two parts of about as many topic-partitions, or of as many offsets if there is one."""
    partitions = sorted(reads)
    if len(partitions) > 1:
        middle = len(partitions) // 2
        return {one: reads[one] for one in partitions[:middle]}, {one: reads[one] for one in partitions[middle:]}
    ((partition, (start, end)),) = reads.items()
    middle = (start + end) // 2
    return {partition: (start, middle)}, {partition: (middle, end)}
