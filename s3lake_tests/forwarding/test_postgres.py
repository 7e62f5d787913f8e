"""Hours in a real PostgreSQL: each row once, whatever ends when, whoever repeats what."""

import contextlib
import itertools
import json
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pyarrow as pa
import pytest
import yaml

import s3lake
from s3lake import hours
from s3lake.commit.documents import Manifest, Recorded
from s3lake.demo.s3 import EmbeddedS3
from s3lake.errors import (
    ConfigurationError,
    DestinationRefusedError,
    DestinationUnavailableError,
    FencedError,
    IncompleteError,
)
from s3lake.forwarding.forwarding import Forwarded, forward_hour
from s3lake.forwarding.hour import Hour
from s3lake.forwarding.postgres import Postgres
from s3lake_tests.forwarding.server import PASSWORD
from s3lake_tests.table.iceberg.shelf import FIVE, SEVEN, SIX, Shelf

TABLE = "lake.events"


@pytest.fixture
def conninfo(postgres: str) -> Iterator[str]:
    """A database of this test's own on the server that all tests share."""
    name = f"d{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield psycopg.conninfo.make_conninfo(postgres, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def database(conninfo: str) -> Iterator["psycopg.Connection[Any]"]:
    """Without a table of ours."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS lake CASCADE; CREATE SCHEMA lake")
        yield connection


@pytest.fixture
def shelf(s3_server: EmbeddedS3, tmp_path: Path) -> Shelf:
    """Two hours of two and one rows."""
    shelf = Shelf(s3_server, tmp_path, {})
    shelf.index.create(shelf.index.columns_key, Recorded({"id": "int64", "type": "string"}))
    shelf.commit(FIVE, pa.table({"id": [1], "type": ["a"]}), pa.table({"id": [2], "type": ["b"]}))
    shelf.commit(SIX, pa.table({"id": [3], "type": ["c"]}))
    return shelf


def hour_of(shelf: Shelf, hour: str) -> Hour:
    return Hour.from_index(shelf.sink, "orders", hour, shelf.index.store)


def send(shelf: Shelf, hour: str, conninfo: str, **options: Any) -> Forwarded:
    return forward_hour(hour_of(shelf, hour), Postgres(conninfo, table=TABLE, **options))


def rewrite(shelf: Shelf, hour: str, *ids: int) -> Manifest:
    stored = shelf.index.tile(hour)
    assert stored is not None
    return shelf.commit(hour, pa.table({"id": ids, "type": ["z"] * len(ids)}), replaces=stored[0].commits)


def together(*works: Callable[[], object]) -> None:
    """Do them at once; what one of them raises comes out."""
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()


def ids(database: "psycopg.Connection[Any]") -> list[tuple[str, int]]:
    """Every row: in which hour it is, and what it is."""
    if database.execute("SELECT to_regclass('lake.events')").fetchone() == (None,):
        return []
    rows = database.execute("SELECT hour AT TIME ZONE 'UTC', (record->>'id')::int FROM lake.events ORDER BY 1, 2")
    return [(hour.strftime(hours.FORMAT), number) for hour, number in rows]


def test_a_row_says_where_it_is_from_and_the_ledger_what_its_hour_was(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str
) -> None:
    assert send(shelf, FIVE, conninfo).outcome == "written"
    asked = (
        "SELECT sink, topic, partition, \"offset\", row, record, hour AT TIME ZONE 'UTC' FROM lake.events ORDER BY file"
    )
    found = database.execute(asked).fetchall()
    assert sorted(row[5]["id"] for row in found) == [1, 2]
    assert {row[:5] for row in found} == {("events", "orders", 0, None, 0)}
    assert {str(row[6]) for row in found} == {"2026-11-20 05:00:00"}
    [entry] = database.execute("SELECT sink, topic, bucket, commits, offsets, rows FROM lake.events_hours").fetchall()
    stored = shelf.index.tile(FIVE)
    assert stored is not None
    assert entry == ("events", "orders", shelf.bucket, list(stored[0].commits), {"0": [0, 2]}, 2)


def test_a_repeat_changes_nothing_and_a_rewritten_hour_takes_the_place_of_its_rows(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str
) -> None:
    send(shelf, FIVE, conninfo)
    send(shelf, SIX, conninfo)
    before = database.execute("SELECT xmin::text, * FROM lake.events ORDER BY file").fetchall()
    assert send(shelf, FIVE, conninfo).outcome == "there already"
    assert database.execute("SELECT xmin::text, * FROM lake.events ORDER BY file").fetchall() == before
    rewrite(shelf, FIVE, 7, 8, 9)
    assert send(shelf, FIVE, conninfo).outcome == "replaced"
    assert ids(database) == [(FIVE, 7), (FIVE, 8), (FIVE, 9), (SIX, 3)]
    rewrite(shelf, FIVE)  # all of it was erased
    assert send(shelf, FIVE, conninfo).outcome == "replaced"
    assert ids(database) == [(SIX, 3)]


class Killed(BaseException):
    """As SIGKILL: nobody catches it."""


class Mortal:
    """Ends the process, as the server sees it, before or after what is number `at` of all that is asked of psycopg."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, *, after: bool) -> None:
        self._at, self._after, self.count = at, after, 0
        for owner, name in (
            (psycopg.Connection, "commit"),
            (psycopg.Cursor, "execute"),
            (psycopg.Copy, "write_row"),
            (psycopg.Copy, "finish"),
        ):
            self._mortal(patch, owner, name)

    def _mortal(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def step(thing: Any, *arguments: Any, **options: Any) -> Any:
            connection = thing if isinstance(thing, psycopg.Connection) else thing.connection
            number, self.count = self.count, self.count + 1
            if number == self._at and not self._after:
                self._kill(connection)
            result = real(thing, *arguments, **options)
            if number == self._at:
                self._kill(connection)
            return result

        patch.setattr(owner, name, step)

    def _kill(self, connection: "psycopg.Connection[Any]") -> None:
        connection.pgconn.finish()  # the socket is closed, and the server is told nothing more
        raise Killed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "rewritten"])
def test_killed_at_any_statement_an_hour_is_whole_and_the_next_attempt_brings_it_once(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str, first: bool, after: bool
) -> None:
    earlier, later = [(FIVE, 1), (FIVE, 2)], [(FIVE, 7), (FIVE, 8), (FIVE, 9)]
    outcomes = set()
    for at in itertools.count():
        if first:
            database.execute("DROP TABLE IF EXISTS lake.events, lake.events_hours")
            earlier = []
        else:
            rewrite(shelf, FIVE, 1, 2)
            send(shelf, FIVE, conninfo)
        rewrite(shelf, FIVE, 7, 8, 9)
        with pytest.MonkeyPatch.context() as patch:
            mortal = Mortal(patch, at, after=after)
            with contextlib.suppress(Killed):
                send(shelf, FIVE, conninfo)
        assert ids(database) in (earlier, later), f"killed at {at}"
        outcomes.add(send(shelf, FIVE, conninfo).outcome)
        assert ids(database) == later, f"killed at {at}"
        if mortal.count <= at:  # nobody was killed
            break
    assert at >= 10  # two transactions, tables, the ledger, rows before and after, each row
    assert outcomes == {"written" if first else "replaced", "there already"}


@pytest.mark.slow("a case more; writing, repeating and killing are always tried")
def test_of_two_that_forward_at_once_the_later_content_stays(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str
) -> None:
    send(shelf, SIX, conninfo)
    earlier, destination = hour_of(shelf, FIVE), Postgres(conninfo, table=TABLE)
    rewrite(shelf, FIVE, 7)
    with pytest.raises(FencedError, match=f"{FIVE} of sink events was rewritten while it was forwarded"):
        destination.write(earlier)
    assert ids(database) == [(SIX, 3)]
    hour = hour_of(shelf, FIVE)
    together(*[partial(destination.write, hour)] * 4)
    assert ids(database) == [(FIVE, 7), (SIX, 3)]


@pytest.mark.slow("a case more; writing, repeating and killing are always tried")
def test_tables_are_made_once_by_many_at_once_and_not_by_who_may_not(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str
) -> None:
    together(*(partial(send, shelf, hour, conninfo) for hour in (FIVE, SIX)))
    assert ids(database) == [(FIVE, 1), (FIVE, 2), (SIX, 3)]
    database.execute("DROP ROLE IF EXISTS reader")
    database.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA lake TO reader")
    theirs = conninfo.replace("user=lake", "user=reader")
    with pytest.raises(DestinationRefusedError, match="permission denied for table events_hours"):
        send(shelf, FIVE, theirs)
    database.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lake TO reader")
    rewrite(shelf, FIVE, 7)
    assert send(shelf, FIVE, theirs).outcome == "replaced"
    database.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.slow("a case more; writing, repeating and killing are always tried")
def test_hours_of_another_bucket_do_not_take_the_place_of_others(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str, s3_server: EmbeddedS3, tmp_path: Path
) -> None:
    send(shelf, FIVE, conninfo)
    (tmp_path / "other").mkdir()
    other = Shelf(s3_server, tmp_path / "other", {})
    other.commit(FIVE, rows=1)
    with pytest.raises(DestinationRefusedError, match=f"forwarded there from another bucket than {other.bucket}"):
        send(other, FIVE, conninfo)
    assert ids(database) == [(FIVE, 1), (FIVE, 2)]


@pytest.mark.slow("a case more; writing, repeating and killing are always tried")
def test_an_hour_that_is_not_landed_as_a_whole_is_refused(shelf: Shelf, conninfo: str) -> None:
    with pytest.raises(IncompleteError, match=f"{SEVEN} never landed"):
        send(shelf, SEVEN, conninfo)


@pytest.mark.slow("a case more; writing, repeating and killing are always tried")
def test_what_a_record_holds_is_in_no_message(shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str) -> None:
    shelf.commit(SEVEN, pa.table({"id": [1, 2], "type": ["fine", "private\0thing"]}))
    with pytest.raises(DestinationRefusedError, match=r"record='json' \(COPY events, line 2") as refused:
        send(shelf, SEVEN, conninfo)
    assert "private" not in str(refused.value)
    send(shelf, SEVEN, conninfo, record="json")
    texts = database.execute("SELECT record::text FROM lake.events ORDER BY row").fetchall()
    assert [json.loads(text)["type"] for (text,) in texts] == ["fine", "private\0thing"]


class TestSettings:
    @pytest.mark.slow("a case more; writing, repeating and killing are always tried")
    def test_a_password_is_in_no_message_and_in_no_description(self, shelf: Shelf) -> None:
        destination = Postgres(f"host=127.0.0.1 port=1 user=me password={PASSWORD}", table=TABLE)
        with pytest.raises(DestinationUnavailableError, match="port 1 failed") as refused:
            destination.read_content(hour_of(shelf, FIVE))
        said = f"{refused.value} {destination.place} {destination!r}"
        assert PASSWORD not in said
        assert destination.place == "postgres 127.0.0.1:1 table lake.events"
        with pytest.raises(ConfigurationError, match="cannot be read") as unread:
            Postgres(f"{PASSWORD} host").read_content(hour_of(shelf, FIVE))
        assert PASSWORD not in str(unread.value)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"table": "a;b"}, "write NAME or SCHEMA.NAME"),
            ({"table": "a" * 58}, "57 of them at most"),
            ({"record": "xml"}, "can be jsonb, json, text"),
        ],
    )
    def test_what_cannot_be_is_refused_at_once(self, options: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            Postgres("", **options)


@pytest.mark.slow("a case more; writing, repeating and killing are always tried")
@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
def test_an_asset_forwards_its_hours_and_says_what_the_ledger_has(
    shelf: Shelf, database: "psycopg.Connection[Any]", conninfo: str
) -> None:
    path = Path(shelf.configuration())
    text = yaml.safe_load(path.read_text())
    text["sinks"][0]["forwards"] = [{"to": "postgres", "options": {"conninfo": conninfo, "table": TABLE}}]
    path.write_text(yaml.safe_dump(text))
    definitions = s3lake.build_definitions(s3lake.load(path))
    key = dg.AssetKey(["forward", "postgres", "orders"])
    job = definitions.resolve_implicit_global_asset_job_def()
    first, last = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
    with dg.DagsterInstance.ephemeral() as instance:
        for outcome in ("written", "there already"):
            done = job.execute_in_process(asset_selection=[key], tags={first: FIVE, last: SIX}, instance=instance)
            events = [event.materialization for event in done.get_asset_materialization_events()]
            assert [(one.partition, one.metadata["dagster/row_count"].value) for one in events] == [(FIVE, 2), (SIX, 1)]
            assert {one.metadata["outcome"].value for one in events} == {outcome}
            assert events[0].metadata["ledger"].value["offsets"] == {"0": [0, 2]}
            assert PASSWORD not in str([one.metadata for one in events])
    assert ids(database) == [(FIVE, 1), (FIVE, 2), (SIX, 3)]
