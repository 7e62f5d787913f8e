"""`s3lake table sync` and `s3lake ddl`, as users type them."""

import json
from typing import Any

import boto3
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.index.commit.documents import Recorded
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SIX, Shelf, loaded, rows


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def test_sync_reports_what_it_would_do_does_it_and_then_has_nothing_to_do(shelf: Shelf) -> None:
    config = shelf.configuration()
    shelf.commit(FIVE)
    shelf.commit(SIX, files=2)
    assert run("table", "sync", config).splitlines() == [
        f"events orders lake.orders {FIVE}: 1 commit to add, 0 to remove",
        f"events orders lake.orders {SIX}: 1 commit to add, 0 to remove",
        "nothing is changed yet: --yes does it",
    ]
    assert loaded(shelf) is None
    assert run("table", "sync", config, "--yes").splitlines() == [
        f"events orders lake.orders: 2 hours from {FIVE}: 2 commits, 3 files, 30 rows added",
    ]
    assert run("table", "sync", config) == "every table is as the index has it\n"
    assert len(rows(shelf)) == 30


def test_sync_of_a_range_leaves_the_other_hours(shelf: Shelf) -> None:
    shelf.commit(FIVE)
    shelf.commit(SIX)
    (line,) = run("table", "sync", shelf.configuration(), "--from", SIX, "--yes", "--json").splitlines()
    assert [json.loads(line)[name] for name in ("hours", "rows", "done")] == [[SIX], 10, True]


def test_a_table_that_cannot_follow_gives_an_exit_code(shelf: Shelf) -> None:
    shelf.commit(FIVE, pa.table({"landed_hour": [1]}))
    assert run("table", "sync", shelf.configuration(), "--yes", code=3) == ""


def described(shelf: Shelf) -> str:
    shelf.commit(FIVE)
    shelf.index.create(shelf.index.columns_key, Recorded({"id": "int64", "type": "string"}))
    return shelf.configuration()


def test_ddl_prints_the_recorded_columns_and_the_directories(shelf: Shelf) -> None:
    assert run("ddl", described(shelf), "--for", "spark", "--database", "lake") == (
        "CREATE TABLE IF NOT EXISTS `lake`.`orders` (\n  `id` bigint,\n  `type` string\n)\n"
        f"USING parquet\nLOCATION 's3a://{shelf.bucket}/orders/{FIVE}/';\n"
    )


def test_ddl_makes_the_table_in_glue(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", shelf.server.endpoint_url)
    config = described(shelf)
    assert run("ddl", config, "--for", "glue", "--yes") == "s3lake.orders: 0 new partitions\n"
    keys: dict[str, Any] = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "region_name": "us-east-1"}
    made = boto3.client("glue", **keys).get_table(DatabaseName="s3lake", Name="orders")["Table"]
    assert made["StorageDescriptor"]["Columns"] == [
        {"Name": "id", "Type": "bigint"},
        {"Name": "type", "Type": "string"},
    ]


@pytest.mark.parametrize("words", [["--for", "oracle"], ["--for", "trino", "--yes"]], ids=" ".join)
def test_ddl_refuses_what_there_is_not(shelf: Shelf, words: list[str]) -> None:
    done = CliRunner().invoke(app, ["ddl", shelf.configuration(), *words])
    assert type(done.exception).__name__ == "ConfigurationError"


def test_commands_that_land_a_sink_with_a_table_keep_the_table(shelf: Shelf) -> None:
    (target,) = Request(shelf.configuration()).targets()
    shelf.commit(FIVE)
    assert target.index.follow(FIVE) is None
    assert len(rows(shelf)) == 10
