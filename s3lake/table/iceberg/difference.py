"""What an index has and a table has not, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from s3lake.commit.documents import Manifest
from s3lake.commit.index import TopicIndex
from s3lake.table.iceberg.ledger import Ledger, short, shortened

_AT_ONCE = 16


@dataclass(frozen=True)
class Difference:
    """An hour in which the table is not what the index says.

    Attributes:
        listed: manifests of all commits of its tile.
        noted: short ids of the commits that the table holds.
    """

    hour: str
    listed: tuple[Manifest, ...]
    noted: tuple[str, ...]

    @property
    def added(self) -> tuple[Manifest, ...]:
        """Commits that the table has not."""
        return tuple(manifest for manifest in self.listed if short(manifest.id) not in self.noted)

    @property
    def gone(self) -> tuple[str, ...]:
        """Short ids of commits that only the table has: others took their place."""
        listed = shortened(manifest.id for manifest in self.listed)
        return tuple(commit for commit in self.noted if commit not in listed)


def differences(index: TopicIndex, ledger: Ledger, hours: Iterable[str]) -> list[Difference]:
    """The hours, of those that are asked for, in which the table's notes are not what the index says now."""
    return _looked(index, ledger, hours, whole=False)


def every(index: TopicIndex, ledger: Ledger, hours: Iterable[str]) -> list[Difference]:
    """All these hours, as the index and the table's notes have them."""
    return _looked(index, ledger, hours, whole=True)


def _looked(index: TopicIndex, ledger: Ledger, hours: Iterable[str], *, whole: bool) -> list[Difference]:
    def look(hour: str) -> Difference | None:
        stored, noted = index.tile(hour), ledger.get(hour, ())
        commits = stored[0].commits if stored else ()
        if not whole and set(shortened(commits)) == set(noted):
            return None
        return Difference(hour, tuple(index.listed(hour, commit) for commit in commits), noted)

    with ThreadPoolExecutor(_AT_ONCE, "s3lake-table") as pool:
        return [one for one in pool.map(look, hours) if one is not None]
