"""Destinations of landed hours, from s3lake and from other packages, and how an hour is forwarded to one."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from s3lake.errors import ConfigurationError
from s3lake.plugins import load_plugin

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.config.model.forwards import Forward
    from s3lake.lake.forwarding.complete_hour import CompleteHour

GROUP = "s3lake.forwards"
_OURS = {
    "elasticsearch": "s3lake.lake.forwarding.elasticsearch:Elasticsearch",
    "mongodb": "s3lake.lake.forwarding.mongodb:MongoDB",
    "postgres": "s3lake.lake.forwarding.postgres:Postgres",
    "quickwit": "s3lake.lake.forwarding.quickwit:Quickwit",
    "stdout": "s3lake.lake.forwarding.destination:Stdout",
}


class Destination(Protocol):
    """A system that takes hours. Its constructor asks no server."""

    @property
    def place(self) -> str:
        """Product and address for messages and metadata, without secrets: `postgres db:5432/lake table events`."""
        ...

    def read_content(self, hour: CompleteHour) -> str | None:
        """Return the `content` of the hour that is there as a whole; None if there is none.

        Raises:
            DestinationUnavailableError: the server does not answer; it may answer later.
        """
        ...

    def write(self, hour: CompleteHour) -> None:
        """Replace what is there of an hour by all of its rows and its `content`, or change nothing.

        Errors of `hour.batches()` are raised, and then nothing is changed: only after the last batch it is certain that
        these are the rows of the hour.

        Raises:
            DestinationUnavailableError: the server does not answer; trying again may help.
            DestinationRefusedError: the server refuses the rows.
        """
        ...


Opener = Callable[..., Destination]
"""The object of an entry point: it is called with the options by name."""


def open_destination(name: str, options: Mapping[str, Any]) -> Destination:
    """Open the destination registered as `name` with these options. No server is asked.

    Raises:
        ConfigurationError: no installed package brings it, or it refuses these options.
    """
    opener: Opener = load_plugin(name, GROUP, _OURS, "to", "destination")
    try:
        return opener(**options)
    except TypeError as error:  # "Postgres.__init__() got an unexpected keyword argument 'tabel'"
        names = [option for option in inspect.signature(opener).parameters if option != "self"]
        raise ConfigurationError(
            f"options of {name}: {str(error).rpartition('() ')[2]}; it takes {', '.join(names)}"
        ) from None


def open_forwards(sink: Sink) -> list[tuple[Forward, Destination]]:
    """Open the destination of each forward of a sink.

    Raises:
        ConfigurationError: one cannot be opened; the message names the sink and the forward.
    """
    opened = []
    for position, forward in enumerate(sink.forwards):
        try:
            opened.append((forward, open_destination(forward.to, forward.options)))
        except ConfigurationError as error:
            raise ConfigurationError(f"sink {sink.name}: forwards[{position}]: {error}") from None
    return opened


@dataclass(frozen=True)
class Forwarded:
    """The result for an hour.

    Attributes:
        hour: the hour that was forwarded, with the content that it had then.
        outcome: `written`, `replaced` if an earlier content was there, or `there already`.
    """

    hour: CompleteHour
    outcome: str


def forward_hour(hour: CompleteHour, destination: Destination) -> Forwarded:
    """Bring a destination to the state that the index has of an hour. A repeat changes nothing.

    Raises:
        FencedError: the hour was rewritten meanwhile.
        DestinationUnavailableError: the destination does not answer.
        DestinationRefusedError: it refuses the rows.
    """
    before = destination.read_content(hour)
    if before == hour.content:
        return Forwarded(hour, "there already")
    destination.write(hour)
    return Forwarded(hour, "written" if before is None else "replaced")


class Stdout:
    """A destination of `forward`: a line of JSON for each row.

    An hour that is forwarded again is printed again.
    """

    place = "stdout"

    def read_content(self, hour: CompleteHour) -> None:
        """Return None: what was printed is not known."""

    def write(self, hour: CompleteHour) -> None:
        """Print the rows while they are read: of an hour that fails, some lines are printed already."""
        for batch in hour.batches():
            for row in batch:
                line = row._replace(document=msgspec.Raw(row.document))._asdict()
                named = {"topic": hour.topic, "hour": hour.hour, **line}
                sys.stdout.write(msgspec.json.encode(named).decode() + "\n")
