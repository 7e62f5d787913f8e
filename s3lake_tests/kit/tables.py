"""Tables of cases as texts: one row a line, `left => right`."""

import re
from typing import Any

import pytest
import yaml

from s3lake_tests.conftest import LONGEST_ONLY_ID, short_id


def rows(table: str) -> list[Any]:
    """Return the two sides of each row as parameters; an indented line continues its row."""
    found = []
    for line in re.sub(r"\n +", " ", table.strip("\n")).splitlines():
        left, _, right = line.partition("=>")
        found.append(pytest.param(left.strip(), right.strip(), id=short_id(line, LONGEST_ONLY_ID)))
    return found


def read_yaml(text: str) -> dict[str, Any]:
    """Read `name: value, name: value`; of a name that is there twice the last value counts."""
    return yaml.safe_load(f"{{{text}}}") or {}


def read_settings(text: str) -> dict[str, Any]:
    """Read YAML whose names are paths: `flush.count: 1` is `{flush: {count: 1}}`."""
    return _nest(read_yaml(text))


def read_each(text: str) -> list[dict[str, Any]]:
    """Read settings; `each name: [1, 2], other: 3` are settings for each of the values of the first name."""
    if not text.startswith("each "):
        return [read_settings(text)]
    (name, values), *others = read_yaml(text.removeprefix("each ")).items()
    return [_nest({name: value, **dict(others)}) for value in values]


def _nest(by_path: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for path, value in by_path.items():
        *groups, name = path.split(".")
        group = settings
        for step in groups:
            group = group.setdefault(step, {})
        group[name] = value
    return settings
