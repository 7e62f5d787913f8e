"""Numbers and truth values in Kafka's own encodings."""

import struct
from typing import Any

import pyarrow as pa
import pytest

from s3lake.config.model import Sink
from s3lake.land.preview import preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.config import bases
from s3lake_tests.records.convert.batches import batch

ENCODED: list[tuple[str, str, Any, str, pa.DataType]] = [
    ("short", ">h", -2, "-2", pa.int32()),
    ("integer", ">i", 2**31 - 1, "2147483647", pa.int32()),
    ("long", ">q", -(2**63), "-9223372036854775808", pa.int64()),
    ("float", ">f", 0.5, "0.5", pa.float32()),
    ("float", ">f", -3.0, "-3.0", pa.float32()),
    ("float", ">f", float("inf"), '"Infinity"', pa.float32()),
    ("double", ">d", 0.1, "0.1", pa.float64()),
    ("double", ">d", 1e20, "1e20", pa.float64()),
    ("double", ">d", float("-inf"), '"-Infinity"', pa.float64()),
    ("double", ">d", float("nan"), '"NaN"', pa.float64()),
    ("boolean", ">?", True, "true", pa.bool_()),
]


@pytest.mark.parametrize(("name", "encoding", "number", "text", "type"), ENCODED)
def test_a_number_is_a_line_of_json_and_a_column(
    name: str, encoding: str, number: Any, text: str, type: pa.DataType
) -> None:
    records = batch(struct.pack(encoding, number), None)
    (part,) = convert_batch(Conversion("string", name, "json", "write"), records, {}).parts
    assert part.streams["data"].to_pylist() == [text.encode(), b"null"]
    (part, *_) = convert_batch(Conversion("string", name, "parquet", "skip"), records, {}).parts
    data = part.streams["data"]
    assert (data.schema.names, data.schema.types, str(data.column(0).to_pylist())) == (["value"], [type], f"[{number}]")


def test_other_bytes_are_no_number() -> None:
    found = convert_batch(Conversion("string", "long", "json", "write"), batch(b"\0" * 8, b"\0" * 4), {})
    assert found.refused == {1: "4 bytes are not a long: 8 are expected"}
    found = convert_batch(Conversion("string", "boolean", "json", "write"), batch(b"\1", b"\2"), {})
    assert found.refused == {1: "byte 0x02 is not a boolean: 0x00 or 0x01 is expected"}


@pytest.mark.parametrize("name", list(dict.fromkeys(name for name, *_ in ENCODED)))
def test_a_connector_s_file_names_its_class(name: str) -> None:
    java = f"org.apache.kafka.connect.converters.{name.capitalize()}Converter"
    loaded = bases.load(bases.CONFLUENT, {"key.converter": java, "value.converter": java})
    converter = loaded.config.sinks[0].converter
    assert (converter.key, converter.value) == (name, name)


def test_a_number_as_a_key_names_its_directory() -> None:
    fixed: dict[str, Any] = {"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00"}
    sink = Sink(**fixed, converter={"key": "long"}, layout={"partition_by": ["_key"]})
    records = [KafkaRecord("t", 0, 0, 1763596800000, struct.pack(">q", 42), b"{}", ())]
    (made,) = preview(sink, "t", records, 1763596800000).objects
    assert made.file.key == "t/key=42/t(0_000000000000).json"
