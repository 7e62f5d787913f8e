"""Hours in a collection of MongoDB, as FerretDB speaks it: each row once, whatever ends when, whoever repeats what."""

import contextlib
import itertools
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pymongo
import pytest
from bson.decimal128 import Decimal128

from s3lake.errors import (
    ConfigurationError,
    DestinationRefusedError,
    DestinationUnavailableError,
    FencedError,
)
from s3lake.forwarding.destination import open_destination
from s3lake.forwarding.forwarding import forward_hour
from s3lake.forwarding.mongodb import MongoDB, decode_document
from s3lake_tests.forwarding.landed import Killed, Land, Mortal, Overtaken, hour_of
from s3lake_tests.lake import START

Database = pymongo.database.Database[dict[str, Any]]


@pytest.fixture
def uri(mongodb: str) -> str:
    return mongodb


@pytest.fixture
def database(uri: str) -> Iterator[Database]:
    """Without a collection."""
    with pymongo.MongoClient[dict[str, Any]](uri, tz_aware=True) as client:
        client.drop_database("lake")
        yield client["lake"]


@pytest.fixture
def destination(uri: str, database: Database) -> MongoDB:
    return MongoDB(uri, database=database.name)


def rows(database: Database) -> list[tuple[str, int]]:
    """Of which content each document is, and its record."""
    return sorted((row["content"], row["record"]["id"]) for row in database["events"].find())


@pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
def test_an_hour_is_there_once_and_a_rewritten_one_takes_its_place(
    uri: str, database: Database, destination: MongoDB, land: Land
) -> None:
    lander = land("1", "2")
    assert forward_hour(hour_of(lander), destination).outcome == "written"
    first = database["events"].find_one({"record.id": 1})
    assert first is not None
    assert {name: first[name] for name in ("sink", "topic", "hour", "partition", "offset", "row")} == {
        "sink": "events",
        "topic": "clicks",
        "hour": datetime(2026, 1, 5, 8, tzinfo=timezone.utc),
        "partition": 0,
        "offset": None,
        "row": 0,
    }
    [entry] = database["events_hours"].find()
    assert (entry["offsets"], entry["rows"], entry["whole"]) == ({"0": [0, 2]}, 2, True)
    assert forward_hour(hour_of(lander), destination).outcome == "there already"
    before = hour_of(lander).content
    lander.rewrite(START)
    assert rows(database) == [(before, 1), (before, 2)]
    assert forward_hour(hour_of(lander), open_destination("mongodb", {"uri": uri})).outcome == "replaced"
    assert rows(database) == [(hour_of(lander).content, 1), (hour_of(lander).content, 2)]
    assert database["events_hours"].count_documents({}) == 1


@pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_command_the_next_attempt_brings_every_row_once(
    database: Database, destination: MongoDB, land: Land, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr("s3lake.forwarding.mongodb._ROWS_AT_ONCE", 1)
    lander = land("1", "2")
    for at in itertools.count():
        lander.rewrite(START)
        hour, mortal = hour_of(lander), Mortal(at, after=after)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            for name in ("find_one", "insert_one", "replace_one", "bulk_write", "delete_many", "create_index"):
                real = getattr(pymongo.collection.Collection, name)
                patch.setattr(pymongo.collection.Collection, name, mortal(real))
            forward_hour(hour, destination)
        forward_hour(hour, destination)
        assert rows(database) == [(hour.content, 1), (hour.content, 2)], f"killed at {at}"
        if mortal.asked <= at:  # nobody was killed
            break
    assert at >= 8  # asked twice, the index, claimed, each row, others taken away, whole


@pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
def test_who_comes_too_late_leaves_what_is_forwarded_again_as_a_whole(
    database: Database, destination: MongoDB, land: Land
) -> None:
    lander = land("1", "2")
    with pytest.raises(FencedError):
        destination.write(Overtaken(lander, destination))  # type: ignore[arg-type]
    assert forward_hour(hour_of(lander), destination).outcome == "written"
    assert rows(database) == [(hour_of(lander).content, 1), (hour_of(lander).content, 2)]


@pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
def test_of_two_that_claim_an_hour_at_once_one_is_refused(destination: MongoDB, land: Land) -> None:
    hour = hour_of(land("1"))
    claim = destination.write_entry(hour, whole=False, after=None)
    assert destination.write_entry(hour, whole=False, after=None) is None
    assert destination.write_entry(hour, whole=False, after=claim) is not None
    assert destination.write_entry(hour, whole=True, after=claim) is None
    assert destination.read_content(hour) is None


@pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
def test_hours_of_another_bucket_do_not_take_the_place_of_others(
    database: Database, destination: MongoDB, land: Land
) -> None:
    forward_hour(hour_of(land("1")), destination)
    with pytest.raises(DestinationRefusedError, match="from another bucket than other"):
        forward_hour(hour_of(land("2", bucket="other")), destination)
    assert [number for _, number in rows(database)] == [1]


def test_no_digit_of_a_number_is_lost() -> None:
    numbers = b"[0.1, 1e300, 9223372036854775807, 9223372036854775808, 12345678901234567890.10]"
    assert decode_document(b'{"of": %s, "id": 1e400}' % numbers) == {
        "of": [0.1, 1e300, 2**63 - 1, Decimal128("9223372036854775808"), Decimal128("12345678901234567890.10")],
        "id": Decimal128("1E+400"),
    }


@pytest.mark.slow("a destination is a destination: PostgreSQL is always tried")
@pytest.mark.parametrize(
    "value",
    [r'1, "private\u0000": 2', "1" * 40, f"{'[' * 98}1{']' * 98}"],
    ids=["name", "digits", "depth"],
)
def test_a_record_that_no_document_can_hold_is_named_without_what_it_holds_and_fits_as_text(
    uri: str, database: Database, destination: MongoDB, land: Land, value: str
) -> None:
    lander = land("1", value)
    with pytest.raises(DestinationRefusedError, match=r"row 1 of clicks/.*record='text'") as refused:
        forward_hour(hour_of(lander), destination)
    assert "private" not in str(refused.value)
    assert destination.read_content(hour_of(lander)) is None
    assert forward_hour(hour_of(lander), MongoDB(uri, record="text")).outcome == "written"
    assert [row["record"] for row in database["events"].find().sort("row")] == [
        f'{{"id": {id}}}' for id in ("1", value)
    ]


def test_a_secret_is_in_no_message(land: Land) -> None:
    silent = MongoDB("mongodb://me:hunter2%21@127.0.0.1:1/?serverSelectionTimeoutMS=50", collection="orders")
    hour = hour_of(land("1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("s3lake.forwarding.mongodb._CONNECT_MS", 50)
        with pytest.raises(DestinationUnavailableError, match=r"127\.0\.0\.1:1") as error:
            silent.read_content(hour)
    assert "hunter2" not in f"{error.value} {silent!r} {silent.place}"
    assert silent.place == "mongodb 127.0.0.1:1/lake collection orders"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uri": "http://me:hunter2@db"}, "write mongodb://HOST:PORT"),
        ({"uri": "mongodb://db", "database": "a.b"}, "letters, digits, _ and -"),
        ({"uri": "mongodb://db", "collection": "system.users"}, "collection 'system.users'"),
        ({"uri": "mongodb://db", "record": "json"}, "document, text"),
        ({"uri": "mongodb://db", "username": "me"}, "username and password"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        MongoDB(**options)  # type: ignore[arg-type]
    assert "hunter2" not in str(error.value)
