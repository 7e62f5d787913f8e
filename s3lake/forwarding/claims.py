"""An hour exactly once where nothing holds it together as one transaction.

A ledger has an entry for each hour. Who brings the hour claims the entry, writes rows under names that a repeat has
again, takes away those of other contents, and says last that the hour is whole, unless somebody else has claimed it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from s3lake.errors import DestinationRefusedError, FencedError

if TYPE_CHECKING:
    from s3lake.forwarding.documents import Row
    from s3lake.forwarding.hour import Hour

_OF_HOUR = ("sink", "topic", "hour", "bucket", "content", "rows")


class Entry(NamedTuple):
    """What the ledger says of an hour.

    Attributes:
        bucket: that the hour was landed in.
        content: which content of the hour it is.
        whole: whether the rows of that content are there, and no others.
        version: tells the entry from those that come after it in its place.
    """

    bucket: str
    content: str
    whole: bool
    version: Any


class Claimable(Protocol):
    """A ledger, and the rows beside it. A single entry changes as a whole or not at all."""

    @property
    def place(self) -> str:
        """See `Destination.place`."""
        ...

    def make(self) -> None:
        """Make what is not there yet."""
        ...

    def entry(self, hour: Hour) -> Entry | None:
        """The newest one, None where nobody has claimed the hour."""
        ...

    def enter(self, hour: Hour, *, whole: bool, after: Entry | None) -> Entry | None:
        """Put an entry in the place of `after`, and of none where it is None. None where another one stands there."""
        ...

    def disown(self, hour: Hour) -> None:
        """Put an entry that is not whole, whatever stands there."""
        ...

    def put(self, hour: Hour) -> None:
        """Write all rows, so that the next question finds them; a row that is there already stays one."""
        ...

    def clear(self, hour: Hour) -> None:
        """Take away the rows of the hour that are of other contents."""
        ...


def content(ledger: Claimable, hour: Hour) -> str | None:
    """See `Destination.content`."""
    entry = ledger.entry(hour)
    return entry.content if entry and entry.whole and entry.bucket == hour.bucket else None


def write(ledger: Claimable, hour: Hour) -> None:
    """See `Destination.write`; an hour that is under way shows some of its rows."""
    ledger.make()
    standing = ledger.entry(hour)
    if standing is not None and standing.bucket != hour.bucket:
        raise DestinationRefusedError(
            f"{ledger.place}: {hour.hour} of {hour.topic} in sink {hour.sink} was forwarded there from another "
            f"bucket than {hour.bucket}: give this one a place of its own"
        )
    # Whoever claims it later has the last word, and this one learns it.
    claim = ledger.enter(hour, whole=False, after=standing)
    _refuse_fenced(ledger, hour, claim)
    try:
        ledger.put(hour)
        ledger.clear(hour)
        _refuse_fenced(ledger, hour, ledger.enter(hour, whole=True, after=claim))
    except FencedError:
        # Who has forwarded another content meanwhile may have looked for ours before all of it was there.
        ledger.disown(hour)
        raise


def fields(hour: Hour, *, whole: bool) -> dict[str, Any]:
    """What an entry holds, whatever else tells it from others."""
    entry: dict[str, Any] = {name: getattr(hour, name) for name in _OF_HOUR}
    offsets = {str(number): list(span) for number, span in hour.offsets.items()}
    return {**entry, "commits": list(hour.commits), "offsets": offsets, "whole": whole}


def entry_name(hour: Hour) -> str:
    """The name of its entry."""
    return _digest(hour.sink, hour.topic, hour.hour)


def row_name(hour: Hour, row: Row) -> str:
    """The name of a row of its content: another content has others."""
    return _digest(hour.sink, hour.topic, hour.hour, hour.content, row.file, str(row.number))


def _refuse_fenced(ledger: Claimable, hour: Hour, entry: Entry | None) -> None:
    if entry is None:
        raise FencedError(f"{ledger.place}: somebody else forwards {hour.topic} {hour.hour} at the same time")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
