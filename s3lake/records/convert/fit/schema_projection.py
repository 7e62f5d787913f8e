"""Records with a schema, written with the schema of an open file if they fit into it.

So producers of two versions give one file, and not one each. What a field lacks is filled as Avro fills it: with its
default, or null. Nothing is rounded, and what is left out is counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3lake.records.convert.read.json.exact_integers import find_rows
from s3lake.records.convert.read.keys_and_values import Column, Gathering
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.changes import find_differences
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import UNKNOWN, Columns, Primitive, Type, fields_of, item_of
from s3lake.records.schema.columns.union import join_path
from s3lake.records.schema.connect_schema import Schema

_EXACT = {
    (Primitive.INT32, Primitive.INT64),
    (Primitive.INT32, Primitive.DOUBLE),
    (Primitive.FLOAT, Primitive.DOUBLE),
}
"""Types that another holds without rounding; a long in a double would be rounded."""


@dataclass
class SchemaProjector:
    """The schemas that a task's files have so far, by the name of their record.

    Attributes:
        is_forward: True if a record is written with a schema that lacks some of its fields; else with one of more.
    """

    is_forward: bool
    schemas: dict[str | None, list[Schema]] = field(default_factory=dict)

    def project(self, column: Column) -> tuple[Column, Counter[str], Counter[str]]:
        """Return the column with the fewest schemas that hold it, and how many records lost or got which field."""
        schemas, lost, filled = column.schemas, Counter[str](), Counter[str]()
        if schemas is None:
            return column, lost, filled
        present = {int(code): schemas.distinct[code] for code in np.unique(schemas.codes) if code >= 0}
        for schema in present.values():
            self._add_schema(schema)
        targets = {code: self._find_target(schema) for code, schema in present.items()}
        if targets == present:
            return column, lost, filled
        gathering = Gathering(len(schemas.codes))
        for code, seen in present.items():
            rows, target = np.flatnonzero(schemas.codes == code), targets[code]
            missing = _find_new_fields(fields_of(target.type), fields_of(seen.type))
            array = schemas.arrays[code].take(pa.array(schemas.at[rows]))
            if missing:
                holding = find_holders(array, missing)
                lost.update({path: int(rows.sum()) for path, rows in holding.items() if rows.any()})
            if seen != target:
                defaults = set[str]()
                array = _fill(array, target.type, target.detail, defaults)
                filled.update(dict.fromkeys(defaults, len(rows)))
            gathering.add(target, rows, array, keep_nulls=True)
        return replace(column, schemas=gathering.finish()), lost, filled

    def _add_schema(self, schema: Schema) -> None:
        """Add a schema unless it fits into one that is there; it replaces the ones that fit into it."""
        schemas = self.schemas.setdefault(schema.name, [])
        if schema in schemas or any(self._fits(schema, one) for one in schemas):
            return
        schemas[:] = [*(one for one in schemas if not self._fits(one, schema)), schema]

    def _find_target(self, schema: Schema) -> Schema:
        schemas = self.schemas[schema.name]
        return schema if schema in schemas else next(one for one in schemas if self._fits(schema, one))

    def _fits(self, seen: Schema, target: Schema) -> bool:
        """Return whether records of one schema can be written with another."""
        fields, others = fields_of(seen.type), fields_of(target.type)
        more = _find_new_fields(fields, others) if self.is_forward else _find_new_fields(others, fields)
        is_of_fields = bool(fields and others)
        return is_of_fields and not more and _can_hold(target.type, target.detail, seen.type, seen.detail)


def _find_new_fields(columns: Columns, others: Columns) -> list[str]:
    """Return the paths of fields that only the others have."""
    return [path for path, type, _ in find_differences(columns, others) if type == UNKNOWN]


def _can_hold(target: Type, detail: Detail | None, seen: Type, seen_detail: Detail | None) -> bool:
    """Return whether values of a type fit into another, but for fields that the other lacks."""
    fields, others = fields_of(target), fields_of(seen)
    if fields and others:
        details, seen_details = _map_details(target, detail), _map_details(seen, seen_detail)
        return all(
            _can_be_null(details.get(name), seen_details.get(name))
            and _can_hold(type, details.get(name), others[name], seen_details.get(name))
            if name in others
            else _find_default(type, details.get(name)) is not None
            for name, type in fields.items()
        )
    if arrow_type(target).__class__ is arrow_type(seen).__class__ and pa.types.is_nested(arrow_type(target)):
        inner, seen_inner = _get_item_detail(detail), _get_item_detail(seen_detail)
        return _can_be_null(inner, seen_inner) and _can_hold(item_of(target), inner, item_of(seen), seen_inner)
    return target == seen or (seen, target) in _EXACT


def _map_details(type: Type, detail: Detail | None) -> dict[str, Detail]:
    return dict(zip(fields_of(type), detail.inner, strict=False)) if detail else {}


def _get_item_detail(detail: Detail | None) -> Detail | None:
    return detail.inner[0] if detail and detail.inner else None


def _can_be_null(detail: Detail | None, seen: Detail | None) -> bool:
    return detail is None or not detail.required or (seen is not None and seen.required)


def _find_default(type: Type, detail: Detail | None) -> pa.Scalar | None:
    """Return the value of a field that a record lacks. Return None if the field has to be there."""
    arrow = arrow_type(type)
    if detail is None or (detail.default is None and not detail.required):
        return pa.scalar(None, arrow)
    if detail.default is None:
        return None
    value: Any = json.loads(detail.default)
    try:
        return pa.scalar(value.encode("latin-1") if type is Primitive.BINARY else value, arrow)
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _fill(array: pa.Array, type: Type, detail: Detail | None, defaults: set[str], path: str = "") -> pa.Array:
    """Return an array as one of a type that holds it. Adds to `defaults` the paths of fields that get a value."""
    if array.offset and pa.types.is_nested(array.type):
        array = pa.concat_arrays([array])
    nulls, arrow = array.is_null() if array.null_count else None, arrow_type(type)
    if pa.types.is_struct(arrow):
        details = _map_details(type, detail)
        children = []
        for name, inner in fields_of(type).items():
            at, here = array.type.get_field_index(name), join_path(path, name)
            if at >= 0:
                children.append(_fill(array.field(at), inner, details.get(name), defaults, here))
            else:
                default = _find_default(inner, details.get(name))
                assert default is not None, "else its schema does not fit"
                defaults.update([here] if default.is_valid else [])
                children.append(pa.repeat(default, len(array)))
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=nulls)
    if pa.types.is_map(arrow):
        items = _fill(array.items, item_of(type), _get_item_detail(detail), defaults, f"{path}[]")
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, mask=nulls)
    if pa.types.is_list(arrow):
        values = _fill(array.values, item_of(type), _get_item_detail(detail), defaults, f"{path}[]")
        return pa.ListArray.from_arrays(array.offsets, values, type=arrow, mask=nulls)
    return array.cast(arrow)


def find_holders(values: pa.Array, paths: Collection[str], path: str = "") -> dict[str, npt.NDArray[np.bool_]]:
    """Return for each of the paths which rows have something there."""
    return find_rows(values, dict.fromkeys(paths, _is_present), path)


def _is_present(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return mask
