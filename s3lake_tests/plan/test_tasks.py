"""Which task reads what: everything once, in like shares."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from s3lake.plan.tasks import shared_out
from s3lake.source.records import Range

SPANS = st.tuples(st.integers(0, 1000), st.integers(1, 500)).map(lambda span: (span[0], span[0] + span[1]))
READS = st.dictionaries(st.integers(0, 50), SPANS, min_size=1, max_size=12)


def read(loads: list[tuple[Range, ...]]) -> dict[int, list[int]]:
    """Offsets by topic-partition, as often as they are read."""
    found: dict[int, list[int]] = {}
    for load in loads:
        for one in load:
            found.setdefault(one.partition, []).extend(range(one.start, one.end))
    return {partition: sorted(offsets) for partition, offsets in sorted(found.items())}


@given(reads=READS, tasks=st.integers(1, 9), least=st.none() | st.integers(1, 300))
def test_every_offset_is_read_by_exactly_one_task(
    reads: Mapping[int, tuple[int, int]], tasks: int, least: int | None
) -> None:
    loads = shared_out(reads, tasks, least)
    assert read(loads) == {partition: list(range(*span)) for partition, span in sorted(reads.items())}
    assert len(loads) <= tasks
    assert all(loads)


@given(reads=READS, tasks=st.integers(1, 9), least=st.none() | st.integers(1, 300))
def test_a_task_reads_in_order(reads: Mapping[int, tuple[int, int]], tasks: int, least: int | None) -> None:
    assert all(list(load) == sorted(load) for load in shared_out(reads, tasks, least))


def test_a_long_range_is_split_among_tasks_that_would_be_idle() -> None:
    assert shared_out({0: (100, 200)}, 2, 50) == [(Range(0, 100, 150),), (Range(0, 150, 200),)]


def test_a_range_is_not_split_below_the_size_of_a_file() -> None:
    assert shared_out({0: (100, 199)}, 2, 50) == [(Range(0, 100, 199),)]


def test_a_topic_partition_is_left_whole_where_the_record_decides_on_its_file() -> None:
    assert shared_out({0: (0, 1_000_000)}, 4, None) == [(Range(0, 0, 1_000_000),)]


def test_many_small_topic_partitions_share_few_tasks() -> None:
    loads = shared_out(dict.fromkeys(range(300), (0, 10)), 4, 50)
    assert [len(load) for load in loads] == [75, 75, 75, 75]


def test_a_large_topic_partition_has_a_task_for_itself() -> None:
    loads = shared_out({0: (0, 1000), 1: (0, 10), 2: (0, 10), 3: (0, 10)}, 2, None)
    assert sorted(loads, key=len) == [(Range(0, 0, 1000),), (Range(1, 0, 10), Range(2, 0, 10), Range(3, 0, 10))]


def test_as_many_topic_partitions_as_tasks_are_left_whole() -> None:
    assert shared_out({0: (0, 100), 1: (0, 10)}, 2, 5) == [(Range(0, 0, 100),), (Range(1, 0, 10),)]
