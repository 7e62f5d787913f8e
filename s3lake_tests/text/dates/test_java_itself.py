"""What Java's own classes, and Joda-Time's, print by a pattern is what ours print, or ours refuse the pattern."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.land.spark import jars
from s3lake.text.dates import joda
from s3lake.text.dates.java import DatePattern
from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit import oracles

pytestmark = [pytest.mark.slow("an oracle: what Java itself prints, in a JVM"), pytest.mark.usefixtures("jvm")]

LETTERS = {"joda": "yMdaKhHkmsSEYZxwD", "simple": "yMLdDHhKkmsEaZSX", "java.time": "yuMLdDHhKkmsSEaXx"}
ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
    ]
)
MOMENTS = st.integers(-2_000_000_000_000, 4_000_000_000_000) | st.sampled_from(
    [0, -1, 1_711_846_799_999, 1_711_846_800_000, 1_577_836_799_999]
)
TEXTS = st.sampled_from(["", "-", "/", " ", "'T'", ":", ".", "''", "'year='"])


@st.composite
def patterns(draw: st.DrawFn, letters: str) -> str:
    """Letters in runs, and texts between them."""
    runs = st.tuples(st.sampled_from(letters), st.sampled_from([1, 1, 2, 2, 3, 4, 5]), TEXTS)
    return "".join(letter * count + text for letter, count, text in draw(st.lists(runs, min_size=1, max_size=6)))


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with oracles.run_jvm(jars.resolve("joda", ["joda-time:joda-time:2.12.7"])) as java:
        yield java


def theirs(java: Any, engine: str, pattern: str, zone: str, epoch_ms: int) -> str | None:
    """Return what Java prints, None if it refuses the pattern."""
    from py4j.protocol import Py4JJavaError

    english = java.java.util.Locale.ENGLISH
    try:
        if engine == "simple":
            by = java.java.text.SimpleDateFormat(pattern, english)
            by.setTimeZone(java.java.util.TimeZone.getTimeZone(zone))
            return str(by.format(java.java.util.Date(epoch_ms)))
        if engine == "joda":
            time = java.org.joda.time
            by = time.format.DateTimeFormat.forPattern(pattern).withLocale(english)
            return str(by.withZone(time.DateTimeZone.forID(zone)).print(epoch_ms))
        time = java.java.time
        by = time.format.DateTimeFormatter.ofPattern(pattern, english).withZone(time.ZoneId.of(zone))
        return str(by.format(time.Instant.ofEpochMilli(epoch_ms)))
    except Py4JJavaError:
        return None


def ours(engine: str, pattern: str, zone: str, epoch_ms: int) -> str | None:
    """The same by ours."""
    try:
        by = joda.compile_formatter(pattern, zone) if engine == "joda" else DatePattern(pattern, engine).formatter(zone)
        return by(epoch_ms)
    except ValueError:
        return None


@pytest.mark.parametrize("engine", LETTERS)
@settings(max_examples=150 * EXAMPLES)
@given(data=st.data(), zone=ZONES, epoch_ms=MOMENTS)
def test_a_time_is_printed_as_java_prints_it(
    java: Any, engine: str, data: st.DataObject, zone: str, epoch_ms: int
) -> None:
    pattern = data.draw(patterns(LETTERS[engine]))
    mine = ours(engine, pattern, zone, epoch_ms)
    if mine is not None:
        assert mine == theirs(java, engine, pattern, zone, epoch_ms)
