"""`${…}` in a value: what it is filled with, and how the value is spelled without it.

Of the environment `NAME` and `NAME:-default` are read; an empty value is none, as in a shell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from s3lake.config.setting import Reference

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Filled:
    """A text whose references are replaced.

    Attributes:
        value: what came of it.
        written: the text with its references as native YAML spells them; empty where one has no such spelling.
        alone: whether the text is one reference and nothing else.
        secret: whether something secret was named.
        spots: where each character stands.
    """

    value: str
    written: str
    alone: bool
    secret: bool
    spots: Sequence[tuple[int, int]] = ()

    def reference(self, text: str, *, secret: bool) -> Reference | None:
        """Where the value came from; None where `text` had nothing to be replaced."""
        if self.value == text.replace("$${", "${"):
            return None
        return Reference(self.written, self.value, self.alone, self.secret or secret)


def filled(text: str, look_up: Callable[[str], tuple[str, str, bool]], spots: Sequence[tuple[int, int]] = ()) -> Filled:
    """A text with its references replaced; `$${` stands for a plain `${`.

    Args:
        look_up: from what stands between the braces to its value, its spelling in native YAML, and whether it is
            secret.
        spots: where each character of the text stands.
    """
    value, written, position = "", "", 0
    places: list[tuple[int, int]] = []
    secret, native = False, True
    for match in _REFERENCE.finditer(text):
        literal = text[position : match.start()]
        content, spelled, hidden = ("${", "$${", False) if match[1] is None else look_up(match[1])
        value += literal + content
        written += _escaped(literal) + spelled
        places += [*spots[position : match.start()], *list(spots[match.start() : match.start() + 1]) * len(content)]
        secret, native = secret or hidden, native and bool(spelled)
        position = match.end()
    rest = text[position:]
    alone = _REFERENCE.fullmatch(text) is not None
    return Filled(
        value + rest, (written + _escaped(rest)) if native else "", alone, secret, [*places, *spots[position:]]
    )


def is_malformed(text: str) -> bool:
    """Whether a `${` begins something that is no reference."""
    return "${" in _REFERENCE.sub("", text)


def _escaped(text: str) -> str:
    return text.replace("${", "$${")


def looked_up(reference: str, environment: Mapping[str, str]) -> tuple[str, str | None] | None:
    """The variable's name and its value, None where it is not set; None for what is no reference."""
    match = _NAME.fullmatch(reference)
    if match is None:
        return None
    name, default = match.groups()
    value = environment.get(name) or default
    return name, None if value is None and name not in environment else value or ""
