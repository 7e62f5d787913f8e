"""Which keys a sink can give: whether two sinks can give two objects one, and whose a key in the bucket may be.

Layouts become patterns: a number is one or more of its characters, an element is any text. What that cannot exclude
counts as possible.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from s3lake.encode.formats import FORMATS
from s3lake.layout.pieces import Extension, Number, Piece, Routed, Text, Topic
from s3lake.sink import marker

if TYPE_CHECKING:
    from s3lake.sink import Sink

_TOPIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_DIGITS = "0123456789"
_ANY = "\0"
_MARK = re.compile("~[0-9a-f]{12}")
_ENDINGS = frozenset(format.extension(codec) for format in FORMATS.values() for codec in format.codecs)
_MOST_PAIRS = 1000  # of topics; beyond it a topic counts as any text that can be one


@dataclass(frozen=True)
class _Step:
    """Characters of a pattern: one of them, or any number of them; None for every character."""

    chars: frozenset[str] | None
    many: bool = False


_Pattern = tuple[_Step, ...]
_Layout = tuple[tuple[Piece, ...], str]


@dataclass(frozen=True)
class Keys:
    """Keys that a sink can give to objects of one topic.

    Attributes:
        begins: what they begin with; none where a layout has nothing before what records say, for then every key of
            the bucket might be one.
        former: patterns of keys with the endings of all formats: the sink may have had another one.
    """

    begins: tuple[str, ...]
    patterns: tuple[_Pattern, ...]
    former: tuple[_Pattern, ...]
    dead_letters: str

    @classmethod
    def of(cls, sink: "Sink", topic: str) -> "Keys":
        return cls(
            begins=_begins(sink, topic),
            patterns=tuple(tuple(_steps(*layout, topic)) for layout in _layouts(sink)),
            former=tuple(
                tuple(_steps(pieces, ending, topic)) for pieces, _ in _layouts(sink) for ending in sorted(_ENDINGS)
            ),
            dead_letters=_dead_letters(sink, topic),
        )

    def have(self, key: str) -> bool:
        """Whether `key` can be one of them, with a commit's mark or without."""
        return key.startswith(self.dead_letters) or _is_one(key, self.patterns)

    def had(self, key: str) -> bool:
        """Whether `key` can have been one of them when the sink wrote another format or codec."""
        return _is_one(key, self.former)


def _is_one(key: str, patterns: tuple[_Pattern, ...]) -> bool:
    plain = tuple(_plain(_MARK.sub("", key)))
    return any(_meet(pattern, plain) for pattern in patterns)


def begins(sink: "Sink") -> tuple[str, ...]:
    """What the keys of all topics begin with; none where a layout has nothing before what records say."""
    of_topics = [_begins(sink, topic) for topic in sink.topics or (None,)]
    return tuple(sorted(set().union(*of_topics))) if all(of_topics) else ()


def _begins(sink: "Sink", topic: str | None) -> tuple[str, ...]:
    """Those of one topic, or of any."""
    found = {_begin(pieces, topic) for pieces, _ in _layouts(sink)}
    return () if "" in found else (*sorted(found), _dead_letters(sink, topic))


def _begin(pieces: tuple[Piece, ...], topic: str | None) -> str:
    begin = ""
    for piece in pieces:
        if not isinstance(piece, Text | Topic) or (isinstance(piece, Topic) and topic is None):
            break
        begin += piece.text if isinstance(piece, Text) else topic or ""
    return begin


def _dead_letters(sink: "Sink", topic: str | None) -> str:
    return f"{sink.root}_dead_letters/{sink.name}/" + (f"{topic}/" if topic is not None else "")


def may_collide(first_sink: "Sink", second_sink: "Sink") -> bool:
    """Whether two sinks of one bucket can give two objects the same key."""
    layouts = product(_layouts(first_sink), _layouts(second_sink))
    return any(_meet_for_topics(first_sink, a, second_sink, b) for a, b in layouts)


def _layouts(sink: "Sink") -> list[_Layout]:
    """The ways in which `sink` makes keys: pieces, and what stands for the extension."""
    every = [pieces for pieces in (sink.layout.pieces, sink.layout.tombstone_pieces) if pieces is not None]
    if sink.routes:  # the topic's name can become any text
        every = [tuple(Routed() if isinstance(one, Topic) else one for one in pieces) for pieces in every]
    endings = (sink.extension, *sink.sidecars.endings)
    found = [((Text(sink.root), *pieces), ending) for pieces, ending in product(every, endings)]
    marked = marker.pieces(sink)
    return [*found, ((Text(sink.root), *marked), "")] if marked else found


def _meet_for_topics(one: "Sink", a: _Layout, other: "Sink", b: _Layout) -> bool:
    pairs = list(product(one.topics or (None,), other.topics or (None,)))
    if not _places_of_topic(a[0]).isdisjoint(_places_of_topic(b[0])):
        shared = {first or second for first, second in pairs if _can_be_one(one, first, other, second)}
        pairs = [(topic, topic) for topic in shared]
    elif len(pairs) > _MOST_PAIRS:
        pairs = [(None, None)]
    return any(_meet(tuple(_steps(*a, first)), tuple(_steps(*b, second))) for first, second in pairs)


def _places_of_topic(pieces: tuple[Piece, ...]) -> set[tuple[str, int | str]]:
    """Where the topic can be read off a key, whatever else is in it: keys that agree in a place have one topic."""
    places: set[tuple[str, int | str]] = set()
    for position, piece in enumerate(pieces):
        if isinstance(piece, Topic):
            before, after = "".join(map(_shape, pieces[:position])), "".join(map(_shape, pieces[position + 1 :]))
            whole = (before[-1:] or "/") == "/" == after[:1]
            if whole and _ANY not in before:
                places.add(("step from the left", before.count("/")))
            if whole and _ANY not in after:
                places.add(("step from the right", after.count("/")))
            if all(isinstance(one, Text) for one in pieces[:position]) and after[:1] not in ("", _ANY, "0", *_TOPIC):
                places.add(("after", before))
    return places


def _shape(piece: Piece) -> str:
    match piece:
        case Text(text):
            return text
        case Number() | Topic() | Extension():
            return "0"  # no slash is in it
        case _:
            return _ANY


def _can_be_one(one: "Sink", first: str | None, other: "Sink", second: str | None) -> bool:
    if first is not None:
        return other.reads(first) if second is None else first == second
    # Two expressions can always meet in a topic that does not exist yet.
    return second is None or one.reads(second)


def _steps(pieces: tuple[Piece, ...], ending: str, topic: str | None) -> Iterator[_Step]:
    for piece in pieces:
        match piece:
            case Text(text):
                yield from _plain(text)
            case Extension():
                yield from _plain(ending)
            case Topic() if topic is not None:
                yield from _plain(topic)
            case Topic():
                yield from _some(_TOPIC)
            case Number():
                sign = "-" if piece.name.endswith("timestamp") else ""
                yield from _some(frozenset(_DIGITS + piece.char + sign))
            case _:
                yield _Step(None, many=True)


def _plain(text: str) -> Iterator[_Step]:
    return (_Step(frozenset(char)) for char in text)


def _some(chars: frozenset[str]) -> tuple[_Step, _Step]:
    return _Step(chars), _Step(chars, many=True)


def _meet(left: _Pattern, right: _Pattern) -> bool:
    """Whether some text matches both patterns."""
    waiting, seen = [(0, 0)], {(0, 0)}
    while waiting:
        i, j = waiting.pop()
        if i == len(left) and j == len(right):
            return True
        reached = []
        if i < len(left) and left[i].many:
            reached.append((i + 1, j))
        if j < len(right) and right[j].many:
            reached.append((i, j + 1))
        if i < len(left) and j < len(right) and _share(left[i].chars, right[j].chars):
            reached += product(_after(left[i], i), _after(right[j], j))
        for state in reached:
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return False


def _share(left: frozenset[str] | None, right: frozenset[str] | None) -> bool:
    return left is None or right is None or not left.isdisjoint(right)


def _after(step: _Step, position: int) -> tuple[int, ...]:
    return (position, position + 1) if step.many else (position + 1,)
