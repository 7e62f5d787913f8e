"""Kafka Connect's own JSON converter, in Java: what it writes of a value is the line that is landed, or none is."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.encode import json_texts
from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.oracles import DECIMAL, LEAVES, json_converter, read_json, run_connect
from s3lake_tests.records.convert.batches import batch

pytestmark = [pytest.mark.slow("an oracle: what Kafka Connect itself does, in a JVM"), pytest.mark.usefixtures("jvm")]

VALUES = [
    *LEAVES,
    ({"type": "int64"}, st.integers(-(2**63), 2**63 - 1)),
    # Java 17 writes many a double in more digits than are needed.
    ({"type": "double"}, st.integers(-(10**9), 10**9).map(lambda number: number / 8)),
    ({"type": "string"}, st.text(st.characters(codec="utf-8"), max_size=4)),
    (DECIMAL, st.sampled_from(["BNI=", "/w==", "AA==", "AIA=", "gA=="])),
]


@st.composite
def schemas(draw: st.DrawFn, deep: int = 0) -> tuple[dict[str, Any], Any]:
    """A schema, and a value of it."""
    kind = draw(st.sampled_from(["leaf", "leaf", "struct", "array", "map", "pairs"] if deep < 3 else ["leaf"]))
    more = {"optional": True} if draw(st.booleans()) else {}
    if kind == "struct":
        inner = {name: draw(schemas(deep + 1)) for name in draw(st.lists(st.sampled_from("abc"), unique=True))}
        fields = [{**schema, "field": name} for name, (schema, _) in inner.items()]
        return {"type": "struct", "fields": fields, **more}, {name: value for name, (_, value) in inner.items()}
    if kind != "leaf":
        schema, value = draw(schemas(deep + 1))
        if kind == "array":
            return {"type": "array", "items": schema, **more}, [value]
        keys, of = ("string", {"k": value}) if kind == "map" else ("int32", [[7, value]])
        return {"type": "map", "keys": {"type": keys}, "values": schema, **more}, of
    schema, values = draw(st.sampled_from(VALUES))
    default = {"default": draw(values)} if draw(st.integers(0, 4)) == 0 else {}
    value = None if more and draw(st.booleans()) else draw(values)
    return {**schema, **more, **default}, value


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with run_connect() as java:
        yield java


def written(java: Any, schema: dict[str, Any], payload: Any, **options: str) -> tuple[bytes, Any]:
    """A value in Connect's JSON, in the field of a struct, and what Connect writes of it."""
    fields = {"type": "struct", "fields": [{**schema, "field": "v"}]}
    raw = json.dumps({"schema": fields, "payload": {"v": payload}}).encode()
    value = json_converter(java, schemas=True).toConnectData("t", raw)
    by = json_converter(java, schemas=False, **options)
    return raw, read_json(by.fromConnectData("t", value.schema(), value.value()))


@settings(max_examples=200 * EXAMPLES)
@given(drawn=schemas())
def test_a_value_with_a_schema_is_what_connect_writes(java: Any, drawn: tuple[dict[str, Any], Any]) -> None:
    raw, theirs = written(java, *drawn, decimal_format="NUMERIC")
    # As Connect's converter does by default: a null becomes the default of its schema.
    by = Conversion("string", "connect_json", "json", "write", null_to_default=("value",))
    converted = convert_batch(by, batch(raw), {})
    assert converted.refused == {}
    (line,) = converted.parts[0].streams["data"].to_pylist()
    assert read_json(line) == theirs


@pytest.mark.parametrize("number", [0.1, 1.0, -64.37988, 16777216.0, 3.4028235e38, 1e-5])
def test_a_float_is_the_number_that_connect_writes(java: Any, number: float) -> None:
    _, theirs = written(java, {"type": "float"}, number)
    (text,) = json_texts.format_floats(pa.array([number], pa.float32())).to_pylist()
    assert read_json(text) == theirs["v"]
