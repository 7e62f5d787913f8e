"""Hours: the partitions of every sink, always UTC, always whole.

An hour's key is `%Y-%m-%dT%H`. Dagster's own default has a colon in it, which Spark's path glob refuses.
This is the only module that does dates of partitions; everything else passes keys and epoch milliseconds.

Many hours are ranges: inclusive pairs of keys, in order, none touching another. A topic's whole history is one pair or
a few, and is asked by bisection (keys sort as hours do), never written out.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timezone
from itertools import chain, islice
from operator import itemgetter

FORMAT = "%Y-%m-%dT%H"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_EPOCH = date(1970, 1, 1).toordinal()
LAST_MS = (date.max.toordinal() + 1 - _EPOCH) * DAY_MS - 1
"""The last millisecond that is in an hour: keys have years of four digits."""
_first, _last = itemgetter(0), itemgetter(1)

Range = tuple[str, str]
"""First and last hour, both included."""


def now_ms() -> int:
    return int(time.time() * 1000)


def parse_hour(key: str) -> datetime:
    """Return the start of the hour `key` as an aware UTC datetime.

    Raises:
        ValueError: `key` is not of the form 2026-11-20T05.
    """
    return datetime.fromtimestamp(start_ms(key) // 1000, timezone.utc)


def key(moment: datetime) -> str:
    """Return the key of the hour that holds `moment` (aware)."""
    return key_of_ms(int(moment.timestamp() // 1) * 1000)


def key_of_ms(epoch_ms: int) -> str:
    """Return the key of the hour that holds `epoch_ms` (milliseconds since the epoch)."""
    return _key(epoch_ms // HOUR_MS)


def start_ms(hour: str) -> int:
    """Return the first millisecond of the hour, since the epoch."""
    return _number(hour) * HOUR_MS


def end_ms(hour: str) -> int:
    """Return the first millisecond after the hour, since the epoch."""
    return start_ms(hour) + HOUR_MS


def shift(hour: str, by: int) -> str:
    """Return the hour `by` hours later (earlier if negative)."""
    return _key(_number(hour) + by)


def require_range(first: str | None, last: str | None) -> None:
    """Check the ends that a user gives: texts are compared, so a day would select hours without notice.

    An empty text is not an hour: it is a variable that is not set, and would select all hours.

    Raises:
        ValueError: one of them is not an hour, or the first is later than the last.
    """
    for hour in (first, last):
        if hour is not None:
            parse_hour(hour)
    if first and last and first > last:
        raise ValueError(f"{first} is later than {last}")


def span(first: str, last: str) -> Iterator[str]:
    """Return every hour from `first` to `last`, both included."""
    return map(_key, range(_number(first), _number(last) + 1))


def count(among: Iterable[Range]) -> int:
    """Count the hours of the ranges."""
    return sum(_number(last) - _number(first) + 1 for first, last in among)


def ranges(hours: Iterable[str]) -> list[Range]:
    """Return hours as the fewest ranges, as the index stores them."""
    return merge_ranges([(hour, hour) for hour in hours])


def merge_ranges(among: Iterable[Range]) -> list[Range]:
    """Merge ranges, which may overlap, into the fewest."""
    joined: list[Range] = []
    for first, last in sorted(among):
        if joined and _number(first) <= _number(joined[-1][1]) + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def without(among: Iterable[Range], others: Sequence[Range]) -> list[Range]:
    """Return the hours of `among` that are not in `others`, as ranges."""
    rest: list[Range] = []
    for first, last in among:
        for begin, end in others[bisect_left(others, first, key=_last) :]:
            if begin > last:
                break
            if begin > first:
                rest.append((first, shift(begin, -1)))
            first = shift(end, 1)
        if first <= last:
            rest.append((first, last))
    return rest


def clip_ranges(first: str, last: str, among: Sequence[Range]) -> list[Range]:
    """Return the parts of the ranges from `first` to `last`, both included."""
    inside = among[bisect_left(among, first, key=_last) : bisect_right(among, last, key=_first)]
    return [(max(first, begin), min(last, end)) for begin, end in inside]


def in_ranges(hour: str, among: Sequence[Range]) -> bool:
    """Return whether `hour` is in one of the ranges."""
    at = bisect_left(among, hour, key=_last)
    return at < len(among) and among[at][0] <= hour


def is_within(hour: str, first: str | None, last: str | None) -> bool:
    """Return whether an hour is in a range, which is open at an end that is None."""
    return (first or hour) <= hour <= (last or hour)


def before(hour: str, among: Sequence[Range]) -> str | None:
    """Return the greatest hour of the ranges that is earlier than `hour`."""
    at = bisect_left(among, hour, key=_first)
    return min(among[at - 1][1], shift(hour, -1)) if at else None


def after(hour: str, among: Sequence[Range]) -> str | None:
    """Return the smallest hour of the ranges that is later than `hour`."""
    at = bisect_right(among, hour, key=_last)
    return max(among[at][0], shift(hour, 1)) if at < len(among) else None


def latest(among: Sequence[Range], most: int) -> list[str]:
    """Return the last `most` hours of the ranges, in order."""
    backwards = (range(_number(last), _number(first) - 1, -1) for first, last in reversed(among))
    return [_key(number) for number in islice(chain.from_iterable(backwards), most)][::-1]


def earliest(among: Iterable[Range], most: int | None) -> list[str]:
    """Return the first `most` hours of the ranges, in order; None for all."""
    return list(islice(chain.from_iterable(span(first, last) for first, last in among), most))


def expand(among: Iterable[Range]) -> list[str]:
    """Return every hour of the ranges, in order."""
    return list(chain.from_iterable(span(first, last) for first, last in among))


def _number(hour: str) -> int:
    """Return the hours since the epoch."""
    try:
        number = (date.fromisoformat(hour[:10]).toordinal() - _EPOCH) * 24 + int(hour[11:])
        is_key = _key(number) == hour
    except (ValueError, TypeError, OverflowError):
        is_key = False
    if not is_key:
        raise ValueError(f"{hour!r} is not an hour: write it as YYYY-MM-DDTHH in UTC, for example 2026-11-20T05")
    return number


def _key(number: int) -> str:
    return f"{date.fromordinal(number // 24 + _EPOCH).isoformat()}T{number % 24:02}"
