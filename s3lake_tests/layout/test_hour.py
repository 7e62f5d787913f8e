"""`{hour:…}`: the hour that a file is landed in, whatever its records say."""

import pytest

from s3lake import hours
from s3lake.land import binding
from s3lake.layout.key import RecordColumns, Span
from s3lake_tests.layout.files import sink

FIVE = hours.start_ms("2026-11-20T05")
LATE = Span(7, 9, FIVE - 90_000_000, FIVE - 80_000_000, 3)


def key(template: str, hour_ms: int = FIVE, **layout: object) -> str:
    rule = binding.key_rule(sink(layout={"template": template, **layout}), "t", hour_ms=hour_ms)
    group = rule.fixed_group(0) or rule.groups(0, RecordColumns(timestamps=[LATE.min_timestamp]), 1)[0]
    assert isinstance(group, str)
    return rule.key(group, LATE)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd", "2026-11-20"),
        ("HH", "05"),
        ("yyyy/MMM/d", "2026/Nov/20"),
        ("'h='H", "h=5"),
        ("xxxx'W'ww", "2026W47"),
    ],
)
def test_patterns_are_those_of_times(pattern: str, expected: str) -> None:
    assert key(f"{{topic}}/{{hour:{pattern}}}/{{partition}}-{{offset}}") == f"t/{expected}/0-7.json"


def test_late_records_are_in_the_hour_that_they_were_landed_in() -> None:
    template = "{topic}/{hour:yyyy-MM-dd-HH}/{time:yyyy-MM-dd-HH}/{partition}-{offset}"
    assert key(template) == "t/2026-11-20-05/2026-11-19-04/0-7.json"


def test_an_hour_is_in_utc_whatever_the_zone_of_times_is() -> None:
    template = "{topic}/{hour:yyyy-MM-dd-HH}/{time:HH}/{partition}-{offset}"
    assert key(template, time={"timezone": "Asia/Kolkata"}).startswith("t/2026-11-20-05/09/")


def test_two_hours_are_two_directories() -> None:
    template = "{topic}/{hour:HH}/{partition}-{offset}"
    assert (key(template), key(template, FIVE + hours.HOUR_MS)) == ("t/05/0-7.json", "t/06/0-7.json")
