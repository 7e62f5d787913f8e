"""Hours in indexes of Quickwit, as its documented API is spoken: tried against a stand-in for that API alone."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError, FencedError
from s3lake.forwarding.destination import open_destination
from s3lake.forwarding.forwarding import forward_hour
from s3lake.forwarding.quickwit import Quickwit
from s3lake_tests.forwarding.landed import Land, hour_of, survive_a_death_at_any_request
from s3lake_tests.forwarding.quick import AUTHORIZATION, Quick, serving
from s3lake_tests.lake import START

TOKEN = AUTHORIZATION.removeprefix("Bearer ")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Quick]:
    monkeypatch.setattr("s3lake.forwarding.quickwit._SEEN_S", 0)
    with serving() as started:
        yield started


@pytest.fixture
def destination(server: Quick) -> Quickwit:
    return Quickwit(server.url, token=TOKEN)


def rows(server: Quick) -> list[tuple[str, int]]:
    """Of which content each document is, and its record, in all indexes."""
    documents = [document for index in server.indexes.values() for document in index]
    return sorted((document["content"], document["record"]["id"]) for document in documents)


def test_an_hour_is_there_once_and_a_rewritten_one_takes_its_place(
    server: Quick, destination: Quickwit, land: Land
) -> None:
    lander = land("1", "2")
    assert forward_hour(hour_of(lander), destination).outcome == "written"
    [[first, _]] = server.indexes.values()
    assert {name: first[name] for name in ("sink", "topic", "bucket", "hour", "partition", "row")} == {
        "sink": "events",
        "topic": "clicks",
        "bucket": "lake",
        "hour": f"{START}:00:00Z",
        "partition": 0,
        "row": 0,
    }
    assert forward_hour(hour_of(lander), destination).outcome == "there already"
    before = hour_of(lander).content
    lander.rewrite(START)
    assert rows(server) == [(before, 1), (before, 2)]
    by_name = open_destination("quickwit", {"url": server.url, "token": TOKEN})
    assert forward_hour(hour_of(lander), by_name).outcome == "replaced"
    assert rows(server) == [(hour_of(lander).content, 1), (hour_of(lander).content, 2)]


@pytest.mark.parametrize(
    "after", [pytest.param(False, id="before"), pytest.param(True, id="after", marks=pytest.mark.long)]
)
def test_killed_at_any_request_the_next_attempt_brings_every_row_once(
    server: Quick, destination: Quickwit, land: Land, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr("s3lake.forwarding.quickwit._INGEST_BYTES", 1)
    died_at = survive_a_death_at_any_request(
        land("1", "2"), lambda: destination, lambda: rows(server), monkeypatch, after=after
    )
    assert died_at >= 8


def test_a_request_whose_answer_is_lost_is_not_repeated_into_the_same_index(
    server: Quick, destination: Quickwit, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, real = hour_of(land("1", "2")), requests.request

    def request(method: str, url: str, **options: Any) -> requests.Response:
        response = real(method, url, **options)
        if "ingest" in url:
            raise requests.ConnectionError("gone")
        return response

    monkeypatch.setattr(requests, "request", request)
    with pytest.raises(DestinationUnavailableError, match="gone"):
        forward_hour(hour, destination)
    monkeypatch.setattr(requests, "request", real)
    assert server.indexes == {}
    assert forward_hour(hour, destination).outcome == "written"
    assert [number for _, number in rows(server)] == [1, 2]


def test_documents_that_are_not_indexed_make_no_hour(server: Quick, destination: Quickwit, land: Land) -> None:
    hour, server.lost = hour_of(land("1", "2")), 1
    with pytest.raises(DestinationUnavailableError, match="1 documents are there of 2 rows of clicks"):
        forward_hour(hour, destination)
    assert (server.indexes, destination.read_content(hour)) == ({}, None)


def test_a_row_that_is_rejected_is_told_without_what_it_holds(server: Quick, destination: Quickwit, land: Land) -> None:
    with pytest.raises(DestinationRefusedError, match=r"1 of 2 rows of clicks .* were not taken") as error:
        forward_hour(hour_of(land("1", '"private"')), destination)
    assert "private" not in str(error.value)
    assert server.indexes == {}


def test_an_index_that_somebody_adds_to_is_not_the_hour(server: Quick, destination: Quickwit, land: Land) -> None:
    hour = hour_of(land("1"))
    forward_hour(hour, destination)
    [name] = server.indexes
    server.published[name] += 1
    assert destination.read_content(hour) is None
    assert forward_hour(hour, destination).outcome == "written"
    assert [number for _, number in rows(server)] == [1]


def test_who_has_lost_its_index_meanwhile_is_told(
    server: Quick, destination: Quickwit, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, real = hour_of(land("1")), requests.request

    def request(method: str, url: str, **options: Any) -> requests.Response:
        response = real(method, url, **options)
        if "describe" in url:
            server.indexes.clear()
        return response

    monkeypatch.setattr(requests, "request", request)
    with pytest.raises(FencedError, match="at the same time"):
        destination.write(hour)


def test_hours_of_another_bucket_do_not_take_the_place_of_others(
    server: Quick, destination: Quickwit, land: Land
) -> None:
    forward_hour(hour_of(land("1")), destination)
    with pytest.raises(DestinationRefusedError, match="from another bucket than other"):
        forward_hour(hour_of(land("2", bucket="other")), destination)
    assert [number for _, number in rows(server)] == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://me:hunter2@qw:7280"}, "give the user as username"),
        ({"url": "http://qw", "index": "1"}, "after the first letter"),
        ({"url": "http://qw", "username": "me"}, "username and password, or token"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        Quickwit(**options)  # type: ignore[arg-type]
    assert "hunter2" not in str(error.value)
