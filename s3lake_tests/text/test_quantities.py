"""Quantities as people write and read them."""

import pytest

from s3lake.text.quantities import format_count, format_duration, format_size, format_wait


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1, "1B"), (1_000, "1kB"), (2**20, "1MiB"), (5_000_000, "5MB"), (3_000_000_000, "3GB")],
)
def test_a_size_is_in_the_largest_unit_that_is_exact(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.001, "1ms"), (0.0015, "0.0015s"), (1, "1s"), (90, "90s"), (300, "5m"), (7_200, "2h")],
)
def test_a_duration_is_in_the_largest_unit_that_is_exact(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (3.54, "3.5 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_540, "59 min"),
        (3_599, "1 h"),
        (7_500, "2 h 5 min"),
        (86_400, "1 d"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_wait_is_in_units_that_people_read(seconds: float, text: str) -> None:
    assert format_wait(seconds) == text


@pytest.mark.parametrize(
    ("count", "plural", "text"),
    [
        (0, "rows", "0 rows"),
        (1, "rows", "1 row"),
        (1_000, "rows", "1,000 rows"),
        (1, "dead letters", "1 dead letter"),
        (2, "dead letters", "2 dead letters"),
        (1, "dead-letter files", "1 dead-letter file"),
        (1, "micro-batches", "1 micro-batch"),
        (1, "fields left out", "1 field left out"),
        (1, "late", "1 late"),
        (1, "commits", "1 commit"),
        (1, "topic-partitions", "1 topic-partition"),
        (1, "past hours", "1 past hour"),
        (1, "more partitions", "1 more partition"),
    ],
)
def test_a_count_of_one_has_its_noun_in_the_singular(count: int, plural: str, text: str) -> None:
    assert format_count(count, plural) == text
