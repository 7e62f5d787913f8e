"""What holds for every destination: each row once, whatever crashes, whoever repeats."""

import contextlib
import itertools
import json
from typing import Any

import pytest

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError, FencedError
from s3lake.lake.forwarding.complete_hour import CompleteHour
from s3lake.lake.forwarding.destination import forward_hour, open_destination
from s3lake.land.hour.landing import rewrite
from s3lake_tests.kit.crashes import Crash, Crashing
from s3lake_tests.kit.lake import START
from s3lake_tests.lake.forwarding.conftest import CLAIMED, System, hour_name
from s3lake_tests.lake.forwarding.landed import Land, Overtaken, hour_of


def rows_of(hour: CompleteHour) -> list[tuple[str, str, str, int, str, int, Any]]:
    """Return what an hour's rows have to be in a destination."""
    rows = [row for batch in hour.batches() for row in batch]
    slot = hour.sink, hour.topic, hour.hour
    return sorted((*slot, row.partition, row.file, row.number, json.loads(row.document)["id"]) for row in rows)


def found(system: System) -> list[tuple[str, str, str, int, str, int, Any]]:
    """Return the rows of a destination."""
    return sorted(
        (
            row["sink"],
            row["topic"],
            hour_name(row["hour"]),
            row["partition"],
            row["file"],
            row["row"],
            row["record"]["id"],
        )
        for row in system.find()
    )


def test_an_hour_is_there_once_and_a_rewritten_one_takes_its_place(system: System, land: Land) -> None:
    landed = land('{"id": 1}', '{"id": 2}')
    assert forward_hour(hour_of(landed), system.open()).outcome == "written"
    assert found(system) == rows_of(hour_of(landed))
    assert forward_hour(hour_of(landed), system.open()).outcome == "there already"
    before = found(system)
    rewrite(landed, START)
    assert found(system) == before != rows_of(hour_of(landed))
    assert forward_hour(hour_of(landed), system.open()).outcome == "replaced"
    assert found(system) == rows_of(hour_of(landed))


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_request_the_next_attempt_brings_every_row_once(system: System, land: Land, after: bool) -> None:
    landed = land('{"id": 1}', '{"id": 2}')
    for at in itertools.count():
        rewrite(landed, START)
        hour, crashing = hour_of(landed), Crashing(at, after=after, end=system.end)
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Crash):
            for owner, name in system.calls:
                crashing.count(patch, owner, name)
            forward_hour(hour, system.open())
        forward_hour(hour, system.open())
        assert found(system) == rows_of(hour), f"killed at {at}"
        if crashing.calls <= at:  # it was not killed
            break
    assert at >= 8


@pytest.mark.parametrize("system", CLAIMED, indirect=True)
def test_an_overtaken_writer_leaves_an_hour_that_can_be_forwarded_again(system: System, land: Land) -> None:
    landed = land('{"id": 1}', '{"id": 2}')
    with pytest.raises(FencedError):
        system.open().write(Overtaken(landed, system.open()))  # type: ignore[arg-type]
    assert forward_hour(hour_of(landed), system.open()).outcome == "written"
    assert found(system) == rows_of(hour_of(landed))


def test_hours_of_another_bucket_do_not_take_the_place_of_others(system: System, land: Land) -> None:
    forward_hour(hour_of(land('{"id": 1}')), system.open())
    with pytest.raises(DestinationRefusedError, match="from another bucket than other"):
        forward_hour(hour_of(land('{"id": 2}', bucket="other")), system.open())
    assert [row[-1] for row in found(system)] == [1]


def test_a_record_that_does_not_fit_is_named_without_what_it_holds(system: System, land: Land) -> None:
    values, message = system.refused
    for value in values:
        hour = hour_of(land('{"id": 1}', f'{{"id": {value}}}'))
        with pytest.raises(DestinationRefusedError, match=message) as refused:
            forward_hour(hour, system.open())
        assert "private" not in str(refused.value)
        assert system.open().read_content(hour) is None


SILENT: dict[str, dict[str, str]] = {
    "postgres": {"conninfo": "host=127.0.0.1 port=1 user=me password=hunter2"},
    "mongodb": {"uri": "mongodb://me:hunter2%21@127.0.0.1:1/?serverSelectionTimeoutMS=50"},
    "elasticsearch": {"url": "http://127.0.0.1:1", "username": "me", "password": "hunter2"},
    "quickwit": {"url": "http://127.0.0.1:1", "token": "hunter2"},
}


@pytest.mark.parametrize("name", SILENT)
def test_a_secret_is_in_no_message_of_a_server_that_is_silent(
    name: str, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3lake.lake.forwarding.mongodb.CONNECT_MS", 50)
    destination = open_destination(name, SILENT[name])
    with pytest.raises(DestinationUnavailableError) as silent:
        destination.read_content(hour_of(land()))
    assert destination.place.startswith(f"{name} 127.0.0.1:1")
    assert "hunter2" not in f"{silent.value} {destination!r} {destination.place}"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("postgres", {"conninfo": "", "table": "a;b"}, "write NAME or SCHEMA.NAME"),
        ("postgres", {"conninfo": "", "table": "a" * 58}, "57 of them at most"),
        ("postgres", {"conninfo": "", "record": "xml"}, "can be jsonb, json, text"),
        ("mongodb", {"uri": "http://me:hunter2@db"}, "write mongodb://HOST:PORT"),
        ("mongodb", {"uri": "mongodb://db", "database": "a.b"}, "letters, digits, _ and -"),
        ("mongodb", {"uri": "mongodb://db", "collection": "system.users"}, "collection 'system.users'"),
        ("mongodb", {"uri": "mongodb://db", "record": "json"}, "document, text"),
        ("mongodb", {"uri": "mongodb://db", "username": "me"}, "username and password"),
        ("elasticsearch", {"url": "http://me:hunter2@es:9200"}, "give the user as username"),
        ("elasticsearch", {"url": "http://es", "index": "Events"}, "lower case"),
        ("elasticsearch", {"url": "http://es", "record": "text"}, "object, flattened"),
        ("elasticsearch", {"url": "http://es", "username": "me"}, "username and password, or api_key"),
        ("quickwit", {"url": "http://me:hunter2@qw:7280"}, "give the user as username"),
        ("quickwit", {"url": "http://qw", "index": "1"}, "after the first letter"),
        ("quickwit", {"url": "http://qw", "username": "me"}, "username and password, or token"),
    ],
)
def test_an_invalid_option_is_refused_at_once(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        open_destination(name, options)
    assert "hunter2" not in str(error.value)
