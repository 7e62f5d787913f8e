"""A table that follows the index as Iceberg tables do (`s3lake/lake/table/iceberg/iceberg_table.py`).

It is one document that changes by compare-and-swap: hour -> commits, and the revision of the tile that they are of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from s3lake import hours
from s3lake.errors import ReplacedError, StoreUnavailableError, TableUnavailableError

if TYPE_CHECKING:
    from s3lake_tests.index.commit.actors import Actor

KEY = "table/orders"
_TRIES = 10


class NotedHour(msgspec.Struct, frozen=True):
    """What the table holds of an hour."""

    rev: int
    commits: tuple[str, ...]


class ActorTable:
    """The table, as one actor sees it."""

    def __init__(self, me: Actor) -> None:
        self._me = me

    def sync(self, hours_asked: Iterable[str] | None = None) -> list[str]:
        """See `LakeTable.sync`."""
        if self._me.world.catalog_away:
            self._me.world.outcomes["catalog away"] += 1
            raise TableUnavailableError("the catalog is away")
        try:
            if any(self._once(hours_asked) for _ in range(_TRIES)):
                return []
        except StoreUnavailableError as error:
            raise TableUnavailableError(f"the table: {error}") from None
        raise TableUnavailableError("others were faster each time")

    def _once(self, hours_asked: Iterable[str] | None) -> bool:
        # The table is read before the tiles: so no older state of the index takes the place of a newer one.
        stored = self._me.store.get(KEY)
        noted = decoded(stored.body) if stored else {}
        head = self._me.index.head()
        now = dict(noted)
        for hour in hours_asked or (hours.expand(head[0].hours) if head else ()):
            tile = self._me.index.tile(hour)
            if tile is not None and noted.get(hour, NotedHour(0, ())).commits != tile[0].commits:
                try:
                    for commit in tile[0].commits:
                        self._me.index.read_listed(hour, commit)
                except ReplacedError:
                    return False
                now[hour] = NotedHour(tile[0].rev, tile[0].commits)
        if now == noted:
            return True
        body = msgspec.json.encode(now)
        return self._me.store.put(KEY, body, if_match=stored.etag if stored else None, if_absent=not stored) is not None


def decoded(body: bytes) -> dict[str, NotedHour]:
    """Hour -> what the table holds of it."""
    return msgspec.json.decode(body, type=dict[str, NotedHour])
