"""Which hours should be landed, by the clock."""

import pytest

from s3lake import hours
from s3lake.index.plan.hour_grid import Grid
from s3lake_tests.kit.sinks import make_sink

MINUTE_MS = 60_000
NOW_MS = hours.start_ms("2026-01-05T03") + 12 * MINUTE_MS


def make_grid(start: str = "2026-01-05T00", first: str | None = None, last: str | None = None) -> Grid:
    return Grid(start, first, last, NOW_MS, 10 * MINUTE_MS)


def test_a_grid_of_a_sink_has_its_start_and_its_grace_in_milliseconds() -> None:
    sink = make_sink(start="2026-01-05T00", close_grace="90s")
    assert Grid.from_sink(sink, NOW_MS, "2026-01-05T01", "2026-01-05T02") == Grid(
        "2026-01-05T00", "2026-01-05T01", "2026-01-05T02", NOW_MS, 90_000
    )
    assert Grid.from_sink(sink, NOW_MS) == Grid("2026-01-05T00", None, None, NOW_MS, 90_000)


def test_the_present_is_the_hour_of_the_clock() -> None:
    assert make_grid().present == "2026-01-05T03"


@pytest.mark.parametrize(
    ("first", "last", "inside"),
    [
        (None, None, ["2026-01-04T23", "2026-01-05T00", "2026-01-05T01", "2026-01-05T02", "2026-01-05T03"]),
        ("2026-01-05T01", None, ["2026-01-05T01", "2026-01-05T02", "2026-01-05T03"]),
        (None, "2026-01-05T01", ["2026-01-04T23", "2026-01-05T00", "2026-01-05T01"]),
        ("2026-01-05T01", "2026-01-05T01", ["2026-01-05T01"]),
    ],
)
def test_an_hour_is_in_a_grid_if_it_was_asked_for(first: str | None, last: str | None, inside: list[str]) -> None:
    grid = make_grid(first=first, last=last)
    assert [hour for hour in hours.span("2026-01-04T23", "2026-01-05T03") if hour in grid] == inside


@pytest.mark.parametrize(
    ("first", "last", "since", "due"),
    [
        (None, None, None, ["2026-01-05T00", "2026-01-05T01", "2026-01-05T02", "2026-01-05T03"]),
        ("2026-01-05T02", None, None, ["2026-01-05T02", "2026-01-05T03"]),
        ("2026-01-04T00", "2026-01-05T01", None, ["2026-01-05T00", "2026-01-05T01"]),
        (None, "2026-01-09T00", "2026-01-05T03", ["2026-01-05T03"]),
        ("2026-01-05T02", None, "2026-01-05T01", ["2026-01-05T02", "2026-01-05T03"]),
        ("2026-01-05T03", "2026-01-05T02", None, []),
    ],
)
def test_hours_are_due_from_the_latest_beginning_to_the_present(
    first: str | None, last: str | None, since: str | None, due: list[str]
) -> None:
    assert make_grid(first=first, last=last).due_hours(since) == due


@pytest.mark.parametrize(
    ("hour", "over_since_ms", "is_current"),
    [
        ("2026-01-05T03", 0, True),
        ("2026-01-05T02", 10 * MINUTE_MS, False),
        ("2026-01-05T02", 10 * MINUTE_MS - 1, True),
        ("2026-01-05T01", 0, False),
    ],
)
def test_an_hour_is_current_until_its_grace_is_over(hour: str, over_since_ms: int, is_current: bool) -> None:
    now_ms = hours.end_ms("2026-01-05T02") + over_since_ms
    assert Grid("2026-01-05T00", None, None, now_ms, 10 * MINUTE_MS).is_current(hour) is is_current
