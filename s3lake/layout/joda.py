"""Joda-Time's patterns, as `path.format` of Confluent's partitioners has them: one table of letters, from ms to text.

Not Java's DateTimeFormatter (dates.py): here `Y` is the year of era, `x` the week year, and `u` and `L` are nothing.
Buckets count from local 1970-01-01T00:00 and are cut toward zero, as the connectors' own arithmetic does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from s3lake.layout import zones

_EPOCH = datetime(1970, 1, 1)
_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_MINUTES_FROM_MS = 100_000_000_000  # since 1973 every zone's offset is whole minutes
_DATES, _HOURS = frozenset("YyxMdDwe"), frozenset("HhKk")
_MEANT = {
    "u": "write yyyy",
    "L": "write M",
    "A": "write SSS",
    "n": "write SSS",
    "N": "write SSS",
    "X": "write ZZ",
    "V": "write ZZZ",
    "c": "write e",
    "Q": "a quarter cannot be printed, write MM",
    "q": "a quarter cannot be printed, write MM",
}
_TABLE = "G C x w e E D y Y M d a K h H k m s S z Z"


@dataclass(frozen=True)
class _Moment:
    """One instant in the zone of the pattern."""

    local: datetime
    zone_id: str
    locale: str


_Piece = Callable[[_Moment], str]


def formatter(
    pattern: str, zone: str = "UTC", locale: str = "en", bucket_ms: int | None = None
) -> Callable[[int], str]:
    """A function from epoch milliseconds to text; the beginning of its bucket where there are buckets.

    Args:
        pattern: Joda's letters, plain text in single quotes.
        zone: id of a time zone.
        locale: language of names; anything but a bare, known language prints short English names, as Java does.
        bucket_ms: how long a bucket lasts.

    Raises:
        ValueError: the pattern cannot be right, or the zone is none.

    The function raises ValueError for a moment outside of the years 1 to 9999.
    """
    pieces = parse(pattern)
    where, zone_id = zones.zone(zone), zones.zone_id(zone)

    @lru_cache(maxsize=65_536)
    def of_instant(epoch_ms: int) -> str:
        try:
            moment = _Moment(_local(epoch_ms, where, bucket_ms), zone_id, locale)
            return "".join(piece(moment) for piece in pieces)
        except OverflowError:
            raise ValueError(f"timestamp {epoch_ms} has no date") from None

    finest = 1 if _prints(pattern, "S") or (bucket_ms or 1000) % 1000 else 1000
    coarsest = (
        60_000 if finest == 1000 and not _prints(pattern, "s") and (bucket_ms or 60_000) % 60_000 == 0 else finest
    )

    def of(epoch_ms: int) -> str:
        if not _FIRST_MS <= epoch_ms <= _LAST_MS:
            raise ValueError(f"timestamp {epoch_ms} has no date")
        # Moments that print alike share an entry. Cut toward zero, as their bucket is.
        size = coarsest if epoch_ms >= _MINUTES_FROM_MS else finest
        return of_instant(epoch_ms - epoch_ms % size if epoch_ms >= 0 else epoch_ms)

    return of


def parse(pattern: str) -> list[_Piece]:
    """The pieces of a pattern.

    Raises:
        ValueError: it has a letter that Joda has not, a quote is not closed, or it cannot be what was meant.
    """
    pieces: list[_Piece] = []
    widths: dict[str, set[int]] = {}
    for position, text, quoted in _tokens(pattern):
        if quoted or not (text[0].isascii() and text[0].isalpha()):
            pieces.append(_constant(text))
        elif text[0] in _LETTERS:
            pieces.append(_LETTERS[text[0]](len(text)))
            widths.setdefault(text[0], set()).add(len(text))
        else:
            meant = _MEANT.get(text[0], f"quote plain text, as in '{text}='")
            raise ValueError(
                f"time pattern {pattern!r}: {text!r} at character {position + 1} means nothing; {meant}. "
                f"Letters are {_TABLE}"
            )
    if not widths:
        raise ValueError(f"time pattern {pattern!r}: it prints no part of a time; letters are {_TABLE}")
    _plausible(pattern, widths)
    return pieces


def _tokens(pattern: str) -> list[tuple[int, str, bool]]:
    """Runs of one letter, and texts: where each begins, what it is, whether it is no pattern."""
    tokens: list[tuple[int, str, bool]] = []
    position, opened = 0, -1
    while position < len(pattern):
        char = pattern[position]
        if not char.isprintable():
            raise ValueError(f"time pattern {pattern!r}: a control character cannot stand in a key")
        if pattern.startswith("''", position):
            tokens.append((position, "'", True))
            position += 2
        elif char == "'":
            opened = position if opened < 0 else -1
            position += 1
        else:
            end = position + 1
            while opened < 0 and char.isalpha() and pattern.startswith(char, end):
                end += 1
            tokens.append((position, pattern[position:end], opened >= 0))
            position = end
    if opened >= 0:
        raise ValueError(
            f"time pattern {pattern!r}: the quote at character {opened + 1} is not closed; write ' before and after "
            "plain text, and '' for a quote"
        )
    return tokens


def _prints(pattern: str, letter: str) -> bool:
    return any(text[0] == letter and not quoted for _, text, quoted in _tokens(pattern))


def _plausible(pattern: str, widths: dict[str, set[int]]) -> None:
    letters = widths.keys()

    def refused(why: str) -> ValueError:
        return ValueError(f"time pattern {pattern!r}: {why}")

    if "m" in letters and letters & _DATES and not letters & _HOURS:
        raise refused("m is the minute, and there is no hour; write M for the month")
    if "D" in letters and ("M" in letters or 2 in widths["D"]):
        raise refused("D is the day of the year; write dd for the day of the month, or DDD without a month")
    if "w" in letters and letters & {"Y", "y"} and "x" not in letters:
        raise refused("w is the week of a week year; write xxxx for its year")
    if "x" in letters and "M" in letters and not letters & {"Y", "y", "w", "e"}:
        raise refused("x is the year of a week; write yyyy beside a month")


def _local(epoch_ms: int, where: tzinfo, bucket_ms: int | None) -> datetime:
    try:
        local = (_UTC_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(where)
        if bucket_ms is None:
            return local
        since = (local.replace(tzinfo=None) - _EPOCH) // timedelta(milliseconds=1)
        bucket = abs(since) // bucket_ms * bucket_ms
        begin = (_EPOCH + timedelta(milliseconds=bucket if since >= 0 else -bucket)).replace(tzinfo=where)
    except OverflowError:
        raise ValueError(f"timestamp {epoch_ms} has no date") from None
    before, after = begin.utcoffset(), begin.replace(fold=1).utcoffset()
    if before is None or after is None or before == after:
        return begin
    if before < after:  # the clock jumps over it: the first hour that there is
        return begin.astimezone(timezone.utc).astimezone(where)
    return begin.replace(fold=1) if after >= timedelta(0) else begin  # of two, the one that Joda takes


def _constant(text: str) -> _Piece:
    return lambda _: text


def _number(of: Callable[[datetime], int]) -> Callable[[int], _Piece]:
    return lambda width: lambda moment: str(of(moment.local)).rjust(width, "0")


def _year(of: Callable[[datetime], int]) -> Callable[[int], _Piece]:
    def sized(width: int) -> _Piece:
        if width == 2:
            return lambda moment: f"{of(moment.local) % 100:02d}"
        return lambda moment: str(of(moment.local)).rjust(width, "0")

    return sized


def _fraction(width: int) -> _Piece:
    return lambda moment: f"{moment.local.microsecond // 1000:03d}".ljust(width, "0")[:width]


def _name(kind: str) -> Callable[[int], _Piece]:
    return lambda width: lambda moment: _text(kind, _POSITIONS[kind](moment.local), width >= 4, moment.locale)


def _month(width: int) -> _Piece:
    return _name("months")(width) if width >= 3 else _number(lambda moment: moment.month)(width)


def _zone_name(width: int) -> _Piece:
    def short(moment: _Moment) -> str:
        name = moment.local.tzname() or ""
        if isinstance(moment.local.tzinfo, ZoneInfo) and name.isalpha():
            return name
        return moment.zone_id if moment.local.utcoffset() == timedelta(0) else _offset(moment, ":")

    def long(moment: _Moment) -> str:
        if not isinstance(moment.local.tzinfo, ZoneInfo):
            return "Coordinated Universal Time" if moment.zone_id == "UTC" else moment.zone_id
        from babel.dates import get_timezone_name

        language = _language(moment.locale)
        return str(get_timezone_name(moment.local, "long", locale=language or "en"))

    return long if width >= 4 else short


def _zone_offset(width: int) -> _Piece:
    if width >= 3:
        return lambda moment: moment.zone_id
    return lambda moment: _offset(moment, ":" if width == 2 else "")


def _offset(moment: _Moment, between: str) -> str:
    offset = moment.local.utcoffset() or timedelta(0)
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02d}{between}{minutes % 60:02d}"


_LETTERS: dict[str, Callable[[int], _Piece]] = {
    "G": _name("eras"),
    "C": _number(lambda moment: moment.year // 100),
    "Y": _year(lambda moment: moment.year),
    "y": _year(lambda moment: moment.year),
    "x": _year(lambda moment: moment.isocalendar()[0]),
    "w": _number(lambda moment: moment.isocalendar()[1]),
    "e": _number(lambda moment: moment.isoweekday()),
    "E": _name("days"),
    "D": _number(lambda moment: moment.timetuple().tm_yday),
    "M": _month,
    "d": _number(lambda moment: moment.day),
    "a": _name("halves"),
    "K": _number(lambda moment: moment.hour % 12),
    "h": _number(lambda moment: moment.hour % 12 or 12),
    "H": _number(lambda moment: moment.hour),
    "k": _number(lambda moment: moment.hour or 24),
    "m": _number(lambda moment: moment.minute),
    "s": _number(lambda moment: moment.second),
    "S": _fraction,
    "z": _zone_name,
    "Z": _zone_offset,
}
"""By letter: from how often it is repeated to what it prints."""

_POSITIONS: dict[str, Callable[[datetime], int]] = {
    "months": lambda moment: moment.month - 1,
    "days": lambda moment: moment.weekday(),
    "halves": lambda moment: moment.hour // 12,
    "eras": lambda _: 0,
}
_ROOT = {
    "months": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "days": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "halves": ("AM", "PM"),
    "eras": ("AD",),
}


def _text(kind: str, position: int, full: bool, locale: str) -> str:
    language = _language(locale)
    return (_ROOT if language is None else _names(language, full))[kind][position]


def _language(locale: str) -> str | None:
    """The language that Java's `new Locale(locale)` has names of."""
    from babel import localedata

    language = locale.lower()
    return language if language.isalpha() and language != "root" and localedata.exists(language) else None


@lru_cache(maxsize=32)
def _names(language: str, full: bool) -> dict[str, tuple[str, ...]]:
    from babel import Locale

    of = Locale(language)
    width = "wide" if full else "abbreviated"
    halves = of.day_periods["format"]["abbreviated"]
    return {
        "months": tuple(str(of.months["format"][width][number]) for number in range(1, 13)),
        "days": tuple(str(of.days["format"][width][number]) for number in range(7)),
        "halves": (str(halves["am"]), str(halves["pm"])),
        "eras": (str(of.eras["abbreviated"][1]),),
    }
