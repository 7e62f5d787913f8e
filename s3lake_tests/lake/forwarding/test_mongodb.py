"""Hours in a collection of MongoDB: what is its own."""

import pytest
from bson.decimal128 import Decimal128

from s3lake.lake.forwarding.destination import forward_hour
from s3lake.lake.forwarding.mongodb import MongoDB, decode_document
from s3lake_tests.lake.forwarding.conftest import System
from s3lake_tests.lake.forwarding.landed import Land, hour_of

_SLOW = pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")


@_SLOW
@pytest.mark.usefixtures("in_mongodb")
def test_one_process_is_refused_if_two_claim_an_hour_at_once(mongodb: str, land: Land) -> None:
    hour, destination = hour_of(land()), MongoDB(mongodb)
    claim = destination.write_entry(hour, complete=False, after=None)
    assert destination.write_entry(hour, complete=False, after=None) is None
    assert destination.write_entry(hour, complete=False, after=claim) is not None
    assert destination.write_entry(hour, complete=True, after=claim) is None
    assert destination.read_content(hour) is None


def test_no_digit_of_a_number_is_lost() -> None:
    numbers = b"[0.1, 1e300, 9223372036854775807, 12345678901234567890.10]"
    assert decode_document(b'{"of": %s, "id": 1e400}' % numbers) == {
        "of": [0.1, 1e300, 2**63 - 1, Decimal128("12345678901234567890.10")],
        "id": Decimal128("1E+400"),
    }


@_SLOW
def test_a_record_that_no_document_can_hold_fits_as_text(in_mongodb: System, land: Land) -> None:
    values = ['{"id": 1}', r'{"id": 1, "private\u0000": 2}', f'{{"id": {"1" * 40}}}']
    assert forward_hour(hour_of(land(*values)), in_mongodb.open(record="text")).outcome == "written"
    assert [row["record"] for row in sorted(in_mongodb.find(), key=lambda row: row["row"])] == values
