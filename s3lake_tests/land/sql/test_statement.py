"""The records that a statement fails on, where all that is known of ranges is that some record of them does."""

from hypothesis import given
from hypothesis import strategies as st

from s3lake.index.plan.batch import Intervals
from s3lake.land.sql.statement import find_failing

Place = tuple[int, int]


class Statement:
    """Fails on these records, and counts how often it is tried."""

    def __init__(self, *bad: Place) -> None:
        self.bad = set(bad)
        self.tries = 0

    def __call__(self, reads: Intervals) -> str | None:
        self.tries += 1
        inside = sorted((one, at) for one, at in self.bad if one in reads and reads[one][0] <= at < reads[one][1])
        return f"fails on {inside[0][0]}@{inside[0][1]}" if inside else None


@given(
    st.dictionaries(st.integers(0, 4), st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1),
    st.sets(st.tuples(st.integers(0, 4), st.integers(0, 18))),
)
def test_each_record_that_fails_is_found_once_in_order_and_with_its_own_reason(
    lengths: dict[int, Place], bad: set[Place]
) -> None:
    reads = {partition: (start, start + length) for partition, (start, length) in lengths.items()}
    inside = sorted((one, at) for one, at in bad if one in reads and reads[one][0] <= at < reads[one][1])
    assert list(find_failing(reads, Statement(*bad))) == [(one, at, f"fails on {one}@{at}") for one, at in inside]


def test_one_record_of_a_thousand_is_found_in_twenty_tries() -> None:
    statement = Statement((3, 900))
    assert len(list(find_failing({3: (0, 1024)}, statement))) == 1
    assert statement.tries <= 21


def test_whole_topic_partitions_are_left_out_first() -> None:
    statement = Statement((7, 5))
    assert len(list(find_failing(dict.fromkeys(range(8), (0, 8)), statement))) == 1
    assert statement.tries <= 13


def test_the_search_stops_at_the_first_failing_record_when_one_is_enough() -> None:
    statement = Statement((0, 0), (0, 1), (0, 2), (0, 3))
    assert next(find_failing({0: (0, 4)}, statement)) == (0, 0, "fails on 0@0")
    assert statement.tries == 3
