"""A file of cases with what was found in the place of what was expected; everything else stays as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node

from s3lake.config.native import escaped
from s3lake.config.read.yaml import Dumper, composed
from s3lake.errors import ConfigurationError
from s3lake.land.preview.cases import Expectation, loads, read, text_of
from s3lake.land.preview.trial import Outcome, differences, of_notices

_WIDEST = 1_000_000
_STEP = 2


def updated(path: Path, outcomes: Mapping[str, Outcome], notices: Sequence[str] = ()) -> str:
    """The text of a file of cases whose expectations hold.

    Args:
        path: the file.
        outcomes: of each case by its name. Of a case that expects something only what it names is written anew.
        notices: of the configuration, written where some are expected.

    Raises:
        ConfigurationError: the file cannot be read, or what is expected stands in another place, behind an alias.
    """
    text, root, cases = text_of(path), composed(text_of(path), str(path)), read(path)
    assert isinstance(root, MappingNode), "it was read"
    nodes = _values(root)["cases"].value
    changes = []
    for node, case in zip(nodes, cases.cases, strict=True):
        if case.expect is None or differences(case.expect, outcomes[case.name]):
            changes.append(_change(text, node, "expect", _expectation(case.expect, outcomes[case.name])))
    if cases.notices is not None and of_notices(cases.notices, notices):
        changes.append(_change(text, root, "notices", list(notices)))
    for start, end, replacement in sorted(changes, reverse=True):
        text = text[:start] + replacement + text[end:]
    if not _holds(text, path, outcomes, notices):
        raise ConfigurationError(
            f"{path}: an alias stands for what is expected, so it cannot be updated: do it by hand"
        )
    return text


def _holds(text: str, path: Path, outcomes: Mapping[str, Outcome], notices: Sequence[str]) -> bool:
    try:
        cases = loads(text, path)
    except ConfigurationError:
        return False
    return all(not differences(case.expect, outcomes[case.name]) for case in cases.cases) and not (
        cases.notices is not None and of_notices(cases.notices, notices)
    )


def _expectation(expect: Expectation | None, outcome: Outcome) -> dict[str, Any]:
    rows = outcome.rows
    if expect is not None and expect.rows is not None:
        rows = {key: rows[key] for key in rows if key in expect.rows} or rows
    every = {
        "failed": outcome.failed,
        "keys": list(outcome.keys),
        "files": len(outcome.keys),
        "rows": {key: list(map(_flow, rows[key])) for key in rows},
        "dead_letters": [_flow(dict(refusal)) for refusal in outcome.refusals],
    }
    if expect is None:
        named = {"keys", *(name for name in ("failed", "rows", "dead_letters") if every[name])}
    else:
        named = {name for name in expect.model_fields_set if getattr(expect, name) is not None}
        named |= {"failed"} if outcome.failed != expect.failed else set()
    return {name: value for name, value in every.items() if name in named}


class _Flow(dict[str, Any]):
    """A mapping that is written in one line."""


class _Writer(Dumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Lists stand below the name that has them, a step to the right."""
        super().increase_indent(flow, indentless=False)


_Writer.add_representer(
    _Flow, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", dict(value), flow_style=True)
)


def _flow(value: Any) -> Any:
    return _Flow(value) if isinstance(value, dict) else value


def _change(text: str, node: MappingNode, name: str, value: Any) -> tuple[int, int, str]:
    """Where in `text` a mapping gets a value, and what has to stand there."""
    after = _end(text, node.value[-1][1])
    if node.flow_style:
        inline = _dumped({name: value}, flow=True).strip()[1:-1]
        if name not in _values(node):
            return after, after, f", {inline}"
        key, old = _pair(node, name)
        return key.start_mark.index, _end(text, old), inline
    margin = " " * node.start_mark.column
    block = _dumped({name: value}).rstrip("\n").replace("\n", f"\n{margin}")
    if name not in _values(node):
        return after, after, f"\n{margin}{block}"
    key, old = _pair(node, name)
    return key.start_mark.index, _end(text, old), block


def _dumped(value: Any, *, flow: bool = False) -> str:
    text: str = yaml.dump(
        _escaped(value),
        Dumper=_Writer,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDEST,
        indent=_STEP,
        default_flow_style=flow,
    )
    return text


def _escaped(value: Any) -> Any:
    match value:
        case _Flow():
            return _Flow(escaped(dict(value)))
        case dict():
            return {escaped(name): _escaped(inner) for name, inner in value.items()}
        case list():
            return [_escaped(inner) for inner in value]
    return escaped(value)


def _end(text: str, node: Node) -> int:
    """Where a value ends: that of a block reaches to what follows, over comments and empty lines that belong there."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, CollectionNode) and node.flow_style:
        return end
    lines = text[start:end].splitlines(keepends=True)
    while len(lines) > 1 and _is_no_value(lines[-1], of_collection=isinstance(node, CollectionNode)):
        lines.pop()
    return start + len("".join(lines).rstrip())


def _is_no_value(line: str, *, of_collection: bool) -> bool:
    return not line.strip() or (of_collection and line.lstrip().startswith("#"))


def _values(node: MappingNode) -> dict[str, Any]:
    return {key.value: value for key, value in node.value}


def _pair(node: MappingNode, name: str) -> tuple[Node, Node]:
    return next((key, value) for key, value in node.value if key.value == name)
