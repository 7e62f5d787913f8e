"""The table of a sink, which follows the index of a topic."""

from __future__ import annotations

from collections.abc import Collection
from queue import SimpleQueue
from typing import TYPE_CHECKING

from s3lake.errors import S3LakeError

if TYPE_CHECKING:
    from s3lake.lake.table.iceberg import LakeTable
from s3lake.land.topic.observer import Observer


class TableFollower:
    """Brings the table of a sink to its index; a sink without a table has nothing that follows.

    Attributes:
        table: the table; None if the sink has none.
        behind: hours that the table could not be brought to when it was tried last.
    """

    def __init__(self, table: LakeTable | None) -> None:
        self.behind: set[str] = set()
        self.table = table
        self._outcomes = SimpleQueue[tuple[str, bool]]()

    def follow(self, hours: Collection[str]) -> S3LakeError | None:
        """See `commit.topic_index.Follower`; the thread that lands reports the result."""
        if self.table is None:
            return None
        try:
            for snapshot in self.table.sync(hours):
                self._outcomes.put((str(snapshot), False))
        except S3LakeError as error:
            self._outcomes.put((str(error), True))
            self.behind.update(hours)
            return error
        self.behind.difference_update(hours)
        return None

    def tell(self, observer: Observer) -> None:
        """Report what became of the table since the last report."""
        while not self._outcomes.empty():
            outcome, behind = self._outcomes.get()
            observer.table_followed(outcome, behind=behind)
