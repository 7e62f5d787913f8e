"""The defaults of Avro's fields in place of their nulls, where the files have them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from s3lake.lake.verify.decoded_values import MapValue, SinglePrecision, return_unchanged

Fill = Callable[[Any], Any]
_BY_TYPE: dict[str, Fill] = {
    "float": SinglePrecision,
    "double": float,
    "bytes": lambda text: text.encode("latin-1"),
    "map": MapValue,
}


def build_filler(schema: Any, named: Mapping[str, Any]) -> Fill:
    """Return what fills the nulls of a decoded value, by a schema that fastavro has parsed."""
    if isinstance(schema, str):
        return build_filler(named[schema], named) if schema in named else return_unchanged
    if isinstance(schema, list):
        return _build_union(schema, named)
    match schema["type"]:
        case "record" | "error":
            return _build_record(schema, named)
        case "array":
            fill_item = build_filler(schema["items"], named)
            return lambda items: [None if item is None else fill_item(item) for item in items]
        case "map":
            fill = build_filler(schema["values"], named)
            return lambda value: MapValue({name: None if one is None else fill(one) for name, one in value.items()})
    return return_unchanged


def _build_union(branches: list[Any], named: Mapping[str, Any]) -> Fill:
    present = [branch for branch in branches if branch != "null"]
    fills = [build_filler(branch, named) for branch in present]
    if len(fills) == 1:
        return lambda value: None if value is None else fills[0](value)
    by_name = dict(zip(name_branches(present), fills, strict=True))
    return lambda value: None if value is None else {name: by_name[name](inner) for name, inner in value.items()}


def name_branches(branches: Sequence[Any]) -> list[str]:
    """Return the fields of a union by Connect: a branch's short name, its whole one if two are alike."""
    whole = [one if isinstance(one, str) else one.get("name", one["type"]) for one in branches]
    short = [name.rpartition(".")[2] for name in whole]
    return [long.replace(".", "_") if short.count(name) > 1 else name for name, long in zip(short, whole, strict=True)]


def _build_record(schema: dict[str, Any], named: Mapping[str, Any]) -> Fill:
    fields = [
        (field["name"], build_filler(field["type"], named), _read_default(field, named)) for field in schema["fields"]
    ]

    def fill(value: dict[str, Any]) -> dict[str, Any]:
        return {
            name: default if value[name] is None else fill_inner(value[name]) for name, fill_inner, default in fields
        }

    return fill


def _read_default(field: dict[str, Any], named: Mapping[str, Any]) -> Any:
    """Return the default of a field; None without one, and for one that has parts."""
    default, type = field.get("default"), field["type"]
    if isinstance(type, list):
        type = type[0]
        if sum(branch != "null" for branch in field["type"]) != 1:
            return None
    schema = named.get(type, {"type": type}) if isinstance(type, str) else type
    has_parts = schema["type"] in ("record", "error") or (isinstance(default, list | dict) and default)
    if default is None or has_parts or schema.get("logicalType") == "s3lake.uuid":
        return None
    if schema.get("logicalType") == "s3lake.decimal":
        unscaled = int.from_bytes(default.encode("latin-1"), "big", signed=True)
        return Decimal(f"{unscaled}E{-schema.get('scale', 0)}")
    if schema["type"] == "fixed":
        return default.encode("latin-1")
    return _BY_TYPE.get(schema["type"], return_unchanged)(default)
