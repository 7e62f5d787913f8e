"""How old the oldest record is that waits, without a broker."""

from collections.abc import Iterable

import pytest
from confluent_kafka.admin import OffsetSpec

from s3lake.source.kafka.offsets import find_oldest_age_s

NOW_MS = 1_800_000_000_000


class AgedRecords:
    """One topic-partition whose records have these ages in seconds, from offset 0."""

    def __init__(self, *ages_s: float) -> None:
        self.stamps = [NOW_MS - int(age * 1000) for age in ages_s]
        self.asked = 0

    def offsets(self, _: str, partitions: Iterable[int], *specs: OffsetSpec) -> list[dict[int, int]]:
        self.asked += len(specs)
        since = [next((at for at, ms in enumerate(self.stamps) if ms >= one._value), -1) for one in specs]
        return [dict.fromkeys(partitions, offset) for offset in since]


@pytest.mark.parametrize(
    ("ages_s", "expected_s"),
    [((3,), 0), ((11,), 10), ((29,), 27.5), ((100, 3), 97.5), ((700,), 600), ((10_000_000,), 604_800)],
)
def test_the_age_is_exact_to_an_eighth_and_never_too_high(ages_s: tuple[float, ...], expected_s: float) -> None:
    assert find_oldest_age_s(AgedRecords(*ages_s), "orders", {0: 0}, NOW_MS) == expected_s


def test_records_that_are_landed_do_not_count() -> None:
    assert find_oldest_age_s(AgedRecords(5_000, 3), "orders", {0: 1}, NOW_MS) == 0


def test_a_record_that_has_just_come_takes_one_request() -> None:
    log = AgedRecords(3)
    find_oldest_age_s(log, "orders", {0: 0}, NOW_MS)
    assert log.asked == 1
