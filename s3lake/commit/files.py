"""Files of many commits at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from s3lake.commit.index import File
from s3lake.commit.letters import LETTERS


class Filed(Protocol):
    """A commit, or what is staged for one."""

    @property
    def files(self) -> Sequence[File]: ...


def files_of(commits: Iterable[Filed], *kinds: str) -> list[File]:
    """Their files; only those of `kinds`, where some are named."""
    return [file for commit in commits for file in commit.files if not kinds or file.kind in kinds]


def count_data_files(commit: Filed) -> int:
    """Count the objects apart from dead letters: data files, and sidecars with them. All who show a count use this."""
    return sum(file.kind != LETTERS for file in commit.files)
