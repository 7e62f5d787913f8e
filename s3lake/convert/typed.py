"""JSON to the types that JSON itself does not have: dates, decimals, UUIDs, maps, narrow numbers.

A column of such a type is *pinned*: it is read as it is spelt in JSON (as texts, or as numbers) and converted whole.
A pinned column never widens: a value that does not fit refuses its record (`spelling.py` finds which).

Everywhere, `given` is what the user gave of the same column, or what a record's own schema says: it pins every type.
"""

import base64
import binascii
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from s3lake.convert import columns as kinds
from s3lake.convert.columns import Columns
from s3lake.convert.types import Type

Spelling = Literal["text", "number"]
"""How dates, times and timestamps are spelt in JSON."""

DAY_MS = 86_400_000
_SPELT: dict[str, pa.DataType] = {"date": pa.int32(), "time": pa.int32(), "timestamp": pa.int64()}
_UUID_HYPHENS = (8, 13, 18, 23)


def is_pinned(kind: Type | None, given: Type | None) -> bool:
    """Whether a primitive type does not follow the data."""
    return isinstance(kind, str) and (given is not None or kind not in kinds.INFERRED)


def fields_of(given: Type | None) -> Columns:
    """What is given of a struct's fields."""
    return given.get("struct", {}) if isinstance(given, dict) else {}


def inside(given: Type | None, what: Literal["list", "map"]) -> Type | None:
    """What is given of a list's elements or a map's values."""
    return given.get(what) if isinstance(given, dict) else None


def holds_pinned(kind: Type | None, given: Type | None) -> bool:
    """Whether a type is pinned, or holds one that is."""
    if not isinstance(kind, dict):
        return is_pinned(kind, given)
    if "struct" in kind:
        fields = fields_of(given)
        return any(holds_pinned(one, fields.get(name)) for name, one in kind["struct"].items())
    return "map" in kind or holds_pinned(kind["list"], inside(given, "list"))


def has_map(kind: Type | None) -> bool:
    """Whether there is a map in it, whose names would each be a field to the reader of JSON."""
    if not isinstance(kind, dict):
        return False
    if "struct" in kind:
        return any(map(has_map, kind["struct"].values()))
    return "map" in kind or has_map(kind["list"])


def fitted(known: Columns, found: Columns, given: Columns, path: str = "") -> Columns:
    """Known columns united with what JSON showed; pinned ones stay as they are.

    Raises:
        Conflict: a field's types have nothing in common.
    """
    united = dict(known)
    for name, kind in found.items():
        united[name] = _fitted(known.get(name), kind, given.get(name), f"{path}.{name}" if path else name)
    return united


def _fitted(known: Type | None, found: Type | None, given: Type | None, path: str) -> Type | None:
    if is_pinned(known, given) or (isinstance(known, dict) and "map" in known):
        return known
    if isinstance(known, dict) and isinstance(found, dict) and known.keys() == found.keys():
        if "struct" in known:
            return {"struct": fitted(known["struct"], found["struct"], fields_of(given), path)}
        return {"list": _fitted(known["list"], found["list"], inside(given, "list"), f"{path}[]")}
    return kinds.unite(known, found, path)


def spelt_schema(columns: Columns, given: Columns, spelling: Spelling, found: pa.Schema = None) -> pa.Schema:
    """The schema to read JSON with; `found` is what pyarrow inferred of it, and beats `spelling`."""
    return pa.schema(
        [
            pa.field(name, _spelt(kind, given.get(name), spelling, _type_in(found, name)))
            for name, kind in columns.items()
        ]
    )


def _spelt(kind: Type, given: Type | None, spelling: Spelling, found: Any) -> pa.DataType:
    if isinstance(kind, str):
        if kind in _SPELT:
            as_number = spelling == "number" if found is None else pa.types.is_integer(found)
            return _SPELT[kind] if as_number else pa.string()
        return pa.string() if kind in ("uuid", "binary") else kinds.arrow_type(kind)
    if "struct" in kind:
        fields = fields_of(given)
        return pa.struct(
            [
                (name, _spelt(one, fields.get(name), spelling, _type_in(found, name)))
                for name, one in kind["struct"].items()
            ]
        )
    if "map" in kind:
        return pa.list_(pa.struct([("key", pa.string()), ("value", _spelt(kind["map"], None, spelling, None))]))
    element = found.value_type if found is not None and pa.types.is_list(found) else None
    return pa.list_(_spelt(kind["list"], inside(given, "list"), spelling, element))


def _type_in(found: Any, name: str) -> Any:
    """The type of a field of a schema or a struct, None where there is none."""
    if found is None or (isinstance(found, pa.DataType) and not pa.types.is_struct(found)):
        return None
    position = found.get_field_index(name)
    return found.field(position).type if position >= 0 else None


def converted(array: pa.Array, kind: Type) -> pa.Array:
    """An array that was read as it was spelt, in its own type.

    Raises:
        pa.ArrowInvalid: some value does not fit.
    """
    wanted = kinds.arrow_type(kind)
    if array.type == wanted:
        if _has_decimal(kind):
            array.validate(full=True)  # the reader of JSON looks only at the digits after the point
        return array
    if isinstance(kind, str):
        return _primitive(array, kind)
    nulls = array.is_null() if array.null_count else None
    if "struct" in kind:
        children = [converted(array.field(at), one) for at, one in enumerate(kind["struct"].values())]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=nulls)
    if "map" in kind:
        keys, values = array.values.field(0), converted(array.values.field(1), kind["map"])
        return pa.MapArray.from_arrays(array.offsets, keys, values, mask=nulls)
    return pa.ListArray.from_arrays(array.offsets, converted(array.values, kind["list"]), type=wanted, mask=nulls)


def _has_decimal(kind: Type) -> bool:
    if isinstance(kind, str):
        return kinds.digits_of(kind) is not None
    if "struct" in kind:
        return any(map(_has_decimal, kind["struct"].values()))
    return _has_decimal(kind["list"] if "list" in kind else kind["map"])


def _primitive(array: pa.Array, kind: str) -> pa.Array:
    is_text = pa.types.is_string(array.type)
    match kind:
        case "timestamp":
            return _moments(array) if is_text else array.cast(pa.timestamp("ms", "UTC"))
        case "date":
            return array.cast(pa.date32())
        case "time":
            return _times(array, is_text)
        case "uuid":
            return _uuids(array)
        case _:
            return _bytes(array)


def _moments(texts: pa.Array) -> pa.Array:
    wanted = pa.timestamp("ms", "UTC")
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:  # some lack an offset, or a time
        has_offset = pc.match_substring_regex(texts, r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$")
        has_time = pc.match_substring_regex(texts, "[T ]")
        missing = pc.if_else(has_offset, "", pc.if_else(has_time, "Z", "T00:00Z"))
        return pc.binary_join_element_wise(texts, missing, "").cast(wanted)


def _times(array: pa.Array, is_text: bool) -> pa.Array:
    if is_text:
        moments = pc.binary_join_element_wise("1970-01-01T", array, "").cast(pa.timestamp("ms"))
        array = moments.cast(pa.int64()).cast(pa.int32())
    ends = pc.min_max(array).as_py()
    if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < DAY_MS:
        raise pa.ArrowInvalid("a time is outside of its day")
    return array.cast(pa.time32("ms"))


def _uuids(texts: pa.Array) -> pa.Array:
    import numpy as np

    filled = pc.fill_null(texts, "00000000-0000-0000-0000-000000000000")
    block = b"".join(filled.cast(pa.binary()).to_pylist())
    if len(block) != 36 * len(texts) or (len(texts) and pc.max(pc.binary_length(filled)).as_py() != 36):
        raise pa.ArrowInvalid("a UUID has not 36 characters")
    characters = np.frombuffer(block, np.uint8).reshape(-1, 36)
    if not (characters[:, _UUID_HYPHENS] == ord("-")).all():
        raise pa.ArrowInvalid("a UUID has no hyphen where one belongs")
    try:
        data = binascii.unhexlify(np.delete(characters, _UUID_HYPHENS, axis=1).tobytes())
    except binascii.Error as error:
        raise pa.ArrowInvalid(f"no UUID: {error}") from None
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(data)])
    if texts.null_count:
        storage = pc.if_else(texts.is_valid(), storage, pa.scalar(None, pa.binary(16)))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _bytes(texts: pa.Array) -> pa.Array:
    try:
        found = [None if one is None else base64.b64decode(one, validate=True) for one in texts.to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid(f"no base64: {error}") from None
    return pa.array(found, pa.binary())
