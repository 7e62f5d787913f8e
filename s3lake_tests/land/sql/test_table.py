"""Records as rows for SQL, without Spark."""

import pyarrow as pa

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
