"""Hours in an index of Elasticsearch: what is its own."""

import base64

import pytest

from s3lake.errors import DestinationRefusedError, DestinationUnavailableError
from s3lake.lake.forwarding.destination import forward_hour
from s3lake.lake.forwarding.elasticsearch import Elasticsearch
from s3lake_tests.lake.forwarding.conftest import System
from s3lake_tests.lake.forwarding.landed import Land, hour_of
from s3lake_tests.lake.forwarding.servers import Elastic
from s3lake_tests.lake.forwarding.stand_ins import Search


def test_ids_have_at_most_512_bytes(search: Search, in_search: System, land: Land) -> None:
    forward_hour(hour_of(land()), in_search.open())
    assert max(map(len, search.documents("events"))) <= 512
    assert len(search.documents("events-hours")) == 1


def test_a_server_that_is_busy_is_asked_again_later(
    search: Search, in_search: System, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3lake.lake.forwarding.elasticsearch.BULK_BYTES", 10_000)
    hour, search.busy = hour_of(land()), 1
    with pytest.raises(DestinationUnavailableError, match=r"1 of 2 rows, .* es_rejected_execution_exception \(429\)"):
        forward_hour(hour, in_search.open())
    assert in_search.open().read_content(hour) is None
    assert forward_hour(hour, in_search.open()).outcome == "written"
    assert sorted(row["record"]["id"] for row in in_search.find()) == [1, 2]


@pytest.mark.slow("a real Elasticsearch, which takes a minute to start")
@pytest.mark.timeout(900)
def test_records_whose_fields_differ_in_type_fit_as_one_field(elastic: Elastic, in_elastic: System, land: Land) -> None:
    hour = hour_of(land('{"id": 1}', '{"id": "text"}', '{"id": {"nested": true}}'))
    assert forward_hour(hour, Elasticsearch(elastic.url, record="flattened")).outcome == "written"
    sources = sorted(in_elastic.find(), key=lambda source: source["row"])
    assert [source["record"]["id"] for source in sources] == [1, "text", {"nested": True}]


def test_an_index_that_came_into_being_by_itself_is_not_used(search: Search, in_search: System, land: Land) -> None:
    search.create("events", {"sink": {"type": "text"}})
    with pytest.raises(DestinationRefusedError, match="sink has to be keyword"):
        forward_hour(hour_of(land()), in_search.open())


def test_an_index_that_the_server_refuses_to_create_is_not_taken_for_one_that_exists(
    search: Search, in_search: System, land: Land
) -> None:
    search.refuses_indices = True
    with pytest.raises(DestinationRefusedError, match="the server refuses to create index events"):
        forward_hour(hour_of(land()), in_search.open())


def test_rows_of_a_former_content_that_stay_leave_the_hour_under_way(
    search: Search, in_search: System, land: Land
) -> None:
    hour, search.failures = hour_of(land()), [{"status": 503}]
    with pytest.raises(DestinationUnavailableError, match="not all rows of a former content"):
        forward_hour(hour, in_search.open())
    assert in_search.open().read_content(hour) is None


def test_a_user_writes_with_a_password_and_one_that_is_refused_is_in_no_message(search: Search, land: Land) -> None:
    search.authorization = f"Basic {base64.b64encode(b'me:hunter2').decode()}"
    right = Elasticsearch(search.url, username="me", password="hunter2")
    assert forward_hour(hour_of(land()), right).outcome == "written"
    refused = Elasticsearch(search.url, username="me", password="hunter2-wrong")
    with pytest.raises(DestinationRefusedError, match="was answered 401") as error:
        refused.read_content(hour_of(land()))
    assert "hunter2" not in f"{error.value} {refused!r} {refused.place}"
