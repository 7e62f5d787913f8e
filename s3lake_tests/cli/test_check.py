"""What `check --connect` says of topics, before anything is landed of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from s3lake import hours
from s3lake.cli.check import check_topics
from s3lake.errors import ConfigurationError
from s3lake.sink import Sink
from s3lake.source.offsets import LogRange, Snapshot

START = "2026-11-20T05"
NOW_MS = hours.start_ms("2026-11-20T09")
IN_2199_MS = 7_226_582_400_000


@dataclass
class Logs:
    """Topics of one topic-partition each, by the timestamps of their records."""

    stamps: Mapping[str, list[int]]

    def topics(self) -> list[str]:
        return sorted(self.stamps)

    def snapshot(self, topic: str, hour: str) -> Snapshot:
        if topic not in self.stamps:
            return Snapshot("", {})
        since, after = self._first(topic, hours.start_ms(hour)), self._first(topic, hours.end_ms(hour))
        stamps = self.stamps[topic]
        stamp = stamps[after] if after < len(stamps) else None
        return Snapshot("id", {0: LogRange(0, len(stamps), since, after, next_stamp_ms=stamp)})

    def first_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        return {0: self._first(topic, epoch_ms)}

    def _first(self, topic: str, epoch_ms: int) -> int:
        stamps = self.stamps[topic]
        return next((at for at, stamp in enumerate(stamps) if stamp >= epoch_ms), len(stamps))


def check(stamps: Mapping[str, list[int]], topics: Collection[str] = ("orders",), **settings: Any) -> list[str]:
    """The notices of a sink called events."""
    named = {"topics": list(topics)} if topics else {}
    sink = Sink.model_validate({"name": "events", "bucket": "lake", "start": START, **named, **settings})
    return check_topics([sink], Logs(stamps), NOW_MS)  # type: ignore[arg-type]


def test_topics_whose_records_are_stamped_as_expected_need_no_notice() -> None:
    assert check({"orders": [hours.start_ms(START), NOW_MS, NOW_MS + 1_800_000]}) == []


def test_a_topic_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match=r"events: topic 'ordrs' does not exist.*did you mean 'orders'\?"):
        check({"orders": [], "clicks": []}, ["ordrs", "clicks"])


def test_a_topic_that_the_sink_waits_for_is_a_notice() -> None:
    (notice,) = check({"orders": []}, ["ordrs"], missing_topic="wait")
    assert "topic 'ordrs' does not exist" in notice
    assert "did you mean 'orders'?" in notice


def test_an_expression_that_matches_no_topic_is_a_notice() -> None:
    (notice,) = check({"orders": []}, [], topics_regex="clicks-.*")
    assert notice == "sink events: topics_regex clicks-.* matches no topic yet"


def test_records_before_the_start_are_counted() -> None:
    in_seconds = hours.start_ms(START) // 1000
    (notice,) = check({"orders": [in_seconds] * 100})
    assert notice.startswith(f"sink events: topic 'orders': 100 offsets are before {START}")
    assert check({"orders": [in_seconds] * 100}, **{"from": "earliest"}) == []


def test_a_record_that_is_stamped_ahead_is_named() -> None:
    (notice,) = check({"orders": [NOW_MS, IN_2199_MS, NOW_MS]})
    assert notice.startswith("sink events: topic 'orders': offset 1 of partition 0 is stamped 2199-01-01T00:00:00Z")
