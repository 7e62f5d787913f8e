"""Avro by fastavro. Its schema is rewritten so that fastavro's reader gives the values that Kafka Connect makes."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from s3lake.lake.verify.avro_bytes import has_empty_items, require_datum
from s3lake.lake.verify.decoded_values import EXACT, Decode, MapValue, SinglePrecision, Uuid, return_unchanged
from s3lake.lake.verify.fill_avro_defaults import build_filler, name_branches
from s3lake.text.quantities import format_count

_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_OPEN = "open"
_UUID_BYTES = 16
_MARKS = {"float": "s3lake.float", "map": "s3lake.map", "int": "s3lake.int"}


def _read_decimal(data: bytes, schema: Any, _reader: Any = None) -> Decimal:
    unscaled = Decimal(int.from_bytes(data, "big", signed=True))
    return unscaled.scaleb(-schema.get("scale", 0), EXACT)


def _read_int(value: int, *_: Any) -> int:
    if not -(2**31) <= value < 2**31:
        raise ValueError("an integer has more than 32 bits")
    return value


def _write_decimal(value: Decimal, schema: Any) -> bytes:
    unscaled = int(value.scaleb(schema.get("scale", 0), EXACT))
    size = schema.get("size") or (unscaled.bit_length() + 8) // 8
    return unscaled.to_bytes(size, "big", signed=True)


LOGICAL_READERS["int-s3lake.int"] = _read_int
LOGICAL_READERS["float-s3lake.float"] = lambda value, *_: SinglePrecision(value)
LOGICAL_READERS["map-s3lake.map"] = lambda value, *_: MapValue(value)
LOGICAL_READERS["bytes-s3lake.decimal"] = LOGICAL_READERS["fixed-s3lake.decimal"] = _read_decimal
LOGICAL_READERS["string-s3lake.uuid"] = lambda value, *_: Uuid(value)
LOGICAL_READERS["fixed-s3lake.uuid"] = lambda value, *_: Uuid(UUID(bytes=value))
LOGICAL_WRITERS["bytes-s3lake.decimal"] = LOGICAL_WRITERS["fixed-s3lake.decimal"] = _write_decimal
LOGICAL_WRITERS["fixed-s3lake.uuid"] = lambda value, _: UUID(value).bytes


@lru_cache(4096)
def build_avro_reader(text: str, references: tuple[str, ...], null_to_default: bool = False) -> Decode:
    """Return what decodes data of a schema, which may refer to the schemas of `references`.

    Args:
        null_to_default: whether the files have the default of a field where it is null.

    Raises:
        ValueError, LookupError, TypeError: it is not a schema.
    """
    named, types, names = dict[str, Any](), dict[str, Any](), dict[str, str]()
    for schema_text in (*references, text):
        loaded = schema_text.strip() if schema_text.strip() in _PRIMITIVES else json.loads(schema_text)
        # In what fastavro parses all names are whole.
        parsed = fastavro.parse_schema(_mark_logical(loaded), named, _force=True, _ignore_default_error=True)
        schema = fastavro.parse_schema(_rewrite(parsed, names), types)

    fill = build_filler(parsed, named) if null_to_default else return_unchanged
    is_walked = has_empty_items(schema, types)

    def read(data: bytes) -> Any:
        if is_walked:
            require_datum(schema, types, data)  # before fastavro allocates whatever size they name
        stream = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(stream, schema, None)
        except (EOFError, IndexError, KeyError) as error:
            raise ValueError(f"it is not a datum of its schema: {error!r}") from None
        if stream.tell() != len(data):
            raise ValueError(f"{format_count(len(data) - stream.tell(), 'bytes')} left")
        if not is_walked and not _is_rewritten(schema, value, data):
            require_datum(schema, types, data)
        return fill(value)

    return read


def _is_rewritten(schema: Any, value: Any, data: bytes) -> bool:
    """Return whether fastavro writes the same bytes again, which is faster than to look at each.

    It writes only what is right, except for integers beyond 32 bits, which its reader refuses here.
    """
    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, schema, value)
    except Exception:  # such as a union that it cannot decide: the bytes are walked through then
        return False
    return stream.getvalue() == data


def _mark_logical(schema: Any) -> Any:
    """Return a schema in which decimals and UUIDs have our marks; other logical types are removed, invalid ones too.

    Avro ignores an invalid logical type; fastavro refuses its schema.
    """
    if isinstance(schema, list):
        return list(map(_mark_logical, schema))
    if not isinstance(schema, dict):
        return schema
    marked = {key: part for key, part in schema.items() if key != "logicalType"}
    for key in marked.keys() & {"items", "values", "type"}:
        marked[key] = _mark_logical(marked[key])
    if isinstance(marked.get("fields"), list):
        marked["fields"] = list(map(_mark_logical, marked["fields"]))
    match schema.get("type"), schema.get("logicalType"):
        case (("bytes" | "fixed"), "decimal") if _is_decimal(schema):
            marked["logicalType"] = "s3lake.decimal"
        case "string", "uuid":
            marked["logicalType"] = "s3lake.uuid"
        case "fixed", "uuid" if schema.get("size") == _UUID_BYTES:
            marked["logicalType"] = "s3lake.uuid"
    return marked


def _is_decimal(schema: dict[str, Any]) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not (type(precision) is type(scale) is int and 0 <= scale <= precision and precision > 0):
        return False
    return bool(schema["type"] == "bytes" or precision <= math.floor((8 * schema["size"] - 1) * math.log10(2)))


def _rewrite(schema: Any, names: dict[str, str]) -> Any:
    """Return a schema of the same bytes: wide unions have records of one field, floats, maps and decimals a mark.

    All other logical types are left out, so dates and times are integers. `names` are the types so far.
    """
    if isinstance(schema, list):
        return _rewrite_union(schema, names)
    if isinstance(schema, str):
        if names.get(schema) == _OPEN:
            raise ValueError(f"{schema} is inside of itself")  # on deep data fastavro's reader ends the process
        return {"type": schema, "logicalType": _MARKS[schema]} if schema in _MARKS else schema
    of = schema["type"]
    plain = {name: schema[name] for name in ("type", "name", "size", "symbols", "scale") if name in schema}
    match of:
        case "record" | "error":
            names[plain["name"]] = _OPEN
            fields = [{"name": field["name"], "type": _rewrite(field["type"], names)} for field in schema["fields"]]
            names[plain["name"]] = of
            return {**plain, "type": "record", "fields": fields}
        case "array":
            return {**plain, "items": _rewrite(schema["items"], names)}
        case "map":
            return {**plain, "values": _rewrite(schema["values"], names), "logicalType": _MARKS["map"]}
        case "enum":
            return plain
    if "logicalType" in schema:
        return {**plain, "logicalType": schema["logicalType"]}
    return plain if of == "fixed" else _rewrite(of, names)


def _rewrite_union(branches: Sequence[Any], names: dict[str, str]) -> Any:
    """Rewrite a union. If several branches hold something, each is a record of one field, which has the same bytes."""
    rewritten = [_rewrite(branch, names) for branch in branches]
    present = [branch for branch, new in zip(branches, rewritten, strict=True) if new != "null"]
    if len(present) < 2:
        return rewritten
    fields, records = iter(name_branches(present)), []
    for branch in rewritten:
        if branch == "null":
            records.append(branch)
            continue
        name = f"s3lake.Branch{len(names)}"
        names[name] = "record"
        records.append({"type": "record", "name": name, "fields": [{"name": next(fields), "type": branch}]})
    return records
