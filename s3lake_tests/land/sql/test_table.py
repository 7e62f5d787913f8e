"""Records as rows for SQL, without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from s3lake.land import job
from s3lake.land.job import Job
from s3lake.land.sql.table import Tabulate
from s3lake.source.records import SCHEMA, UNREADABLE, UNREADABLE_HEADERS
from s3lake.transform import sql


def test_a_record_whose_headers_cannot_be_read_is_refused_without_them() -> None:
    headers = [[("h", b"v")], UNREADABLE]
    rows = [{"partition": 0, "offset": at, "value": b"1", "headers": one} for at, one in enumerate(headers)]
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    tabulate = Tabulate("t", "bytes", "string", {}, sql.parse("value", None), carried=("key", "headers"))
    (table,) = tabulate([batch])
    assert table.column("__refused").to_pylist() == [None, UNREADABLE_HEADERS]
    assert table.column("__headers").to_pylist() == [[{"key": "h", "value": b"v"}], None]
    assert table.column("_headers").to_pylist() == [[("h", "v")], []]


@pytest.mark.parametrize(("field", "shown"), [("password", "…"), ("other", "'hunter2'")])
def test_what_sparks_error_quotes_is_left_out_if_the_query_names_a_secret(
    monkeypatch: pytest.MonkeyPatch, field: str, shown: str
) -> None:
    def projected(*_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(job, "failure", lambda _: "The value 'hunter2' cannot be cast to BIGINT")
    monkeypatch.setattr(Job, "_projected", projected)
    tabulate = Tabulate("t", "bytes", "json", {}, sql.parse(f"cast({field} AS BIGINT) AS n", None))
    sink: Any = None
    of = Job(sink, "t", sink, lambda: sink)
    assert of._fails(tabulate, {}) == f"The value {shown} cannot be cast to BIGINT"
