"""Corrupt Avro is refused record by record, in every format, and verify's own decoder refuses the same."""

import json
import sys
from typing import Any

import pyarrow as pa
import pytest

from s3lake.lake.verify.decode_avro import build_avro_reader
from s3lake.records.convert.read.avro import avro_values
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.kit.avro_messages import record
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic
from s3lake_tests.records.schema.registry.server import SchemaRegistry, framed

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
INTS = {"type": "array", "items": "int"}
TEXTS = {"type": "map", "values": "string"}
NULLS = {"type": "array", "items": "null"}
CORRUPT: dict[str, tuple[Any, bytes, bytes, str]] = {
    "an enum's index of -1": (ENUM, b"\2", b"\1", "number -1 of 2 symbols, at byte 5: 0 to 1 are expected"),
    "an enum's index too high": (ENUM, b"\2", b"\4", "number 2 of 2 symbols"),
    "an enum's index far too high": (ENUM, b"\2", b"\xfe\xff\xff\xff\x7f", "of 2 symbols"),
    "a boolean of 2": ("boolean", b"\1", b"\2", "byte 2 is not a boolean, at byte 5: 0 or 1 is expected"),
    "a boolean of 255": ("boolean", b"\1", b"\xff", "byte 255 is not a boolean"),
    "an int beyond 32 bits": ("int", b"\2", b"\x80\x80\x80\x80\x10", "an integer beyond 32 bits, at byte 5"),
    "an int far beyond 32 bits": ("int", b"\2", b"\xfe\xff\xff\xff\x7f", "an integer beyond 32 bits"),
    "an int of 20 bytes": ("int", b"\2", b"\x80" * 19 + b"\0", "an integer of more than 10 bytes"),
    "a long of 11 bytes": ("long", b"\2", b"\x80" * 10 + b"\0", "an integer of more than 10 bytes, at byte 5"),
    "a long beyond 64 bits": ("long", b"\2", b"\x80" * 9 + b"\2", "an integer beyond 64 bits"),
    "a text of a negative length": ("string", b"\2x", b"\1", "a length of -1"),
    "bytes of a negative length": ("bytes", b"\2x", b"\3xy", "a length of -2"),
    "a text that is not UTF-8": ("string", b"\2x", b"\2\xff", "the text at byte 5 is not UTF-8"),
    "a text longer than the record": ("string", b"\2x", b"\4x", "it ends too early: 2 bytes are expected"),
    "a branch of -1": (["null", "int"], b"\0", b"\1", "number -1 of 2 branches"),
    "a branch too high": (["null", "int"], b"\2\2", b"\4\2", "number 2 of 2 branches"),
    "a branch of a wide union too high": (["int", "string"], b"\0\2", b"\4\2", "number 2 of 2 branches"),
    "a branch of -1 of a wide union": (["int", "string"], b"\0\2", b"\1\2x", "number -1 of 2 branches"),
    "a branch of null alone too high": (["null"], b"\0", b"\2", "number 1 of 1 branches"),
    "more items than bytes": (INTS, b"\2\2\0", b"\x80\x80\x10\2\0", "it ends too early"),
    "a block of a negative size": (INTS, b"\2\2\0", b"\1\1\2\0", "a block of -1 bytes"),
    "a block of another size": (INTS, b"\1\2\2\0", b"\1\4\2\0\0", "another size than it states"),
    "a block larger than the record": (INTS, b"\1\2\2\0", b"\1\x40\2\0", "a block of 32 bytes"),
    "an array without its end": (INTS, b"\2\2\0", b"\2\2", "it ends too early: 1 bytes are expected at byte 7, 0"),
    "a name that is not UTF-8": (TEXTS, b"\2\2x\2y\0", b"\2\2\xff\2y\0", "is not UTF-8"),
    "a fixed that ends too early": ({"type": "fixed", "name": "F", "size": 3}, b"abc", b"ab", "it ends too early"),
    "a double that ends too early": ("double", bytes(8), bytes(7), "8 bytes are expected at byte 5, 7 are there"),
    "nothing": ("int", b"\2", b"", "it ends too early"),
    "bytes left over": ("int", b"\2", b"\2\2", "1 bytes are left after it"),
    "bytes left over nothing": (["null", "int"], b"\0", b"\0\0\0", "2 bytes are left after it"),
}
CASES = [
    (what, format)
    for what, (kind, *_) in CORRUPT.items()
    for format in ("json", "parquet", "avro", "csv")
    if format != "csv" or isinstance(kind, str)  # CSV has no cells of most others
]


@pytest.mark.parametrize(("what", "format"), CASES)
def test_a_corrupt_record_is_refused_between_two_that_land(registry: SchemaRegistry, what: str, format: str) -> None:
    kind, sound, corrupt, reason = CORRUPT[what]
    number = registry.add(record(("n", "int"), ("a", kind)) if kind == ["null"] else record(("a", kind)))
    head = b"\2" if kind == ["null"] else b""
    messages = [framed(number, head + data) for data in (sound, corrupt, sound)]
    converter = {"value": "avro", "registry": {"url": registry.url}}
    world = VerifiedTopic(format={"type": format}, converter=converter, errors={"tolerance": "all"})
    stage_records(world, [(None, message, []) for message in messages])
    report = world.verify()
    assert (report.differences, report.landed, report.dead_letters) == ((), 2, 1)
    (dead_letter,) = [json.loads(body) for key, (body, *_) in world.store.objects.items() if "dead" in key]
    assert reason.replace("byte 5", f"byte {5 + len(head)}") in str(dead_letter)


@pytest.mark.parametrize("what", CORRUPT)
def test_verify_reads_no_value_of_a_corrupt_record(what: str) -> None:
    kind, sound, corrupt, _ = CORRUPT[what]
    read = build_avro_reader(json.dumps(record(("a", kind))), ())
    assert read(sound).keys() == {"a"}
    with pytest.raises(ValueError, match=r"."):
        read(corrupt)


def test_corrupt_records_of_a_wide_union_cost_no_build_each() -> None:
    """Each build of 1,000 branches costs as much for one record as for many, so all are built at once."""
    branches = [record(("a", {"type": "int", "logicalType": "time-millis"}), name=f"R{at}") for at in range(300)]
    connection = Connection(urls=(), avro=json.dumps(record(("u", branches))))

    def count_calls(unsound: int) -> int:
        values = [b"\2\4"] * 100 + [b"\2\x80"] * unsound + [b"\2\1"] * unsound  # cut short; a time before its day
        raw, calls = pa.array(values, pa.binary()), 0

        def count(_frame: Any, event: str, _of: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            _, refused = avro_values.read(raw, ConverterRequest(tabular=True, texts=False, registry=connection))
        finally:
            sys.setprofile(None)
        assert len(refused) == 2 * unsound
        return calls

    count_calls(1)  # compiles the schema
    assert count_calls(20) < 1.2 * count_calls(1)
