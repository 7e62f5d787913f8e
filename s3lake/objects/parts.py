"""The parts of a record as they stand in a text file: bytes in base64, headers in JSON, the fields of a flat row."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from s3lake.objects.shape import Shape

Text = bytes | msgspec.Raw
Header = tuple[str, bytes | None]

members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""The members of a record's object, each as its text."""

text_of = msgspec.json.Decoder(str | None).decode
"""A JSON string, or null."""

_any = msgspec.json.Decoder().decode


def bytes_of(text: Text) -> bytes | None:
    """Bytes of their base64 in a JSON string."""
    encoded = text_of(text)
    return None if encoded is None else base64.b64decode(encoded, validate=True)


def headers_of(text: Text, order: Text | None = None) -> list[Header]:
    """Headers, of a list or of an object name -> value or list of values.

    Args:
        text: in JSON.
        order: names, where headers of an object repeat in another order than it tells.
    """
    headers: Any = _any(text)
    if not isinstance(headers, dict):
        return [(header["key"], _header_value(header["value"])) for header in headers or ()]
    values = {name: value if isinstance(value, list) else [value] for name, value in headers.items()}
    names: Any = [name for name in values for _ in values[name]] if order is None else _any(order)
    left = {name: iter(some) for name, some in values.items()}
    ordered = [(name, _header_value(next(left[name]))) for name in names]
    if any(True for rest in left.values() for _ in rest):
        raise ValueError("the order leaves a header out")
    return ordered


def flat_fields(shape: Shape, line: bytes) -> list[bytes]:
    """The fields of a flat row of CSV, which quotes nothing: commas are the value's own where nothing encodes it."""
    assert shape.envelope is not None
    fields, names = line.split(b","), shape.envelope.fields
    if shape.envelope.value_encoding == "base64" or "value" not in names:
        return fields
    at = names.index("value")
    end = len(fields) - (len(names) - at - 1)
    return [*fields[:at], b",".join(fields[at:end]), *fields[end:]]


def _header_value(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
