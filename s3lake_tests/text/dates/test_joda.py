"""Joda's patterns: the executed vectors of the reference (confluent_aiven_iggy.md 1.4 and 1.5), and what is refused."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.text.dates.joda import compile_formatter, parse_pattern

HOURLY = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
HOUR, DAY = 3_600_000, 86_400_000
LA = "America/Los_Angeles"
MIDDAY = 1_705_312_800_000  # 2024-01-15T10:00Z


@pytest.mark.parametrize(
    ("epoch_ms", "zone", "bucket", "pattern", "expected"),
    [
        pytest.param(-1, "UTC", HOUR, HOURLY, "year=1970/month=01/day=01/hour=00", id="J1, cut toward zero"),
        pytest.param(-3_600_001, "UTC", HOUR, HOURLY, "year=1969/month=12/day=31/hour=23", id="J2"),
        pytest.param(2_147_483_647, LA, HOUR, HOURLY, "year=1970/month=01/day=25/hour=12", id="J3"),
        pytest.param(1_609_459_200_000, "UTC", DAY, "YYYY yyyy xxxx ww e D", "2021 2021 2020 53 5 1", id="J5"),
        pytest.param(MIDDAY, "UTC", 7 * DAY, "YYYY-MM-dd EEE", "2024-01-11 Thu", id="J7, weeks begin on Thursdays"),
        pytest.param(MIDDAY, "UTC", DAY, HOURLY, "year=2024/month=01/day=15/hour=00", id="J9"),
        pytest.param(
            1_710_066_600_000,
            LA,
            2 * HOUR,
            HOURLY,
            "year=2024/month=03/day=10/hour=03",
            id="J10, hour 02 is jumped over",
        ),
        pytest.param(1_710_064_799_000, LA, HOUR, "'hour'=HH", "hour=01", id="J11, before the jump"),
        pytest.param(1_710_064_800_000, LA, HOUR, "'hour'=HH", "hour=03", id="J11, after the jump"),
        pytest.param(1_730_626_200_000, LA, 2 * HOUR, "'hour'=HH", "hour=00", id="J13"),
        pytest.param(1_705_315_200_000, "Asia/Kolkata", HOUR, "'hour'=HH", "hour=16", id="J14"),
        pytest.param(
            1_712_416_200_000, "Australia/Lord_Howe", HOUR, HOURLY, "year=2024/month=04/day=07/hour=01", id="J15"
        ),
        pytest.param(MIDDAY, "UTC", DAY, "'o''clock'=HH", "o'clock=00", id="J18"),
        pytest.param(
            MIDDAY,
            LA,
            DAY,
            "YY yy xx Y M d k K h a z Z ZZ ZZZ G C",
            "24 24 24 2024 1 15 24 0 12 AM PST -0800 -08:00 America/Los_Angeles AD 20",
            id="J19",
        ),
        pytest.param(
            1_735_603_200_000, "UTC", HOUR, HOURLY, "year=2024/month=12/day=31/hour=00", id="C44, no week year"
        ),
        pytest.param(
            1_541_300_400_000, "America/Sao_Paulo", DAY, HOURLY, "year=2018/month=11/day=04/hour=01", id="gap"
        ),
        pytest.param(1_541_341_800_000, "America/Sao_Paulo", DAY, "HH", "01", id="a gap at midnight, daily"),
        pytest.param(1_730_622_600_000, LA, HOUR, "HH", "01", id="the hour comes twice, first"),
        pytest.param(1_730_626_200_000, LA, HOUR, "HH", "01", id="the hour comes twice, second"),
        pytest.param(1_729_990_800_000, "Europe/Berlin", HOUR, "HH Z", "02 +0100", id="twice, east of Greenwich"),
        pytest.param(MIDDAY + 62_345, "UTC", None, "HH:mm:ss.SSS SS SSSS", "10:01:02.345 34 3450", id="no bucket"),
        pytest.param(MIDDAY, "Z", None, "Z ZZ ZZZ z", "+0000 +00:00 UTC UTC", id="UTC"),
        pytest.param(MIDDAY, "+02:00", None, "HH Z ZZZ z", "12 +0200 +02:00 +02:00", id="a fixed offset"),
        pytest.param(MIDDAY, "UTC", 5 * HOUR, "dd HH", "15 07", id="buckets of 5 hours drift"),
        pytest.param(MIDDAY, "UTC", None, "yyyy_MM-dd/HH", "2024_01-15/10", id="other characters are text"),
        pytest.param(MIDDAY, "UTC", None, "''yy''", "'24'", id="quotes outside of text"),
        pytest.param(MIDDAY, "UTC", None, "yyyy''''", "2024''", id="two and two quotes"),
        pytest.param(MIDDAY, "UTC", None, "yyy C CCC M", "2024 20 020 1", id="widths"),
    ],
)
def test_a_pattern_prints_as_joda_prints_it(
    epoch_ms: int, zone: str, bucket: int | None, pattern: str, expected: str
) -> None:
    assert compile_formatter(pattern, zone, "en", bucket)(epoch_ms) == expected


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
def test_a_pattern_that_cannot_be_right_is_refused_with_the_fix(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_pattern(pattern)


@pytest.mark.parametrize("pattern", ["yyyy/DDD", "yyyy D", "xxxx-'W'ww-e", "HH:mm", "mm", "YYYY-MM-dd'T'HH:mm"])
def test_unusual_patterns_that_can_be_right_are_fine(pattern: str) -> None:
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
