"""Rows of a batch that are converted together, and what they lose on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from s3lake.convert.cells import Rows
from s3lake.convert.gate import Refusals


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
    """What rows of a batch lose: see `values.Converted`."""

    refused: Refusals
    forbidden: Refusals = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)


def rest(total: int, without: Collection[int]) -> pa.Int64Array | None:
    """The other rows of so many; None for all."""
    if not without:
        return None
    kept = np.ones(total, np.bool_)
    kept[list(without)] = False
    return pa.array(np.flatnonzero(kept), pa.int64())
