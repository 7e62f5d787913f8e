"""Iggy's own variables over its files: `IGGY_CONNECTORS_SINK_<KEY>_<PROP>` and `IGGY_CONNECTORS_<SECTION>_<KEY>`.

A name is matched against what the file has, and what Iggy knows there; any other becomes one new name in lower case.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from s3lake.config.connectors.iggy_file import File, leaves
from s3lake.config.overrides import match, parse_value, set_path, upper
from s3lake.config.report import Report, dotted, variable
from s3lake.errors import ConfigurationError
from s3lake.text.options import did_you_mean

PREFIX = "IGGY_CONNECTORS_"
_CONNECTORS = (f"{PREFIX}SINK_", f"{PREFIX}SOURCE_")
_PLACES = ("CONFIG_PATH", "ENV_PATH")  # where the files are: somebody else's business
_SECTIONS = {
    "http": ("enabled", "address", "api_key", "cors", "tls", "metrics"),
    "iggy": ("address", "username", "password", "token", "tls"),
    "state": ("path",),
    "connectors": ("config_type", "config_dir", "base_url", "timeout", "retry", "response"),
    "logging": ("format",),
    "telemetry": ("enabled", "service_name", "logs", "traces"),
}
_KNOWN = (
    *("type", "key", "enabled", "version", "name", "path", "plugin_config_format", "verbose", "benchmark", "streams"),
    "plugin_config",
)
_GROUPS = ("streams", "plugin_config", "cors", "tls", "metrics", "retry", "response", "logs", "traces")


def apply_to_runtime(file: File, environment: Mapping[str, str], report: Report) -> File:
    """The runtime's file with what the environment says otherwise."""
    (changed,) = _changed([file], _named(environment, connectors=False), report)
    return changed


def apply_to_connectors(files: Sequence[File], environment: Mapping[str, str], report: Report) -> list[File]:
    """The connectors' files with what the environment says otherwise."""
    return _changed(files, _named(environment, connectors=True), report)


def _named(environment: Mapping[str, str], *, connectors: bool) -> dict[str, str]:
    return {
        name: text.strip()
        for name, text in sorted(environment.items())
        if name.startswith(PREFIX)
        and name.removeprefix(PREFIX) not in _PLACES
        and name.startswith(_CONNECTORS) == connectors
        and text.strip()
    }


def _changed(files: Sequence[File], variables: Mapping[str, str], report: Report) -> list[File]:
    by_key = {file.key: replace(file, data=copy.deepcopy(file.data)) for file in files}
    for name, text in variables.items():
        before = {key: dict(leaves(file.data)) for key, file in by_key.items()}
        try:
            _set({key: file.data for key, file in by_key.items()}, name, text)
        except ConfigurationError as error:
            report.error(variable(name), str(error).removeprefix(f"{name}: "))
        for key, file in by_key.items():
            places = {
                path: replace(variable(name), key=dotted(path))
                for path, value in leaves(file.data)
                if path not in before[key] or before[key][path] != value
            }
            by_key[key] = replace(file, places={**file.places, **places})
    return list(by_key.values())


@dataclass(frozen=True)
class _Names:
    """Names of a table of a file, and those that Iggy knows there."""

    value: Any
    known: tuple[str, ...] = ()

    def inside(self) -> Iterator[tuple[str | int, _Names]]:
        """Yield names of the file first, then those that Iggy knows, the longest first; positions of a list."""
        if isinstance(self.value, list):
            yield from ((position, _Names(value)) for position, value in enumerate([*self.value, {}]))
        elif isinstance(self.value, dict):
            titles = sorted({*self.known, *self.value}, key=lambda title: (title not in self.value, -len(title)))
            for title in titles:
                group: Any = ([] if title == "streams" else {}) if title in _GROUPS else None
                yield title, _Names(self.value.get(title, group))

    def added(self) -> _Names | None:
        """Return the place of a name that the file does not have."""
        return _Names(None) if isinstance(self.value, dict) and not self.known else None

    def typed(self, text: str) -> Any:
        """Return a text if the file has one there: a password of digits is not a number."""
        return text if isinstance(self.value, str) else parse_value(text)


def _set(files: dict[str, dict[str, Any]], variable: str, text: str) -> None:
    """Set what a variable names: in a connector's file, by its key, or in the only one, which is the runtime's.

    Raises:
        ConfigurationError: it names no section and no connector.
    """
    role, _, rest = variable.removeprefix(PREFIX).partition("_")
    if role in ("SINK", "SOURCE"):
        table, name, names = _connector(files, role.lower(), rest, variable)
    else:
        (runtime,) = files.values()
        known = _SECTIONS.get(role.lower())
        if known is None:
            allowed = ["SINK_<KEY>", *(title.upper() for title in _SECTIONS)]
            hint = did_you_mean(role, allowed, f"{PREFIX}{{}}_…")
            raise ConfigurationError(f"{variable}: unknown section; {hint}after {PREFIX} comes {', '.join(allowed)}")
        name, names = rest, known
        table = runtime.setdefault(role.lower(), {})
    if table is None:
        return
    found = match(name, _Names(table, names))
    if found is None:
        allowed = [upper(title) for title in names]
        raise ConfigurationError(
            f"{variable}: unknown name {name}; {did_you_mean(name, allowed)}allowed: {', '.join(allowed)}"
        )
    path, place = found
    set_path(table, path, place.typed(text))


def _connector(
    files: dict[str, dict[str, Any]], role: str, name: str, variable: str
) -> tuple[dict[str, Any] | None, str, tuple[str, ...]]:
    """Return the file of a connector, the name below it, and the names that it may have."""
    keys = {key: upper(key) for key, file in files.items() if file.get("type", role) == role}
    begun = [key for key, title in keys.items() if name.startswith(f"{title}_")]
    if not begun and role == "source" and not keys:
        return None, "", ()  # only sinks land anything: a source's files are not read
    if not begun:
        hint = did_you_mean(name, keys.values(), f"{PREFIX}{role.upper()}_{{}}_…", 0.4)
        raise ConfigurationError(
            f"{variable}: no {role} has this key; {hint}keys here: {', '.join(keys.values()) or 'none'}"
        )
    rests = {key: name[len(keys[key]) + 1 :] for key in begun}
    key = max(begun, key=lambda key: (match(rests[key], _Names(files[key], _KNOWN)) is not None, len(key)))
    if rests[key].startswith("TRANSFORMS_"):
        raise ConfigurationError(
            f"{variable}: transforms cannot be set by variables, in Iggy neither; say it in a file"
        )
    return files[key], rests[key], _KNOWN
