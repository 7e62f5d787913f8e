"""Catalogs other than SQLite, each a server: a table is the same in each of them."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.index.store.s3_connection import S3Connection
from s3lake.lake.table.iceberg import iceberg_catalog
from s3lake_tests.lake.forwarding.servers import find_postgres
from s3lake_tests.lake.table.iceberg import catalogs
from s3lake_tests.lake.table.iceberg.catalogs import Properties
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SEVEN, SIX, Shelf, compacted, loaded, rows

pytestmark = pytest.mark.slow("another catalog than SQLite's, each a server")

NAMES = [
    "glue",
    pytest.param("rest", marks=pytest.mark.jvm),
    pytest.param("hive", marks=pytest.mark.jvm),
    pytest.param(
        "postgres",
        marks=pytest.mark.skipif(find_postgres() is None, reason="PostgreSQL is missing: apt-get install postgresql"),
    ),
]


@pytest.fixture(scope="module")
def glue(s3_server: EmbeddedS3) -> Properties:
    return {"type": "glue", "glue.endpoint": s3_server.endpoint_url}


@pytest.fixture(scope="module")
def rest(s3_server: EmbeddedS3) -> Iterator[Properties]:
    with catalogs.rest(s3_server) as properties:
        yield properties


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Properties]:
    with catalogs.hive(tmp_path_factory.mktemp("hive")) as properties:
        yield properties


@pytest.fixture(scope="module")
def postgres() -> Iterator[Properties]:
    with catalogs.postgres() as properties:
        yield properties


def entered(make: Callable[..., Shelf], properties: Properties) -> Shelf:
    """A table of its own in a catalog that others share."""
    return make(table={"name": f"lake_{uuid.uuid4().hex}.{{topic}}", "catalog": properties})


@pytest.mark.parametrize("name", NAMES)
def test_a_table_follows_grows_replaces_and_is_found_again(
    make: Callable[..., Shelf], request: pytest.FixtureRequest, name: str
) -> None:
    shelf = entered(make, request.getfixturevalue(name))
    first = shelf.commit(FIVE)
    shelf.table().sync()
    shelf.commit(SIX, pa.table({"id": [20], "late": [1.5]}))
    shelf.table().sync()
    shelf.commit(FIVE, rows=4, replaces=[first.id])
    (replaced,) = shelf.table().sync()
    assert (replaced.commits, replaced.files, replaced.removed) == (1, 1, 1)
    assert sorted(row["late"] or 0 for row in rows(shelf)) == [0, 0, 0, 0, 1.5]
    counts = [loaded(shelf).scan(snapshot_id=one.snapshot_id).count() for one in loaded(shelf).snapshots()]
    assert counts == [10, 11, 5]
    assert shelf.table().sync() == []
    assert list(shelf.table().find_differences(by_files=True)) == []


# Not in moto's Glue, which ignores UpdateTable's VersionId: of two updates at once one is lost there.
@pytest.mark.parametrize("name", NAMES[1:])
def test_two_that_follow_at_once_next_to_a_compaction_add_each_commit_once(
    make: Callable[..., Shelf], request: pytest.FixtureRequest, name: str
) -> None:
    shelf = entered(make, request.getfixturevalue(name))
    first = shelf.commit(FIVE)
    shelf.table().sync()
    compacted(shelf)
    for hour in (SIX, SEVEN, FIVE):
        shelf.commit(hour)
    shelf.commit(FIVE, rows=4, replaces=[first.id])
    with ThreadPoolExecutor(3) as pool:
        asked: list[list[str] | None] = [[FIVE], [SIX], None]
        list(pool.map(lambda hours: shelf.table().sync(hours), asked))
    assert len(rows(shelf)) == shelf.listed() == 34


def test_a_rest_catalog_names_its_warehouse_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of REST knows warehouses by names of its own, and refuses one that it has not."""
    handed: dict[str, str] = {}
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda _, **properties: handed.update(properties))
    iceberg_catalog.open_catalog({"type": "rest", "uri": "http://127.0.0.1:1"}, "lake", S3Connection(), {})
    assert "warehouse" not in handed
    iceberg_catalog.open_catalog({"type": "sql", "uri": "sqlite://"}, "lake", S3Connection(), {})
    assert handed["warehouse"] == "s3://lake/.tables"


def test_keys_that_a_catalog_lends_for_its_own_place_read_none_of_our_files(
    make: Callable[..., Shelf], rest: Properties, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    shelf = entered(make, rest)
    opens = PyArrowFileIO._initialize_fs

    def refusing(io: PyArrowFileIO, scheme: str, bucket: str | None = None) -> object:
        if bucket == shelf.bucket and "uri" in io.properties:  # a catalog's own
            raise PermissionError("no such place of mine")
        return opens(io, scheme, bucket)

    monkeypatch.setattr(PyArrowFileIO, "_initialize_fs", refusing)
    shelf.commit(FIVE)
    shelf.table().sync()
    shelf.commit(SIX)
    (followed,) = shelf.table().sync()
    assert followed.rows == 10
