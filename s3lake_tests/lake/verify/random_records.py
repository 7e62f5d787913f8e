"""Random records with any key, value and headers, for converters that ask no registry."""

import json
from typing import Any

from hypothesis import strategies as st

from s3lake_tests.kit.oracles import DECIMAL, LEAVES

numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=8)
scalars = st.none() | st.booleans() | numbers | text
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
)
objects = st.dictionaries(st.sampled_from(["a", "b", "c", "é"]), documents, max_size=4)


def to_json(value: Any, indent: int | None, ascii: bool) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=ascii).encode()


values = st.builds(to_json, objects, st.none() | st.just(1), st.booleans())
packed = st.sampled_from([b"\0", b"\1", b"\0\1", b"\0\0\0\1", b"?\xf0" + bytes(6), b"\x7f\xc0\0\0", b"\xff" * 8])
strange = st.sampled_from([b' {"a": 1}\n', b'\t"a" ', b'{"a": 1e400}', b'{"a": [1, "b"]}'])
anything = (
    st.none()
    | st.binary(max_size=12)
    | packed
    | strange
    | values
    | st.builds(to_json, documents, st.none(), st.booleans())
)
connect = st.builds(
    lambda payload, optional: json.dumps(
        {
            "schema": {
                "type": "struct",
                "fields": [
                    {"type": "int64", "field": "a", "optional": optional},
                    {"type": "string", "field": "b", "optional": True, "default": "none"},
                    {"type": "array", "field": "c", "optional": True, "items": {"type": "double"}},
                ],
            },
            "payload": payload,
        }
    ).encode(),
    st.fixed_dictionaries(
        {"a": st.integers(-9, 9)},
        optional={"b": st.none() | text, "c": st.lists(st.floats(-9, 9), max_size=2)},
    ),
    st.booleans(),
)
_MISFITS = st.sampled_from([None, "x", True, 0.5, [], {}, 2**70])
_TYPED = [
    *LEAVES,
    ({"type": "float"}, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ({"type": "double", "default": 0.5}, st.floats(allow_nan=False, allow_infinity=False)),
    (DECIMAL, st.sampled_from(["BNI=", "/w==", "AA==", 12.34, -7])),
    ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, st.just([[5, 1], [7, 2]])),
    ({"type": "array", "items": {"type": "string", "optional": True}}, st.lists(st.none() | text, max_size=2)),
]


@st.composite
def _typed(draw: st.DrawFn) -> bytes:
    """A value of Connect's whose fields are of any type, and now and then no such values."""
    fields, payload = [], {}
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3)):
        schema, values = draw(st.sampled_from(_TYPED))
        fields.append({**schema, "field": name, "optional": draw(st.booleans())})
        payload[name] = draw(_MISFITS if draw(st.integers(0, 9)) == 0 else values)
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


keys = st.none() | st.binary(max_size=3) | packed | text.map(str.encode) | st.sampled_from([b'{"k":1}', b"1", b"null"])
header = st.tuples(st.sampled_from(["a", "b-c", "\u00e9"]), st.none() | st.binary(max_size=3))
headers = st.lists(header, max_size=3)
records = st.tuples(keys, anything | connect | _typed(), headers)
