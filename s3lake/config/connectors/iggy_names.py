"""Iggy's own variables over its files: `IGGY_CONNECTORS_SINK_<KEY>_<PROP>` and `IGGY_CONNECTORS_<SECTION>_<KEY>`.

A name is matched against what the file has, the longest names first, so that nested settings of a plugin can be set;
what the file does not have becomes one new, lower-cased name, as in Iggy.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from s3lake.config.values import value_of
from s3lake.errors import ConfigurationError

PREFIX = "IGGY_CONNECTORS_"
_PLACES = ("CONFIG_PATH", "ENV_PATH")  # where the files are: somebody else's business
_SECTIONS = {
    "http": ("enabled", "address", "api_key", "cors", "tls", "metrics"),
    "iggy": ("address", "username", "password", "token", "tls"),
    "state": ("path",),
    "connectors": ("config_type", "config_dir", "base_url", "timeout", "retry", "response"),
    "logging": ("format",),
    "telemetry": ("enabled", "service_name", "logs", "traces"),
}
_CONNECTOR = (
    *("type", "key", "enabled", "version", "name", "path", "plugin_config_format", "verbose", "benchmark", "streams"),
    "plugin_config",
)
_GROUPS = ("streams", "plugin_config", "cors", "tls", "metrics", "retry", "response", "logs", "traces")


def iggy_overridden(
    runtime: Mapping[str, Any], connectors: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The runtime's file and the connectors' files (by key) with what the environment says otherwise.

    Raises:
        ConfigurationError: a variable names no section and no connector.
    """
    changed = copy.deepcopy(dict(runtime))
    files = {key: copy.deepcopy(dict(file)) for key, file in connectors.items()}
    for variable in sorted(environment):
        name, text = variable.removeprefix(PREFIX), environment[variable].strip()
        if name == variable or name in _PLACES or not text:
            continue
        kind, _, rest = name.partition("_")
        if kind in ("SINK", "SOURCE"):
            _set_connector(files, kind.lower(), rest, variable, text)
        else:
            _set_runtime(changed, name, variable, text)
    return changed, files


def _set_connector(files: dict[str, dict[str, Any]], kind: str, name: str, variable: str, text: str) -> None:
    known = {key: _upper(key) for key, file in files.items() if file.get("type", kind) == kind}
    named = [key for key, upper in known.items() if name.startswith(f"{upper}_")]
    if not named:
        if kind == "source" and not known:
            return  # only sinks land anything: a source's files are not read
        near = get_close_matches(name, list(known.values()), 1, 0.4)
        meant = f"did you mean {PREFIX}{kind.upper()}_{near[0]}_…? " if near else ""
        raise ConfigurationError(
            f"{variable}: no {kind} has this key; {meant}keys here: {', '.join(known.values()) or 'none'}"
        )
    key = max(named, key=lambda one: (_fits(name[len(one) + 1 :], _CONNECTOR), len(one)))
    prop = name[len(key) + 1 :]
    if prop.split("_")[0] == "TRANSFORMS":
        raise ConfigurationError(
            f"{variable}: transforms cannot be set by variables, in Iggy neither; say it in a file"
        )
    if not _fits(prop, _CONNECTOR):
        raise ConfigurationError(f"{variable}: {_nearest(prop, _CONNECTOR)}")
    _put(files[key], prop, _CONNECTOR, text, variable)


def _set_runtime(runtime: dict[str, Any], name: str, variable: str, text: str) -> None:
    section, _, rest = name.partition("_")
    known = _SECTIONS.get(section.lower())
    if known is None:
        allowed = ["SINK_<KEY>", *(one.upper() for one in _SECTIONS)]
        near = get_close_matches(section, allowed, 1)
        meant = f"did you mean {PREFIX}{near[0]}_…? " if near else ""
        raise ConfigurationError(f"{variable}: unknown section; {meant}after {PREFIX} comes {', '.join(allowed)}")
    if not _fits(rest, known):
        raise ConfigurationError(f"{variable}: {_nearest(rest, known)}")
    _put(runtime.setdefault(section.lower(), {}), rest, known, text, variable)


def _put(at: Any, name: str, known: tuple[str, ...], text: str, variable: str) -> None:
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
    names = sorted({*known, *at}, key=len, reverse=True)
    exact = [one for one in names if name == _upper(one)]
    # A group that the file has wins over one that it could have.
    groups = [one for one in names if name.startswith(f"{_upper(one)}_") and isinstance(at.get(one), dict | list)]
    groups += [one for one in names if name.startswith(f"{_upper(one)}_") and one in _GROUPS and one not in at]
    if exact or not groups:
        one = exact[0] if exact else name.lower()
        at[one] = _typed(text, at.get(one))
    else:
        inside = at.setdefault(groups[0], [] if groups[0] == "streams" else {})
        _put(inside, name[len(groups[0]) + 1 :], (), text, variable)


def _typed(text: str, before: Any) -> Any:
    """What is a text in the file stays one: a password of digits is no number."""
    return text if isinstance(before, str) else value_of(text)


def _fits(name: str, known: tuple[str, ...]) -> bool:
    return any(name == _upper(one) or (one in _GROUPS and name.startswith(f"{_upper(one)}_")) for one in known)


def _nearest(name: str, known: tuple[str, ...]) -> str:
    allowed = [_upper(one) for one in known]
    near = get_close_matches(name, allowed, 1)
    return f"unknown name {name}; {f'did you mean {near[0]}? ' if near else ''}allowed: {', '.join(allowed)}"


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
