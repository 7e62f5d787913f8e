"""Schemas that a header names: where it is looked for, and what becomes of the record."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import ConvertedBatch, convert_batch
from s3lake.records.convert.read.schema_headers import prepend_schema_ids
from s3lake_tests.records.convert.batches import Headers, batch
from s3lake_tests.records.convert.read.strange_schemas import GOOD
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed, serving

NAMED: Headers = [("trace", b"t"), ("__value_schema_id", b"\0\0\0\0\7")]
UNKNOWN = UUID("6da336d8-f1d3-0f98-4c47-d03ee8a14a1e")


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with serving() as found:
        yield found


def values_after(headers: list[Headers | None], *values: bytes | None) -> list[bytes | None]:
    records = prepend_schema_ids(batch(*values, headers=headers), {"value"})
    return records.column("value").to_pylist()  # type: ignore[no-any-return]


def test_the_id_of_a_schema_in_a_header_is_put_before_the_data() -> None:
    assert values_after([NAMED, None, []], b"data", b"other", b"") == [b"\0\0\0\0\7data", b"other", b""]


def test_an_empty_value_with_a_named_schema_has_no_data() -> None:
    assert values_after([NAMED], b"") == [b"\0\0\0\0\7"]


def test_a_tombstone_stays_one_despite_a_header() -> None:
    assert values_after([NAMED, NAMED], None, b"x") == [None, b"\0\0\0\0\7x"]


def test_the_last_of_several_headers_counts() -> None:
    assert values_after([[*NAMED, ("__value_schema_id", b"\0\0\0\0\x08")]], b"x") == [b"\0\0\0\0\x08x"]


def test_a_header_without_a_value_names_no_schema() -> None:
    assert values_after([[("__value_schema_id", None)]], b"x") == [b"x"]


def test_each_row_of_a_part_of_a_batch_has_its_own_header() -> None:
    headers: list[Headers | None] = [NAMED, None, [("__value_schema_id", b"\0\0\0\0\x08")], None]
    records = batch(b"a", b"b", b"c", b"d", headers=headers).slice(1, 2)
    found = prepend_schema_ids(records, {"value"})
    assert found.column("value").to_pylist() == [b"b", b"\0\0\0\0\x08c"]


def test_keys_and_values_have_headers_of_their_own() -> None:
    headers: Headers = [("__key_schema_id", b"\0\0\0\0\1"), ("__value_schema_id", b"\0\0\0\0\2")]
    found = prepend_schema_ids(batch(b"v", keys=[b"k"], headers=[headers]), {"key", "value"})
    assert (found.column("key").to_pylist(), found.column("value").to_pylist()) == (
        [b"\0\0\0\0\1k"],
        [b"\0\0\0\0\2v"],
    )


def test_a_part_that_names_no_schema_keeps_its_bytes() -> None:
    assert prepend_schema_ids(batch(b"v", headers=[NAMED]), set()).column("value").to_pylist() == [b"v"]


def convert(registry: SchemaRegistry, converter: str, *values: bytes, format: str = "parquet") -> ConvertedBatch:
    by = Conversion("string", converter, format, "skip", registry=registry.connection)
    return convert_batch(by, batch(*values), {})


def named_by_guid(guid: UUID, data: bytes) -> bytes:
    return b"\1" + guid.bytes + data


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("converter", GOOD)
def test_a_schema_is_found_by_its_guid(registry: SchemaRegistry, converter: str, format: str) -> None:
    schema, kind, data = GOOD[converter]
    by_guid, by_id = registry.add_with_guid(schema, kind), registry.add(schema, kind)
    values = [framed(by_id, data), named_by_guid(by_guid, data), framed(by_id, data)]
    found = convert(registry, converter, *values, format=format)
    assert found.refused == {}
    assert sum(part.streams["data"].num_rows for part in found.parts) == 3
    assert {path for path, _ in registry.asked} == {f"/schemas/ids/{by_id}", f"/schemas/guids/{by_guid}"}


def test_avro_files_have_the_data_behind_an_id_and_behind_a_guid(registry: SchemaRegistry) -> None:
    schema, kind, data = GOOD["avro"]
    values = [framed(registry.add(schema, kind), data), named_by_guid(registry.add_with_guid(schema, kind), data)]
    (part,) = convert(registry, "avro", *values, format="avro").parts
    assert part.streams["data"].column(0).to_pylist() == [data, data]


@pytest.mark.parametrize("converter", GOOD)
def test_a_guid_that_is_not_registered_refuses_its_record_alone(registry: SchemaRegistry, converter: str) -> None:
    schema, kind, data = GOOD[converter]
    sound = named_by_guid(registry.add_with_guid(schema, kind), data)
    found = convert(registry, converter, sound, named_by_guid(UNKNOWN, data), sound)
    assert found.refused == {1: f"schema GUID {UNKNOWN}: the registry reports 'Schema {UNKNOWN} not found'"}


@pytest.mark.parametrize("converter", GOOD)
def test_data_that_do_not_fit_the_schema_of_a_guid_are_refused_by_its_name(
    registry: SchemaRegistry, converter: str
) -> None:
    schema, kind, _ = GOOD[converter]
    guid = registry.add_with_guid(schema, kind)
    found = convert(registry, converter, named_by_guid(guid, b"\0\xff"))
    assert list(found.refused) == [0]
    if converter == "avro":
        assert found.refused[0].startswith(f"the data does not fit schema GUID {guid}: ")


def test_a_guid_that_is_too_short_is_refused_without_a_request(registry: SchemaRegistry) -> None:
    found = convert(registry, "avro", b"\1" + b"x" * 15)
    assert found.refused == {0: "16 bytes are too few: behind the first one, 0x01, the schema's GUID in 16 is expected"}
    assert registry.asked == []
