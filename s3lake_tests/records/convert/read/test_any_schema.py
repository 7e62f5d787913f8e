"""Any text as a schema: its records are converted or refused, and no converter raises."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.strange_schemas import GOOD
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving

WORDS = re.findall(
    r"\S+",
    """type name fields items values symbols size logicalType precision scale default doc aliases namespace record array
    map enum fixed null int long float double string bytes boolean decimal date timestamp-micros uuid union error
    properties required additionalProperties oneOf anyOf allOf $ref $id $anchor $defs definitions const format title
    description object integer number connect.type connect.index connect.parameters connect.version connect.name # #/
    int8 int64 float32 field optional parameters version struct keys schema payload R a \ud800
    org.apache.kafka.connect.data.Decimal org.apache.kafka.connect.data.Timestamp io.debezium.time.MicroTime""",
)
LEAVES = (
    st.none() | st.booleans() | st.sampled_from([-1, 0, 1, 2**31, 2**63, 10**400, 0.5, 1e308]) | st.sampled_from(WORDS)
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(WORDS), part, max_size=4),
    max_leaves=12,
)
PROTO_WORDS = re.findall(
    r"\S+",
    """syntax "proto2" "proto3" package import "google/protobuf/any.proto" message enum oneof map< > , string int32 0 -1
    repeated optional required group extensions extend option reserved to max = ; { } [ ] R a b 1 536870912 default
    packed deprecated true service rpc returns ( ) // /* */ \\ \0 \ud800 R. .R google.protobuf.Struct""",
)
PROTOS = st.lists(st.sampled_from(PROTO_WORDS), max_size=30).map(" ".join)
"""Words of the language in any order; most are no schema, and all must be refused as none."""


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with serving() as found:
        yield found


def near(good: Any) -> st.SearchStrategy[Any]:
    """A good schema of which some parts are other documents."""
    if isinstance(good, dict):
        members = {name: near(part) | DOCUMENTS for name, part in good.items()}
        extra = st.dictionaries(st.sampled_from(WORDS), DOCUMENTS, max_size=2)
        return st.builds(lambda own, more: {**more, **own}, st.fixed_dictionaries(members), extra) | DOCUMENTS
    return st.lists(st.one_of(map(near, good)), max_size=3) if isinstance(good, list) and good else st.just(good)


def convert(registry: SchemaRegistry, converter: str, schema: str, references: dict[str, str]) -> None:
    good, kind, data = GOOD[converter]
    sound = framed(registry.add(good, kind), data)
    for name, reference in references.items():
        registry.add(reference, kind, subject=name)
    strange = framed(registry.add(schema, kind, refers=[(name, name) for name in references]), data)
    found = convert_batch(
        Conversion("string", converter, "parquet", "skip", registry=registry.connection), batch(sound, strange), {}
    )
    assert 0 not in found.refused
    assert sum(len(part.streams["data"]) for part in found.parts) + len(found.refused) == 2
    assert all(reason.encode() for reason in found.refused.values())


@pytest.mark.parametrize("converter", ["avro", "json_schema"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_document_as_a_schema_stops_no_other_record(
    registry: SchemaRegistry, converter: str, data: st.DataObject
) -> None:
    schema = json.dumps(data.draw(near(GOOD[converter][0])))
    references = data.draw(st.dictionaries(st.sampled_from(["R", "a", "#"]), DOCUMENTS.map(json.dumps), max_size=2))
    convert(registry, converter, schema, references)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=PROTOS, imported=PROTOS)
def test_any_text_as_protobuf_stops_no_other_record(registry: SchemaRegistry, text: str, imported: str) -> None:
    convert(registry, "protobuf", text, {"a.proto": imported})


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    schema=near({"type": "struct", "name": "R", "fields": [{"field": "a", "type": "int64", "optional": True}]}),
    payload=DOCUMENTS,
)
@pytest.mark.parametrize("format", ["parquet", "json", "avro"])
def test_any_document_as_a_schema_of_connect_stops_no_other_record(format: str, schema: Any, payload: Any) -> None:
    good = {"type": "struct", "fields": [{"field": "a", "type": "int64", "optional": True}]}
    sound = json.dumps({"schema": good, "payload": {"a": 7}}).encode()
    strange = json.dumps({"schema": schema, "payload": payload}).encode()
    found = convert_batch(Conversion("string", "connect_json", format, "write"), batch(sound, strange), {})
    assert 0 not in found.refused
    assert sum(len(part.streams["data"]) for part in found.parts) + len(found.refused) == 2
