"""How values of columns are spelled in documents."""

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from s3lake.errors import ConfigurationError
from s3lake.forwarding.hour import read_rows
from s3lake.objects import Shape


def document(value: Any, type: pa.DataType) -> str:
    batch = pa.record_batch([pa.array([value], type)], names=["it"])
    [row] = read_rows(Shape("parquet"), batch, "file", 0, 0)
    return row.document.decode()


@pytest.mark.parametrize(
    ("value", "type", "spelled"),
    [
        (2**63 - 1, pa.int64(), "9223372036854775807"),
        (float("nan"), pa.float64(), "null"),
        (Decimal("12345678901234567890.10"), pa.decimal128(38, 2), "12345678901234567890.10"),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        (date(2026, 11, 20), pa.date32(), '"2026-11-20"'),
        (
            datetime(2026, 11, 20, 5, 0, 0, 1500, timezone.utc),
            pa.timestamp("us", "UTC"),
            '"2026-11-20T05:00:00.001500Z"',
        ),
        ([("a", 1), ("b", None)], pa.map_(pa.string(), pa.int32()), '{"a":1,"b":null}'),
        ([{"x": ["y"]}], pa.list_(pa.struct([("x", pa.list_(pa.string()))])), '[{"x":["y"]}]'),
        (None, pa.string(), "null"),
    ],
)
def test_a_value_keeps_all_of_its_digits_and_bytes(value: Any, type: pa.DataType, spelled: str) -> None:
    assert document(value, type) == f'{{"it":{spelled}}}'


def test_a_moment_after_the_year_9999_is_refused_with_its_rows() -> None:
    moment = pa.array([10**18]).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(ConfigurationError, match="file: rows 40 to 40 have a value that JSON cannot hold"):
        list(read_rows(Shape("parquet"), pa.record_batch([moment], names=["at"]), "file", 0, 40))
