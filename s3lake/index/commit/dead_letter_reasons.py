"""Count dead letters by the reason why they were refused, for manifests.

A reason contains nothing that a record holds: an index is read by more people than a bucket, and for longer.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from s3lake.index.commit.documents import RefusalReason

OTHERS = "others"
"""The reason of those whose own is one too many."""
MOST_REASONS = 20
_LONGEST = 120
_QUOTED = re.compile(r"""(['"`]).*?\1|\b0x[0-9a-fA-F]+\b|(?<![\w-])\d+(?:\.\d+)?""", re.DOTALL)


@functools.lru_cache(maxsize=1_000)
def normalize_reason(message: str) -> str:
    """Why a record was refused, in words that are the same for all that were refused so."""
    return _QUOTED.sub("…", message)[:_LONGEST]


class ReasonTally:
    """Counts dead letters by stage and reason."""

    def __init__(self) -> None:
        self._by_reason: dict[tuple[str, str], RefusalReason] = {}
        self._more: Counter[tuple[str, str]] = Counter()

    def add(self, stage: str, message: str, partition: int, offset: int) -> None:
        """One more, behind those before it."""
        name = stage, normalize_reason(message)
        if name in self._by_reason:
            self._more[name] += 1
        else:
            self.unite([RefusalReason(*name, 1, partition, offset)])

    def unite(self, reasons: Iterable[RefusalReason]) -> None:
        """Add the reasons of other counts."""
        for reason in reasons:
            name = reason.stage, reason.reason
            if name not in self._by_reason and len(self._by_reason) >= MOST_REASONS:
                name = reason.stage, OTHERS
            counted = self._by_reason.get(name)
            if counted is None:
                self._by_reason[name] = msgspec.structs.replace(reason, reason=name[1])
                continue
            first = min((counted.partition, counted.offset), (reason.partition, reason.offset))
            self._by_reason[name] = RefusalReason(*name, counted.count + reason.count, *first)

    @property
    def reasons(self) -> tuple[RefusalReason, ...]:
        """Most frequent first."""
        reasons = [
            msgspec.structs.replace(reason, count=reason.count + self._more[name])
            for name, reason in self._by_reason.items()
        ]
        return tuple(sorted(reasons, key=lambda one: (-one.count, one.stage, one.reason)))


def merge_reasons(reasons: Iterable[Iterable[RefusalReason]]) -> tuple[RefusalReason, ...]:
    """Merge the reasons of several commits or tasks."""
    tally = ReasonTally()
    for some in reasons:
        tally.unite(some)
    return tally.reasons
