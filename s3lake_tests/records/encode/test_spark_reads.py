"""Spark's own readers on our files, through none of our code."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from s3lake.records.encode import FileFormat
from s3lake_tests.conftest import slow_after
from s3lake_tests.records.encode.written_files import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("price", pa.decimal128(20, 4)),
        ("at", pa.timestamp("ms", "UTC")),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("user", pa.struct([("name", pa.string()), ("scores", pa.list_(pa.float64()))])),
    ]
)
ROW: dict[str, Any] = {
    "id": 2**62,
    "small": -7,
    "price": Decimal("1234567890.1234"),
    "at": datetime.datetime(2026, 11, 20, 5, 7, 1, 123000, tzinfo=datetime.timezone.utc),
    "day": datetime.date(2026, 11, 20),
    "raw": b"\x00\xff",
    "tags": ["a", None],
    "counts": [("b", 2)],
    "user": {"name": "Łódź", "scores": [0.5, None]},
}


def seen(row: Any) -> dict[str, Any]:
    """A row of Spark's as the one that was written."""
    found = row.asDict(recursive=True)
    if found["at"] is not None:
        found["at"] = found["at"].astimezone(datetime.timezone.utc)
        found["counts"], found["raw"] = list(found["counts"].items()), bytes(found["raw"])
    return found


@pytest.mark.parametrize(
    "codec", slow_after(1, "Spark reads one codec as it does another", ["none", "snappy", "gzip", "zstd", "lz4"])
)
def test_spark_reads_parquet_of_every_type(spark: "SparkSession", tmp_path: Path, codec: str) -> None:
    batch = pa.RecordBatch.from_pylist([ROW, dict.fromkeys(ROW)], SCHEMA)
    path = tmp_path / "file.parquet"
    path.write_bytes(written(FileFormat("parquet", codec, None, True, None), [batch]))
    rows = spark.read.parquet(str(path)).collect()
    assert [seen(row) for row in rows] == [ROW, dict.fromkeys(ROW)]
