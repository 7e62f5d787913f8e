"""An hour exactly once in a destination without transactions.

A ledger has an entry for each hour. A writer claims the entry, writes rows under ids that a repeat has again, deletes
the rows of other contents, and marks the entry as complete last, unless another writer has claimed it meanwhile.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from s3lake.errors import DestinationRefusedError, FencedError

if TYPE_CHECKING:
    from s3lake.lake.forwarding.complete_hour import CompleteHour, Row

_OF_HOUR = ("sink", "topic", "hour", "bucket", "content", "rows")


class Entry(NamedTuple):
    """The ledger's entry of an hour.

    Attributes:
        bucket: the bucket that the hour was landed in.
        content: the content of the hour, the value of `CompleteHour.content`.
        complete: True if all rows of that content are there, and no others.
        version: another one after each change of the entry.
    """

    bucket: str
    content: str
    complete: bool
    version: Any


class LedgerDestination(ABC):
    """A `Destination` with a ledger. A single entry changes as a whole or not at all.

    Until `write` returns, a search finds some of the rows.
    """

    place: str

    @abstractmethod
    def create(self) -> None:
        """Create what does not exist yet."""

    @abstractmethod
    def read_entry(self, hour: CompleteHour) -> Entry | None:
        """Return the newest entry of the hour; None if there is none."""

    @abstractmethod
    def write_entry(self, hour: CompleteHour, *, complete: bool, after: Entry | None) -> Entry | None:
        """Replace the entry `after`, or create one if it is None. Return None if the ledger has another entry."""

    @abstractmethod
    def mark_incomplete(self, hour: CompleteHour) -> None:
        """Replace any entry by one that is not complete."""

    @abstractmethod
    def write_rows(self, hour: CompleteHour) -> None:
        """Write all rows, so that the next search finds them. A row that exists already is replaced."""

    @abstractmethod
    def delete_other_rows(self, hour: CompleteHour) -> None:
        """Delete the rows of other contents of the hour."""

    def read_content(self, hour: CompleteHour) -> str | None:
        entry = self.read_entry(hour)
        return entry.content if entry and entry.complete and entry.bucket == hour.bucket else None

    def write(self, hour: CompleteHour) -> None:
        self.create()
        former = self.read_entry(hour)
        if former is not None and former.bucket != hour.bucket:
            raise make_bucket_error(self.place, hour)
        # The last writer to claim the entry wins; the others find out by its version.
        claim = self.write_entry(hour, complete=False, after=former)
        self._refuse_fenced(hour, claim)
        try:
            self.write_rows(hour)
            self.delete_other_rows(hour)
            self._refuse_fenced(hour, self.write_entry(hour, complete=True, after=claim))
        except FencedError:
            # Another writer may have deleted our rows before all of them were there.
            self.mark_incomplete(hour)
            raise

    def _refuse_fenced(self, hour: CompleteHour, entry: Entry | None) -> None:
        if entry is None:
            raise FencedError(f"{self.place}: another run forwards {hour.topic} {hour.hour} at the same time")


def make_bucket_error(place: str, hour: CompleteHour) -> DestinationRefusedError:
    """Return the error of an hour that was forwarded from another bucket."""
    return DestinationRefusedError(
        f"{place}: {hour.hour} of {hour.topic} in sink {hour.sink} was forwarded there from another bucket than "
        f"{hour.bucket}: give this one a place of its own"
    )


def build_fields(hour: CompleteHour, *, complete: bool) -> dict[str, Any]:
    """Return the fields of an entry, without its version."""
    entry: dict[str, Any] = {name: getattr(hour, name) for name in _OF_HOUR}
    offsets = {str(number): list(span) for number, span in hour.offsets.items()}
    return {**entry, "commits": list(hour.commits), "offsets": offsets, "complete": complete}


def make_entry_id(hour: CompleteHour) -> str:
    """Return the id of the hour's entry."""
    return make_digest(hour.sink, hour.topic, hour.hour)


def make_row_id(hour: CompleteHour, row: Row) -> str:
    """Return the id of a row: it differs in each content of the hour."""
    return make_digest(hour.sink, hour.topic, hour.hour, hour.content, row.file, str(row.number))


def make_digest(*parts: str) -> str:
    """Return a digest of texts in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
