"""Java's date patterns: the documentation of each letter, printed and read."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.text.dates.java import DatePattern, compile_key_date
from s3lake_tests.records.layout.files import ms

MOMENT = 1_578_223_264_123  # Sunday, 2020-01-05T11:21:04.123Z


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2020-01-05T11:21:04.123Z"),
        ("y yy uuuu", "2020 20 2020"),
        ("M MM MMM MMMM LLL", "1 01 Jan January Jan"),
        ("d dd D DDD", "5 05 5 005"),
        ("H HH k K h hh a", "11 11 11 11 11 11 AM"),
        ("m mm s ss", "21 21 4 04"),
        ("S SS SSS SSSSSS SSSSSSSSS", "1 12 123 123000 123000000"),
        ("E EEE EEEE G", "Sun Sun Sunday AD"),
        ("X XX XXX x xx xxx Z ZZZZ ZZZZZ", "Z Z Z +00 +0000 +00:00 +0000 GMT Z"),
        ("z VV", "UTC UTC"),
        ("'year' yyyy ''yy 'o''clock'", "year 2020 '20 o'clock"),
        ("yyyy''''", "2020'"),
        ("yyyy[-MM][-dd]", "2020-01-05"),
        ("yyyy/MM/dd/HH", "2020/01/05/11"),
    ],
)
def test_a_pattern_is_written_as_by_javas_date_time_formatter(pattern: str, text: str) -> None:
    assert DatePattern(pattern).formatter()(MOMENT) == text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy.MM.dd G 'at' HH:mm:ss z", "2020.01.05 AD at 11:21:04 UTC"),
        ("EEE, MMM d, ''yy", "Sun, Jan 5, '20"),
        ("hh 'o''clock' a", "11 o'clock AM"),
        ("yyyyy.MMMMM.dd", "02020.January.05"),
        ("yyMMddHHmmssZ", "200105112104+0000"),
        ("S SSS SSSSSS", "123 123 000123"),
        ("u EEEEE", "7 Sunday"),
        ("yyyy''''", "2020''"),
        ("X XX XXX", "Z Z Z"),
    ],
)
def test_a_pattern_is_written_as_by_javas_simple_date_format(pattern: str, text: str) -> None:
    assert DatePattern(pattern, "simple").formatter()(MOMENT) == text


@pytest.mark.parametrize(
    ("zone_name", "text"),
    [
        ("Asia/Kolkata", "16:51 +05:30 +0530 Asia/Kolkata"),
        ("America/New_York", "06:21 -05:00 -05 America/New_York"),
        ("+02:00", "13:21 +02:00 +02 +02:00"),
        ("GMT-3", "08:21 -03:00 -03 GMT-3"),
    ],
)
def test_a_time_is_written_in_its_zone(zone_name: str, text: str) -> None:
    assert DatePattern("HH:mm xxx X VV").formatter(zone_name)(MOMENT) == text


@pytest.mark.parametrize("pattern", ["MMM", "LLLL", "EEEE d", "h a", "G"])
def test_a_name_in_another_language_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="names are English only; write MM, or set locale to en"):
        DatePattern(pattern, locale="fr").formatter()
    assert DatePattern("yyyy-MM-dd", locale="fr").formatter()(MOMENT) == "2020-01-05"
    assert DatePattern(pattern, locale="en-US").formatter()(MOMENT)


@pytest.mark.parametrize(
    ("pattern", "text", "iso"),
    [
        ("yyyyMMddHHmmssSSS", "20200105112104123", "2020-01-05T11:21:04.123"),
        ("yyyy-MM-dd HH:mm:ss", "2020-01-05 11:21:04", "2020-01-05T11:21:04"),
        ("yyyy-MM-dd", "2020-01-05", "2020-01-05T00:00:00"),
        ("d MMM yy h:mm a", "5 Jan 20 1:05 PM", "2020-01-05T13:05:00"),
        ("yyyy-DDD", "2020-060", "2020-02-29T00:00:00"),
        ("uuuu-MM-dd'T'HH:mm[:ss][.SSS]", "2020-01-05T11:21", "2020-01-05T11:21:00"),
        ("uuuu-MM-dd'T'HH:mm[:ss][.SSS]", "2020-01-05T11:21:04.5", None),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2020-01-05T11:21:04-02:00", "2020-01-05T13:21:04"),
        ("yyyy-MM-dd HH:mm VV", "2020-07-05 12:00 Europe/Paris", "2020-07-05T10:00:00"),
        ("yyyy-MM-dd kk", "2020-01-05 24", "2020-01-05T00:00:00"),
        ("EEEE, d MMMM yyyy", "Sunday, 5 January 2020", "2020-01-05T00:00:00"),
        ("yyyy-MM-dd", "2020-1-05", None),
        ("yyyy-MM-dd", "2021-02-29", None),
        ("yyyy-MM-dd", "2020-01-05 ", None),
        ("yyyy-DDD", "2021-366", None),
        ("yyyy-MM-dd hh a", "2020-01-05 13 PM", None),
    ],
)
def test_a_text_is_read_by_its_pattern_or_refused(pattern: str, text: str, iso: str | None) -> None:
    read = DatePattern(pattern).parser()
    if iso is None:
        with pytest.raises(ValueError, match=r"pattern"):
            read(text)
    else:
        assert read(text) == datetime.fromisoformat(iso).replace(tzinfo=timezone.utc).timestamp() * 1000


@pytest.mark.parametrize(
    ("pattern", "text", "iso"),
    [
        ("yyyy MM dd HH mm ss SSS z", "1970 01 02 00 00 01 234 UTC", "1970-01-02T00:00:01.234"),
        ("yyyy-MM-dd", "2020-1-5", "2020-01-05T00:00:00"),
        ("dd MMM yy", "05 JAN 20", "2020-01-05T00:00:00"),
        ("dd MMM yy", "05 jan 70", "1970-01-05T00:00:00"),
        ("HH:mm", "01:02", "1970-01-01T01:02:00"),
    ],
)
def test_a_text_is_read_as_by_javas_simple_date_format(pattern: str, text: str, iso: str) -> None:
    expected = datetime.fromisoformat(iso).replace(tzinfo=timezone.utc).timestamp() * 1000
    assert DatePattern(pattern, "simple").parser()(text) == round(expected)


def test_texts_without_an_offset_are_in_the_zone() -> None:
    assert DatePattern("yyyy-MM-dd HH:mm").parser("Asia/Kolkata")("2020-01-05 05:30") == 1_578_182_400_000


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("YYYY-MM-dd", "Y is the year of the week, not of the day; use yyyy"),
        ("yyyy-MM-DD", "use dd"),
        ("yyyy-mm-dd", "m is the minute, and there is no hour; write M for the month"),
        ("uuuu/mm", "m is the minute, and there is no hour"),
        ("mm/dd", "m is the minute, and there is no hour"),
        ("w", "is not supported; quote plain text"),
        ("yyyy-'MM", "the quote at character 6 is not closed"),
        ("bad-format", "'b' is not supported"),
        ("HHH", "'H' is repeated 3 times; at most 2 times"),
        ("V", "'V' is repeated 1 times; twice"),
        ("MMMMM", "'M' is repeated 5 times; at most 4 times"),
        ("n", "'n' is not supported"),
        ("yyyy {MM}", "'{' is reserved; put it in quotes"),
        ("[yyyy", "'[' and ']' do not pair"),
        ("", "the date pattern is empty; for example yyyy-MM-dd"),
    ],
)
def test_a_wrong_pattern_is_refused_with_the_remedy(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"pattern") as error:
        DatePattern(pattern).formatter()
    assert why in str(error.value)


def test_a_simple_pattern_with_minutes_in_place_of_the_month_is_refused() -> None:
    with pytest.raises(ValueError, match="date pattern 'yyyymmdd': m is the minute, and there is no hour; write M"):
        DatePattern("yyyymmdd", "simple").formatter()


@pytest.mark.parametrize("pattern", ["mm", "HH:mm", "mm:ss", "dd HH mm", "yyyy-MM-dd hh:mm a"])
def test_minutes_without_a_date_or_with_an_hour_are_printed(pattern: str) -> None:
    assert DatePattern(pattern).formatter()(0)


@pytest.mark.parametrize(
    ("pattern", "why"), [("HH:mm", "does not name a day"), ("yyyy-MM-dd hh:mm", "h is one of 12 hours")]
)
def test_a_pattern_that_cannot_be_read(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        DatePattern(pattern).parser()


@pytest.mark.parametrize("moment", [-(10**15), 10**15, 2**63])
def test_a_time_beyond_all_dates_is_refused(moment: int) -> None:
    with pytest.raises(ValueError, match="has no date"):
        DatePattern("yyyy").formatter()(moment)


def test_patterns_travel() -> None:
    pattern = DatePattern("yyyy")
    pattern.formatter()(0)
    assert pickle.loads(pickle.dumps(pattern)) == pattern


MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 28)).map(
    lambda one: (one - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
)


@given(MOMENTS, st.sampled_from(["java.time", "simple"]), st.sampled_from(["UTC", "Asia/Kolkata", "+02:00"]))
def test_a_printed_time_can_be_read(moment: int, dialect: str, zone_name: str) -> None:
    pattern = DatePattern("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", dialect)  # type: ignore[arg-type]
    if zone_name == "Asia/Kolkata" and moment < 0:
        return  # local mean time had seconds, which the offset's pattern cannot write
    assert pattern.parser()(pattern.formatter(zone_name)(moment)) == moment


# `_date.<pattern>` of a key

IN_KEYS = ms(2010, 4, 2, 6, 7, 8)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("uuuu/LL/dd", "2010/04/02"), ("DDD", "092"), ("H.m.s", "6.7.8"), ("'a''b'", "a'b"), ("_-=+ ,;", "_-=+ ,;")],
)
def test_a_date_in_a_key_is_printed_as_java_prints_it(pattern: str, expected: str) -> None:
    assert compile_key_date(pattern)(IN_KEYS) == expected


@pytest.mark.parametrize("moment", [-1, -(2**63), 253_402_300_800_000, 2**63 - 1])
def test_a_timestamp_outside_of_the_calendar_has_no_date(moment: int) -> None:
    with pytest.raises(ValueError, match=f"timestamp {moment} has no date"):
        compile_key_date("yyyy")(moment)
