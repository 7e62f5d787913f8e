"""Partitions of other time zones as hours in UTC: which hours a partition has, and which partitions an hour."""

from datetime import datetime

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._serdes import deserialize_value, serialize_value

import s3lake
from s3lake import hours

HOURS = dg.HourlyPartitionsDefinition("2026-03-01T00", fmt=hours.FORMAT, timezone="UTC")
NEW_YORK = dg.DailyPartitionsDefinition("2026-03-02", timezone="America/New_York")
KOLKATA = dg.DailyPartitionsDefinition("2026-03-02", timezone="Asia/Kolkata")
LORD_HOWE = dg.DailyPartitionsDefinition(
    "2026-03-02", timezone="Australia/Lord_Howe"
)  # its clock changes by 30 minutes
NOW = hours.parse_hour("2026-11-28T00")


def upstream(
    partitions: dg.PartitionsDefinition, *keys: str, now: datetime = NOW, partial: bool = False
) -> tuple[list[str], list[str]]:
    """Return the hours of partitions that exist, and the hours that do not."""
    mapping = s3lake.OverlappingHours(allow_nonexistent_upstream_partitions=partial)
    with partition_loading_context(now):
        subset = partitions.subset_with_partition_keys(keys)
    result = mapping.get_upstream_mapped_partitions_result_for_partitions(subset, partitions, HOURS, current_time=now)
    missing = result.required_but_nonexistent_subset.get_partition_keys()
    return sorted(result.partitions_subset.get_partition_keys()), sorted(missing)


def downstream(partitions: dg.PartitionsDefinition, *keys: str, now: datetime = NOW) -> list[str]:
    """The partitions that hours have a part in."""
    subset = s3lake.OverlappingHours().get_downstream_partitions_for_partitions(
        HOURS.subset_with_partition_keys(keys), HOURS, partitions, current_time=now
    )
    return sorted(subset.get_partition_keys())


@pytest.mark.parametrize(
    ("partitions", "key", "first", "last"),
    [
        pytest.param(NEW_YORK, "2026-11-27", "2026-11-27T05", "2026-11-28T04", id="a day of 24 hours"),
        pytest.param(NEW_YORK, "2026-03-08", "2026-03-08T05", "2026-03-09T03", id="a day of 23 hours"),
        pytest.param(NEW_YORK, "2026-11-01", "2026-11-01T04", "2026-11-02T04", id="a day of 25 hours"),
        pytest.param(KOLKATA, "2026-11-27", "2026-11-26T18", "2026-11-27T18", id="half hours at both ends"),
        pytest.param(LORD_HOWE, "2026-10-04", "2026-10-03T13", "2026-10-04T12", id="a day of 23 and a half hours"),
        pytest.param(
            dg.WeeklyPartitionsDefinition("2026-03-02", timezone="Europe/Berlin", day_offset=1),
            "2026-10-19",
            "2026-10-18T22",
            "2026-10-25T22",
            id="a week in which the clock changes",
        ),
        pytest.param(
            dg.MonthlyPartitionsDefinition("2026-03-02", timezone="America/New_York"),
            "2026-11-01",
            "2026-11-01T04",
            "2026-12-01T04",
            id="a month in which the clock changes",
        ),
        pytest.param(
            dg.HourlyPartitionsDefinition("2026-03-02-00:00", timezone="Asia/Kolkata"),
            "2026-11-27-06:00",
            "2026-11-27T00",
            "2026-11-27T01",
            id="an hour that begins at half past",
        ),
        pytest.param(
            dg.TimeWindowPartitionsDefinition(
                "2026-03-02T00:00", "%Y-%m-%dT%H:%M", cron_schedule="*/15 * * * *", timezone="UTC"
            ),
            "2026-11-27T06:15",
            "2026-11-27T06",
            "2026-11-27T06",
            id="a quarter of an hour",
        ),
        pytest.param(
            dg.TimeWindowPartitionsDefinition(
                "2026-03-02", "%Y-%m-%d", cron_schedule="0 0 * * 1-5", timezone="America/New_York"
            ),
            "2026-11-20",
            "2026-11-20T05",
            "2026-11-23T04",
            id="a working day, which ends with the next one",
        ),
    ],
)
def test_a_partition_has_all_hours_that_overlap_it(
    partitions: dg.PartitionsDefinition, key: str, first: str, last: str
) -> None:
    # A subset tells its keys lazily, so that both are asked with one clock.
    with partition_loading_context(hours.parse_hour("2026-12-02T00")):
        there, missing = upstream(partitions, key, now=hours.parse_hour("2026-12-02T00"))
    assert (there, missing) == (list(hours.span(first, last)), [])


def test_hours_before_the_sinks_start_do_not_exist() -> None:
    early = dg.DailyPartitionsDefinition("2026-02-28", timezone="America/New_York")
    start = "2026-03-01T00"  # 19:00 of 28 February in New York
    there, missing = upstream(early, "2026-02-28")
    assert there == list(hours.span(start, "2026-03-01T04"))
    assert missing == list(hours.span("2026-02-28T05", "2026-02-28T23"))
    assert upstream(early, "2026-02-28", partial=True) == (there, [])


def test_days_that_touch_are_joined() -> None:
    there, _ = upstream(KOLKATA, "2026-11-25", "2026-11-26")
    assert there == list(hours.span("2026-11-24T18", "2026-11-26T18"))


def test_all_partitions_have_all_their_hours() -> None:
    mapping = s3lake.OverlappingHours()
    now = hours.parse_hour("2026-03-04T06")
    with partition_loading_context(now):
        everything = NEW_YORK.subset_with_all_partitions()
    result = mapping.get_upstream_mapped_partitions_result_for_partitions(everything, NEW_YORK, HOURS, current_time=now)
    there = sorted(result.partitions_subset.get_partition_keys())
    assert there == list(hours.span("2026-03-02T05", "2026-03-04T04"))


@pytest.mark.parametrize(
    ("partitions", "hour", "expected"),
    [
        (NEW_YORK, "2026-11-27T04", ["2026-11-26"]),
        (NEW_YORK, "2026-11-27T05", []),  # that day is not over at NOW
        (NEW_YORK, "2026-11-01T03", ["2026-10-31"]),
        (NEW_YORK, "2026-11-02T04", ["2026-11-01"]),
        (KOLKATA, "2026-11-25T18", ["2026-11-25", "2026-11-26"]),
        (KOLKATA, "2026-11-25T19", ["2026-11-26"]),
        (NEW_YORK, "2026-03-01T12", []),  # before its first day
    ],
)
def test_an_hour_belongs_to_every_partition_that_it_overlaps(
    partitions: dg.PartitionsDefinition, hour: str, expected: list[str]
) -> None:
    assert downstream(partitions, hour) == expected


def test_both_directions_agree_for_every_hour_of_a_year() -> None:
    for partitions in (NEW_YORK, KOLKATA, LORD_HOWE):
        by_hour: dict[str, list[str]] = {}
        for day in partitions.get_partition_keys(current_time=hours.parse_hour("2026-11-20T00")):
            for hour in upstream(partitions, day)[0]:
                by_hour.setdefault(hour, []).append(day)
        chosen = sorted(by_hour)[::29]
        assert {hour: downstream(partitions, hour) for hour in chosen} == {hour: by_hour[hour] for hour in chosen}


def test_a_day_that_ends_within_an_hour_waits_for_the_end_of_that_hour() -> None:
    half_past, later = hours.parse_hour("2026-11-25T18").replace(minute=40), hours.parse_hour("2026-11-25T19")
    assert downstream(KOLKATA, "2026-11-25T17", now=half_past) == []
    assert downstream(KOLKATA, "2026-11-25T17", now=later) == ["2026-11-25"]


@pytest.mark.parametrize(
    ("up", "down", "message"),
    [
        (HOURS, dg.StaticPartitionsDefinition(["eu"]), "give it hourly, daily, weekly or monthly partitions"),
        (HOURS, None, "this one has none"),
        (NEW_YORK, NEW_YORK, "maps to hours in UTC"),
        (dg.HourlyPartitionsDefinition("2026-03-01-00:00", timezone="Asia/Tokyo"), NEW_YORK, "maps to hours in UTC"),
    ],
)
def test_partitions_that_are_not_of_time_are_refused(
    up: dg.PartitionsDefinition, down: dg.PartitionsDefinition | None, message: str
) -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError, match=message):
        s3lake.OverlappingHours().validate_partition_mapping(up, down)


def test_the_daemon_which_does_not_know_the_mapping_takes_it_for_all_hours() -> None:
    sent = serialize_value(s3lake.OverlappingHours(allow_nonexistent_upstream_partitions=True))
    assert deserialize_value(sent, dg.AllPartitionMapping) == dg.AllPartitionMapping()
