"""Ids and schemas of strangers: what each makes of the records that have it, and of no others."""

import json
from collections.abc import Iterator

import pytest

from s3lake.errors import ConfigurationError, TransientError
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.convert.read import wire_format
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.convert.read.strange_schemas import GOOD, STRANGE
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with serving() as found:
        yield found


def convert(registry: SchemaRegistry, converter: str, *values: bytes, format: str = "parquet") -> ConvertedBatch:
    return convert_batch(
        Conversion("string", converter, format, "skip", registry=registry.connection), batch(*values), {}
    )


def with_a_neighbour(registry: SchemaRegistry, converter: str, stranger: bytes) -> str:
    """Why a value is refused whose neighbours are sound. Asserts that they land."""
    schema, kind, data = GOOD[converter]
    sound = framed(registry.add(schema, kind), data)
    found = convert(registry, converter, sound, stranger, sound)
    assert [row for part in found.parts for row in part.streams["data"].to_pylist()] == [{"a": 7}, {"a": 7}]
    assert list(found.refused) == [1]
    return found.refused[1]


@pytest.mark.parametrize(("converter", "format"), [("avro", "parquet"), ("avro", "avro"), ("avro", "json")])
def test_six_bytes_with_an_id_that_no_registry_has_are_one_refused_record(
    registry: SchemaRegistry, converter: str, format: str
) -> None:
    schema, kind, data = GOOD[converter]
    sound = framed(registry.add(schema, kind), data)
    found = convert(registry, converter, sound, bytes.fromhex("00ffffffff02"), format=format)
    assert found.refused == {1: "schema id 4294967295: a registry's ids are at most 2147483647"}


@pytest.mark.parametrize("converter", GOOD)
def test_an_id_beyond_a_registrys_refuses_its_record_alone(registry: SchemaRegistry, converter: str) -> None:
    _, _, data = GOOD[converter]
    reason = with_a_neighbour(registry, converter, framed(2**32 - 1, data))
    assert reason == "schema id 4294967295: a registry's ids are at most 2147483647"
    assert all("4294967295" not in path for path, _ in registry.asked)


@pytest.mark.parametrize("converter", ["avro", "protobuf"])
def test_a_key_with_an_id_beyond_a_registrys_refuses_its_record_alone(registry: SchemaRegistry, converter: str) -> None:
    schema, kind, data = GOOD[converter]
    keys = [framed(registry.add(schema, kind), data), framed(2**32 - 1, data)]
    conversion = Conversion(converter, "json", "json", "skip", registry=registry.connection, keyed=True)
    found = convert_batch(conversion, batch(b"{}", b"{}", keys=keys), {})
    assert list(found.refused) == [1]
    assert "schema id 4294967295: a registry's ids are at most" in found.refused[1]


@pytest.mark.parametrize(("converter", "kind"), [(name, kind) for name, kinds in STRANGE.items() for kind in kinds])
def test_a_strange_schema_stops_no_other_record(registry: SchemaRegistry, converter: str, kind: str) -> None:
    """Its records are columns or refused, with a reason that a dead letter can hold; its neighbours land."""
    good, language, data = GOOD[converter]
    sound = framed(registry.add(good, language), data)
    strange = framed(registry.add(STRANGE[converter][kind], language), data)
    found = convert(registry, converter, sound, strange)
    assert 0 not in found.refused
    landed = [row for part in found.parts for row in part.streams["data"].to_pylist()]
    assert len(landed) + len(found.refused) == 2
    for reason in found.refused.values():
        assert reason.encode().isascii()
        assert "schema id" in reason


@pytest.mark.parametrize("error", [RecursionError("deep"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), KeyError])
def test_an_error_of_a_compiler_is_the_reason_of_its_records(error: Exception) -> None:
    def compile_text(*_: object) -> str:
        raise error

    reason = wire_format.compile_foreign(compile_text, "{}")
    assert reason.startswith("the schema cannot be used: ")
    reason.encode()


@pytest.mark.parametrize("error", [MemoryError, TransientError("later"), ConfigurationError("no compiler")])
def test_an_error_that_is_not_the_schemas_fault_is_raised(error: Exception) -> None:
    def compile_text(*_: object) -> str:
        raise error

    with pytest.raises((MemoryError, TransientError, ConfigurationError)):
        wire_format.compile_foreign(compile_text, "{}")


def test_a_reason_has_no_half_characters() -> None:
    assert wire_format.compile_foreign(lambda *_: "it is called \ud800", "{}") == r"it is called \ud800"


def test_a_language_that_no_converter_reads_is_the_error_of_its_records(registry: SchemaRegistry) -> None:
    reason = with_a_neighbour(registry, "avro", framed(registry.add("<xml>", "XML"), b"\2"))
    assert "it is a schema of XML, not of AVRO: set the converter that fits" in reason


@pytest.mark.parametrize("converter", GOOD)
def test_references_without_end_refuse_their_record_alone(registry: SchemaRegistry, converter: str) -> None:
    schema, kind, data = GOOD[converter]
    text = schema if isinstance(schema, str) else json.dumps(schema)
    registry.add(text, kind, subject="a", refers=[("b", "b")])
    registry.add(text, kind, subject="b", refers=[("a", "a")])
    number = registry.add(text, kind, refers=[("a", "a")])
    reason = with_a_neighbour(registry, converter, framed(number, data))
    assert reason == f"schema id {number}: its reference 'a' refers to itself"
