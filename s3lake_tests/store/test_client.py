"""What clients of S3 are made with."""

import pytest
from botocore.utils import parse_timestamp

from s3lake.store.client import _moment


@pytest.mark.parametrize("date", ["Sun, 22 Nov 2026 10:14:48 GMT", "2026-11-22T10:14:48.123Z", "1795342488"])
def test_dates_are_read_as_botocore_reads_them(date: str) -> None:
    assert _moment(date) == parse_timestamp(date)
