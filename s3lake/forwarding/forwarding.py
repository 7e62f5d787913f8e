"""Forward one hour to one destination, unless it is there already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from s3lake.forwarding.destination import Destination
    from s3lake.forwarding.hour import Hour


@dataclass(frozen=True)
class Forwarded:
    """The result for an hour.

    Attributes:
        hour: as it was forwarded.
        outcome: `written`, `replaced` if an earlier content was there, or `there already`.
    """

    hour: Hour
    outcome: str


def forward_hour(hour: Hour, destination: Destination) -> Forwarded:
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
