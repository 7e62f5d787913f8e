"""Members of a JSON or YAML file: each value as text, with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from s3lake.config.report import Place, Report, Setting, is_comment

Value = str | None | tuple["Member", ...] | list["Member"]
"""Text, null, the members of an object, the values of a list."""


@dataclass(frozen=True)
class Member:
    """A name and its value; in a list the name is the list's.

    Attributes:
        positions: line and column of each character of a text, where they are known.
    """

    key: str
    place: Place
    value: Value
    positions: Sequence[tuple[int, int]] = ()

    def setting(self, report: Report) -> Iterator[Setting]:
        """Yield the member as a connector's setting; nothing if it is null."""
        if is_comment(self.key):
            return
        match self.value:
            case None:
                report.notice(self.place, "null is as if it were not there")
            case str():
                yield Setting(self.key, self.value, self.place, self.positions)
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


def member(members: Sequence[Member], key: str) -> Member | None:
    """Return the member of that name; of several the last, as in Java."""
    return next((entry for entry in reversed(members) if entry.key == key), None)


def inside(members: Sequence[Member], *path: str) -> tuple[Member, ...]:
    """Return the members of the object at a path; none if there is no object."""
    value: Value = tuple(members)
    for key in path:
        step = member(value, key) if isinstance(value, tuple) else None
        value = step.value if step else None
    return value if isinstance(value, tuple) else ()


def text_at(members: Sequence[Member], key: str) -> str:
    """Return the text of that name; empty if there is none."""
    step = member(members, key)
    return step.value if step is not None and isinstance(step.value, str) else ""
