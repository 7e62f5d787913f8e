"""`s3lake schema`: the columns of files, and how they came to be; docs/test_schema.py has its tables."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.land.hour.landing import land
from s3lake_tests.land.at_hand import FIRST, SECOND, TopicInMemory


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicInMemory]:
    made = TopicInMemory(format={"type": "parquet"})
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([made.target()]))
    return made


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["schema", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show_prints_the_columns_of_files(world: TopicInMemory) -> None:
    assert run("show") == "events: orders: files have no columns, or none yet\n"
    world.produce(0, b'{"id": 1, "to": {"zip": "a"}}')
    land(world.target(), [FIRST])
    of_topic = {"sink": "events", "topic": "orders"}
    assert [json.loads(line) for line in run("show", "--json").splitlines()] == [
        {**of_topic, "column": "id", "type": "int64"},
        {**of_topic, "column": "to", "type": "struct<zip: string>"},
    ]


def test_names_that_are_longer_than_their_columns_stay_on_one_line(world: TopicInMemory) -> None:
    world.settings["name"] = "orders-of-all-shops-and-of-every-region"
    world.produce(0, b'{"id": 1}')
    land(world.target(), [FIRST])
    assert run("show").splitlines()[0] == f"{world.settings['name']}: orders"


def test_history_prints_every_change_with_its_hour_and_commit(world: TopicInMemory) -> None:
    assert run("history") == "events: orders: no columns were seen yet\n"
    world.produce(0, b'{"id": 1}')
    world.produce(1, b'{"id": 1.5, "note": "x"}')
    _, second = land(world.target(), [FIRST, SECOND])
    assert json.loads(run("history", "--json").splitlines()[1]) == {
        "sink": "events",
        "topic": "orders",
        "hour": SECOND,
        "commit": second.tile.commits[0],
        "column": "id",
        "before": "int64",
        "after": "double",
    }
