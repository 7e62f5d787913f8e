"""Fields that a commit left out of its rows, or filled, as its manifest counts them by their paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from s3lake.lake.objects.shape import ObjectShape

_KEY = "key:"
"""The prefix of the path of a field of keys in a manifest, which counts fields of keys and of values."""
_STEP = re.compile(r"\[\]|[^.\[]+")


def exclude_fields(value: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Return a value without the fields at these paths, of which `[]` are the items of a list, the values of a map."""
    for path in paths:
        value = _exclude(value, path)
    return value


def split_paths(shape: ObjectShape, part: str) -> list[list[str]]:
    """Return the paths of the fields of keys or values that are not compared, as steps: left out, or filled."""
    return [_STEP.findall(path) for path in sorted(list_counted(shape, part))]


def list_counted(shape: ObjectShape, part: str) -> frozenset[str]:
    """Return the paths of fields of keys or values that the manifest counts as left out, or filled."""
    of_keys = frozenset(path for path in shape.uncompared if path.startswith(_KEY))
    return frozenset(path.removeprefix(_KEY) for path in of_keys) if part == "key" else shape.uncompared - of_keys


def _exclude(value: Any, path: Sequence[str]) -> Any:
    step, *rest = path
    if step == "[]" and isinstance(value, list):
        if not rest:
            return [None] * len(value)
        return [[item[0], _exclude(item[1], rest)] if _is_entry(item) else _exclude(item, rest) for item in value]
    if step == "[]" and isinstance(value, dict):
        return {name: _exclude(inner, rest) if rest else None for name, inner in value.items()}
    if not isinstance(value, dict) or step not in value:
        return value
    inner = _exclude(value[step], rest) if rest else None
    return {name: kept for name, kept in value.items() if name != step} | ({} if inner is None else {step: inner})


def _is_entry(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)
