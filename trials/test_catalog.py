"""A catalog that goes away, and what is said of the tables in it."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from trials.catalog import Catalog, Tables

HOUR = "2026-11-24T05"


class Bucket:
    """A directory in place of a bucket."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def objects(self) -> dict[str, float]:
        return {path.relative_to(self.root).as_posix(): 0.0 for path in self.root.rglob("*") if path.is_file()}

    def body(self, key: str) -> bytes:
        return (self.root / key).read_bytes()

    def write(self, key: str, body: Any) -> None:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(body))

    def data(self, key: str) -> str:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": ["a"]}), path)
        return f"file://{path}"

    def index(self, *keys: str) -> None:
        self.write(f".indexes/tables/orders/{HOUR}.json", {"hour": HOUR, "commits": ["c"]})
        files = [{"key": key, "kind": "data"} for key in keys]
        self.write(f".indexes/tables/orders/{HOUR}/c.json", {"files": files})


class Lake:
    """One table of one topic, in a catalog of its own."""

    def __init__(self, home: Path) -> None:
        self.bucket = Bucket(home / "lake")
        self.catalog = Catalog(home / "catalog.db")
        warehouse = f"file://{home / 'lake' / '.tables'}"
        self.client = SqlCatalog("of-tests", uri=self.catalog.uri, warehouse=warehouse)
        self.client.create_namespace("lake")
        self.table: Table = self.client.create_table("lake.orders", pa.schema([("id", pa.string())]))
        self.tables = Tables(self.catalog, self.bucket, {}, f"file://{home / 'lake'}")  # type: ignore[arg-type]

    def add(self, *keys: str) -> None:
        self.table.add_files([self.bucket.data(key) for key in keys])

    def differences(self) -> list[str]:
        return [*self.tables.differences("tables", ["orders"], "lake.{topic}")]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_catalog_that_is_away_refuses_a_client_until_it_is_back(lake: Lake):
    assert lake.catalog.take_away()
    with pytest.raises(OperationalError, match="locked"):
        lake.client.load_table("lake.orders")
    lake.catalog.bring_back()
    assert lake.client.load_table("lake.orders").name() == ("lake", "orders")


def test_a_table_can_be_scanned_while_its_catalog_is_away(lake: Lake):
    lake.add("a.parquet")
    lake.catalog.take_away()
    assert lake.tables.broken() == []
    lake.catalog.bring_back()


def test_a_scan_is_broken_when_a_listed_file_was_deleted(lake: Lake):
    lake.add("a.parquet", "b.parquet")
    (lake.bucket.root / "b.parquet").unlink()
    assert lake.tables.broken() == ["lake.orders: b.parquet"]


def test_a_table_that_lists_what_the_index_lists_has_no_differences(lake: Lake):
    lake.add("a.parquet")
    lake.bucket.index("a.parquet")
    assert lake.differences() == []


def test_a_file_that_only_the_table_or_only_the_index_lists_is_a_difference(lake: Lake):
    lake.add("a.parquet")
    lake.bucket.index("b.parquet")
    assert lake.differences() == ["lake.orders lacks b.parquet", "lake.orders has a.parquet"]
