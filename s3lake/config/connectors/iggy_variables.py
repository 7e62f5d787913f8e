"""Iggy's own variables over its files, with the variable as the place of what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from s3lake.config.connectors.iggy_file import File, leaves
from s3lake.config.connectors.iggy_names import PREFIX, iggy_overridden
from s3lake.config.setting import Report, dotted, variable
from s3lake.errors import ConfigurationError

_CONNECTORS = (f"{PREFIX}SINK_", f"{PREFIX}SOURCE_")


def of_runtime(file: File, environment: Mapping[str, str], report: Report) -> File:
    """The runtime's file with what the environment says otherwise."""
    for name, text in _named(environment, connectors=False):
        try:
            changed, _ = iggy_overridden(file.data, {}, {name: text})
        except ConfigurationError as error:
            report.error(variable(name), str(error).removeprefix(f"{name}: "))
        else:
            file = _changed(file, changed, name)
    return file


def of_connectors(files: Sequence[File], environment: Mapping[str, str], report: Report) -> list[File]:
    """The connectors' files with what the environment says otherwise."""
    by_key = {file.key: file for file in files}
    for name, text in _named(environment, connectors=True):
        try:
            _, changed = iggy_overridden({}, {key: file.data for key, file in by_key.items()}, {name: text})
        except ConfigurationError as error:
            report.error(variable(name), str(error).removeprefix(f"{name}: "))
        else:
            by_key = {key: _changed(file, changed[key], name) for key, file in by_key.items()}
    return list(by_key.values())


def _named(environment: Mapping[str, str], *, connectors: bool) -> Iterator[tuple[str, str]]:
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.startswith(_CONNECTORS) == connectors:
            yield name, environment[name]


def _changed(file: File, data: dict[str, Any], name: str) -> File:
    before = dict(leaves(file.data))
    places = {
        path: replace(variable(name), key=dotted(path))
        for path, value in leaves(data)
        if path not in before or before[path] != value
    }
    return replace(file, data=data, places={**file.places, **places})
