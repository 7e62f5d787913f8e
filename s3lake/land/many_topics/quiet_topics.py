"""Close hours without a record of many topics together: one question to Kafka for all, three requests for each topic.

A topic whose log still ends where its last tile starts needs no plan, no job and no commit. All other topics are left
to `landing.land`, whatever was done for them here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from s3lake import hours
from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import TopicHead
from s3lake.index.commit.quiet_hours import QuietHour, close_quiet_hour, find_last_tile
from s3lake.index.commit.sealing import Sealing
from s3lake.index.commit.sums import Commits
from s3lake.land.hour.landing import AT_WORK, ensure_store_tried
from s3lake.land.spark.spark_jobs import await_result
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.offsets import TopicOffsets

AT_ONCE = 100
"""Topics that are closed before the next ones: a run that is killed has reported all but these."""

A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class QuietTopic:
    """A topic of whose requested hours none has a record: all but the last one are closed, and the last one is open.

    Attributes:
        quiet_hours: the closed hours, in order; each has the tile after it.
    """

    target: TopicSink
    quiet_hours: tuple[QuietHour, ...]

    @property
    def closed(self) -> list[LandedHour]:
        """The closed hours."""
        return [
            LandedHour(hour.closed, Commits(self.target.index, hour.closed.hour, ()), 0) for hour in self.quiet_hours
        ]

    @property
    def landed_offsets(self) -> dict[int, int]:
        """The offset up to which each topic-partition is landed."""
        return self.target.find_landed_offsets([self.quiet_hours[-1].opened, self.quiet_hours[-1].closed])

    @property
    def sealing(self) -> Sealing:
        """The state of sealing, whose tiles are not read again."""
        last = self.quiet_hours[-1]
        tiles = [*(hour.closed for hour in self.quiet_hours), last.opened]
        compared = self.quiet_hours[0].closed.hour if all(hour.is_sealed for hour in self.quiet_hours) else None
        return Sealing(self.target.index, last.head, last.etag, compared).with_tiles(tiles)


def close_quiet_hours(hours_by_target: Mapping[TopicSink, Sequence[str]]) -> Iterator[list[QuietTopic]]:
    """Close the requested hours of topics that have no record in them, and open the last one of each.

    Yields the closed topics, some at a time. The topics that are not among them are to be landed. An error of one of
    them is not raised here: landing it meets the same error, and reports it.

    Args:
        hours_by_target: the requested hours of each topic, in order.
    """
    possible = [
        (target, requested) for target, requested in hours_by_target.items() if _may_be_quiet(target, requested)
    ]
    for first in range(0, len(possible), AT_ONCE):
        yield _close_some(dict(possible[first : first + AT_ONCE]))


def _close_some(possible: Mapping[TopicSink, Sequence[str]]) -> list[QuietTopic]:
    """Close the requested hours of some topics; return the topics that are quiet."""
    pool, quiet = ThreadPoolExecutor(AT_WORK, "s3lake-quiet"), list[QuietTopic]()
    try:
        ensure_store_tried(next(iter(possible)))  # before the first write
        heads = _map(pool, lambda target: _read_head(target, possible[target][0]), possible)
        closed = {target: list[QuietHour]() for target in heads}
        while heads:
            steps = _close_last_hours(pool, heads)
            for target, step in steps.items():
                closed[target].append(step)
                if step.opened.hour == possible[target][-1]:
                    quiet.append(QuietTopic(target, tuple(closed[target])))
            heads = {
                target: (step.head, step.etag)
                for target, step in steps.items()
                if step.opened.hour < possible[target][-1]
            }
    except S3LakeError:
        pass  # of the store or of Kafka: each landing that is left meets it again
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return quiet


def _may_be_quiet(target: TopicSink, requested: Sequence[str]) -> bool:
    """Return whether these are hours that follow each other, of which the last one is not to be closed.

    A table has to follow each hour, which costs requests to its catalog: its topics are landed one by one.
    """
    if target.table is not None or len(requested) < 2:
        return False
    is_over = target.clock() >= hours.end_ms(requested[-1]) + int(target.sink.close_grace * 1000)
    return not is_over and list(requested) == list(hours.span(requested[0], requested[-1]))


def _read_head(target: TopicSink, hour: str) -> tuple[TopicHead, str] | None:
    """Read `topic.json`. Return it and its ETag, or None if `hour` is not the last one or cannot be a quiet one."""
    stored = target.index.head()
    tile = find_last_tile(stored[0]) if stored else None
    return stored if tile is not None and tile.hour == hour else None


def _close_last_hours(
    pool: ThreadPoolExecutor, heads: Mapping[TopicSink, tuple[TopicHead, str]]
) -> dict[TopicSink, QuietHour]:
    """Close the last hour of each topic; of the topics that are left out something may wait, or another was first."""
    answers = _ask_kafka(heads)

    def close(target: TopicSink) -> QuietHour | None:
        return close_quiet_hour(target.index, *heads[target], answers[target], start=target.sink.start)

    return _map(pool, close, answers)


def _ask_kafka(heads: Mapping[TopicSink, tuple[TopicHead, str]]) -> dict[TopicSink, TopicOffsets]:
    """Return Kafka's offsets around the last hour of each topic: one question for all with the same last hour."""
    by_hour: dict[str, dict[str, TopicSink]] = defaultdict(dict)
    for target, (head, _) in heads.items():
        by_hour[head.hours[-1][1]][target.topic] = target
    answers: dict[TopicSink, TopicOffsets] = {}
    for hour, targets in by_hour.items():
        offsets = next(iter(targets.values())).offsets
        answers |= {targets[topic]: answer for topic, answer in offsets.snapshots(list(targets), hour).items()}
    return answers


def _map(
    pool: ThreadPoolExecutor, work: Callable[[TopicSink], A | None], targets: Iterable[TopicSink]
) -> dict[TopicSink, A]:
    """Return what `work` returns for each topic; without topics for which that is None or an error."""
    futures = {target: pool.submit(work, target) for target in targets}
    results: dict[TopicSink, A] = {}
    for target, future in futures.items():
        try:
            result = await_result(future)
        except S3LakeError:
            continue
        if result is not None:
            results[target] = result
    return results
