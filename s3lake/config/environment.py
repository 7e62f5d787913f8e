"""`NAME` and `NAME:-default` in a reference to the environment; an empty value is none, as in a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def looked_up(reference: str, environment: Mapping[str, str]) -> tuple[str, str | None] | None:
    """The variable's name and its value, None where it is not set; None for what is no reference."""
    found = _NAME.fullmatch(reference)
    if found is None:
        return None
    name, default = found.groups()
    value = environment.get(name) or default
    return name, None if value is None and name not in environment else value or ""
