"""The tree that a text is, whichever syntax it is written in: every value with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from s3lake.config.report import Place, Report, Setting, is_comment


@dataclass(frozen=True)
class Node:
    """A key and its value: a text, null, the nodes of a mapping (a tuple) or of a list.

    Attributes:
        key: the key as written; in a list it is the list's.
        place: the place of the key.
        positions: line and column of each character of a text without the blanks around it, if they are known.
        start: line and column where the value begins.
        is_quoted: the text is in quotes, so it is text whatever it looks like.
        tag: a type of YAML's that s3lake does not have, or empty.
    """

    key: str
    place: Place
    value: str | tuple[Node, ...] | list[Node] | None
    positions: Sequence[tuple[int, int]] = ()
    start: tuple[int, int] = (1, 1)
    is_quoted: bool = False
    tag: str = ""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of a mapping; none if this is not one."""
        return self.value if isinstance(self.value, tuple) else ()

    def child(self, key: str) -> Node | None:
        """Return the node of that name; of several the last, as in Java."""
        return next((node for node in reversed(self.nodes) if node.key == key), None)

    def at(self, *path: str) -> Node:
        """Return the node at a path; an empty mapping if there is none."""
        node: Node | None = self
        for key in path:
            node = node.child(key) if node else None
        return node or Node("", self.place, ())

    def text(self, key: str) -> str:
        """Return the text of that name; empty if there is none."""
        node = self.child(key)
        return node.value if node is not None and isinstance(node.value, str) else ""

    def setting(self, report: Report) -> Iterator[Setting]:
        """Yield the node as a connector's setting; nothing if it is null or a remark."""
        if is_comment(self.key):
            return
        match self.value:
            case None:
                report.notice(self.place, "null is as if it were not there")
            case str():
                yield Setting(self.key, self.value.strip(), self.place, self.positions)
            case _:
                what = "an object" if isinstance(self.value, tuple) else "a list"
                message = f"{what} is not allowed; a connector's values are text, numbers, true or false"
                report.error(self.place, message)
                report.unresolved_keys.add(self.key)
                yield Setting(self.key, "", self.place)


def join_surrogates(text: str) -> str:
    """Return a text with characters joined that were written as two escapes."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return text


def position_of(before: str) -> tuple[int, int]:
    """Return line and column, from 1, of what follows the text `before`."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")
