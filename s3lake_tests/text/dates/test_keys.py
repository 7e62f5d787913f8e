"""Date patterns: Java's letters in UTC, quotes as in Java, everything else refused."""

import pytest

from s3lake.text.dates.keys import formatter
from s3lake_tests.layout.files import ms

MOMENT = ms(2010, 4, 2, 6, 7, 8)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd", "2010-04-02"),
        ("uuuu/LL/dd", "2010/04/02"),
        ("yyyy-MM-dd-HH", "2010-04-02-06"),
        ("yyyyMMddHHmmss", "20100402060708"),
        ("yy", "10"),
        ("y", "2010"),
        ("M", "4"),
        ("MMM", "Apr"),
        ("LLL", "Apr"),
        ("d", "2"),
        ("D", "92"),
        ("DDD", "092"),
        ("H.m.s", "6.7.8"),
        ("yyyy'y'", "2010y"),
        ("'year='yyyy", "year=2010"),
        ("yyyy-MM-dd'T'HH", "2010-04-02T06"),
        ("yyyy''MM", "2010'04"),
        ("'a''b'", "a'b"),
        ("''''", "'"),
        ("_-=+ ,;", "_-=+ ,;"),
    ],
)
def test_a_pattern_as_java_writes_it(pattern: str, expected: str) -> None:
    assert formatter(pattern)(MOMENT) == expected


@pytest.mark.parametrize("pattern", ["YYYY-MM-dd", "yyyy-MM-DD", "hh", "EEE", "yyy", "MMMM", "SSS", "z", "w", "foo"])
def test_letters_without_a_meaning_in_a_key_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not among y, yy, yyyy"):
        formatter(pattern)


@pytest.mark.parametrize("pattern", ["yyyy'", "'yyyy", "yyyy-'MM'-'dd"])
def test_a_quote_has_to_be_closed(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"the quote at character \d+ is not closed"):
        formatter(pattern)


@pytest.mark.parametrize("pattern", ["[yyyy]", "yyyy#", "{MM}", "yyyy\nMM"])
def test_characters_with_another_meaning_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="has another meaning"):
        formatter(pattern)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (0, "1970-01-01 00"),
        (ms(2010, 1, 1) - 1, "2009-12-31 23"),
        (ms(2010, 1, 1), "2010-01-01 00"),
        (ms(2024, 2, 29, 23), "2024-02-29 23"),
        (253_402_300_799_999, "9999-12-31 23"),
    ],
)
def test_days_begin_at_midnight_utc(moment: int, expected: str) -> None:
    assert formatter("yyyy-MM-dd HH")(moment) == expected


@pytest.mark.parametrize("moment", [-1, -(2**63), 253_402_300_800_000, 2**63 - 1])
def test_a_timestamp_outside_of_the_calendar_has_no_date(moment: int) -> None:
    with pytest.raises(ValueError, match=f"timestamp {moment} has no date"):
        formatter("yyyy")(moment)
