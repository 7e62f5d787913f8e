"""Freshness: how long records had waited when they were committed, from record timestamp to commit."""

from collections.abc import Iterable

import msgspec


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """How long the records of one commit had waited, in milliseconds: that many, at least and at most."""

    records: int
    least_ms: int
    most_ms: int


def quantile_s(waits: Iterable[Wait], share: float) -> float | None:
    """Seconds within which `share` of the records were committed; None without records.

    Of a commit only the ends are known: its records count as evenly spread in between, which is how they arrive.
    """
    waits_of_records = [wait for wait in waits if wait.records]
    enough = share * sum(wait.records for wait in waits_of_records)
    if not waits_of_records:
        return None
    low, high = min(wait.least_ms for wait in waits_of_records) - 1, max(wait.most_ms for wait in waits_of_records)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if sum(_within(wait, middle) for wait in waits_of_records) >= enough else (middle, high)
        )
    return high / 1000


def _within(wait: Wait, ms: int) -> float:
    """How many of a commit's records had waited so long or less."""
    if ms >= wait.most_ms:
        return wait.records
    return wait.records * (ms - wait.least_ms) / (wait.most_ms - wait.least_ms) if ms > wait.least_ms else 0
