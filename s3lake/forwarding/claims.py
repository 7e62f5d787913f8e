"""An hour exactly once in a destination without transactions.

A ledger has an entry for each hour. A writer claims the entry, writes rows under ids that a repeat has again, deletes
the rows of other contents, and marks the entry as whole last, unless another writer has claimed it meanwhile.
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
    """The ledger's entry of an hour.

    Attributes:
        bucket: the bucket that the hour was landed in.
        content: of the hour, as `Hour.content`.
        whole: true if all rows of that content are there, and no others.
        version: another one after each change of the entry.
    """

    bucket: str
    content: str
    whole: bool
    version: Any


class Claimable(Protocol):
    """A ledger and its rows. A single entry changes as a whole or not at all."""

    @property
    def place(self) -> str:
        """See `Destination.place`."""
        ...

    def create(self) -> None:
        """Create what does not exist yet."""
        ...

    def read_entry(self, hour: Hour) -> Entry | None:
        """Return the newest entry of the hour; None if there is none."""
        ...

    def write_entry(self, hour: Hour, *, whole: bool, after: Entry | None) -> Entry | None:
        """Replace the entry `after`, or create one if it is None. Return None if the ledger has another entry."""
        ...

    def mark_incomplete(self, hour: Hour) -> None:
        """Replace any entry by one that is not whole."""
        ...

    def write_rows(self, hour: Hour) -> None:
        """Write all rows, so that the next search finds them. A row that exists already is replaced."""
        ...

    def delete_other_rows(self, hour: Hour) -> None:
        """Delete the rows of other contents of the hour."""
        ...


def read_content(ledger: Claimable, hour: Hour) -> str | None:
    """See `Destination.read_content`."""
    entry = ledger.read_entry(hour)
    return entry.content if entry and entry.whole and entry.bucket == hour.bucket else None


def write(ledger: Claimable, hour: Hour) -> None:
    """See `Destination.write`; until it returns, a reader sees some of the rows."""
    ledger.create()
    former = ledger.read_entry(hour)
    if former is not None and former.bucket != hour.bucket:
        raise DestinationRefusedError(
            f"{ledger.place}: {hour.hour} of {hour.topic} in sink {hour.sink} was forwarded there from another "
            f"bucket than {hour.bucket}: give this one a place of its own"
        )
    # The last writer to claim the entry wins; the others find out by its version.
    claim = ledger.write_entry(hour, whole=False, after=former)
    _refuse_fenced(ledger, hour, claim)
    try:
        ledger.write_rows(hour)
        ledger.delete_other_rows(hour)
        _refuse_fenced(ledger, hour, ledger.write_entry(hour, whole=True, after=claim))
    except FencedError:
        # Another writer may have deleted our rows before all of them were there.
        ledger.mark_incomplete(hour)
        raise


def entry_fields(hour: Hour, *, whole: bool) -> dict[str, Any]:
    """Return the fields of an entry, without its version."""
    entry: dict[str, Any] = {name: getattr(hour, name) for name in _OF_HOUR}
    offsets = {str(number): list(span) for number, span in hour.offsets.items()}
    return {**entry, "commits": list(hour.commits), "offsets": offsets, "whole": whole}


def entry_id(hour: Hour) -> str:
    """Return the id of the hour's entry."""
    return _digest(hour.sink, hour.topic, hour.hour)


def row_id(hour: Hour, row: Row) -> str:
    """Return the id of a row: it differs in each content of the hour."""
    return _digest(hour.sink, hour.topic, hour.hour, hour.content, row.file, str(row.number))


def _refuse_fenced(ledger: Claimable, hour: Hour, entry: Entry | None) -> None:
    if entry is None:
        raise FencedError(f"{ledger.place}: another run forwards {hour.topic} {hour.hour} at the same time")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
