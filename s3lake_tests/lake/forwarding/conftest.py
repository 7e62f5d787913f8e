"""Destinations and their servers: real ones, and imitations if a server is missing or has to fail on demand."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymongo
import pytest
import requests

from s3lake import hours
from s3lake.errors import TransientError
from s3lake.lake.forwarding.destination import Destination, open_destination
from s3lake_tests.lake.forwarding.landed import Land, land_values
from s3lake_tests.lake.forwarding.servers import Elastic, resolve_elasticsearch, serve_elasticsearch
from s3lake_tests.lake.forwarding.stand_ins import Quick, Search


@pytest.fixture
def land(tmp_path: Path) -> Iterator[Land]:
    """Lands values in one hour, into a bucket in memory."""
    with land_values(tmp_path) as land:
        yield land


@dataclass
class System:
    """A destination with its server.

    Attributes:
        name: by which it is opened.
        options: that it is opened with.
        find: reads its rows, by the names that they have there.
        calls: what a process asks of the server.
        refused: values that it cannot hold, and how it reports it.
        end: ends what a killed process leaves to Python.
    """

    name: str
    options: dict[str, Any]
    find: Callable[[], Sequence[dict[str, Any]]]
    calls: Sequence[tuple[Any, str]]
    refused: tuple[tuple[str, ...], str]
    end: Callable[[Any], None] = lambda _: None

    def open(self, **options: Any) -> Destination:
        """Open it again."""
        return open_destination(self.name, {**self.options, **options})


PSYCOPG = ((psycopg.Connection, "commit"), (psycopg.Cursor, "execute"), (psycopg.Copy, "write_row"))
PYMONGO = ("find_one", "insert_one", "replace_one", "bulk_write", "delete_many", "create_index")
REQUESTS = ((requests, "request"),)


@pytest.fixture
def database(postgres: str) -> Iterator["psycopg.Connection[Any]"]:
    """A database of this test's own on the server that all tests share."""
    name = f"d{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(psycopg.conninfo.make_conninfo(postgres, dbname=name), autocommit=True) as connection:
            yield connection
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def conninfo(postgres: str, database: "psycopg.Connection[Any]") -> str:
    """The connection string of the database."""
    return psycopg.conninfo.make_conninfo(postgres, dbname=database.info.dbname)


@pytest.fixture
def in_postgres(conninfo: str, database: "psycopg.Connection[Any]") -> System:
    """A table of PostgreSQL."""

    def find() -> list[dict[str, Any]]:
        if database.execute("SELECT to_regclass('events')").fetchone() == (None,):
            return []
        with database.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute("SELECT *, hour AT TIME ZONE 'UTC' AS hour FROM events").fetchall()

    def end(thing: Any) -> None:
        connection = thing if isinstance(thing, psycopg.Connection) else thing.connection
        connection.pgconn.finish()  # the socket is closed, and the server gets nothing more

    refused = (('"private\\u0000"',), r"record='json' \(COPY events, line 2")
    calls = (*PSYCOPG, (psycopg.Copy, "finish"))
    return System("postgres", {"conninfo": conninfo, "table": "events"}, find, calls, refused, end)


@pytest.fixture
def collections(mongodb: str) -> Iterator["pymongo.database.Database[dict[str, Any]]"]:
    """MongoDB's database `lake`, without a collection."""
    with pymongo.MongoClient[dict[str, Any]](mongodb, tz_aware=True) as client:
        client.drop_database("lake")
        yield client["lake"]


@pytest.fixture
def in_mongodb(
    mongodb: str, collections: "pymongo.database.Database[dict[str, Any]]", monkeypatch: pytest.MonkeyPatch
) -> System:
    """A collection of MongoDB, as FerretDB speaks it."""
    monkeypatch.setattr("s3lake.lake.forwarding.mongodb.ROWS_AT_ONCE", 1)
    calls = [(pymongo.collection.Collection, name) for name in PYMONGO]
    refused = (r'1, "private\u0000": 2', "1" * 20, "1." + "1" * 40), r"row 1 of clicks/.*record='text'"
    return System("mongodb", {"uri": mongodb}, lambda: list(collections["events"].find()), calls, refused)


@pytest.fixture
def search() -> Iterator[Search]:
    """An imitation of Elasticsearch, which can be busy, fail and want a key."""
    with Search().served() as search:
        yield search


@pytest.fixture(scope="module")
def elastic(jvm: Path) -> Iterator[Elastic]:  # noqa: ARG001 (it needs Java)
    """A real Elasticsearch."""
    try:
        resolve_elasticsearch()
    except TransientError as error:
        pytest.skip(f"Elasticsearch cannot be had: {error}")
    with serve_elasticsearch() as started:
        yield started


def _elasticsearch(server: Search | Elastic, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr("s3lake.lake.forwarding.elasticsearch.BULK_BYTES", 1)
    refused = ('"private"',), r"row 1 of clicks/.*(document|mapper)_parsing_exception \(400\)"
    options = {"url": server.url, "api_key": "hunter2-elastic"}
    return System("elasticsearch", options, lambda: list(server.documents("events").values()), REQUESTS, refused)


@pytest.fixture
def in_search(search: Search, monkeypatch: pytest.MonkeyPatch) -> System:
    """An index of the imitation."""
    return _elasticsearch(search, monkeypatch)


@pytest.fixture
def in_elastic(elastic: Elastic, monkeypatch: pytest.MonkeyPatch) -> System:
    """An index of the real server."""
    elastic.clear()
    return _elasticsearch(elastic, monkeypatch)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[Quick]:
    """An imitation of Quickwit."""
    monkeypatch.setattr("s3lake.lake.forwarding.quickwit.SEEN_S", 0)
    with Quick().served() as quick:
        yield quick


@pytest.fixture
def in_quickwit(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> System:
    """Indexes of Quickwit."""
    monkeypatch.setattr("s3lake.lake.forwarding.quickwit.INGEST_BYTES", 1)
    options = {"url": quick.url, "token": "hunter2-quickwit"}
    refused = ('"private"',), r"refused 1 of 1 row of clicks "
    return System(
        "quickwit", options, lambda: [row for rows in quick.indexes.values() for row in rows], REQUESTS, refused
    )


_REAL = pytest.mark.slow("a real Elasticsearch, which takes a minute to start; its imitation is always tried")
_SAME = pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
CLAIMED = [
    pytest.param("in_mongodb", marks=[pytest.mark.mongodb, _SAME]),
    "in_search",
    pytest.param("in_elastic", marks=[pytest.mark.jvm, _REAL]),
]
"""Destinations without transactions, whose writers claim an hour (`lake/forwarding/ledger.py`)."""


@pytest.fixture(params=[pytest.param("in_postgres", marks=pytest.mark.postgres), *CLAIMED, "in_quickwit"])
def system(request: pytest.FixtureRequest) -> System:
    """Each of the destinations."""
    found: System = request.getfixturevalue(request.param)
    return found


def hour_name(value: Any) -> str:
    """Return the name of an hour that a row gives as a time or a text."""
    return value[: len("2026-11-20T05")] if isinstance(value, str) else str(value.strftime(hours.FORMAT))
