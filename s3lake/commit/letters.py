"""What a commit says of its dead letters: how many there are of each reason, and which of them it has landed after all.

It says nothing that a record holds: an index is read by more people than a bucket, and for longer.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

LETTERS = "dead_letters"
"""The kind of their files."""
OTHERS = "others"
"""The reason of those whose own is one too many."""
MOST_REASONS = 20
_LONGEST = 120
_QUOTED = re.compile(r"""(['"`]).*?\1|\b0x[0-9a-fA-F]+\b|(?<![\w-])\d+(?:\.\d+)?""", re.DOTALL)


class Reason(msgspec.Struct, frozen=True):
    """Dead letters of one stage that were refused for the same reason.

    Attributes:
        reason: the message, without what it quotes and counts.
        partition: of the first of them.
        offset: of the first of them.
    """

    stage: str
    reason: str
    count: int
    partition: int
    offset: int


class Taken(msgspec.Struct, frozen=True):
    """Dead letters that a replay has landed, and so are none any more.

    Attributes:
        commit: that took them.
        at_ms: when, epoch milliseconds.
        offsets: [topic-partition, first, end) of them.
    """

    commit: str
    at_ms: int
    offsets: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> int:
        """How many they are."""
        return sum(end - start for _, start, end in self.offsets)


@functools.lru_cache(maxsize=1_000)
def reason_of(message: str) -> str:
    """Why a record was refused, in words that are the same for all that were refused so."""
    return _QUOTED.sub("…", message)[:_LONGEST]


class Tally:
    """Counts dead letters by stage and reason."""

    def __init__(self) -> None:
        self._by_reason: dict[tuple[str, str], Reason] = {}
        self._more: Counter[tuple[str, str]] = Counter()

    def add(self, stage: str, message: str, partition: int, offset: int) -> None:
        """One more, behind those before it."""
        name = stage, reason_of(message)
        if name in self._by_reason:
            self._more[name] += 1
        else:
            self.unite([Reason(*name, 1, partition, offset)])

    def unite(self, reasons: Iterable[Reason]) -> None:
        """Those of others too."""
        for one in reasons:
            name = one.stage, one.reason
            if name not in self._by_reason and len(self._by_reason) >= MOST_REASONS:
                name = one.stage, OTHERS
            have = self._by_reason.get(name)
            if have is None:
                self._by_reason[name] = msgspec.structs.replace(one, reason=name[1])
                continue
            first = min((have.partition, have.offset), (one.partition, one.offset))
            self._by_reason[name] = Reason(*name, have.count + one.count, *first)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Most frequent first."""
        counted = [
            msgspec.structs.replace(one, count=one.count + self._more[name]) for name, one in self._by_reason.items()
        ]
        return tuple(sorted(counted, key=lambda one: (-one.count, one.stage, one.reason)))


def united(reasons: Iterable[Iterable[Reason]]) -> tuple[Reason, ...]:
    """The dead letters of several commits or tasks together."""
    tally = Tally()
    for some in reasons:
        tally.unite(some)
    return tally.reasons
