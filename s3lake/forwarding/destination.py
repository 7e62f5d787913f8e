"""Destinations of landed hours: those of s3lake, and those that other packages bring by an entry point."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from s3lake.errors import ConfigurationError
from s3lake.plugins import brought

if TYPE_CHECKING:
    from s3lake.forwarding.hour import Hour
    from s3lake.sink import Sink
    from s3lake.sink.forwards import Forward

GROUP = "s3lake.forwards"
_OURS = {
    "elasticsearch": "s3lake.forwarding.elasticsearch:Elasticsearch",
    "mongodb": "s3lake.forwarding.mongodb:MongoDB",
    "postgres": "s3lake.forwarding.postgres:Postgres",
    "quickwit": "s3lake.forwarding.quickwit:Quickwit",
    "stdout": "s3lake.forwarding.stdout:Stdout",
}


class Destination(Protocol):
    """What takes hours. Making it asks nobody anything."""

    @property
    def place(self) -> str:
        """What and where it is, as messages and metadata call it: `postgres db:5432/lake table events`; no secret."""
        ...

    def content(self, hour: Hour) -> str | None:
        """The `content` of the hour that was written last, and as a whole; None where none was.

        Raises:
            DestinationUnavailableError: nobody answers; the same question may be answered later.
        """
        ...

    def write(self, hour: Hour) -> None:
        """Take all rows of an hour, in the place of what is there of it, and its `content`; all of it or nothing.

        Whatever `hour.batches()` raises comes out, and nothing is changed by it: only after its last batch is it known
        that these are the rows of the hour.

        Raises:
            DestinationUnavailableError: nobody answers; trying again may help.
            DestinationRefusedError: it cannot take them.
        """
        ...


Opener = Callable[..., Destination]
"""What an entry point names: options come in by name."""


def open_destination(name: str, options: Mapping[str, Any]) -> Destination:
    """Open the destination registered as `name` with these options. No server is asked.

    Raises:
        ConfigurationError: no installed package brings it, or it refuses these options.
    """
    opener: Opener = brought(name, GROUP, _OURS, "to", "destination")
    try:
        return opener(**options)
    except TypeError as error:  # "Postgres.__init__() got an unexpected keyword argument 'tabel'"
        known = [option for option in inspect.signature(opener).parameters if option != "self"]
        raise ConfigurationError(
            f"options of {name}: {str(error).rpartition('() ')[2]}; it takes {', '.join(known)}"
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
