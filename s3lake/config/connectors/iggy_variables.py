"""Iggy's own variables over its files: `IGGY_CONNECTORS_SINK_<KEY>_<PROP>` and `IGGY_CONNECTORS_<SECTION>_<KEY>`.

A name is matched against what the file has, and what Iggy knows there; any other becomes one new name in lower case.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from s3lake.config.overrides import match, parse_value, set_path, upper
from s3lake.config.report import Path, Place, Report, variable
from s3lake.config.syntax.toml import File
from s3lake.errors import ConfigurationError
from s3lake.text.options import did_you_mean

PREFIX = "IGGY_CONNECTORS_"
_CONNECTORS = (f"{PREFIX}SINK_", f"{PREFIX}SOURCE_")
_PLACES = (f"{PREFIX}CONFIG_PATH", f"{PREFIX}ENV_PATH")  # where the files are: others read them
_Known = Mapping[str, Any]
"""The names that there are below a name, in the order of messages; empty if Iggy knows none there."""


def _names(*titles: str) -> _Known:
    return {title: {} for title in titles}


_RUNTIME = {
    "http": _names("enabled", "address", "api_key", "cors", "tls", "metrics"),
    "iggy": _names("address", "username", "password", "token", "tls"),
    "state": _names("path"),
    "connectors": _names("config_type", "config_dir", "base_url", "timeout", "retry", "response"),
    "logging": _names("format"),
    "telemetry": _names("enabled", "service_name", "logs", "traces"),
}
_CONNECTOR = _names(
    *("type", "key", "enabled", "version", "name", "path", "plugin_config_format", "verbose", "benchmark", "streams"),
    "plugin_config",
)
_GROUPS = ("streams", "plugin_config", "cors", "tls", "metrics", "retry", "response", "logs", "traces")


def apply_to_runtime(file: File, environment: Mapping[str, str], report: Report) -> File:
    """Return the runtime's file with what variables set."""
    data = copy.deepcopy(file.data)
    places = _apply(data, _RUNTIME, _select(environment, connectors=False), report)
    return replace(file, data=data, places={**file.places, **places})


def apply_to_connectors(files: Sequence[File], environment: Mapping[str, str], report: Report) -> list[File]:
    """Return the connectors' files with what variables set."""
    files = [replace(file, data=copy.deepcopy(file.data)) for file in files]
    tree: dict[str, dict[str, Any]] = {}
    for file in files:
        tree.setdefault(str(file.data.get("type", "sink")), {})[file.key] = file.data
    known = {role: dict.fromkeys(group, _CONNECTOR) for role, group in tree.items()}
    variables = _select(environment, connectors=True)
    # Only sinks land anything: the files of sources are not read.
    variables = {name: text for name, text in variables.items() if "source" in tree or name.startswith(_CONNECTORS[0])}
    places = _apply(tree, known, variables, report)
    changed = []
    for file in files:
        own = {path[2:]: place for path, place in places.items() if path[1] == file.key}
        changed.append(replace(file, places={**file.places, **own}))
    return changed


def _select(environment: Mapping[str, str], *, connectors: bool) -> dict[str, str]:
    return {
        name: text.strip()
        for name, text in sorted(environment.items())
        if name.startswith(PREFIX)
        and name not in _PLACES
        and name.startswith(_CONNECTORS) == connectors
        and text.strip()
    }


def _apply(tree: dict[str, Any], known: _Known, variables: Mapping[str, str], report: Report) -> dict[Path, Place]:
    """Set what variables name. Return the path of each value with the variable's place."""
    places: dict[Path, Place] = {}
    for name, text in variables.items():
        matched = match(name.removeprefix(PREFIX), _Names(tree, known))
        if matched is None:
            report.error(variable(name), _unknown(name.removeprefix(PREFIX), known))
            continue
        path, names = matched
        try:
            set_path(tree, path, names.typed(text))
        except ConfigurationError as error:
            report.error(variable(name), str(error))
        places[path] = variable(name)
    return places


def _unknown(name: str, known: _Known) -> str:
    """Return what is wrong with a name that is not known."""
    if "_TRANSFORMS_" in name:
        return "transforms cannot be set by variables, in Iggy neither; write them into a file"
    groups = dict(_flat(known))
    listed = ", ".join(f"{PREFIX}{group}…" for group in dict.fromkeys(groups.values()))
    return f"unknown setting; {did_you_mean(name, groups, f'{PREFIX}{{}}')}names begin with: {listed}"


def _flat(known: _Known, group: str = "") -> Iterator[tuple[str, str]]:
    """Yield each name as variables have it, and what it begins with."""
    for title, inner in known.items():
        if inner:
            yield from _flat(inner, f"{group}{upper(title)}_")
        else:
            yield f"{group}{upper(title)}", group


@dataclass(frozen=True)
class _Names:
    """Names of a table of a file, and those that Iggy knows there."""

    value: Any
    known: _Known

    def inside(self) -> Iterator[tuple[str | int, _Names]]:
        """Yield names of the file first, then those that Iggy knows, the longest first; positions of a list."""
        if isinstance(self.value, list):
            yield from ((position, _Names(value, {})) for position, value in enumerate([*self.value, {}]))
        elif isinstance(self.value, dict):
            titles = sorted({*self.known, *self.value}, key=lambda title: (title not in self.value, -len(title)))
            for title in titles:
                group: Any = ([] if title == "streams" else {}) if title in (*_GROUPS, *_RUNTIME) else None
                if title != "transforms":
                    yield title, _Names(self.value.get(title, group), self.known.get(title, {}))

    def added(self) -> _Names | None:
        """Return the place of a name that the file does not have."""
        return _Names(None, {}) if isinstance(self.value, dict) and not self.known else None

    def typed(self, text: str) -> Any:
        """Return a text if the file has one there: a password of digits is not a number."""
        return text if isinstance(self.value, str) else parse_value(text)
