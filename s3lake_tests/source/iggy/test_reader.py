"""Ranges of Iggy's messages as record batches, read by the real client."""

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from s3lake.errors import SourceUnavailableError, TransientError
from s3lake.source.iggy import reader
from s3lake.source.iggy.reader import IggyReader
from s3lake.source.record_batches import SCHEMA, OffsetRange
from s3lake_tests.source.iggy.iggy_settings import START_US, build_connection
from s3lake_tests.source.iggy.server import IggyServer, header, serving


@pytest.fixture
def server() -> Iterator[IggyServer]:
    with serving() as server:
        server.topic("shop", "orders", 2)
        yield server


def rows(
    server: IggyServer, *ranges: OffsetRange, columns: tuple[str, ...] = tuple(SCHEMA.names)
) -> list[dict[str, Any]]:
    batches = IggyReader(build_connection(server)).batches("shop.orders", ranges, columns)
    return pa.Table.from_batches(batches, pa.schema([SCHEMA.field(name) for name in columns])).to_pylist()


def test_a_range_is_exact_to_the_offset(server: IggyServer) -> None:
    server.append("shop", "orders", [b"%d" % number for number in range(9)], START_US)
    server.append("shop", "orders", [b"other"], START_US, partition=1)
    found = rows(server, OffsetRange(0, 2, 5), OffsetRange(1, 0, 1), columns=("partition", "offset", "value"))
    assert [tuple(row.values()) for row in found] == [(0, 2, b"2"), (0, 3, b"3"), (0, 4, b"4"), (1, 0, b"other")]


def test_an_empty_range_sends_no_request(server: IggyServer) -> None:
    assert rows(server, OffsetRange(0, 3, 3)) == []
    assert server.requests == []


def test_times_are_in_microseconds_as_the_server_stamped_them(server: IggyServer) -> None:
    server.append("shop", "orders", [b"x"], START_US + 123_456)
    (row,) = rows(server, OffsetRange(0, 0, 1), columns=("timestamp",))
    assert row["timestamp"].microsecond == 123_456


def test_the_id_of_128_bits_is_the_key(server: IggyServer) -> None:
    server.append("shop", "orders", [b"x"], START_US, first_id=2**128 - 1)
    (row,) = rows(server, OffsetRange(0, 0, 1), columns=("key",))
    assert row["key"] == b"340282366920938463463374607431768211455"


@pytest.mark.parametrize(
    ("header_type", "value", "text"),
    [
        ("string", b"gold", b"gold"),
        ("raw", b"\xff\x00", b"\xff\x00"),
        ("bool", b"\x01", b"true"),
        ("int8", b"\xff", b"-1"),
        ("int64", struct.pack("<q", -(2**63)), b"-9223372036854775808"),
        ("uint64", struct.pack("<Q", 2**64 - 1), b"18446744073709551615"),
        ("int128", (-(2**127)).to_bytes(16, "little", signed=True), b"-170141183460469231731687303715884105728"),
        ("uint128", (2**128 - 1).to_bytes(16, "little"), b"340282366920938463463374607431768211455"),
        ("float64", struct.pack("<d", 0.1), b"0.1"),
        ("float32", struct.pack("<f", 0.5), b"0.5"),
    ],
)
def test_headers_with_types_are_texts(server: IggyServer, header_type: str, value: bytes, text: bytes) -> None:
    server.append("shop", "orders", [b"x"], START_US, headers=[header("tier", header_type, value)])
    (row,) = rows(server, OffsetRange(0, 0, 1), columns=("headers",))
    assert row["headers"] == [{"key": "tier", "value": text}]


def test_a_message_without_headers_has_none(server: IggyServer) -> None:
    server.append("shop", "orders", [b"x"], START_US)
    assert rows(server, OffsetRange(0, 0, 1), columns=("headers",)) == [{"headers": None}]


def test_expired_messages_are_an_error_and_not_passed_over(server: IggyServer) -> None:
    server.append("shop", "orders", [b"x"] * 9, START_US)
    server.expire("shop", "orders", 4)
    with pytest.raises(TransientError, match="no message at offset 2 any more"):
        rows(server, OffsetRange(0, 2, 9))


def test_a_deleted_topic_is_an_error(server: IggyServer) -> None:
    del server.streams["shop"]["orders"]
    with pytest.raises(TransientError, match=r"topic 'shop.orders', partition 0 is not there any more"):
        rows(server, OffsetRange(0, 0, 1))


def test_a_log_that_ends_before_the_plan_is_an_error_after_a_wait(
    server: IggyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SILENCE_S", 0.5)
    server.append("shop", "orders", [b"x"], START_US)
    with pytest.raises(SourceUnavailableError, match=r"from offset 1 on within 0\.5 s; 5 was planned"):
        rows(server, OffsetRange(0, 0, 5))


def test_batches_of_large_messages_stay_small(server: IggyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIRST_ROWS", 2)
    monkeypatch.setattr(reader, "BATCH_BYTES", 3_000)
    server.append("shop", "orders", [b"x" * 1000] * 9, START_US)
    batches = IggyReader(build_connection(server)).batches("shop.orders", [OffsetRange(0, 0, 9)], ("value",))
    assert [batch.num_rows for batch in batches] == [2, 3, 3, 1]
