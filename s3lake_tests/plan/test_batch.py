"""Micro-batches: what one Spark job reads."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.plan import tile as tiles
from s3lake.plan.batch import Batch, covering, next_batch, split_into_tasks, whole
from s3lake.plan.tile import Span, Tile
from s3lake.source.offsets import LogRange, Snapshot
from s3lake.source.records import Range

FIVE = "2026-11-20T05"


def kafka(**logs: tuple[int, int]) -> Snapshot:
    """A topic: `p0=(low, end)` and so on; batches need no timestamps."""
    return Snapshot("topic-1", {int(name[1:]): LogRange(low, end, end, end) for name, (low, end) in logs.items()})


def tile(**spans: tuple[int, int, int | None]) -> Tile:
    return Tile(FIVE, {int(name[1:]): Span(*given) for name, given in spans.items()})


def test_an_open_tile_is_read_to_the_last_stable_offset():
    assert next_batch(tile(p0=(0, 5, None)), kafka(p0=(0, 9)), 100) == Batch({0: (5, 9)}, {0: (5, 9)})


def test_a_closed_tile_is_read_to_its_end():
    assert next_batch(tile(p0=(0, 5, 7)), kafka(p0=(0, 9)), 100) == Batch({0: (5, 7)}, {0: (5, 7)})


def test_there_is_nothing_to_do_when_everything_is_landed():
    assert next_batch(tile(p0=(0, 9, None), p1=(3, 4, 4)), kafka(p0=(0, 9), p1=(0, 9)), 100) is None


def test_only_once_its_hour_is_over_an_open_tile_leaves_the_records_of_the_next():
    snapshot = Snapshot("topic-1", {0: LogRange(0, 9, 0, 6)})

    assert next_batch(tile(p0=(0, 5, None)), snapshot, 100) == Batch({0: (5, 9)}, {0: (5, 9)})
    assert next_batch(tile(p0=(0, 5, None)), snapshot, 100, ended=True) == Batch({0: (5, 6)}, {0: (5, 6)})


def test_the_limit_holds_where_there_are_more_topic_partitions_than_it_allows():
    batch = next_batch(tile(p0=(0, 0, 1), p1=(0, 0, 1), p2=(0, 0, 98)), kafka(p0=(0, 1), p1=(0, 1), p2=(0, 98)), 2)

    assert batch.intervals == {0: (0, 1), 1: (0, 1)}
    assert batch.left == 98


def test_an_open_tile_is_read_up_to_where_the_log_ended_when_the_run_began():
    batch = next_batch(tile(p0=(0, 5, None), p1=(0, 3, None)), kafka(p0=(0, 9), p1=(0, 9)), 100, {0: 7, 1: 2})

    assert batch == Batch({0: (5, 7)}, {0: (5, 7)})


def test_a_partition_that_was_not_there_when_the_run_began_waits():
    assert next_batch(tile(p0=(0, 5, None)), kafka(p0=(0, 9)), 100, {}) is None
    assert next_batch(tile(p0=(0, 0, None)), kafka(p0=(0, 9)), 100, {}) is None


def test_a_batch_has_the_epochs_of_the_leaders_that_told_its_ends():
    snapshot = Snapshot("topic-1", {0: LogRange(0, 9, 9, 9, epoch=4), 1: LogRange(0, 9, 9, 9, epoch=6)})

    assert next_batch(tile(p0=(0, 5, None)), snapshot, 100).epochs == {0: 4}


def test_a_closed_tile_is_read_to_its_end_whenever_the_run_began():
    assert next_batch(tile(p0=(0, 5, 7)), kafka(p0=(0, 9)), 100, {0: 6}, ended=True) == Batch({0: (5, 7)}, {0: (5, 7)})


def test_an_open_tile_whose_hour_is_over_is_read_up_to_the_next_hours_first_record():
    snapshot = Snapshot("topic-1", {0: LogRange(0, 9, 0, 7)})

    assert next_batch(tile(p0=(0, 5, None)), snapshot, 100, {0: 8}, ended=True) == Batch({0: (5, 7)}, {0: (5, 7)})
    assert next_batch(tile(p0=(0, 8, None)), snapshot, 100, {0: 9}, ended=True) is None


def test_a_log_that_ends_below_what_is_committed_is_a_loss():
    with pytest.raises(DataLossError, match="expects offsets up to 5, Kafka has them up to 3"):
        next_batch(tile(p0=(0, 5, None)), kafka(p0=(0, 3)), 100)


def test_the_limit_is_shared_out_in_proportion():
    batch = next_batch(tile(p0=(0, 0, None), p1=(0, 0, None)), kafka(p0=(0, 300), p1=(0, 100)), 40)

    assert batch.intervals == {0: (0, 30), 1: (0, 10)}
    assert batch.left == 360


def test_every_partition_advances_even_by_a_single_record():
    batch = next_batch(tile(p0=(0, 0, None), p1=(0, 0, None)), kafka(p0=(0, 1000), p1=(0, 1)), 10)

    assert batch.intervals == {0: (0, 9), 1: (0, 1)}


def test_offsets_are_those_that_the_commit_covers():
    assert Batch({0: (5, 9), 1: (0, 2)}, {0: (7, 9)}).offsets == 6


# -------------------------------------------------------------------------------------------------------------- expired


def test_expired_offsets_are_covered_and_noted_but_not_read():
    batch = next_batch(tile(p0=(0, 5, 12)), kafka(p0=(8, 20)), 100)

    assert batch == Batch({0: (5, 12)}, {0: (8, 12)}, ((0, 5, 8),))


def test_where_the_log_starts_at_what_is_committed_nothing_has_expired():
    assert next_batch(tile(p0=(0, 5, 12)), kafka(p0=(5, 20)), 100).expired == ()


def test_an_interval_that_has_wholly_expired_is_covered_without_reading():
    batch = next_batch(tile(p0=(0, 0, 1)), kafka(p0=(6, 20)), 100)

    assert batch == Batch({0: (0, 1)}, {}, ((0, 0, 1),))


def test_expired_offsets_do_not_count_against_the_limit():
    batch = next_batch(tile(p0=(0, 0, 1000)), kafka(p0=(990, 2000)), 4)

    assert batch == Batch({0: (0, 994)}, {0: (990, 994)}, ((0, 0, 990),), left=6)


# ---------------------------------------------------------------------------------------------------------------- wrong


def test_a_log_that_ends_before_the_tile_does_is_a_loss():
    with pytest.raises(DataLossError, match="expects offsets up to 12, Kafka has them up to 9; the log was cut off"):
        next_batch(tile(p0=(0, 5, 12)), kafka(p0=(0, 9)), 100)


@pytest.mark.parametrize("end", [None, 4])
def test_a_partition_that_kafka_leaves_out_is_asked_for_again(end: int | None):
    with pytest.raises(KafkaUnavailableError, match="topic-partition 1 is in the index, and missing"):
        next_batch(tile(p0=(0, 5, 5), p1=(0, 0, end)), kafka(p0=(0, 9)), 100)


# -------------------------------------------------------------------------------------------------------------- rewrite


def test_a_rewrite_reads_the_tile_from_its_start_to_what_is_landed():
    assert whole(tile(p0=(3, 7, 7), p1=(4, 4, 4)), kafka(p0=(0, 9), p1=(0, 9))) == Batch({0: (3, 7)}, {0: (3, 7)})


def test_a_rewrite_sees_what_has_expired():
    assert whole(tile(p0=(3, 7, 7)), kafka(p0=(5, 9))).expired == ((0, 3, 5),)


# --------------------------------------------------------------------------------------------------------- random tiles


@st.composite
def backlogs(draw: st.DrawFn) -> tuple[Tile, Snapshot]:
    """A tile, open or closed, and logs that reach its end; some of it may have expired."""
    spans, logs = {}, {}
    is_open = draw(st.booleans())
    for partition in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 20))
        committed = start + draw(st.integers(0, 20))
        end = committed + draw(st.integers(0, 60))
        spans[partition] = Span(start, committed, None if is_open else end)
        log_end = end + draw(st.integers(0, 20))
        logs[partition] = LogRange(draw(st.integers(0, log_end)), log_end, log_end, log_end)
    return Tile(FIVE, spans), Snapshot("topic-1", logs)


@given(backlogs(), st.integers(1, 50))
def test_a_batch_never_reads_more_than_the_limit_and_always_advances(backlog, limit: int):
    found, logs = backlog
    batch = next_batch(found, logs, limit)
    if batch is not None:
        assert batch.offsets > 0
        assert sum(end - start for start, end in batch.reads.values()) <= limit


@given(backlogs(), st.integers(1, 50))
def test_what_a_batch_covers_is_read_or_expired(backlog, limit: int):
    found, logs = backlog
    batch = next_batch(found, logs, limit)
    if batch is not None:
        covered = {(partition, offset) for partition, ends in batch.intervals.items() for offset in range(*ends)}
        read = {(partition, offset) for partition, ends in batch.reads.items() for offset in range(*ends)}
        expired = {(partition, offset) for partition, *ends in batch.expired for offset in range(*ends)}
        assert covered == read | expired
        assert not read & expired
        assert all(offset >= logs.partitions[partition].low for partition, offset in read)
        assert all(offset < logs.partitions[partition].low for partition, offset in expired)


@given(backlogs(), st.lists(st.integers(1, 50), min_size=1))
def test_batch_after_batch_covers_exactly_what_was_to_land(backlog, limits: list[int]):
    found, logs = backlog
    at = {partition: span.committed for partition, span in found.partitions.items()}
    for number in range(1000):
        batch = next_batch(found, logs, limits[number % len(limits)])
        if batch is None:
            break
        for partition, (start, end) in batch.intervals.items():
            assert start == at[partition]
            at[partition] = end
        found = found.changed(partitions=tiles.committed(found, at))
    ends = {p: logs.partitions[p].end if span.end is None else span.end for p, span in found.partitions.items()}
    assert at == ends


@given(backlogs())
def test_without_a_need_to_share_everything_is_in_one_batch(backlog):
    found, logs = backlog
    batch = next_batch(found, logs, 10_000)
    wanted = {
        partition: (span.committed, logs.partitions[partition].end if span.end is None else span.end)
        for partition, span in found.partitions.items()
    }
    wanted = {partition: span for partition, span in wanted.items() if span[1] > span[0]}
    assert (batch.intervals if batch else {}) == wanted


@given(st.integers(0, 20), st.integers(0, 20))
def test_covering_needs_the_log_to_reach_the_end(end: int, log_end: int):
    if log_end < end:
        with pytest.raises(DataLossError):
            covering({0: (0, end)}, kafka(p0=(0, log_end)))
    else:
        assert covering({0: (0, end)}, kafka(p0=(0, log_end))).intervals == {0: (0, end)}


# --------------------------------------------------------------------------------------------------------------- tasks

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
    loads = split_into_tasks(reads, tasks, least)
    assert read(loads) == {partition: list(range(*span)) for partition, span in sorted(reads.items())}
    assert len(loads) <= tasks
    assert all(loads)


@given(reads=READS, tasks=st.integers(1, 9), least=st.none() | st.integers(1, 300))
def test_a_task_reads_in_order(reads: Mapping[int, tuple[int, int]], tasks: int, least: int | None) -> None:
    assert all(list(load) == sorted(load) for load in split_into_tasks(reads, tasks, least))


def test_a_long_range_is_split_among_tasks_that_would_be_idle() -> None:
    assert split_into_tasks({0: (100, 200)}, 2, 50) == [(Range(0, 100, 150),), (Range(0, 150, 200),)]


def test_a_range_is_not_split_below_the_size_of_a_file() -> None:
    assert split_into_tasks({0: (100, 199)}, 2, 50) == [(Range(0, 100, 199),)]


def test_a_topic_partition_is_left_whole_where_the_record_decides_on_its_file() -> None:
    assert split_into_tasks({0: (0, 1_000_000)}, 4, None) == [(Range(0, 0, 1_000_000),)]


def test_many_small_topic_partitions_share_few_tasks() -> None:
    loads = split_into_tasks(dict.fromkeys(range(300), (0, 10)), 4, 50)
    assert [len(load) for load in loads] == [75, 75, 75, 75]


def test_a_large_topic_partition_has_a_task_for_itself() -> None:
    loads = split_into_tasks({0: (0, 1000), 1: (0, 10), 2: (0, 10), 3: (0, 10)}, 2, None)
    assert sorted(loads, key=len) == [(Range(0, 0, 1000),), (Range(1, 0, 10), Range(2, 0, 10), Range(3, 0, 10))]


def test_as_many_topic_partitions_as_tasks_are_left_whole() -> None:
    assert split_into_tasks({0: (0, 100), 1: (0, 10)}, 2, 5) == [(Range(0, 0, 100),), (Range(1, 0, 10),)]
