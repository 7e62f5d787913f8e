"""One hour to one destination, unless it has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from s3lake.forwarding.destination import Destination
    from s3lake.forwarding.hour import Hour


@dataclass(frozen=True)
class Forwarded:
    """What became of an hour.

    Attributes:
        hour: as it was forwarded.
        outcome: `written`, `replaced` what was there of it before a rewrite, or `there already`.
    """

    hour: Hour
    outcome: str


def forwarded(hour: Hour, destination: Destination) -> Forwarded:
    """Bring a destination to what the index has of an hour; a repeat changes nothing.

    Raises:
        FencedError: the hour was rewritten meanwhile.
        DestinationUnavailableError: the destination does not answer.
        DestinationRefusedError: it cannot take the rows.
    """
    before = destination.content(hour)
    if before == hour.content:
        return Forwarded(hour, "there already")
    destination.write(hour)
    return Forwarded(hour, "written" if before is None else "replaced")
