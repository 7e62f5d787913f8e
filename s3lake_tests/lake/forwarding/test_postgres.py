"""Hours in a table of PostgreSQL: what is its own, and an asset that forwards."""

import json
from collections.abc import Callable
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
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import ConfigurationError, DestinationRefusedError, FencedError
from s3lake.index.commit.documents import Recorded
from s3lake.lake.forwarding.destination import forward_hour
from s3lake.lake.forwarding.postgres import Postgres
from s3lake.land.hour.landing import rewrite
from s3lake_tests.kit.lake import START
from s3lake_tests.lake.forwarding.conftest import System
from s3lake_tests.lake.forwarding.landed import Land, hour_of
from s3lake_tests.lake.forwarding.servers import PASSWORD
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SIX, Shelf

_MORE = pytest.mark.slow("a case more; writing, repeating and killing are always tried")


def together(*works: Callable[[], object]) -> None:
    """Do them at once; what one of them raises comes out."""
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()


def ids(system: System) -> list[int]:
    return sorted(row["record"]["id"] for row in system.find())


def test_the_ledger_has_the_content_of_an_hour(
    in_postgres: System, database: "psycopg.Connection[Any]", land: Land
) -> None:
    hour = hour_of(land())
    forward_hour(hour, in_postgres.open())
    [entry] = database.execute("SELECT sink, topic, bucket, commits, offsets, rows FROM events_hours").fetchall()
    assert entry == ("events", "clicks", "lake", list(hour.commits), {"0": [0, 2]}, 2)


@_MORE
def test_settings_of_the_connection_in_conninfo_are_kept(
    in_postgres: System, database: "psycopg.Connection[Any]", conninfo: str, land: Land
) -> None:
    hour = hour_of(land())
    forward_hour(hour, in_postgres.open())
    database.execute("ALTER TABLE events_hours ADD COLUMN who text DEFAULT current_setting('application_name')")
    for given, known in (("", "s3lake"), (" application_name=theirs", "theirs")):
        database.execute("DELETE FROM events_hours")
        forward_hour(hour, Postgres(f"{conninfo}{given}", table="events"))
        assert database.execute("SELECT who FROM events_hours").fetchall() == [(known,)]


@_MORE
def test_the_later_content_stays_if_two_processes_forward_at_once(in_postgres: System, land: Land) -> None:
    landed = land()
    earlier = hour_of(landed)
    rewrite(landed, START)
    with pytest.raises(FencedError, match=f"{START} of sink events was rewritten while it was forwarded"):
        in_postgres.open().write(earlier)
    assert ids(in_postgres) == []
    together(*[partial(in_postgres.open().write, hour_of(landed))] * 4)
    assert ids(in_postgres) == [1, 2]


@_MORE
def test_tables_are_created_once_by_many_at_once_and_not_by_a_user_without_the_right(
    in_postgres: System, database: "psycopg.Connection[Any]", conninfo: str, land: Land
) -> None:
    landed = land()
    together(*[partial(in_postgres.open().write, hour_of(landed))] * 2)
    assert ids(in_postgres) == [1, 2]
    database.execute("DROP ROLE IF EXISTS reader")
    database.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    theirs = Postgres(conninfo.replace("user=lake", "user=reader"), table="events")
    with pytest.raises(DestinationRefusedError, match="permission denied for table events_hours"):
        forward_hour(hour_of(landed), theirs)
    database.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader")
    rewrite(landed, START)
    assert forward_hour(hour_of(landed), theirs).outcome == "replaced"
    database.execute("DROP OWNED BY reader; DROP ROLE reader")


@_MORE
def test_a_record_that_jsonb_cannot_hold_fits_as_json(in_postgres: System, land: Land) -> None:
    value = '{"id": "private\\u0000thing"}'
    assert forward_hour(hour_of(land(value)), in_postgres.open(record="json")).outcome == "written"
    [row] = in_postgres.find()
    assert row["record"] == json.loads(value)


def test_a_connection_string_that_cannot_be_read_is_not_quoted(land: Land) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read") as unread:
        Postgres(f"{PASSWORD} host").read_content(hour_of(land()))
    assert PASSWORD not in str(unread.value)


@pytest.fixture
def shelf(s3_server: EmbeddedS3, tmp_path: Path) -> Shelf:
    """Two hours of two and one rows."""
    shelf = Shelf(s3_server, tmp_path, {})
    shelf.index.create(shelf.index.columns_key, Recorded({"id": "int64", "type": "string"}))
    shelf.commit(FIVE, pa.table({"id": [1], "type": ["a"]}), pa.table({"id": [2], "type": ["b"]}))
    shelf.commit(SIX, pa.table({"id": [3], "type": ["c"]}))
    return shelf


@_MORE
@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
def test_an_asset_forwards_its_hours_with_the_content_of_the_ledger_in_its_metadata(
    shelf: Shelf, in_postgres: System, conninfo: str
) -> None:
    path = Path(shelf.configuration())
    text = yaml.safe_load(path.read_text())
    text["sinks"][0]["forwards"] = [{"to": "postgres", "options": {"conninfo": conninfo, "table": "events"}}]
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
    assert ids(in_postgres) == [1, 2, 3]
