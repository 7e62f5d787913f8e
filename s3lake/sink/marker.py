"""The marker of an hour: the object that says in the bucket that the hour's directory is whole."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.layout.pieces import Hour, Piece, Text, Topic
from s3lake.text.dates import joda

if TYPE_CHECKING:
    from s3lake.sink import Sink

NAMES = {"success": "_SUCCESS", "objects": "_objects.json"}
_YEAR, _YEARS = 2028, range(1971, 2070)  # a leap year, and those that two digits tell apart


def pieces(sink: "Sink") -> tuple[Piece, ...]:
    """The key of the marker of `sink` below its prefix; empty where it has none.

    Raises:
        ValueError: no directory holds one hour of one topic, and nothing else.
    """
    name = NAMES.get(sink.sealed.marker)
    if name is None:
        return ()
    directory = _directory(sink.layout.pieces)
    why = _shared(directory, sink)
    if why is not None:
        raise ValueError(
            f"{sink.sealed.marker!r} needs a directory for each hour, and {why}; let layout.template begin with topic "
            "and hour, for example {topic}/date={hour:yyyy-MM-dd}/hour={hour:HH}/, or set marker to none"
        )
    return (*directory, Text(name))


def key(sink: "Sink", topic: str, hour: str) -> str | None:
    """The key of the marker of an hour; None where the sink has none."""
    pieces_of_key = pieces(sink)
    return (
        sink.root + "".join(_spelled(one, topic, hours.start_ms(hour)) for one in pieces_of_key)
        if pieces_of_key
        else None
    )


def _spelled(piece: Piece, topic: str, hour_ms: int) -> str:
    match piece:
        case Text(text):
            return text
        case Hour(pattern):
            return joda.formatter(pattern)(hour_ms)
    return topic


def _directory(whole: Sequence[Piece]) -> tuple[Piece, ...]:
    """The directories that are the same for every file of a topic's hour, up to a slash."""
    pieces_of_key: list[Piece] = []
    upto = 0
    for piece in whole:
        if not isinstance(piece, Text | Topic | Hour):
            break
        text = piece.text if isinstance(piece, Text) else ""
        if "/" in text:
            upto = len(pieces_of_key) + 1
            last = Text(text[: text.rindex("/") + 1])
        pieces_of_key.append(piece)
    return (*pieces_of_key[: upto - 1], last) if upto else ()


def _shared(directory: Sequence[Piece], sink: "Sink") -> str | None:
    """Who else has objects there."""
    printed = [one for one in directory if isinstance(one, Hour)]
    if not printed:
        return "{hour:…} does not stand before all that differs between the files of an hour"
    if not _apart(tuple(one.pattern for one in printed)):
        spelled = " and ".join(f"{{hour:{one.pattern}}}" for one in printed)
        return f"other hours are in the same directory: {spelled} lacks the year, the month, the day or the hour"
    if sink.routes:
        return "transforms give the records of an hour several topics"
    several = len(sink.topics) > 1 or sink.topics_regex is not None
    if several and not any(isinstance(one, Topic) for one in directory):
        return "other topics of the sink are in the same directory"
    return None


@lru_cache(maxsize=64)
def _apart(patterns: tuple[str, ...]) -> bool:
    """Whether no two hours print alike."""
    printed = [joda.formatter(pattern) for pattern in patterns]
    moments = [hours.start_ms(hour) for hour in hours.span(f"{_YEAR}-01-01T00", f"{_YEAR}-12-31T23")]
    moments += [hours.start_ms(f"{year}-01-01T00") for year in _YEARS if year != _YEAR]
    return len({tuple(of(moment) for of in printed) for moment in moments}) == len(moments)
