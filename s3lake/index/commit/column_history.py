"""How the columns of a topic came to be: from the index alone, each step with the commit that brought it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from s3lake.errors import MissingDocumentError
from s3lake.index.commit.documents import Changed
from s3lake.index.commit.sums import Commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.records.schema.columns.changes import Change, find_column_type
from s3lake.records.schema.columns.types import Columns, from_document


class ColumnStep(msgspec.Struct, frozen=True):
    """One change of columns.

    Attributes:
        hour: the hour that brought it.
        commit: the first commit of that hour that has it; None if no commit has it yet, or any more.
        change: what is new or other.
        first: whether it is of the commit that columns began with.
    """

    hour: str
    commit: str | None
    change: Change
    first: bool


def read_present_columns(index: TopicIndex) -> Columns:
    """Return the columns of a topic's files; if their columns never change, the newest commit's."""
    recorded = index.columns()
    if recorded is not None:
        return from_document(recorded[0].columns)
    head = index.head()
    for tile in index.newest(head[0]) if head else ():
        for commit in reversed(tile.commits):
            return from_document(index.read_listed(tile.hour, commit).columns or {})
    return {}


def list_column_steps(index: TopicIndex, hour: str | None = None) -> Iterator[ColumnStep]:
    """Return every change of columns, or an hour's changes, in the order in which they were seen."""
    recorded = index.columns()
    for number, changed in enumerate(recorded[0].history if recorded else ()):
        if hour in (None, changed.hour):
            commit = _find_commit(index, changed)
            for change in changed.changes:
                yield ColumnStep(changed.hour, commit, change, first=number == 0)


def _find_commit(index: TopicIndex, changed: Changed) -> str | None:
    """Return the commit of the hour that has the changed columns: of the attempt that saw them, or of a later one."""
    stored = index.tile(changed.hour)
    commits = stored[0].commits if stored else ()
    if changed.commit in commits:
        return changed.commit
    try:
        for manifest in Commits(index, changed.hour, commits):
            if _has(manifest.columns, changed):
                return manifest.id
    except MissingDocumentError:
        pass  # callers that need the index report what is wrong with it
    return None


def _has(document: dict[str, Any] | None, changed: Changed) -> bool:
    columns = from_document(document or {})
    return all(find_column_type(columns, change.column) is not None for change in changed.changes)
