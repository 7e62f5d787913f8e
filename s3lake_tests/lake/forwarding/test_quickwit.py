"""Hours in indexes of Quickwit: what is its own."""

from typing import Any

import pytest
import requests

from s3lake.errors import DestinationUnavailableError, FencedError
from s3lake.lake.forwarding.destination import forward_hour
from s3lake_tests.lake.forwarding.conftest import System
from s3lake_tests.lake.forwarding.landed import Land, hour_of
from s3lake_tests.lake.forwarding.stand_ins import Quick


def test_a_request_whose_answer_is_lost_is_not_repeated_into_the_same_index(
    quick: Quick, in_quickwit: System, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, real = hour_of(land()), requests.request

    def request(method: str, url: str, **options: Any) -> requests.Response:
        response = real(method, url, **options)
        if "ingest" in url:
            raise requests.ConnectionError("refused")
        return response

    monkeypatch.setattr(requests, "request", request)
    with pytest.raises(DestinationUnavailableError, match="refused"):
        forward_hour(hour, in_quickwit.open())
    monkeypatch.setattr(requests, "request", real)
    assert quick.indexes == {}
    assert forward_hour(hour, in_quickwit.open()).outcome == "written"
    assert [row["record"]["id"] for row in in_quickwit.find()] == [1, 2]


def test_documents_that_are_not_indexed_make_no_hour(quick: Quick, in_quickwit: System, land: Land) -> None:
    hour, quick.lost = hour_of(land()), 1
    with pytest.raises(DestinationUnavailableError, match="0 documents are there of 2 rows of clicks"):
        forward_hour(hour, in_quickwit.open())
    assert (quick.indexes, in_quickwit.open().read_content(hour)) == ({}, None)


def test_an_index_to_which_another_program_adds_is_not_the_hour(quick: Quick, in_quickwit: System, land: Land) -> None:
    hour = hour_of(land('{"id": 1}'))
    forward_hour(hour, in_quickwit.open())
    [name] = quick.indexes
    quick.published[name] += 1
    assert in_quickwit.open().read_content(hour) is None
    assert forward_hour(hour, in_quickwit.open()).outcome == "written"
    assert [row["record"]["id"] for row in in_quickwit.find()] == [1]


def test_a_writer_whose_index_was_deleted_meanwhile_is_fenced(
    quick: Quick, in_quickwit: System, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, real = hour_of(land('{"id": 1}')), requests.request

    def request(method: str, url: str, **options: Any) -> requests.Response:
        response = real(method, url, **options)
        if "describe" in url:
            quick.indexes.clear()
        return response

    monkeypatch.setattr(requests, "request", request)
    with pytest.raises(FencedError, match="at the same time"):
        in_quickwit.open().write(hour)
