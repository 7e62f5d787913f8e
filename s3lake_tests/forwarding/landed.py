"""Hours of a few records that are landed without a server, for destinations to take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from s3lake.config import native
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
    return Hour.of(lander.sink, lander.topic, START, lander.store)
