"""How old the oldest record is that waits, from offsets by timestamp alone."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

_AGES_S = (10, 30, 120, 600, 3_600, 21_600, 86_400, 604_800)
"""Between which the age of a record is looked for."""


class Asking(Protocol):
    """A question to the brokers that is under way."""

    def offsets(self, topic: str, partitions: Iterable[int], *specs: OffsetSpec) -> list[dict[int, int]]:
        """What is at each of `specs`; -1 where there is nothing."""
        ...


def oldest_s(ask: Asking, topic: str, behind: Mapping[int, int], now_ms: int) -> float:
    """Seconds since the timestamp of the oldest of these records, at least, by where later timestamps are.

    Offsets are asked by their time and not the other way round. After a landing what waits is mostly younger than the
    first of the ages, which one request tells; else it is looked for among the others, and in eighths of the one that
    fits.
    """

    def older_than(*ages: float) -> int:
        """Of how many of these ages the oldest record is older, one after another."""
        specs = [OffsetSpec.for_timestamp(int(now_ms - age * 1000)) for age in ages]
        for count, since in enumerate(ask.offsets(topic, behind, *specs)):
            # The first record stamped then or later comes after one that waits, or there is none at all.
            if not any(since[partition] < 0 or since[partition] > first for partition, first in behind.items()):
                return count
        return len(ages)

    if not older_than(_AGES_S[0]):
        return 0.0
    passed = older_than(*_AGES_S[1:])
    younger, *older = _AGES_S[passed:]
    if not older:
        return younger
    eighths = [younger + (older[0] - younger) * eighth / 8 for eighth in range(8)]
    return eighths[older_than(*eighths[1:])]
