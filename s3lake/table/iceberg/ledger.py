"""Which commits a table holds, hour by hour, as properties of the table: they change in one commit with its files.

That a file is not listed does not say that its rows are missing: somebody may have compacted them into another file, or
deleted them from the table on purpose. So what was given to the table once stands in its properties, one for each
month, and neither expiry of snapshots nor a compaction takes it away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

PREFIX = "s3lake.landed."
INDEX = "s3lake.index"
SNAPSHOT = "s3lake.snapshot"
_CHARACTERS = 12
_MONTH = len("2026-11")

Ledger = Mapping[str, tuple[str, ...]]
"""Hour -> short ids of the commits that the table holds of it."""


def short(commit: str) -> str:
    """A commit's id as the ledger has it: what names of files have of it too."""
    return commit[:_CHARACTERS]


def shortened(commits: Iterable[str]) -> tuple[str, ...]:
    """Ids as the ledger has them."""
    return tuple(map(short, commits))


def read(properties: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The ledger of a table's properties."""
    ledger: dict[str, tuple[str, ...]] = {}
    for name, text in properties.items():
        if name.startswith(PREFIX):
            month = name.removeprefix(PREFIX)
            for entry in text.split():
                hour, _, commits = entry.partition("=")
                ledger[f"{month}-{hour}"] = tuple(filter(None, commits.split(",")))
    return ledger


def changed(before: Ledger, hours: Ledger) -> dict[str, str]:
    """The properties of the months that `hours` belong to, with them as they are now; hours without a commit go."""
    months = {hour[:_MONTH] for hour in hours}
    entries: dict[str, list[str]] = defaultdict(list)
    for hour, commits in sorted({**before, **hours}.items()):
        if commits and hour[:_MONTH] in months:
            entries[hour[:_MONTH]].append(f"{hour[_MONTH + 1 :]}={','.join(commits)}")
    return {PREFIX + month: " ".join(entries[month]) for month in sorted(months)}
