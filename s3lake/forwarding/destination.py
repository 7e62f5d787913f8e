"""Where landed hours are forwarded to: what comes with s3lake, or what another package brings by an entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from s3lake.errors import ConfigurationError
from s3lake.plugins import brought

if TYPE_CHECKING:
    from s3lake.forwarding.hour import Hour

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


def opened(name: str, options: dict[str, Any]) -> Destination:
    """The destination that is called so.

    Raises:
        ConfigurationError: no installed package brings it, or it does not know these options.
    """
    opener: Opener = brought(name, GROUP, _OURS, "to", "destination")
    try:
        return opener(**options)
    except TypeError as error:
        raise ConfigurationError(f"options of {name}: {error}") from None
