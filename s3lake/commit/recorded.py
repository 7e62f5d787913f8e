"""The columns that the index records of a sink and topic, and how they came to be."""

from typing import Any

import msgspec

from s3lake.schema.changes import Change


class Changed(msgspec.Struct, frozen=True):
    """What one attempt at a commit saw that columns did not have yet.

    Attributes:
        hour: that it read records of; a later attempt at the same records is one at the same hour.
        commit: its id; it may have come to nothing, and a later attempt landed the columns.
    """

    hour: str
    commit: str
    changes: tuple[Change, ...]


class Recorded(msgspec.Struct, frozen=True):
    """`schema.json`: the columns that every file of this sink and topic has in common.

    Attributes:
        source: of a sink with SQL, what its query reads: columns of values and keys before they are projected.
        history: how they came to be: first those of the first commit, then every change.
        words: what they are in words, as the schemas of records said it last.
        exact: paths of columns that have held integers beyond 2^53: such a column never becomes one of doubles.
        source_exact: those of `source`.
    """

    columns: dict[str, Any]
    source: dict[str, Any] = {}
    history: tuple[Changed, ...] = ()
    words: dict[str, str] = {}
    exact: tuple[str, ...] = ()
    source_exact: tuple[str, ...] = ()
    rev: int = 0
    version: int = 1
