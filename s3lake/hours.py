"""Hours: the partitions of every sink, always UTC, always whole.

An hour's key is `%Y-%m-%dT%H`. Dagster's own default has a colon in it, which Spark's path glob refuses.
This is the only module that does dates of partitions; everything else passes keys and epoch milliseconds.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone

FORMAT = "%Y-%m-%dT%H"
HOUR_MS = 3_600_000


def parse(key: str) -> datetime:
    """The start of the hour `key` as an aware UTC datetime.

    Raises:
        ValueError: `key` is not of the form 2026-11-20T05.
    """
    try:
        hour = datetime.strptime(key, FORMAT).replace(tzinfo=timezone.utc)
    except (ValueError, TypeError):
        hour = None
    if hour is None or hour.strftime(FORMAT) != key:
        raise ValueError(f"{key!r} is no hour: write it as YYYY-MM-DDTHH in UTC, for example 2026-11-20T05")
    return hour


def key(moment: datetime) -> str:
    """The key of the hour that holds `moment` (aware)."""
    return moment.astimezone(timezone.utc).strftime(FORMAT)


def key_of_ms(epoch_ms: int) -> str:
    """The key of the hour that holds `epoch_ms` (milliseconds since the epoch)."""
    return key(datetime.fromtimestamp(epoch_ms // 1000, timezone.utc))


def start_ms(hour: str) -> int:
    """First millisecond of the hour, since the epoch."""
    return int(parse(hour).timestamp()) * 1000


def end_ms(hour: str) -> int:
    """First millisecond after the hour, since the epoch."""
    return start_ms(hour) + HOUR_MS


def shift(hour: str, by: int) -> str:
    """The hour `by` hours later (earlier when negative)."""
    return key(parse(hour) + timedelta(hours=by))


def span(first: str, last: str) -> Iterator[str]:
    """Every hour from `first` to `last`, both included."""
    moment, stop = parse(first), parse(last)
    while moment <= stop:
        yield key(moment)
        moment += timedelta(hours=1)


def ranges(hours: Iterable[str]) -> list[tuple[str, str]]:
    """Hours as the fewest inclusive ranges, in order: how the index writes them down."""
    found: list[tuple[str, str]] = []
    for hour in sorted(set(hours)):
        if found and shift(found[-1][1], 1) == hour:
            found[-1] = (found[-1][0], hour)
        else:
            found.append((hour, hour))
    return found


def in_ranges(hour: str, among: Iterable[tuple[str, str]]) -> bool:
    """Whether `hour` lies in one of the inclusive ranges (keys sort as hours do)."""
    return any(first <= hour <= last for first, last in among)


def expand(among: Iterable[tuple[str, str]]) -> list[str]:
    """Every hour of the ranges, in order."""
    return [hour for first, last in among for hour in span(first, last)]
