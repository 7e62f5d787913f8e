"""Counts of records: each is one field of `Counts`, with its meaning and how it is shown.

A task counts the records of each topic-partition, a manifest has these counts, and a tile their sums. Whatever shows
counts goes through the fields: Dagster's metadata, metrics, commands, and the table in docs/reference/counts.md. So a
new count is a new field here, and the place that counts.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_type_hints

import msgspec

if TYPE_CHECKING:
    from typing_extensions import Self

Role = Literal["whole", "outcome", "note"]


@dataclass(frozen=True)
class CountDefinition:
    """The meaning of a count, and how it is shown.

    Attributes:
        name: its name in Dagster's metadata, in JSON of commands, and in the label `count` of a metric.
        meaning: a phrase for tables of the documentation.
        text: its name in a line of text.
        label: its name in tables of Dagster's UI, if it is not `text`.
        by_field: True if it is counted for each path of a field; `key:` begins the paths of keys.
        role: `whole` counts all records that were read. Each of them is counted in one `outcome`. A `note` counts
            records a further time.
        is_plotted: True if the metadata of an hour have it as a number, which Dagster plots, if it is not 0. Counts by
            field are tables there.
    """

    name: str
    meaning: str
    text: str
    label: str = ""
    by_field: bool = False
    role: Role = "note"
    is_plotted: bool = True

    @property
    def unit(self) -> str:
        """The unit of its numbers."""
        return "records, by field" if self.by_field else "records"


_READ = CountDefinition("read", "records that were read", "records read", role="whole", is_plotted=False)
_LANDED = CountDefinition("rows", "records that are rows of data files", "rows", role="outcome", is_plotted=False)
_DEAD = CountDefinition("dead_letters", "records that were refused", "dead letters", role="outcome")
_SKIPPED = CountDefinition(
    "skipped", "records without a value, which the sink leaves out", "skipped nulls", role="outcome", is_plotted=False
)
_FILTERED = CountDefinition(
    "filtered",
    "records that SQL or transforms left out",
    "filtered",
    label="filtered by SQL or transforms",
    role="outcome",
    is_plotted=False,
)
_ERASED = CountDefinition(
    "erased",
    "records that an erasure or retention removed from the files",
    "erased",
    label="erased, or expired by retention",
    role="outcome",
)
_LATE = CountDefinition("late", "records with a timestamp before their hour", "late")
_LEFT_OUT = CountDefinition(
    "fields_left_out", "records with a field that the sink left out", "fields left out", by_field=True
)
_FILLED = CountDefinition(
    "fields_filled",
    "records without a field, which got the default of another record's schema",
    "fields filled with a default",
    by_field=True,
)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of some records. In JSON a count that is missing is 0: an earlier version did not count it."""

    read: Annotated[int, _READ] = 0
    landed: Annotated[int, _LANDED] = 0
    dead: Annotated[int, _DEAD] = 0
    skipped: Annotated[int, _SKIPPED] = 0
    filtered: Annotated[int, _FILTERED] = 0
    erased: Annotated[int, _ERASED] = 0
    late: Annotated[int, _LATE] = 0
    fields_left_out: Annotated[dict[str, int], _LEFT_OUT] = {}
    fields_filled: Annotated[dict[str, int], _FILLED] = {}

    def plus(self, more: Counts) -> Self:
        """Return the same with `more` added to the counts."""
        return msgspec.structs.replace(
            self, **{field: _add(getattr(self, field), getattr(more, field)) for field in define_counts(type(self))}
        )

    @property
    def unexplained(self) -> int:
        """The number of records that were read and have no outcome, negative if they have several."""
        return self.read - sum(count for definition, count in list_counts(self) if definition.role == "outcome")


@functools.cache
def define_counts(counts: type[Counts]) -> dict[str, CountDefinition]:
    """Return the definition of each field that is a count."""
    hints = get_type_hints(counts, include_extras=True)
    return {
        field: extra
        for field, hint in hints.items()
        for extra in getattr(hint, "__metadata__", ())
        if isinstance(extra, CountDefinition)
    }


def sum_counts(parts: Iterable[Counts]) -> Counts:
    """Add up counts."""
    return functools.reduce(Counts.plus, parts, Counts())


def list_counts(counts: Counts) -> list[tuple[CountDefinition, int]]:
    """Return each count with its definition; of a count by field, the sum."""
    return [
        (definition, sum_by_field(getattr(counts, field))) for field, definition in define_counts(type(counts)).items()
    ]


def sum_by_field(count: int | dict[str, int]) -> int:
    """Return a count as one number; of a count by field, the sum."""
    return count if isinstance(count, int) else sum(count.values())


def list_counts_by_field(counts: Counts) -> list[tuple[CountDefinition, dict[str, int]]]:
    """Return each count by field with its definition."""
    return [
        (definition, getattr(counts, field))
        for field, definition in define_counts(type(counts)).items()
        if definition.by_field
    ]


def counts_to_json(counts: Counts) -> dict[str, int | dict[str, int]]:
    """Return the counts by name, as commands print them."""
    return {definition.name: getattr(counts, field) for field, definition in define_counts(type(counts)).items()}


def _add(count: int | dict[str, int], more: int | dict[str, int]) -> int | dict[str, int]:
    if isinstance(count, int):
        return count + sum_by_field(more)
    assert isinstance(more, dict)  # both are counts of one field
    return dict(Counter(count) + Counter(more))
