"""How long clients of Spark Connect wait for a server that has ended."""

from collections.abc import Callable
from urllib.parse import urlsplit

import grpc
import pytest
from pyspark.errors import RetriesExceeded
from pyspark.sql.connect.client.retries import Retrying

from s3lake.land.spark.patience import Patience
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.http import DROPPED, serve
from s3lake_tests.land.spark.spark_server import client


class Unavailable(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


def request(own: Patience, ask: Callable[[], None], waits: list[float]) -> None:
    for attempt in Retrying(own, waits.append):
        with attempt:
            ask()


def measure_waits(own: Patience, ask: Callable[[], None]) -> list[float]:
    """How many seconds a request waits before it asks again, each time, until it gives up."""
    waits: list[float] = []
    with pytest.raises(RetriesExceeded):
        request(own, ask, waits)
    return waits


def refuse() -> None:
    raise Unavailable


def test_a_request_waits_for_ten_seconds_or_so() -> None:
    waits = measure_waits(Patience(), refuse)
    assert len(waits) == 8
    assert 10 < sum(waits) < 15


def test_no_request_waits_after_another_one_has_waited_in_vain() -> None:
    own = Patience()
    measure_waits(own, refuse)
    assert measure_waits(own, refuse) == []


def test_a_request_under_way_gives_up_with_the_first_that_does() -> None:
    own = Patience()

    def ask() -> None:
        if not own.at_an_end:
            measure_waits(own, refuse)
        refuse()

    assert measure_waits(own, ask) == []


def test_a_request_that_is_answered_in_the_end_costs_the_others_nothing() -> None:
    own, answers = Patience(), iter([False, False, True])

    def ask() -> None:
        if not next(answers):
            raise Unavailable

    request(own, ask, [])
    assert len(measure_waits(own, refuse)) == 8


@pytest.mark.slow("waits as Spark does")
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_S)
def test_a_server_that_ends_while_a_session_is_asked_for_is_not_waited_for_as_spark_does() -> None:
    """That would be ten minutes. In a process of its own: this one may have a session already."""
    program = """
from s3lake.errors import SparkUnavailableError
from s3lake.land.spark import patience
patience._TRIES = 3
try:
    session()
except SparkUnavailableError as error:
    print(error)
"""
    with serve(lambda _: DROPPED) as url:
        server = urlsplit(url).netloc
        assert f"asking for a session at {server}" in client(program, f"sc://{server}")
