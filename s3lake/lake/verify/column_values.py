"""JSON without a schema, and cells of CSV, as values of a manifest's columns (`values.to_column_form`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from s3lake.lake.objects.instants import parse_date, parse_time, parse_timestamp
from s3lake.lake.verify.decode_connect_json import to_bytes, to_decimal, to_double, to_float
from s3lake.lake.verify.decoded_values import (
    Mismatch,
    Uuid,
    compact_json,
    parse_exact_json,
    return_unchanged,
    to_column_form,
    to_float_form,
)
from s3lake.records.schema.columns import types
from s3lake.records.schema.columns.types import TICKS, Map, Primitive, Type, fold

Cast = Callable[[Any], Any]


def cast_json(type: Type, *, by_schema: bool = False, has_empty: bool = False) -> Cast | None:
    """Return what makes JSON that is not null a value of a column; None if it stays as it is.

    Args:
        by_schema: True if by a JSON Schema decimals may be base64, and texts may be JSON of anything.
        has_empty: True if lists and objects that hold nothing are null in columns of other kinds.
    """
    cast_leaf = partial(_cast_leaf, by_schema)
    if not has_empty:
        return fold(type, cast_leaf, _cast_list, _cast_struct, _cast_map)

    def of_struct(fields: dict[str, Cast | None]) -> Cast:
        cast = _clear_empty(dict, _cast_struct(fields))

        def cast_to_present(value: Any) -> Any:
            value = cast(value)
            return value and {name: inner for name, inner in value.items() if inner is not None}

        return cast_to_present

    return fold(
        type,
        lambda leaf: _clear_empty(None, cast_leaf(leaf)),
        lambda item: _clear_empty(list, _cast_list(item)),
        of_struct,
        lambda item: _clear_empty(dict, _cast_map(item)),
    )


def cast_cell(type: Type) -> Cast:
    """Return what makes a cell of CSV, which is not null, a value of a column."""
    if isinstance(type, types.Decimal):
        return _read_decimal
    if not isinstance(type, Primitive):
        return return_unchanged
    if type in _INSTANTS:
        return partial(_parse_instant, TICKS.get(type, 1000) // 1000, _INSTANTS[type])
    return _CELLS.get(type, _LEAVES[type] or return_unchanged)


def choose_cast(columns: Mapping[str, Type], name: str, fields: Cast | None) -> Cast | None:
    """Return what makes JSON a value of the columns, or if it is not a struct of the one that holds whole values.

    Args:
        columns: the columns that the fields of structs become.
        name: the column of whole values.
        fields: what makes a struct a value of the columns.
    """
    if name not in columns:
        return fields
    whole, is_map = cast_json(columns[name], by_schema=True) or return_unchanged, isinstance(columns[name], Map)

    def cast(value: Any) -> Any:
        if type(value) is not dict:
            return whole(value)
        if is_map and type(value.get(name)) is not dict and (len(columns) == 1 or not value.keys() <= columns.keys()):
            return whole(value)
        return value if fields is None else fields(value)

    return cast


def unquote_texts(value: Any) -> Any:
    """Return a value with each text in it, at every depth, unquoted if it is the JSON of a text."""
    if isinstance(value, dict):
        return {name: unquote_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [unquote_texts(item) for item in value]
    return _unquote(value) if isinstance(value, str) else value


_MOST_INTEGER_DIGITS = 20


def _holds_something(value: Any) -> bool:
    """Return whether there is anything in a value but nulls, empty lists and empty objects."""
    if isinstance(value, dict):
        return any(map(_holds_something, value.values()))
    return any(map(_holds_something, value)) if isinstance(value, list) else value is not None


def _clear_empty(container: type[list[Any] | dict[Any, Any]] | None, cast: Cast | None) -> Cast:
    """Return a cast in which a list or object that holds nothing is null, if its column is of another kind."""

    def cast_or_clear(value: Any) -> Any:
        if isinstance(value, list | dict) and type(value) is not container and not _holds_something(value):
            return None
        return value if cast is None else cast(value)

    return cast_or_clear


def _unquote(text: str) -> str:
    """Return a text, or the text that it is JSON of, however often.

    A column has texts as they are, or as JSON if its schema does not describe the part. Only the schema shows
    which it is. So a text that is JSON by itself, such as `"x"` with its quotes, is compared without them.
    """
    while text[:1] == '"':
        try:
            text = str(parse_exact_json(text))
        except ValueError:
            break
    return text


def _cast_leaf(by_schema: bool, leaf: Type) -> Cast | None:
    if isinstance(leaf, types.Decimal):
        scale = leaf.scale
        return (lambda value: to_column_form(to_decimal(value, scale))) if by_schema else _read_decimal
    if by_schema and leaf is Primitive.STRING:
        return lambda value: _unquote(value if isinstance(value, str) else compact_json(value))
    if by_schema and leaf in (Primitive.INT32, Primitive.INT64):
        return _drop_zero_fraction
    return _LEAVES[leaf] if isinstance(leaf, Primitive) else _require_nothing


def _drop_zero_fraction(value: Any) -> Any:
    """Return an integer that is written like a fraction, `1.0`, which is one by JSON Schema's specification."""
    is_small = isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < _MOST_INTEGER_DIGITS
    return int(value) if is_small and value == int(value) else value


def _cast_items(item: Cast | None, values: Any) -> list[Any]:
    return [cell if cell is None or item is None else item(cell) for cell in values]


def _cast_list(item: Cast | None) -> Cast:
    def cast(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch("it is not a list")
        return _cast_items(item, value)

    return cast


def _cast_struct(fields: dict[str, Cast | None]) -> Cast:
    deeper = [(name, cast) for name, cast in fields.items() if cast is not None]

    def cast(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch("it is not an object")
        if None in value.values() or not value.keys() <= fields.keys():
            if any(_holds_something(inner) for name, inner in value.items() if name not in fields):
                raise Mismatch("a field has no column")
            value = {name: inner for name, inner in value.items() if inner is not None and name in fields}
        for name, cell in deeper:
            inner = value.get(name)
            if inner is not None:
                value[name] = cell(inner)
        return value

    return cast


def _cast_map(item: Cast | None) -> Cast:
    def cast(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch("it is not an object")
        names = sorted(value)
        return list(map(list, zip(names, _cast_items(item, [value[name] for name in names]), strict=True)))

    return cast


def _require_nothing(value: Any) -> None:
    if _holds_something(value):
        raise Mismatch("no column holds it")


def _read_decimal(value: Any) -> Any:
    exact = Decimal(value)
    if isinstance(value, bool) or not exact.is_finite():
        raise Mismatch("it is not a decimal")
    return to_column_form(exact)


def _read_instant(parse: Callable[[str], int], value: Any) -> Any:
    """Return an integer as it is, also one with a fraction of zero, and a text as what `parse` makes of it."""
    if isinstance(value, str):
        return parse(value)
    return int(value) if isinstance(value, Decimal | float) and value == int(value) else value


_INSTANTS: dict[Primitive, Callable[[str], int]] = {
    Primitive.DATE: parse_date,
    **{leaf: partial(parse_time, TICKS[leaf]) for leaf in (Primitive.TIME, Primitive.TIME_US)},
    **{
        leaf: partial(parse_timestamp, TICKS[leaf])
        for leaf in (Primitive.TIMESTAMP, Primitive.TIMESTAMP_US, Primitive.TIMESTAMP_NS)
    },
}
_LEAVES: dict[Primitive, Cast | None] = {
    Primitive.BOOL: None,
    Primitive.INT32: None,
    Primitive.INT64: None,
    Primitive.STRING: None,
    Primitive.DOUBLE: lambda value: to_float_form(value if type(value) is float else to_double(value)),
    Primitive.FLOAT: lambda value: to_column_form(to_float(value)),
    Primitive.BINARY: to_bytes,
    Primitive.UUID: lambda value: to_column_form(Uuid(value)),
    **{leaf: partial(_read_instant, parse) for leaf, parse in _INSTANTS.items()},
}


def _parse_integer(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text):
        raise Mismatch("it is not an integer")
    return int(text)


def _parse_instant(ticks_per_ms: int, parse: Callable[[str], int], text: str) -> int:
    """Return the number of a text. Years that have no text are a number: of days, or of milliseconds."""
    return int(Decimal(text) * ticks_per_ms) if re.fullmatch(r"-?\d+(\.\d+)?", text) else parse(text)


_CELLS: dict[Primitive, Cast] = {
    Primitive.BOOL: {"true": True, "false": False}.__getitem__,
    Primitive.INT32: _parse_integer,
    Primitive.INT64: _parse_integer,
}
"""Cells of CSV that are not read as JSON's numbers and texts are."""
