"""`s3lake dead-letters`: an hour in memory, and exit codes; docs/test_dead_letters.py has what it prints."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.errors import StoreUnavailableError
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.change.refused import MENDED, LakeWithRefusals

Run = Callable[..., Result]


@pytest.fixture
def lake() -> LakeWithRefusals:
    return LakeWithRefusals().landed(7, 4)


@pytest.fixture
def run(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the lake, whatever is configured."""

    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([lake.target()]))
    return lambda *words: CliRunner().invoke(app, ["dead-letters", *words])


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_list_counts_by_hour_and_reason(run: Run) -> None:
    found = [(one["hour"], one["stage"], one["count"], one["offset"]) for one in rows(run("list", "--json"))]
    assert found == [(HOUR, "layout", 3, 2), (HOUR, "convert", 2, 6)]
    table = run("list", "--hour", HOUR).stdout
    assert "time field at is null or missing: have the producer write it, or use the record's time" in table
    assert "0@2" in table


@pytest.mark.parametrize("words", [["--hour", "2026-11-20T04"], ["--from", "2026-11-20T06"], ["--to", "2026-11-20T04"]])
def test_other_hours_have_none(run: Run, words: list[str]) -> None:
    assert run("list", *words).stdout == "no dead letters\n"
    assert run("show", *words).stdout == "no dead letters\n"
    assert run("replay", "--yes", *words).stdout == "no dead letters to replay\n"


def test_show_leaves_out_what_is_beyond_its_limit(run: Run) -> None:
    result = run("show", "--reason", "layout", "--limit", "1", "--json")
    assert [one["offset"] for one in rows(result)] == [2]
    assert "only the first 1" in result.stderr


def test_replay_lands_dead_letters_and_names_the_commit_of_each(run: Run, lake: LakeWithRefusals) -> None:
    lake.mended(**MENDED)
    done = rows(run("replay", "--yes", "--json"))
    assert [(one["chosen"], one["landed"], one["done"]) for one in done] == [(3, 2, True), (2, 1, True)]
    assert [one["commit"] for one in done] == [one.id for one in lake.commits]
    assert lake.verified().clean
    assert "1 dead letter: 0 can be landed, 1 stays" in run("replay", "--yes", "--hour", HOUR).stdout


def test_a_store_that_does_not_answer_is_exit_code_three(
    run: Run, lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.mended(**MENDED)

    def away(*_: Any) -> str:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(lake.store, "create_upload", away)
    result = run("replay", "--yes")
    assert result.exit_code == 3
    assert "StoreUnavailableError: away" in result.stderr


def test_an_hour_and_a_range_together_are_refused(run: Run) -> None:
    assert "give one of them" in str(run("list", "--hour", HOUR, "--from", HOUR).exception)
