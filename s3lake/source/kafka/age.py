"""How old the oldest record is that waits, from offsets by timestamp alone."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

_AGES_S = (10, 30, 120, 600, 3_600, 21_600, 86_400, 604_800)
"""Between which the age of a record is looked for; then in eighths of the one that fits."""


class Asking(Protocol):
    """A question to the brokers that is under way."""

    def offsets(self, topic: str, partitions: Iterable[int], *specs: OffsetSpec) -> list[dict[int, int]]:
        """What is at each of `specs`; -1 where there is nothing."""
        ...


def oldest_s(ask: Asking, topic: str, behind: Mapping[int, int], now_ms: int) -> float:
    """Seconds since the timestamp of the oldest of these records, at least, by where later timestamps are.

    Offsets are asked by their time and not the other way round, so it is looked for in two rounds of eight.
    """
    younger, older = 0.0, 0.0
    for ages in (_AGES_S, None):
        steps = ages or [younger + (older - younger) * eighth / 8 for eighth in range(1, 8)]
        specs = [OffsetSpec.for_timestamp(int(now_ms - age * 1000)) for age in steps]
        older = 0.0
        for age, since in zip(steps, ask.offsets(topic, behind, *specs), strict=True):
            # The first record stamped then or later comes after one that waits, or there is none at all.
            if not any(since[partition] < 0 or since[partition] > first for partition, first in behind.items()):
                older = age
                break
            younger = age
        if not older and ages:
            break  # older than all that is asked for
    return younger
