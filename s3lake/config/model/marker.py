"""The marker of an hour: the object that shows in the bucket that the hour's directory is complete."""

from functools import lru_cache

from s3lake import hours
from s3lake.config.model.sink_settings import SinkSettings
from s3lake.records.layout.pieces import FixedText, Hour, Piece, Topic
from s3lake.text.dates import joda

_NAMES = {"success": "_SUCCESS", "objects": "_objects.json"}
_YEAR, _YEARS = 2028, range(1971, 2070)  # a leap year, and years that differ in their last two digits


def pieces(sink: SinkSettings) -> tuple[Piece, ...]:
    """Return the pieces of the marker's key below the sink's prefix; none if the sink has no marker.

    Raises:
        ValueError: no directory holds one hour of one topic, and nothing else.
    """
    name = _NAMES.get(sink.sealed.marker)
    if name is None:
        return ()
    directory = _directory(sink.layout.pieces)
    why = _find_sharing(directory, sink)
    if why is not None:
        raise ValueError(
            f"{sink.sealed.marker!r} needs a directory for each hour, and {why}; let layout.template begin with topic "
            "and hour, for example {topic}/date={hour:yyyy-MM-dd}/hour={hour:HH}/, or set marker to none"
        )
    return (*directory, FixedText(name))


def build_marker_key(sink: SinkSettings, topic: str, hour: str) -> str | None:
    """Return the key of the marker of an hour, or None if the sink has no marker."""
    texts = [_spell(piece, topic, hours.start_ms(hour)) for piece in pieces(sink)]
    return sink.root + "".join(texts) if texts else None


def _spell(piece: Piece, topic: str, hour_ms: int) -> str:
    match piece:
        case FixedText(text):
            return text
        case Hour(pattern):
            return joda.compile_formatter(pattern)(hour_ms)
    return topic


def _directory(layout: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Return the directories that are the same for every file of a topic's hour, up to a slash."""
    directory: tuple[Piece, ...] = ()
    for position, piece in enumerate(layout):
        if isinstance(piece, FixedText) and "/" in piece.text:
            directory = (*layout[:position], FixedText(piece.text[: piece.text.rindex("/") + 1]))
        elif not isinstance(piece, FixedText | Topic | Hour):
            break
    return directory


def _find_sharing(directory: tuple[Piece, ...], sink: SinkSettings) -> str | None:
    """Return why the directory of an hour also holds other objects, or None if it does not."""
    patterns = tuple(piece.pattern for piece in directory if isinstance(piece, Hour))
    if not patterns:
        return "{hour:…} is not before all that differs between the files of an hour"
    if not _differ(patterns):
        texts = " and ".join(f"{{hour:{pattern}}}" for pattern in patterns)
        return f"other hours are in the same directory: {texts} lacks the year, the month, the day or the hour"
    if sink.renames_topics:
        return "transforms give the records of an hour several topics"
    if sink.has_several_topics and not any(isinstance(piece, Topic) for piece in directory):
        return "other topics of the sink are in the same directory"
    return None


@lru_cache(maxsize=64)
def _differ(patterns: tuple[str, ...]) -> bool:
    """Return whether any two hours are printed differently."""
    formatters = [joda.compile_formatter(pattern) for pattern in patterns]
    moments = [hours.start_ms(hour) for hour in hours.span(f"{_YEAR}-01-01T00", f"{_YEAR}-12-31T23")]
    moments += [hours.start_ms(f"{year}-01-01T00") for year in _YEARS if year != _YEAR]
    return len({tuple(print_hour(moment) for print_hour in formatters) for moment in moments}) == len(moments)
