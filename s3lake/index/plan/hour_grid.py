"""The hours of a range, by the clock: which of them should be landed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3lake import hours

if TYPE_CHECKING:
    from s3lake.config.model import Sink


@dataclass(frozen=True)
class Grid:
    """The hours that are landed or verified, and the clock.

    Attributes:
        start: the first hour that should have a tile; each later one should have one too.
        first: the first hour asked for; None for the first that has a tile, or should.
        last: the last hour asked for, included; None for the present.
        grace_ms: how long after its end an hour stays open.
    """

    start: str
    first: str | None
    last: str | None
    now_ms: int
    grace_ms: int

    @classmethod
    def from_sink(cls, sink: Sink, now_ms: int, first: str | None = None, last: str | None = None) -> Grid:
        """Return the hours of a sink from its start, or `first`, to the present, or `last`."""
        return cls(sink.start, first, last, now_ms, int(sink.close_grace * 1000))

    def __contains__(self, hour: str) -> bool:
        return (self.first is None or self.first <= hour) and (self.last is None or hour <= self.last)

    @property
    def present(self) -> str:
        """The hour of the clock."""
        return hours.key_of_ms(self.now_ms)

    def due_hours(self, since: str | None = None) -> list[str]:
        """Return the hours that should have a tile; none before `since`."""
        first = max(self.start, self.first or "", since or "")
        last = min(self.last or self.present, self.present)
        return list(hours.span(first, last))

    def is_current(self, hour: str) -> bool:
        """Return whether the hour, or the grace that late records get, is not over."""
        return self.now_ms < hours.end_ms(hour) + self.grace_ms
