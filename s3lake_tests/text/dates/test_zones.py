"""Zone ids that Joda takes, and the errors of the others."""

from datetime import datetime, timedelta

import pytest

from s3lake.text.dates.zones import format_zone_id, parse_zone

NOON = datetime(2024, 1, 15, 12)


@pytest.mark.parametrize(
    ("text", "hours", "expected"),
    [
        ("UTC", 0, "UTC"),
        ("GMT", 0, "GMT"),
        ("Z", 0, "UTC"),
        ("+02:00", 2, "+02:00"),
        ("+0200", 2, "+02:00"),
        ("+02", 2, "+02:00"),
        ("-05:30", -5.5, "-05:30"),
        ("+00:00", 0, "UTC"),
        ("GMT+2", 2, "+02:00"),
        ("EST", -5, "EST"),
        ("CST6CDT", -6, "CST6CDT"),
        ("CET", 1, "CET"),
        ("Europe/Kyiv", 2, "Europe/Kyiv"),
        ("America/Los_Angeles", -8, "America/Los_Angeles"),
        ("Asia/Kolkata", 5.5, "Asia/Kolkata"),
    ],
)
def test_an_id_is_an_iana_name_or_an_offset(text: str, hours: float, expected: str) -> None:
    offset = NOON.replace(tzinfo=parse_zone(text)).utcoffset()
    assert offset is not None
    assert offset == timedelta(seconds=round(hours * 3600))
    assert format_zone_id(text) == expected


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("PST", "write an IANA name"),
        ("LLL", "write an IANA name such as Europe/Berlin, or an offset such as \\+02:00"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("+25:00", "write an IANA name"),
        ("", "write an IANA name"),
        ("../zones", "write an IANA name"),
    ],
)
def test_an_invalid_zone_is_refused_with_the_remedy(text: str, fix: str) -> None:
    with pytest.raises(ValueError, match=f"is not a time zone: .*{fix}"):
        parse_zone(text)
