"""Defaults of Avro's fields: whether one is a value of its field's type, as Avro's specification encodes it in JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_BITS = {"int": 31, "long": 63}


def read_default(default: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """Return a default as files have it: integers of a float or double have a point, without which fastavro refuses.

    Of a union it may be of any branch, as since Avro 1.12.

    Args:
        schema: the type as fastavro parses it, not recursive.
        named: the types that it names, by their full names.

    Raises:
        ValueError: it is not a value of the schema, so readers may refuse a file with it.
    """
    if isinstance(schema, list):
        for branch in schema:
            try:
                return read_default(default, branch, named)
            except ValueError:
                continue
        raise ValueError("no branch has it")
    if isinstance(schema, str):
        return read_default(default, named[schema], named) if schema in named else _read_primitive(default, schema)
    match schema["type"]:
        case "record" | "error":
            _require(isinstance(default, dict))
            return {**default, **_read_fields(default, schema["fields"], named)}
        case "array":
            _require(isinstance(default, list))
            return [read_default(one, schema["items"], named) for one in default]
        case "map":
            _require(isinstance(default, dict))
            return {name: read_default(one, schema["values"], named) for name, one in default.items()}
        case "enum":
            _require(isinstance(default, str) and default in schema["symbols"])
        case "fixed":
            _require(_is_bytes(default) and len(default) == schema["size"])
        case name:
            return _read_primitive(default, name)
    return default


def _read_fields(default: Any, fields: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields in a record's default; one that it does not name has a default of its own."""
    read = {}
    for field in fields:
        if field["name"] in default:
            read[field["name"]] = read_default(default[field["name"]], field["type"], named)
        else:
            _require("default" in field)
            read_default(field["default"], field["type"], named)
    return read


def _read_primitive(default: Any, name: str) -> Any:
    match name:
        case "null":
            _require(default is None)
        case "boolean":
            _require(isinstance(default, bool))
        case "int" | "long":
            _require(type(default) is int and -(1 << _BITS[name]) <= default < 1 << _BITS[name])
        case "float" | "double":
            _require(type(default) in (int, float) and abs(default) <= sys.float_info.max)
            return float(default)
        case "string":
            _require(isinstance(default, str))
        case _:
            _require(_is_bytes(default))
    return default


def _is_bytes(default: Any) -> bool:
    """Bytes are texts of the first 256 characters."""
    return isinstance(default, str) and all(ord(one) < 256 for one in default)


def _require(is_valid: bool) -> None:
    if not is_valid:
        raise ValueError("it is of another type")
