"""Hours in an index of Elasticsearch: of a real server, and of a stand-in that can be busy, fail and want a key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from s3lake.errors import (
    ConfigurationError,
    DestinationRefusedError,
    DestinationUnavailableError,
    FencedError,
    TransientError,
)
from s3lake.forwarding.destination import open_destination
from s3lake.forwarding.elasticsearch import Elasticsearch
from s3lake.forwarding.forwarding import forward_hour
from s3lake_tests.forwarding.elastic import Elastic, class_path, running
from s3lake_tests.forwarding.landed import Land, Overtaken, hour_of, survive_a_death_at_any_request
from s3lake_tests.forwarding.search import AUTHORIZATION, Search, serving
from s3lake_tests.lake import START

_REAL = pytest.mark.slow("a real Elasticsearch, which takes a minute to start; its stand-in is always tried")
KEY = AUTHORIZATION.removeprefix("ApiKey ")


@pytest.fixture(scope="module")
def elastic(jvm: Path) -> Iterator[Elastic]:  # noqa: ARG001 (it needs Java)
    try:
        class_path()
    except TransientError as error:
        pytest.skip(f"Elasticsearch cannot be had: {error}")
    with running() as started:
        yield started


@pytest.fixture
def search() -> Iterator[Search]:
    with serving() as started:
        yield started


@pytest.fixture(params=["search", pytest.param("elastic", marks=[pytest.mark.jvm, pytest.mark.timeout(900), _REAL])])
def server(request: pytest.FixtureRequest) -> Search | Elastic:
    """The stand-in, or a real server without an index."""
    started: Search | Elastic = request.getfixturevalue(request.param)
    if isinstance(started, Elastic):
        started.clear()
    return started


def destination(server: Search | Elastic) -> Elasticsearch:
    return Elasticsearch(server.url, api_key=KEY)


def rows(server: Search | Elastic) -> list[tuple[str, int]]:
    """Of which content each document is, and its record."""
    sources = server.documents("events").values()
    return sorted((source["content"], source["record"]["id"]) for source in sources)


def test_an_hour_is_there_once_and_a_rewritten_one_takes_its_place(server: Search | Elastic, land: Land) -> None:
    lander = land("1", "2")
    assert forward_hour(hour_of(lander), destination(server)).outcome == "written"
    assert max(map(len, server.documents("events"))) <= 512  # what an id may have
    [first, _] = server.documents("events").values()
    assert {name: first[name] for name in ("sink", "topic", "hour", "partition", "offset", "row")} == {
        "sink": "events",
        "topic": "clicks",
        "hour": f"{START}:00:00Z",
        "partition": 0,
        "offset": None,
        "row": 0,
    }
    assert forward_hour(hour_of(lander), destination(server)).outcome == "there already"
    before = hour_of(lander).content
    lander.rewrite(START)
    assert rows(server) == [(before, 1), (before, 2)]
    by_name = open_destination("elasticsearch", {"url": server.url, "api_key": KEY})
    assert forward_hour(hour_of(lander), by_name).outcome == "replaced"
    assert rows(server) == [(hour_of(lander).content, 1), (hour_of(lander).content, 2)]
    assert len(server.documents("events-hours")) == 1


@pytest.mark.parametrize(
    "after", [pytest.param(False, id="before", marks=pytest.mark.long), pytest.param(True, id="after")]
)
def test_killed_at_any_request_the_next_attempt_brings_every_row_once(
    server: Search | Elastic, land: Land, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr("s3lake.forwarding.elasticsearch._BULK_BYTES", 1)
    died_at = survive_a_death_at_any_request(
        land("1", "2"), lambda: destination(server), lambda: rows(server), monkeypatch, after=after
    )
    assert died_at >= 9


def test_who_comes_too_late_leaves_what_is_forwarded_again_as_a_whole(server: Search | Elastic, land: Land) -> None:
    lander = land("1", "2")
    with pytest.raises(FencedError):
        destination(server).write(Overtaken(lander, destination(server)))  # type: ignore[arg-type]
    assert forward_hour(hour_of(lander), destination(server)).outcome == "written"
    assert rows(server) == [(hour_of(lander).content, 1), (hour_of(lander).content, 2)]


def test_a_server_that_is_busy_is_asked_again_later(search: Search, land: Land) -> None:
    lander, search.busy = land("1", "2"), 1
    with pytest.raises(DestinationUnavailableError, match=r"1 of 2 rows .* es_rejected_execution_exception \(429\)"):
        forward_hour(hour_of(lander), destination(search))
    assert destination(search).read_content(hour_of(lander)) is None
    assert forward_hour(hour_of(lander), destination(search)).outcome == "written"
    assert [number for _, number in rows(search)] == [1, 2]


def test_a_row_that_does_not_fit_is_named_without_what_it_holds(server: Search | Elastic, land: Land) -> None:
    lander = land("1", '"private"')
    with pytest.raises(
        DestinationRefusedError, match=r"row 1 of clicks/.*(document|mapper)_parsing_exception \(400\)"
    ) as error:
        forward_hour(hour_of(lander), destination(server))
    assert "private" not in str(error.value)


@_REAL
@pytest.mark.timeout(900)
def test_records_whose_fields_differ_in_type_fit_as_one_field(elastic: Elastic, land: Land) -> None:
    elastic.clear()
    hour = hour_of(land("1", '"text"', '{"nested": true}'))
    assert forward_hour(hour, Elasticsearch(elastic.url, record="flattened")).outcome == "written"
    sources = sorted(elastic.documents("events").values(), key=lambda source: source["row"])
    assert [source["record"]["id"] for source in sources] == [1, "text", {"nested": True}]


def test_hours_of_another_bucket_do_not_take_the_place_of_others(server: Search | Elastic, land: Land) -> None:
    forward_hour(hour_of(land("1")), destination(server))
    other = hour_of(land("2", bucket="other"))
    with pytest.raises(DestinationRefusedError, match="from another bucket than other"):
        forward_hour(other, destination(server))
    assert [number for _, number in rows(server)] == [1]


def test_an_index_that_came_into_being_by_itself_is_not_used(server: Search | Elastic, land: Land) -> None:
    server.create("events", {"sink": {"type": "text"}})
    with pytest.raises(DestinationRefusedError, match="sink has to be keyword"):
        forward_hour(hour_of(land("1")), destination(server))


def test_an_index_that_the_server_refuses_to_create_is_not_taken_for_one_that_exists(
    search: Search, land: Land
) -> None:
    search.refuses_indices = True
    with pytest.raises(DestinationRefusedError, match="the server refuses to create index events"):
        forward_hour(hour_of(land("1")), destination(search))


def test_rows_of_a_former_content_that_stay_leave_the_hour_under_way(search: Search, land: Land) -> None:
    lander, search.failures = land("1"), [{"status": 503}]
    with pytest.raises(DestinationUnavailableError, match="not all rows of a former content"):
        forward_hour(hour_of(lander), destination(search))
    assert destination(search).read_content(hour_of(lander)) is None


def test_a_secret_is_in_no_message(search: Search, land: Land) -> None:
    hour = hour_of(land("1"))
    refused = Elasticsearch(search.url, username="me", password="hunter2-wrong")
    with pytest.raises(DestinationRefusedError, match="was answered 401") as error:
        refused.read_content(hour)
    with pytest.raises(DestinationUnavailableError) as silent:
        Elasticsearch("http://127.0.0.1:1", api_key=KEY).read_content(hour)
    assert "hunter2" not in f"{error.value} {silent.value} {refused!r} {refused.place}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://me:hunter2@es:9200"}, "give the user as username"),
        ({"url": "http://es", "index": "Events"}, "lower case"),
        ({"url": "http://es", "record": "text"}, "object, flattened"),
        ({"url": "http://es", "username": "me"}, "username and password, or api_key"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        Elasticsearch(**options)  # type: ignore[arg-type]
    assert "hunter2" not in str(error.value)
