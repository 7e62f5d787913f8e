"""Rows of a batch that are converted together, and what they lose on the way."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from s3lake.convert.cells import Rows
from s3lake.convert.gate import Refusals, rest
from s3lake.convert.schemas import Numbers


@dataclass(frozen=True)
class Group:
    """Rows of a batch with one schema.

    Attributes:
        numbers: theirs in the batch, None for all in order.
        keys: as their sidecar has them, where there is one.
    """

    numbers: pa.Int64Array | None
    rows: Rows
    keys: Any = None

    def of_batch(self, reasons: Refusals) -> Refusals:
        """Reasons by the rows' numbers in the batch."""
        return reasons if self.numbers is None else {self.numbers[row].as_py(): why for row, why in reasons.items()}

    def without(self, lost: Collection[int]) -> Group:
        """The other rows."""
        left = rest(len(self.rows), lost)
        if left is None:
            return self
        keys = None if self.keys is None else self.keys.take(left)
        return Group(left if self.numbers is None else self.numbers.take(left), self.rows.take(left), keys)


@dataclass
class Losses:
    """What rows of a batch lose, and their large integers: see `values.Converted`."""

    refused: Refusals
    forbidden: Refusals = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    large: set[str] = field(default_factory=set)


def alike(codes: list[Numbers]) -> list[Numbers] | None:
    """Group rows that have the same of each code, in the order of their first ones; None if all have."""
    if all((one == one[0]).all() for one in codes):
        return None
    marks = functools.reduce(lambda one, other: one * (len(other) + 2) + other, codes)
    _, first, groups = np.unique(marks, return_index=True, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return [members[group] for group in np.argsort(first)]
