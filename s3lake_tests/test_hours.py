"""Hours are whole, in UTC, and written one way only."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake import hours

any_hour = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31), timezones=st.just(timezone.utc)).map(hours.key)


def test_a_key_is_the_hour_in_utc_and_is_parsed_to_its_start():
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    assert hours.key(datetime(2026, 11, 20, 5, 30, tzinfo=kathmandu)) == "2026-11-19T23"
    assert hours.parse_hour("2026-11-20T05") == datetime(2026, 11, 20, 5, tzinfo=timezone.utc)


NOT_HOURS = ["", "2026-11-20", "2026-11-20T5", "2026-11-20T24", "2026-11-20-05", "2026-11-20T05:00", " 2026-11-20T05"]


@pytest.mark.parametrize("text", [*NOT_HOURS, "2026-2-1T05", None])
def test_anything_else_is_refused_with_the_remedy(text: str):
    with pytest.raises(ValueError, match="is not an hour: write it as YYYY-MM-DDTHH in UTC, for example 2026-11-20T05"):
        hours.parse_hour(text)


@given(any_hour)
def test_parsing_and_writing_an_hour_gives_it_back(key: str):
    assert hours.key(hours.parse_hour(key)) == key


@given(any_hour, st.integers(0, hours.HOUR_MS - 1))
def test_every_millisecond_of_an_hour_is_in_it(key: str, offset: int):
    assert hours.key_of_ms(hours.start_ms(key) + offset) == key


@given(any_hour)
def test_an_hour_ends_where_the_next_one_begins(key: str):
    assert hours.end_ms(key) == hours.start_ms(hours.shift(key, 1))


@given(any_hour, st.integers(-10_000, 10_000))
def test_shifting_forth_and_back_gives_the_same_hour(key: str, by: int):
    assert hours.shift(hours.shift(key, by), -by) == key


@given(any_hour, any_hour)
def test_keys_sort_as_hours_do(one: str, other: str):
    assert (one < other) == (hours.start_ms(one) < hours.start_ms(other))


def test_a_span_has_both_of_its_ends_and_is_empty_backwards():
    assert list(hours.span("2026-11-20T23", "2026-11-21T01")) == ["2026-11-20T23", "2026-11-21T00", "2026-11-21T01"]
    assert list(hours.span("2026-11-20T22", "2026-11-20T21")) == []


def test_neighbouring_hours_are_written_as_one_range():
    assert hours.ranges(["2026-11-21T00", "2026-11-20T23", "2026-11-21T02", "2026-11-20T23"]) == [
        ("2026-11-20T23", "2026-11-21T00"),
        ("2026-11-21T02", "2026-11-21T02"),
    ]


@given(any_hour, st.sets(st.integers(0, 60)))
def test_ranges_hold_exactly_their_hours(first: str, shifts: set[int]):
    wanted = sorted(hours.shift(first, by) for by in shifts)

    ranges = hours.ranges(wanted)

    assert hours.expand(ranges) == wanted
    for by in range(-1, 62):
        assert hours.in_ranges(hours.shift(first, by), ranges) == (by in shifts)


@st.composite
def some_hours(draw: st.DrawFn) -> list[str]:
    """Hours of four days, in order, with gaps at random."""
    return sorted(hours.shift("2026-02-27T00", by) for by in draw(st.sets(st.integers(0, 95))))


any_of_them = st.integers(-2, 98).map(lambda by: hours.shift("2026-02-27T00", by))


@given(some_hours(), any_of_them)
def test_neighbours_are_found_in_ranges_as_in_a_list(wanted: list[str], hour: str):
    ranges = hours.ranges(wanted)

    assert hours.before(hour, ranges) == max((one for one in wanted if one < hour), default=None)
    assert hours.after(hour, ranges) == min((one for one in wanted if one > hour), default=None)
    assert hours.in_ranges(hour, ranges) == (hour in wanted)


@given(some_hours(), some_hours())
def test_ranges_are_united_and_subtracted_as_sets_are(some: list[str], others: list[str]):
    one, other = hours.ranges(some), hours.ranges(others)

    assert hours.merge_ranges([*one, *other]) == hours.ranges({*some, *others})
    assert hours.without(one, other) == hours.ranges({*some} - {*others})
    assert hours.count(one) == len(some)


@given(some_hours(), any_of_them, any_of_them)
def test_a_part_of_ranges_is_what_lies_between_two_hours(some: list[str], first: str, last: str):
    part = hours.clip_ranges(first, last, hours.ranges(some))

    assert part == hours.ranges(hour for hour in some if first <= hour <= last)


@given(some_hours(), st.integers(0, 100))
def test_the_ends_of_ranges_are_those_of_a_list(some: list[str], most: int):
    ranges = hours.ranges(some)

    assert hours.latest(ranges, most) == some[max(0, len(some) - most) :]
    assert hours.earliest(ranges, most) == some[:most]
