"""A topic's name here is its stream's and its own, with a dot between: Iggy's topics are each of a stream.

Both may have dots of their own. What the server has decides then where the stream's name ends.
"""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """A topic as Iggy names it."""

    stream: str
    topic: str


def together(name: Name) -> str:
    """The one name of a topic that everything here knows."""
    return f"{name.stream}.{name.topic}"


def candidates(topic: str) -> list[Name]:
    """What a name may mean, the shortest stream first; nothing where it has no dot between two names."""
    pieces = topic.split(".")
    named = [Name(".".join(pieces[:at]), ".".join(pieces[at:])) for at in range(1, len(pieces))]
    return [name for name in named if name.stream and name.topic]
