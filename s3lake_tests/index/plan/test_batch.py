"""Micro-batches: what one Spark job reads."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.errors import DataLossError, KafkaUnavailableError
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.batch import Batch, plan_next_batch, plan_rewrite, split_into_tasks
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake.source.record_batches import OffsetRange

FIVE = "2026-11-20T05"


def kafka(**logs: tuple[int, int]) -> TopicOffsets:
    """A topic: `p0=(low, end)` and so on; batches need no timestamps."""
    return TopicOffsets("topic-1", {int(name[1:]): LogRange(low, end, end, end) for name, (low, end) in logs.items()})


def tile(**spans: tuple[int, int, int | None]) -> Tile:
    return Tile(FIVE, {int(name[1:]): TileRange(*given) for name, given in spans.items()})


BATCHES: dict[str, tuple[Tile, TopicOffsets, dict[str, Any], Batch | None]] = {
    "an open tile is read to the last stable offset": (
        *(tile(p0=(0, 5, None)), kafka(p0=(0, 9)), {}, Batch({0: (5, 9)}, {0: (5, 9)})),
    ),
    "a closed tile is read to its end, whenever the run began": (
        *(tile(p0=(0, 5, 7)), kafka(p0=(0, 9)), {"until": {0: 6}, "ended": True}, Batch({0: (5, 7)}, {0: (5, 7)})),
    ),
    "nothing is left if everything is landed": (
        *(tile(p0=(0, 9, None), p1=(3, 4, 4)), kafka(p0=(0, 9), p1=(0, 9)), {}, None),
    ),
    "an open tile is read up to where the log ended when the run began": (
        tile(p0=(0, 5, None), p1=(0, 3, None)),
        *(kafka(p0=(0, 9), p1=(0, 9)), {"until": {0: 7, 1: 2}}, Batch({0: (5, 7)}, {0: (5, 7)})),
    ),
    "a topic-partition that was not there when the run began waits": (
        *(tile(p0=(0, 5, None), p1=(0, 0, None)), kafka(p0=(0, 9), p1=(0, 9)), {"until": {}}, None),
    ),
    "expired offsets are covered and noted, and not read": (
        *(tile(p0=(0, 5, 12)), kafka(p0=(8, 20)), {}, Batch({0: (5, 12)}, {0: (8, 12)}, ((0, 5, 8),))),
    ),
    "nothing has expired if the log starts at what is committed": (
        *(tile(p0=(0, 5, 12)), kafka(p0=(5, 20)), {}, Batch({0: (5, 12)}, {0: (5, 12)})),
    ),
    "what has expired as a whole is covered without reading": (
        *(tile(p0=(0, 0, 1)), kafka(p0=(6, 20)), {}, Batch({0: (0, 1)}, {}, ((0, 0, 1),))),
    ),
    "expired offsets do not count against the limit": (
        tile(p0=(0, 0, 1000)),
        *(kafka(p0=(990, 2000)), {"limit": 4}, Batch({0: (0, 994)}, {0: (990, 994)}, ((0, 0, 990),), left=6)),
    ),
}


@pytest.mark.parametrize(("found", "logs", "how", "batch"), BATCHES.values(), ids=BATCHES)
def test_a_batch_is_the_next_part_of_a_tile(
    found: Tile, logs: TopicOffsets, how: dict[str, Any], batch: Batch | None
) -> None:
    assert plan_next_batch(found, logs, **{"limit": 100, **how}) == batch


def test_an_open_tile_leaves_the_records_of_the_next_hour_only_once_its_own_is_over():
    snapshot = TopicOffsets("topic-1", {0: LogRange(0, 9, 0, 7)})

    assert plan_next_batch(tile(p0=(0, 5, None)), snapshot, 100).intervals == {0: (5, 9)}
    assert plan_next_batch(tile(p0=(0, 5, None)), snapshot, 100, {0: 8}, ended=True).intervals == {0: (5, 7)}
    assert plan_next_batch(tile(p0=(0, 8, None)), snapshot, 100, {0: 9}, ended=True) is None


@pytest.mark.parametrize(
    ("ends", "limit", "intervals"),
    [
        ((300, 100), 40, {0: (0, 30), 1: (0, 10)}),
        ((1000, 1), 10, {0: (0, 9), 1: (0, 1)}),
        ((1, 1, 98), 2, {0: (0, 1), 1: (0, 1)}),
    ],
    ids=["in proportion", "each advances, even by a record", "unless there are more than it allows"],
)
def test_topic_partitions_share_the_limit(
    ends: tuple[int, ...], limit: int, intervals: dict[int, tuple[int, int]]
) -> None:
    logs = {f"p{number}": (0, end) for number, end in enumerate(ends)}
    batch = plan_next_batch(tile(**dict.fromkeys(logs, (0, 0, None))), kafka(**logs), limit)

    assert (batch.intervals, batch.left) == (intervals, sum(ends) - limit)


def test_a_batch_has_the_epochs_of_the_leaders_that_reported_its_ends():
    snapshot = TopicOffsets("topic-1", {0: LogRange(0, 9, 9, 9, epoch=4), 1: LogRange(0, 9, 9, 9, epoch=6)})

    assert plan_next_batch(tile(p0=(0, 5, None)), snapshot, 100).epochs == {0: 4}


@pytest.mark.parametrize(("end", "log_end", "expected"), [(None, 3, 5), (12, 9, 12)])
def test_a_log_that_ends_below_what_the_index_expects_is_a_loss(end: int | None, log_end: int, expected: int):
    words = f"expects offsets up to {expected}, Kafka has them up to {log_end}; the log was cut off"
    with pytest.raises(DataLossError, match=words):
        plan_next_batch(tile(p0=(0, 5, end)), kafka(p0=(0, log_end)), 100)


@pytest.mark.parametrize("end", [None, 4])
def test_a_topic_partition_that_kafka_leaves_out_is_requested_again(end: int | None):
    with pytest.raises(KafkaUnavailableError, match="topic-partition 1 is in the index, and missing"):
        plan_next_batch(tile(p0=(0, 5, 5), p1=(0, 0, end)), kafka(p0=(0, 9)), 100)


def test_a_rewrite_reads_the_tile_from_its_start_to_what_is_landed_and_sees_what_has_expired():
    assert plan_rewrite(tile(p0=(3, 7, 7), p1=(4, 4, 4)), kafka(p0=(0, 9), p1=(0, 9))) == Batch(
        {0: (3, 7)}, {0: (3, 7)}
    )
    assert plan_rewrite(tile(p0=(3, 7, 7)), kafka(p0=(5, 9))).expired == ((0, 3, 5),)


# --------------------------------------------------------------------------------------------------------- random tiles


@st.composite
def backlogs(draw: st.DrawFn) -> tuple[Tile, TopicOffsets]:
    """A tile, open or closed, and logs that reach its end; some of it may have expired."""
    spans, logs = {}, {}
    is_open = draw(st.booleans())
    for partition in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 20))
        committed = start + draw(st.integers(0, 20))
        end = committed + draw(st.integers(0, 60))
        spans[partition] = TileRange(start, committed, None if is_open else end)
        log_end = end + draw(st.integers(0, 20))
        logs[partition] = LogRange(draw(st.integers(0, log_end)), log_end, log_end, log_end)
    return Tile(FIVE, spans), TopicOffsets("topic-1", logs)


@given(backlogs(), st.integers(1, 50))
def test_a_batch_advances_reads_at_most_the_limit_and_what_it_covers_is_read_or_expired(backlog, limit: int):
    found, logs = backlog
    batch = plan_next_batch(found, logs, limit)
    if batch is not None:
        covered = {(partition, offset) for partition, ends in batch.intervals.items() for offset in range(*ends)}
        read = {(partition, offset) for partition, ends in batch.reads.items() for offset in range(*ends)}
        expired = {(partition, offset) for partition, *ends in batch.expired for offset in range(*ends)}
        assert batch.offsets > 0
        assert len(read) <= limit
        assert covered == read | expired
        assert not read & expired
        assert all(offset >= logs.partitions[partition].log_start for partition, offset in read)
        assert all(offset < logs.partitions[partition].log_start for partition, offset in expired)


@given(backlogs(), st.lists(st.integers(1, 50), min_size=1))
def test_batch_after_batch_covers_exactly_what_was_to_land(backlog, limits: list[int]):
    found, logs = backlog
    at = {partition: span.committed for partition, span in found.partitions.items()}
    for number in range(1000):
        batch = plan_next_batch(found, logs, limits[number % len(limits)])
        if batch is None:
            break
        for partition, (start, end) in batch.intervals.items():
            assert start == at[partition]
            at[partition] = end
        found = found.revise(partitions=tiles.advance_committed(found, at))
    ends = {p: logs.partitions[p].log_end if span.end is None else span.end for p, span in found.partitions.items()}
    assert at == ends


# --------------------------------------------------------------------------------------------------------------- tasks

SPANS = st.tuples(st.integers(0, 1000), st.integers(1, 500)).map(lambda span: (span[0], span[0] + span[1]))
READS = st.dictionaries(st.integers(0, 50), SPANS, min_size=1, max_size=12)


def read(loads: list[tuple[OffsetRange, ...]]) -> dict[int, list[int]]:
    """Offsets by topic-partition, as often as they are read."""
    found: dict[int, list[int]] = {}
    for load in loads:
        for one in load:
            found.setdefault(one.partition, []).extend(range(one.start, one.end))
    return {partition: sorted(offsets) for partition, offsets in sorted(found.items())}


@given(reads=READS, tasks=st.integers(1, 9), least=st.none() | st.integers(1, 300))
def test_every_offset_is_read_by_exactly_one_task_in_order(
    reads: Mapping[int, tuple[int, int]], tasks: int, least: int | None
) -> None:
    loads = split_into_tasks(reads, tasks, least)
    assert read(loads) == {partition: list(range(*span)) for partition, span in sorted(reads.items())}
    assert len(loads) <= tasks
    assert all(load and list(load) == sorted(load) for load in loads)


TASKS = {
    "a long range is split among tasks that would be idle": (
        *({0: (100, 200)}, 2, 50, [(OffsetRange(0, 100, 150),), (OffsetRange(0, 150, 200),)]),
    ),
    "no range is split below the size of a file": ({0: (100, 199)}, 2, 50, [(OffsetRange(0, 100, 199),)]),
    "nor if the record decides on its file": ({0: (0, 1_000_000)}, 4, None, [(OffsetRange(0, 0, 1_000_000),)]),
    "nor if there are as many as tasks": (
        *({0: (0, 100), 1: (0, 10)}, 2, 5, [(OffsetRange(0, 0, 100),), (OffsetRange(1, 0, 10),)]),
    ),
    "a large one has a task for itself": (
        {0: (0, 1000), 1: (0, 10), 2: (0, 10), 3: (0, 10)},
        *(2, None, [(OffsetRange(0, 0, 1000),), (OffsetRange(1, 0, 10), OffsetRange(2, 0, 10), OffsetRange(3, 0, 10))]),
    ),
    "small ones share few tasks": (
        dict.fromkeys(range(6), (0, 10)),
        *(2, 50, [tuple(OffsetRange(number, 0, 10) for number in numbers) for numbers in ((0, 2, 4), (1, 3, 5))]),
    ),
}


@pytest.mark.parametrize(("reads", "tasks", "least", "loads"), TASKS.values(), ids=TASKS)
def test_topic_partitions_are_split_into_tasks(
    reads: dict[int, tuple[int, int]], tasks: int, least: int | None, loads: list[tuple[OffsetRange, ...]]
) -> None:
    assert split_into_tasks(reads, tasks, least) == loads
