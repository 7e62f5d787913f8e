"""Timestamps of records, whatever unit their source has."""

from typing import Any

import pyarrow as pa
import pytest

from s3lake.records.record_timestamps import NO_TIMESTAMP, to_epoch_ms

NANOSECONDS = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("type", "given", "milliseconds"),
    [
        (pa.timestamp("ms", "UTC"), [1_500, NO_TIMESTAMP, NANOSECONDS, 2**63 - 1], [1_500, -1, NANOSECONDS, 2**63 - 1]),
        (pa.timestamp("us", "UTC"), [1_500_999, -1_000, None], [1_500, NO_TIMESTAMP, None]),
        (pa.int64(), [1_500, NO_TIMESTAMP, NANOSECONDS], [1_500, NO_TIMESTAMP, NANOSECONDS]),
    ],
)
def test_timestamps_become_milliseconds_and_none_is_lost(type: Any, given: list[Any], milliseconds: list[Any]) -> None:
    assert to_epoch_ms(pa.array(given, type)).to_pylist() == milliseconds
