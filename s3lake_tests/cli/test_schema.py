"""`s3lake schema`: the columns of files, and how they came to be."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.land.landing import land
from s3lake_tests.land.at_hand import FIRST, SECOND, World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(format={"type": "parquet"})
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([made.target()]))
    return made


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["schema", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show_prints_the_columns_of_files(world: World) -> None:
    assert run("show") == "events: orders: files have no columns, or none yet\n"
    world.produce(0, b'{"id": 1, "to": {"zip": "a"}}')
    land(world.target(), [FIRST])
    assert [line.rstrip().split(maxsplit=1) for line in run("show").splitlines()] == [
        ["events:", "orders"],
        ["column", "type"],
        ["id", "int64"],
        ["to", "struct<zip: string>"],
    ]
    assert json.loads(run("show", "--json").splitlines()[0]) == {
        "sink": "events",
        "topic": "orders",
        "column": "id",
        "type": "int64",
    }


def test_names_that_are_longer_than_their_columns_stay_on_one_line(world: World) -> None:
    world.settings["name"] = "orders-of-all-shops-and-of-every-region"
    world.produce(0, b'{"id": 1}')
    land(world.target(), [FIRST])
    assert run("show").splitlines()[0] == f"{world.settings['name']}: orders"


def test_history_prints_every_change_with_its_hour_and_commit(world: World) -> None:
    assert run("history") == "events: orders: no columns were seen yet\n"
    world.produce(0, b'{"id": 1}')
    world.produce(1, b'{"id": 1.5, "note": "x"}')
    first, second = land(world.target(), [FIRST, SECOND])
    assert [line.split() for line in run("history").splitlines()[1:]] == [
        ["hour", "commit", "column", "before", "after"],
        [FIRST, first.tile.commits[0], "id", "int64"],
        [SECOND, second.tile.commits[0], "id", "int64", "double"],
        [SECOND, second.tile.commits[0], "note", "string"],
    ]
    assert json.loads(run("history", "--json").splitlines()[1]) == {
        "sink": "events",
        "topic": "orders",
        "hour": SECOND,
        "commit": second.tile.commits[0],
        "column": "id",
        "before": "int64",
        "after": "double",
    }
