"""A JSON value as a row of a file's own Parquet schema, in one canonical form for both sides.

A struct is the list of its fields in the schema's order: a missing field is null and a field that the schema lacks is
dropped. In a column of doubles an integer is a double and -0 is 0, which JSON does not tell apart. What does not fit a
column stays what it is, so that it equals no row.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

Projection = Callable[[Any], Any]


def of_fields(fields: Iterable[Any]) -> Projection:
    """The projection of objects, decoded from JSON or given by pyarrow, on fields of a schema."""
    known = [(field.name, of_type(field.type)) for field in fields]
    names = [name for name, _ in known]
    deeper = [(position, projection) for position, (_, projection) in enumerate(known) if projection]

    def project(value: Any) -> Any:
        if type(value) is not dict:
            return None if value is None else _misfit(value)
        row = list(map(value.get, names))
        for position, projection in deeper:
            found = row[position]
            if found is not None:
                row[position] = projection(found)
        return row

    return project


def of_type(kind: Any) -> Projection | None:
    """The projection of values of a column; None where they stay as they are."""
    if pa.types.is_floating(kind):
        return _double
    if pa.types.is_struct(kind):
        return of_fields(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_list(of_type(kind.value_type))
    return None


def _of_list(element: Projection | None) -> Projection:
    def project(value: Any) -> Any:
        if type(value) is not list:
            return _misfit(value)
        return value if element is None else [None if one is None else element(one) for one in value]

    return project


def _double(value: Any) -> Any:
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return value
    return value + 0.0 if type(value) is float else value  # -0.0 + 0.0 is 0.0


def _misfit(value: Any) -> Any:
    # A list would look like a projected struct; no projection gives an object.
    return {"misfit": value}
