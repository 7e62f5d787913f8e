"""Spark's own Iceberg and a table of ours: what it reads, and what its maintenance may do."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from s3lake.land.spark.jars import resolve
from s3lake_tests.lake.table.iceberg.catalogs import SPARK_JARS
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SIX, Shelf, loaded, rows

pytestmark = [pytest.mark.usefixtures("jvm"), pytest.mark.slow("a Spark with Iceberg, in a process of its own")]


def by_spark(shelf: Shelf) -> dict[str, Any]:
    """The program's output; it has a JVM of its own, with Iceberg in it."""
    asked = {
        "jars": [str(jar) for jar in resolve("iceberg", SPARK_JARS)],
        "database": f"{shelf.home}/catalog.db",
        "bucket": shelf.bucket,
        "endpoint": shelf.server.endpoint_url,
        "key": shelf.server.access_key_id,
        "secret": shelf.server.secret_access_key,
        "moment": "2026-11-20 05:00:00",
    }
    program = Path(__file__).with_name("spark_reader.py")
    done = subprocess.run(
        [sys.executable, str(program)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_spark_reads_every_snapshot_and_its_maintenance_deletes_nothing(make: Callable[..., Shelf]) -> None:
    shelf = make(layout={"partition_by": ["type"]}, table={"partition": ["hour", "type"]})
    moments = pa.array([1, None], pa.timestamp("ms", "UTC"))
    first = shelf.commit(
        FIVE,
        pa.table({"id": pa.array([1, 2], pa.int32()), "type": ["a", "a"], "at": moments}),
        pa.table({"id": pa.array([3], pa.int32()), "type": ["b"]}),
    )
    shelf.table().sync()
    shelf.commit(SIX, pa.table({"id": [2**40], "type": ["a"], "deep": [{"names": ["x"], "n": {"k": 1}}]}))
    shelf.table().sync()
    shelf.commit(FIVE, pa.table({"id": [7], "type": ["b"]}), replaces=[first.id])
    # The objects of the first commit are there still: its snapshots are read too.
    shelf.table().sync()

    answer = by_spark(shelf)

    assert answer["counts"] == [3, 4, 2]
    assert answer["rows"] == [
        {"landed_hour": "2026-11-20T05:00:00.000Z", "id": 7, "type": "b"},
        {"landed_hour": "2026-11-20T06:00:00.000Z", "id": 2**40, "type": "a", "deep": {"names": ["x"], "n": {"k": 1}}},
    ]
    assert answer["hour"] == 1
    assert answer["compacted"] == 2
    assert "GC is disabled" in answer["expired"]
    assert "GC is disabled" in answer["orphans"]
    # It has moved all rows into files of its own: ours go on, and where they replace, they replace those.
    assert shelf.table().sync() == []
    (second,) = (one for one in shelf.index.tile(SIX)[0].commits)  # type: ignore[index]
    shelf.commit(SIX, pa.table({"id": [8], "type": ["a"]}), replaces=[second])
    shelf.table().sync()
    assert sorted(row["id"] for row in rows(shelf)) == [7, 8]
    assert {task.file.partition[1] for task in loaded(shelf).scan().plan_files()} == {"a", "b"}
