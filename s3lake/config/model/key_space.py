"""The keys that a sink can write: whether two sinks can share one, and which sink a key in the bucket can belong to.

Two layouts are compared by their fixed beginnings and ends, up to the first and the last piece that a record or a file
decides. Layouts that differ only in the middle count as layouts that can share a key.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

from s3lake.config.model import marker
from s3lake.records.encode.formats import FORMATS
from s3lake.records.layout.pieces import Extension, FixedText, Number, Piece, RoutedTopicElement, Topic

if TYPE_CHECKING:
    from s3lake.config.model.sink import Sink

_TOPIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MARK = re.compile("~[0-9a-f]{12}")
_ENDINGS = frozenset(format.extension(codec) for format in FORMATS.values() for codec in format.codecs)

_Layout = Sequence[Piece]


@dataclass(frozen=True)
class KeySpace:
    """The keys that a sink can give to objects of one topic.

    Attributes:
        prefixes: their beginnings; none if a layout begins with what records contain, because then any key of the
            bucket might be one.
        present: the expression of keys of data, sidecars and markers.
        former: the same expression with the endings of all formats.
        dead_letters: the prefix of dead letters.
        trials: the prefix of the keys with which the store is tried.
    """

    prefixes: tuple[str, ...]
    present: re.Pattern[str]
    former: re.Pattern[str]
    dead_letters: str
    trials: str

    @classmethod
    def from_sink(cls, sink: "Sink", topic: str) -> "KeySpace":
        """Return the key space of a topic of a sink."""
        layouts, prefixes = [_fill(layout, topic) for layout in _layouts(sink)], _prefixes(sink, topic)
        return cls(
            prefixes=select_outermost([*prefixes, _trials(sink)]) if prefixes else (),
            present=_compile(layouts, _endings(sink)),
            former=_compile(layouts, _ENDINGS),
            dead_letters=_dead_letters(sink, topic),
            trials=_trials(sink),
        )

    def contains(self, key: str) -> bool:
        """Return whether `key` can be one of them, with the mark of a commit or without."""
        return (
            key.startswith((self.dead_letters, self.trials)) or self.present.fullmatch(_MARK.sub("", key)) is not None
        )

    def contained_before(self, key: str) -> bool:
        """Return whether `key` can have been one of them when the sink wrote another format or codec."""
        return self.former.fullmatch(_MARK.sub("", key)) is not None


def key_prefixes(sink: "Sink") -> tuple[str, ...]:
    """Return the beginnings of the keys of all topics; none if a layout begins with what records contain."""
    of_topics = [_prefixes(sink, topic) for topic in sink.topics or (None,)]
    return tuple(sorted(set().union(*of_topics))) if all(of_topics) else ()


def select_outermost(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Return the prefixes that are not inside another one, in order."""
    kept: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return tuple(kept)


def can_share_key(first: "Sink", second: "Sink") -> bool:
    """Return whether two sinks of one bucket can give two objects the same key."""
    return any(_can_meet(first, a, second, b) for a, b in product(_layouts(first), _layouts(second)))


def _can_meet(first: "Sink", a: _Layout, second: "Sink", b: _Layout) -> bool:
    topics: list[str | None] = [sink.topics[0] if len(sink.topics) == 1 else None for sink in (first, second)]
    before = _before_topic(a)
    if before is not None and before == _before_topic(b):
        if not _share_topic(first, second):
            return False
        topics = ["topic", "topic"]  # keys of other topics differ
    for side, sink, layout, opposite in ((0, first, a, b), (1, second, b, a)):
        if topics[side] is None:
            topic = _find_topic(layout, _beginning(_fill(opposite, topics[1 - side]))[0])
            if topic is not None and not sink.reads(topic):
                return False
            topics[side] = topic
    return any(
        _can_begin_alike(left, right) and _can_begin_alike(_reverse(left), _reverse(right))
        for left in (_fill(a, topics[0], ending) for ending in _endings(first))
        for right in (_fill(b, topics[1], ending) for ending in _endings(second))
    )


def _share_topic(first: "Sink", second: "Sink") -> bool:
    if first.topics_regex is not None and second.topics_regex is not None:
        return True  # two expressions can always match one topic that does not exist yet
    # Tables of assets, which sinks without topics land, never share a key: all of theirs have the mark of a commit.
    return any(map(second.reads, first.topics)) or any(map(first.reads, second.topics))


def _layouts(sink: "Sink") -> list[_Layout]:
    """Return the layouts of all objects but dead letters, each with the prefix."""
    layouts = [pieces for pieces in (sink.layout.pieces, sink.layout.tombstone_pieces) if pieces is not None]
    if sink.renames_topics:  # the topic's name can become any text
        layouts = [
            tuple(RoutedTopicElement() if isinstance(piece, Topic) else piece for piece in pieces) for pieces in layouts
        ]
    return [(FixedText(sink.root), *pieces) for pieces in (*layouts, marker.pieces(sink)) if pieces]


def _endings(sink: "Sink") -> tuple[str, ...]:
    return (sink.extension, *sink.sidecars.endings)


def _prefixes(sink: "Sink", topic: str | None) -> tuple[str, ...]:
    starts = {_beginning(_fill(layout, topic))[0] for layout in _layouts(sink)}
    return () if "" in starts else (*sorted(starts), _dead_letters(sink, topic))


def _dead_letters(sink: "Sink", topic: str | None) -> str:
    return f"{sink.root}_dead_letters/{sink.name}/" + (f"{topic}/" if topic is not None else "")


def _trials(sink: "Sink") -> str:
    return f"{sink.root}.probe/"


def _fill(layout: _Layout, topic: str | None, ending: str | None = None) -> list[Piece]:
    """Return a layout with the texts of the topic and of the ending, if they are given."""
    pieces = [FixedText(topic) if isinstance(piece, Topic) and topic is not None else piece for piece in layout]
    return [FixedText(ending) if isinstance(piece, Extension) and ending is not None else piece for piece in pieces]


def _before_topic(layout: _Layout) -> str | None:
    """Return the text before the topic, or None if the topic cannot be read from the beginning of a key."""
    text = ""
    for piece, after in pairwise(layout):
        if isinstance(piece, Topic) and isinstance(after, FixedText) and after.text[:1] not in ("", *_TOPIC):
            return text
        if not isinstance(piece, FixedText):
            return None
        text += piece.text
    return None


def _find_topic(layout: _Layout, text: str) -> str | None:
    """Return the topic of a layout's keys that begin with `text`, or None if the text does not contain the whole."""
    before = _before_topic(layout)
    if before is None or not text.startswith(before):
        return None
    rest = text[len(before) :]
    topic = rest[: next((position for position, char in enumerate(rest) if char not in _TOPIC), len(rest))]
    return topic if len(topic) < len(rest) else None


def _can_begin_alike(left: _Layout, right: _Layout) -> bool:
    """Return whether keys of two layouts can begin alike: by their fixed text and the character after it."""
    (short, after), (long, after_long) = sorted(map(_beginning, (left, right)), key=lambda one: len(one[0]))
    following = frozenset(long[len(short)]) if len(long) > len(short) else after_long
    return long.startswith(short) and (after is None or following is None or not after.isdisjoint(following))


def _beginning(layout: _Layout) -> tuple[str, frozenset[str] | None]:
    """Return the fixed text that a layout begins with, and the characters that can follow it; None for any."""
    text = ""
    for piece in layout:
        if not isinstance(piece, FixedText):
            return text, _characters(piece)
        text += piece.text
    return text, None


def _characters(piece: Piece) -> frozenset[str] | None:
    """Return the characters of a piece that is never empty; None if it can be any text."""
    match piece:
        case Topic():
            return _TOPIC
        case Number():
            return frozenset(f"0123456789{piece.char}{'-' if piece.name.endswith('timestamp') else ''}")
    return None


def _reverse(layout: _Layout) -> list[Piece]:
    return [FixedText(piece.text[::-1]) if isinstance(piece, FixedText) else piece for piece in reversed(layout)]


def _compile(layouts: Iterable[_Layout], endings: Iterable[str]) -> re.Pattern[str]:
    """Return the expression of the keys of some layouts."""
    ending = f"(?:{'|'.join(map(re.escape, sorted(endings)))})"

    def format_piece(piece: Piece) -> str:
        match piece:
            case FixedText(text):
                return re.escape(text)
            case Extension():
                return ending
        characters = _characters(piece)
        return ".*" if characters is None else f"[{re.escape(''.join(sorted(characters)))}]+"

    return re.compile("|".join("".join(map(format_piece, layout)) for layout in layouts), re.DOTALL)
