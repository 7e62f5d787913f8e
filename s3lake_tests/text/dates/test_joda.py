"""Joda's patterns: what Joda-Time printed for each, and what is refused."""

import re
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.text.dates.joda import compile_formatter, parse_pattern
from s3lake_tests.kit.tables import rows

HOURLY = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
HOUR, DAY = 3_600_000, 86_400_000
LA = "America/Los_Angeles"
MIDDAY = 1_705_312_800_000  # 2024-01-15T10:00Z


# A time in UTC, the zone, how long a bucket is, and the pattern; HOURLY is the one above.
PRINTED = """
J1, cut toward zero: 1969-12-31T23:59:59.999 UTC 1h HOURLY => year=1970/month=01/day=01/hour=00
J2: 1969-12-31T22:59:59.999 UTC 1h HOURLY => year=1969/month=12/day=31/hour=23
J3: 1970-01-25T20:31:23.647 America/Los_Angeles 1h HOURLY => year=1970/month=01/day=25/hour=12
J5: 2021-01-01T00:00 UTC 1d YYYY yyyy xxxx ww e D => 2021 2021 2020 53 5 1
J7, weeks begin on Thursdays: 2024-01-15T10:00 UTC 7d YYYY-MM-dd EEE => 2024-01-11 Thu
J9: 2024-01-15T10:00 UTC 1d HOURLY => year=2024/month=01/day=15/hour=00
J10, hour 02 is jumped over: 2024-03-10T10:30 America/Los_Angeles 2h HOURLY => year=2024/month=03/day=10/hour=03
J11, before the jump: 2024-03-10T09:59:59 America/Los_Angeles 1h 'hour'=HH => hour=01
J11, after the jump: 2024-03-10T10:00 America/Los_Angeles 1h 'hour'=HH => hour=03
J13: 2024-11-03T09:30 America/Los_Angeles 2h 'hour'=HH => hour=00
J14: 2024-01-15T10:40 Asia/Kolkata 1h 'hour'=HH => hour=16
J15: 2024-04-06T15:10 Australia/Lord_Howe 1h HOURLY => year=2024/month=04/day=07/hour=01
J18: 2024-01-15T10:00 UTC 1d 'o''clock'=HH => o'clock=00
J19: 2024-01-15T10:00 America/Los_Angeles 1d YY yy xx Y M d k K h a z Z ZZ ZZZ G C =>
    24 24 24 2024 1 15 24 0 12 AM PST -0800 -08:00 America/Los_Angeles AD 20
C44, no week year: 2024-12-31T00:00 UTC 1h HOURLY => year=2024/month=12/day=31/hour=00
gap: 2018-11-04T03:00 America/Sao_Paulo 1d HOURLY => year=2018/month=11/day=04/hour=01
a gap at midnight, daily: 2018-11-04T14:30 America/Sao_Paulo 1d HH => 01
the hour comes twice, first: 2024-11-03T08:30 America/Los_Angeles 1h HH => 01
the hour comes twice, second: 2024-11-03T09:30 America/Los_Angeles 1h HH => 01
twice, east of Greenwich: 2024-10-27T01:00 Europe/Berlin 1h HH Z => 02 +0100
no bucket: 2024-01-15T10:01:02.345 UTC - HH:mm:ss.SSS SS SSSS => 10:01:02.345 34 3450
UTC: 2024-01-15T10:00 Z - Z ZZ ZZZ z => +0000 +00:00 UTC UTC
a fixed offset: 2024-01-15T10:00 +02:00 - HH Z ZZZ z => 12 +0200 +02:00 +02:00
buckets of 5 hours drift: 2024-01-15T10:00 UTC 5h dd HH => 15 07
other characters are text: 2024-01-15T10:00 UTC - yyyy_MM-dd/HH => 2024_01-15/10
quotes outside of text: 2024-01-15T10:00 UTC - ''yy'' => '24'
two and two quotes: 2024-01-15T10:00 UTC - yyyy'''' => 2024''
widths: 2024-01-15T10:00 UTC - yyy C CCC M => 2024 20 020 1
"""


@pytest.mark.parametrize(("given", "expected"), rows(PRINTED))
def test_a_pattern_prints_as_joda_prints_it(given: str, expected: str) -> None:
    found = re.fullmatch(r"(?:[^:]*: )?(\d{4}-\S+) (\S+) (?:(\d)([hd])|-) (.+)", given)
    assert found
    time, zone, count, unit, pattern = found.groups()
    epoch_ms = round(datetime.fromisoformat(time).replace(tzinfo=timezone.utc).timestamp() * 1000)
    bucket = int(count) * {"h": HOUR, "d": DAY}[unit] if count else None
    pattern = pattern.replace("HOURLY", HOURLY)
    assert compile_formatter(pattern, zone, "en", bucket, toward_zero=True)(epoch_ms) == expected


# As Confluent's partitioners have it only where this is asked for.
BEFORE_1970 = """
1969-12-31T23:59:59.999 UTC 1h HOURLY => year=1969/month=12/day=31/hour=23
1969-12-31T22:59:59.999 UTC 1h HOURLY => year=1969/month=12/day=31/hour=22
1955-07-01T10:30:00 UTC 1d YYYY-MM-dd => 1955-07-01
0001-01-01T12:00:00 UTC 1d YYYY-MM-dd => 0001-01-01
1955-07-01T03:00:00 America/Los_Angeles 1d YYYY-MM-dd => 1955-06-30
1969-12-28T10:00:00 UTC 7d YYYY-MM-dd EEE => 1969-12-25 Thu
1970-01-01T00:00:00 UTC 1d YYYY-MM-dd => 1970-01-01
1969-12-31T23:59:59.001 UTC - HH:mm:ss => 23:59:59
"""


@pytest.mark.parametrize(("given", "expected"), rows(BEFORE_1970))
def test_a_time_before_1970_is_in_the_bucket_that_it_falls_into(given: str, expected: str) -> None:
    time, zone, bucket, pattern = given.split(" ", 3)
    epoch_ms = round(datetime.fromisoformat(time).replace(tzinfo=timezone.utc).timestamp() * 1000)
    bucket_ms = {"1h": HOUR, "1d": DAY, "7d": 7 * DAY, "-": None}[bucket]
    assert compile_formatter(pattern.replace("HOURLY", HOURLY), zone, "en", bucket_ms)(epoch_ms) == expected


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("en", "January Jan Mon"),
        ("EN", "January Jan Mon"),
        ("en-US", "Jan Jan Mon"),
        ("fr-FR", "Jan Jan Mon"),
    ],
)
def test_names_are_english_and_short_without_a_bare_language(locale: str, expected: str) -> None:
    assert compile_formatter("MMMM MMM EEE", "UTC", locale)(MIDDAY) == expected  # J17


@pytest.mark.parametrize("pattern", ["MMM", "EEEE", "a", "G"])
def test_a_name_in_another_language_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="names are English only; write MM, or set locale to en"):
        compile_formatter(pattern, "UTC", "fr")
    assert compile_formatter("yyyy-MM", "UTC", "fr")(MIDDAY) == "2024-01"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("dt=YYYY", "'d' at character 1|'t' at character 2 means nothing; quote plain text, as in 't='"),
        ("year='YYYY'/month='MM'", "'r' at character 4 means nothing; quote plain text"),
        ("{year}", "'r' at character 5 means nothing"),
        ("zzzz", "'zzzz': long names of zones are not supported; write z, or ZZZ"),
        ("uuuu", "'uuuu' at character 1 means nothing"),
        ("yyyy-LL", "'LL' at character 6 means nothing"),
        ("'dt=YYYY", "the quote at character 1 is not closed"),
        ("YYYY-mm-DD", "m is the minute, and there is no hour; write M for the month"),
        ("yyyy/mm", "m is the minute"),
        ("YYYY-DD", "D is the day of the year; write dd"),
        ("YYYY-MM-D", "D is the day of the year; write dd"),
        ("YYYY-MM-DDD", "D is the day of the year; write dd"),
        ("YYYY-ww", "w is the week of a week year; write xxxx"),
        ("", "it does not print any part of a time"),
        ("'year'", "it does not print any part of a time"),
        ("yyyy\nMM", "a control character"),
    ],
)
def test_a_wrong_pattern_is_refused_with_the_remedy(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_pattern(pattern)


@pytest.mark.parametrize("pattern", ["yyyy/DDD", "yyyy D", "xxxx-'W'ww-e", "HH:mm", "mm", "YYYY-MM-dd'T'HH:mm"])
def test_unusual_patterns_are_compiled(pattern: str) -> None:
    assert compile_formatter(pattern)(MIDDAY)


@pytest.mark.parametrize("epoch_ms", [-(2**63), 2**63 - 1, -62_135_596_800_001, 253_402_300_800_000])
@pytest.mark.parametrize("bucket", [None, HOUR])
def test_a_moment_outside_of_the_calendar_has_no_date(epoch_ms: int, bucket: int | None) -> None:
    with pytest.raises(ValueError, match=f"timestamp {epoch_ms} has no date"):
        compile_formatter("yyyy", "UTC", "en", bucket)(epoch_ms)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_utc_agrees_with_python(epoch_ms: int) -> None:
    moment = datetime.fromtimestamp(epoch_ms // 1000, timezone.utc)
    assert compile_formatter("yyyy-MM-dd HH:mm:ss")(epoch_ms) == f"{moment.year:04d}{moment:-%m-%d %H:%M:%S}"


@given(st.integers(-2_000_000_000_000, 4_000_000_000_000), st.sampled_from([LA, "Africa/Monrovia", "Asia/Kolkata"]))
def test_a_cached_text_equals_a_new_one(epoch_ms: int, zone: str) -> None:
    coarse, exact = compile_formatter("yyyy-MM-dd HH", zone), compile_formatter("yyyy-MM-dd HH:mm:ss.SSS", zone)
    neighbour = epoch_ms + 59_999
    assert coarse(epoch_ms) == exact(epoch_ms)[:13]
    assert coarse(neighbour) == exact(neighbour)[:13]
