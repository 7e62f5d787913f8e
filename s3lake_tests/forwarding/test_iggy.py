"""Files of Iggy's other sinks run: an hour reaches each server as its TOML says; real servers, or their stand-ins."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from s3lake.forwarding.destination import open_forwards
from s3lake.forwarding.hour import forward_hour
from s3lake.table.iceberg import LakeTable
from s3lake_tests.config.bases import ENVIRONMENT, loads
from s3lake_tests.config.test_iggy_forwards import sink_file
from s3lake_tests.forwarding.conftest import System
from s3lake_tests.forwarding.landed import Land, hour_of
from s3lake_tests.forwarding.stand_ins import Quick, Search
from s3lake_tests.table.iceberg.shelf import FIVE, Shelf, rows

Rows = Callable[[], list[Any]]


@pytest.fixture
def elasticsearch(search: Search, in_search: System) -> tuple[str, Rows]:
    search.authorization = f"Basic {base64.b64encode(b'me:hunter2').decode()}"
    settings = f'url = "{search.url}"\nindex = "events"\nusername = "me"\npassword = "hunter2"\n'
    return settings, lambda: [row["record"] for row in in_search.find()]


@pytest.fixture
def quickwit(quick: Quick, in_quickwit: System) -> tuple[str, Rows]:
    quick.authorization = None
    settings = f"url = \"{quick.url}\"\nindex = '''\nindex_id: events\nversion: 0.9\n'''\n"
    return settings, lambda: [row["record"] for row in in_quickwit.find()]


@pytest.fixture
def postgresql(conninfo: str, in_postgres: System) -> tuple[str, Rows]:
    settings = f'connection_string = "{conninfo}"\ntarget_table = "events"\npayload_format = "json"\n'
    return settings, lambda: [row["record"] for row in in_postgres.find()]


@pytest.fixture
def mongo(mongodb: str, in_mongodb: System) -> tuple[str, Rows]:
    settings = f'connection_uri = "{mongodb}"\ndatabase = "lake"\ncollection = "events"\n'
    return settings, lambda: [row["record"] for row in in_mongodb.find()]


@pytest.fixture
def stdout(capsys: pytest.CaptureFixture[str]) -> tuple[str, Rows]:
    return "print_payload = true\n", lambda: [
        json.loads(line)["document"] for line in capsys.readouterr().out.splitlines()
    ]


SINKS = {
    "elasticsearch": "elasticsearch",
    "quickwit": "quickwit",
    "postgres": "postgresql",
    "mongodb": "mongo",
    "stdout": "stdout",
}


@pytest.mark.parametrize("kind", SINKS)
def test_an_hour_reaches_the_system_of_the_file(kind: str, land: Land, request: pytest.FixtureRequest) -> None:
    settings, read = request.getfixturevalue(SINKS[kind])
    (sink,) = loads(sink_file(kind, settings), "sink.toml", None, ENVIRONMENT).config.sinks
    ((_, destination),) = open_forwards(sink)
    assert forward_hour(hour_of(land()), destination).outcome == "written"
    assert sorted(row["id"] for row in read()) == [1, 2]


def test_an_hour_reaches_the_table_of_the_iceberg_file(s3_server: Any, tmp_path: Any) -> None:
    shelf = Shelf(s3_server, tmp_path)
    shelf.commit(FIVE)
    text = sink_file(
        "iceberg",
        f"""\
tables = ["lake.orders"]
catalog_type = "sql"
uri = "sqlite:///{tmp_path}/catalog.db"
store_url = "{s3_server.endpoint_url}"
store_access_key_id = "{s3_server.access_key_id}"
store_secret_access_key = "{s3_server.secret_access_key}"
store_region = "{s3_server.region}"
""",
    )
    (sink,) = loads(text, "sink.toml", None, ENVIRONMENT).config.sinks
    assert sink.table is not None
    sink = sink.model_copy(update={"bucket": shelf.bucket})
    list(LakeTable.of(sink, sink.table, shelf.index, shelf.connection).follow())
    assert len(rows(shelf)) == 10
