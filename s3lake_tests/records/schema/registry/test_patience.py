"""For how long a question to a registry is asked again that gets no answer."""

import itertools
import math

import pytest

from s3lake.errors import TransientError
from s3lake.records.schema import registry
from s3lake.records.schema.registry import Client, bounded_http
from s3lake.records.schema.registry.bounded_http import Answer
from s3lake.records.schema.registry.registry_connection import Connection


class WaitingClock:
    """Time that passes only while a test waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WaitingClock:
    made = WaitingClock()
    monkeypatch.setattr(registry, "time", made)
    return made


def asked(monkeypatch: pytest.MonkeyPatch, answers_after: float, **connection: float | None) -> str:
    """The schema that a registry gives which does not answer so many questions."""
    count = itertools.count()

    def answer(*_: object) -> Answer:
        return Answer(503, b"") if next(count) < answers_after else Answer(200, b'{"schema": "{}"}')

    monkeypatch.setattr(bounded_http, "get", answer)
    return Client(Connection(("http://registry",), **connection)).schema(1).text  # type: ignore[arg-type]


def test_a_registry_is_asked_three_times_by_default(clock: WaitingClock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, 2) == "{}"
    with pytest.raises(TransientError, match="in 3 attempts"):
        asked(monkeypatch, math.inf)
    assert clock.pauses == [0.3, 0.6, 0.3, 0.6]


def test_a_registry_is_asked_for_the_patience_of_the_sink_with_no_longer_pause(
    clock: WaitingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TransientError):
        asked(monkeypatch, math.inf, patience_s=60, longest_pause_s=5)
    assert 55 < clock.now <= 60
    assert clock.pauses[:5] == [0.3, 0.6, 1.2, 2.4, 4.8]
    assert max(clock.pauses) == 5


def test_a_request_is_repeated_without_end_when_patience_has_no_limit(
    clock: WaitingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(monkeypatch, 5_000, patience_s=None) == "{}"
    assert clock.now > 250_000
