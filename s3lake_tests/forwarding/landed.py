"""Hours of a few records that are landed without a server, for destinations to take."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from s3lake.config import native
from s3lake.forwarding.destination import Destination
from s3lake.forwarding.forwarding import forward_hour
from s3lake.forwarding.hour import Hour
from s3lake.land.landing import Landing
from s3lake.store.memory import MemoryStore
from s3lake_tests.lake import START, at
from s3lake_tests.plugins import installed
from s3lake_tests.source.inline import inline

Land = Callable[..., Landing]


class Killed(BaseException):
    """As SIGKILL: nobody catches it."""


class Mortal:
    """What a process asks of a server until it dies, before or after call number `at`.

    Attributes:
        asked: how many calls there were.
    """

    def __init__(self, at: int, *, after: bool) -> None:
        self.asked, self._at, self._after = 0, at, after

    def __call__(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """The call in the place of `real`."""

        def call(*arguments: Any, **options: Any) -> Any:
            number, self.asked = self.asked, self.asked + 1
            if number == self._at and not self._after:
                raise Killed
            answer = real(*arguments, **options)
            if number == self._at:
                raise Killed
            return answer

        return call


@contextmanager
def landing(directory: Path) -> Iterator[Land]:
    """Lands an hour of records with these ids into a bucket."""
    log = directory / "logs" / "clicks" / "0.txt"
    log.parent.mkdir(parents=True)
    source = f"source: {{type: lines, options: {{directory: '{log.parents[1]}'}}}}\n"

    def landed(*ids: str, bucket: str = "lake") -> Landing:
        sink = f"name: events, topics: [clicks], bucket: {bucket}, start: {START}, format: {{type: json}}"
        log.write_text("".join(f'{at(START, 1)} {{"id": {one}}}\n' for one in ids) + f"{at(START, 60)} {{}}\n")
        config = native.loads(f"{source}sinks:\n  - {{{sink}}}\n", "f")
        lander = inline(config, "clicks", MemoryStore(bucket), lambda: at(START, 90))
        lander.land([START])
        return lander

    with installed(directory / "packages", "lines_source", "[s3lake.sources]\nlines = lines_source:LinesSource\n"):
        yield landed


def hour_of(lander: Landing) -> Hour:
    return Hour.from_index(lander.sink, lander.topic, START, lander.store)


class Overtaken:
    """An hour that is rewritten, and forwarded so, after it has given its rows."""

    def __init__(self, lander: Landing, destination: Destination) -> None:
        self._lander, self._destination, self._hour = lander, destination, hour_of(lander)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hour, name)

    def batches(self) -> Iterator[Any]:
        for batch in self._hour.batches():
            self._lander.rewrite(START)
            forward_hour(hour_of(self._lander), self._destination)
            yield batch


def survive_a_death_at_any_request(
    lander: Landing,
    destination: Callable[[], Destination],
    rows: Callable[[], list[tuple[str, int]]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    after: bool,
) -> int:
    """Whenever a process is killed, the next one brings every row once; how many requests an hour takes."""
    real = requests.request
    for at_request in itertools.count():
        mortal = Mortal(at_request, after=after)
        lander.rewrite(START)
        hour = hour_of(lander)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(requests, "request", mortal(real))
            forward_hour(hour, destination())
        forward_hour(hour, destination())
        assert rows() == [(hour.content, 1), (hour.content, 2)], f"killed at {at_request}"
        if mortal.asked <= at_request:  # nobody was killed
            return at_request
    raise AssertionError("not reached")
