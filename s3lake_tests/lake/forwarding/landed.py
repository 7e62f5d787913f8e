"""An hour of a few records that is landed without a server, for destinations to take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from s3lake.config import native
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.forwarding.complete_hour import CompleteHour
from s3lake.lake.forwarding.destination import Destination, forward_hour
from s3lake.land.hour import landing
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit.lake import START, at
from s3lake_tests.kit.plugins import install_package
from s3lake_tests.source.inline import inline

Land = Callable[..., TopicSink]
VALUES = ('{"id": 1, "at": 0.5}', '{"id": 2}')


@contextmanager
def land_values(directory: Path) -> Iterator[Land]:
    """Yield a function that lands these values in one hour, in a sink with these settings."""
    log = directory / "logs" / "clicks" / "0.txt"
    log.parent.mkdir(parents=True)
    source = f"source: {{type: lines, options: {{directory: '{log.parents[1]}'}}}}\n"

    def land(*values: str, bucket: str = "lake", settings: str = "format: {type: json}") -> TopicSink:
        sink = f"name: events, topics: [clicks], bucket: {bucket}, start: {START}, {settings}"
        lines = [f"{at(START, 10)} {value}\n" for value in values or VALUES]
        log.write_text("".join([*lines, f"{at(START, 60)} {{}}\n"]))
        config = native.load_text(f"{source}sinks:\n  - {{{sink}}}\n", "f")
        landed = inline(config, "clicks", MemoryStore(bucket), lambda: at(START, 90))
        landing.land(landed, [START])
        return landed

    with install_package(
        directory / "packages", "lines_source", "[s3lake.sources]\nlines = lines_source:LinesSource\n"
    ):
        yield land


def hour_of(landed: TopicSink) -> CompleteHour:
    """Return the hour as the index has it now."""
    return CompleteHour.from_index(landed.sink, landed.topic, START, landed.store)


class Overtaken:
    """An hour that is rewritten, and forwarded so, after it has given its rows."""

    def __init__(self, landed: TopicSink, destination: Destination) -> None:
        self._landed, self._destination, self._hour = landed, destination, hour_of(landed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hour, name)

    def batches(self) -> Iterator[Any]:
        for batch in self._hour.batches():
            landing.rewrite(self._landed, START)
            forward_hour(hour_of(self._landed), self._destination)
            yield batch
