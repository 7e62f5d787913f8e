"""The table of a sink follows its index, hour by hour: no part of landing, so what goes wrong here fails nothing."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

from s3lake.errors import S3LakeError
from s3lake.land.observer import Observer

if TYPE_CHECKING:
    from s3lake.table.iceberg import LakeTable


class Follower:
    """Keeps a table beside a landing; where there is none, nothing follows."""

    def __init__(self, table: LakeTable | None) -> None:
        self._table = table
        self._outcomes = SimpleQueue[tuple[str, bool]]()

    def __call__(self, *hours: str) -> None:
        """Bring the table to what the index says of `hours`; what came of it is told by the thread that lands."""
        if self._table is None:
            return
        try:
            for snapshot in self._table.follow(hours):
                self._outcomes.put((str(snapshot), False))
        except S3LakeError as error:
            self._outcomes.put((str(error), True))

    def tell(self, observer: Observer) -> None:
        """Tell what became of the table since it was told last."""
        while not self._outcomes.empty():
            outcome, behind = self._outcomes.get()
            observer.followed(outcome, behind=behind)
