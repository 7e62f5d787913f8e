"""Figures of cost, by which other tests judge."""

import pytest

from s3lake_tests.kit.cost import count_calls, cpu_ratio, ratio_of_least


def call(times: int) -> None:
    for _ in range(times):
        abs(len(""))


def test_calls_of_python_and_of_c_are_counted_and_always_the_same() -> None:
    few, many = count_calls(lambda: call(10)), count_calls(lambda: call(1_000))
    assert many - few == 2 * 990
    assert count_calls(lambda: call(10)) == few


def test_work_is_stopped_at_the_most_calls_that_it_may_make() -> None:
    with pytest.raises(AssertionError, match="more than 100 calls"):
        count_calls(lambda: call(10**12), most=100)


def test_a_square_is_no_ratio_of_sizes() -> None:
    def square(size: int) -> None:
        for _ in range(size):
            sum(range(size))

    assert cpu_ratio(lambda: square(2_000), lambda: square(500), enough=0) > 12
    assert cpu_ratio(lambda: call(40_000), lambda: call(10_000), enough=8) <= 8


def test_a_try_that_was_disturbed_does_not_count() -> None:
    work, unit = iter([9.0, 2.0, 2.0]), iter([1.0, 5.0, 1.0])
    assert ratio_of_least(lambda: next(work), lambda: next(unit), enough=3) == 2
