"""The commits that a table has, hour by hour, as properties of the table: they change in one commit with its files.

A file that is not listed does not mean that its rows are missing: another program may have compacted them into another
file, or deleted them on purpose. So the table's properties, one for each month, have what was given to it, and neither
expiry of snapshots nor a compaction changes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.topic_index import TopicIndex

PREFIX = "s3lake.landed."
INDEX = "s3lake.index"
SNAPSHOT = "s3lake.snapshot"
_CHARACTERS = 12
_AT_ONCE = 16
_MONTH = len("2026-11")

Ledger = Mapping[str, tuple[str, ...]]
"""Hour -> short ids of the commits that the table holds of it."""


def shorten_ids(commits: Iterable[str]) -> tuple[str, ...]:
    """Return ids as the ledger, and names of files, have them."""
    return tuple(commit[:_CHARACTERS] for commit in commits)


def read_ledger(properties: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the ledger of a table's properties."""
    ledger: dict[str, tuple[str, ...]] = {}
    for name, text in properties.items():
        if name.startswith(PREFIX):
            month = name.removeprefix(PREFIX)
            for entry in text.split():
                hour, _, commits = entry.partition("=")
                ledger[f"{month}-{hour}"] = tuple(filter(None, commits.split(",")))
    return ledger


def update_properties(before: Ledger, hours: Ledger) -> dict[str, str]:
    """Return the properties of the months of `hours`, with these hours as they are now, if not empty."""
    months = {hour[:_MONTH] for hour in hours}
    entries: dict[str, list[str]] = defaultdict(list)
    for hour, commits in sorted({**before, **hours}.items()):
        if commits and hour[:_MONTH] in months:
            entries[hour[:_MONTH]].append(f"{hour[_MONTH + 1 :]}={','.join(commits)}")
    return {PREFIX + month: " ".join(entries[month]) for month in sorted(months)}


@dataclass(frozen=True)
class TableDifference:
    """An hour of the index and of a table.

    Attributes:
        listed: manifests of all commits of its tile.
        noted: short ids of the commits that the table has.
    """

    hour: str
    listed: tuple[Manifest, ...]
    noted: tuple[str, ...]

    @property
    def added(self) -> tuple[Manifest, ...]:
        """The commits that the table does not have."""
        ids = shorten_ids(manifest.id for manifest in self.listed)
        return tuple(manifest for manifest, id in zip(self.listed, ids, strict=True) if id not in self.noted)

    @property
    def removed(self) -> tuple[str, ...]:
        """Short ids of commits that only the table has: others replaced them."""
        listed = shorten_ids(manifest.id for manifest in self.listed)
        return tuple(commit for commit in self.noted if commit not in listed)


def find_table_differences(
    index: TopicIndex, ledger: Ledger, hours: Iterable[str], *, also_equal: bool = False
) -> list[TableDifference]:
    """Return the hours, of those requested, in which the ledger differs from the index now; or all of them."""

    def compare(hour: str) -> TableDifference | None:
        stored, noted = index.tile(hour), ledger.get(hour, ())
        commits = stored[0].commits if stored else ()
        if not also_equal and set(shorten_ids(commits)) == set(noted):
            return None
        return TableDifference(hour, tuple(index.read_listed(hour, commit) for commit in commits), noted)

    with ThreadPoolExecutor(_AT_ONCE, "s3lake-table") as pool:
        return [difference for difference in pool.map(compare, hours) if difference is not None]
