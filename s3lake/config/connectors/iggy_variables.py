"""Iggy's own variables over its files: `IGGY_CONNECTORS_SINK_<KEY>_<PROP>` and `IGGY_CONNECTORS_<SECTION>_<KEY>`.

A name is matched against what the file has, the longest names first, so that nested settings of a plugin can be set;
what the file does not have becomes one new, lower-cased name, as in Iggy.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from s3lake.config.connectors.iggy_file import File, leaves
from s3lake.config.setting import Report, dotted, variable
from s3lake.config.variables import value_of
from s3lake.errors import ConfigurationError
from s3lake.text.options import suggestion

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


def of_runtime(file: File, environment: Mapping[str, str], report: Report) -> File:
    """The runtime's file with what the environment says otherwise."""
    (changed,) = _changed([file], _named(environment, connectors=False), report)
    return changed


def of_connectors(files: Sequence[File], environment: Mapping[str, str], report: Report) -> list[File]:
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
            set_in({key: file.data for key, file in by_key.items()}, name, text)
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


def set_in(files: dict[str, dict[str, Any]], variable: str, text: str) -> None:
    """Set what a variable names: in the connectors' files, by their keys, or in the only one, which is the runtime's.

    Raises:
        ConfigurationError: it names no section and no connector.
    """
    name = variable.removeprefix(PREFIX)
    role, _, rest = name.partition("_")
    if role in ("SINK", "SOURCE"):
        _set_connector(files, role.lower(), rest, variable, text)
    else:
        (runtime,) = files.values()
        _set_runtime(runtime, name, variable, text)


def _set_connector(files: dict[str, dict[str, Any]], role: str, name: str, variable: str, text: str) -> None:
    uppers = {key: _upper(key) for key, file in files.items() if file.get("type", role) == role}
    named = [key for key, upper in uppers.items() if name.startswith(f"{upper}_")]
    if not named:
        if role == "source" and not uppers:
            return  # only sinks land anything: a source's files are not read
        hint = suggestion(name, uppers.values(), f"{PREFIX}{role.upper()}_{{}}_…", 0.4)
        raise ConfigurationError(
            f"{variable}: no {role} has this key; {hint}keys here: {', '.join(uppers.values()) or 'none'}"
        )
    key = max(named, key=lambda candidate: (_fits(name[len(candidate) + 1 :], _KNOWN), len(candidate)))
    prop = name[len(key) + 1 :]
    if prop.split("_")[0] == "TRANSFORMS":
        raise ConfigurationError(
            f"{variable}: transforms cannot be set by variables, in Iggy neither; say it in a file"
        )
    if not _fits(prop, _KNOWN):
        raise ConfigurationError(f"{variable}: {_nearest(prop, _KNOWN)}")
    _put(files[key], prop, _KNOWN, text, variable)


def _set_runtime(runtime: dict[str, Any], name: str, variable: str, text: str) -> None:
    section, _, rest = name.partition("_")
    names = _SECTIONS.get(section.lower())
    if names is None:
        allowed = ["SINK_<KEY>", *(title.upper() for title in _SECTIONS)]
        hint = suggestion(section, allowed, f"{PREFIX}{{}}_…")
        raise ConfigurationError(f"{variable}: unknown section; {hint}after {PREFIX} comes {', '.join(allowed)}")
    if not _fits(rest, names):
        raise ConfigurationError(f"{variable}: {_nearest(rest, names)}")
    _put(runtime.setdefault(section.lower(), {}), rest, names, text, variable)


def _put(at: Any, name: str, expected: tuple[str, ...], text: str, variable: str) -> None:
    """Set `name` below `at`: exact names and those of the file first, the longest first."""
    if isinstance(at, list):
        number, _, rest = name.partition("_")
        if not number.isascii() or not number.isdigit() or int(number) > len(at):
            raise ConfigurationError(f"{variable}: a list of {len(at)} stands there; name a place, 0 to {len(at)}")
        if int(number) == len(at):
            at.append({} if rest else None)
        if rest:
            _put(at[int(number)], rest, (), text, variable)
        else:
            at[int(number)] = _typed(text, at[int(number)])
        return
    if not isinstance(at, dict):
        raise ConfigurationError(f"{variable}: a single value stands in the file where {name} would be below")
    names = sorted({*expected, *at}, key=len, reverse=True)
    exact = [title for title in names if name == _upper(title)]
    # A group that the file has wins over one that it could have.
    groups = [
        title for title in names if name.startswith(f"{_upper(title)}_") and isinstance(at.get(title), dict | list)
    ]
    groups += [
        title for title in names if name.startswith(f"{_upper(title)}_") and title in _GROUPS and title not in at
    ]
    if exact or not groups:
        title = exact[0] if exact else name.lower()
        at[title] = _typed(text, at.get(title))
    else:
        inside = at.setdefault(groups[0], [] if groups[0] == "streams" else {})
        _put(inside, name[len(groups[0]) + 1 :], (), text, variable)


def _typed(text: str, before: Any) -> Any:
    """What is a text in the file stays one: a password of digits is no number."""
    return text if isinstance(before, str) else value_of(text)


def _fits(name: str, expected: tuple[str, ...]) -> bool:
    return any(
        name == _upper(title) or (title in _GROUPS and name.startswith(f"{_upper(title)}_")) for title in expected
    )


def _nearest(name: str, expected: tuple[str, ...]) -> str:
    allowed = [_upper(title) for title in expected]
    return f"unknown name {name}; {suggestion(name, allowed)}allowed: {', '.join(allowed)}"


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
