"""The runtime of Iggy's connectors: its connectors' configurations, of a directory or a server, and Iggy's server.

Iggy's own variables change these: `IGGY_CONNECTORS_SINK_<KEY>_<PROP>` and `IGGY_CONNECTORS_<SECTION>_<KEY>`. A name is
matched against what the file has, and what Iggy knows there; any other becomes one new name in lower case.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from s3lake.config import locations
from s3lake.config.connector_keys import ConnectorKey, Keys
from s3lake.config.draft import Draft, value_at
from s3lake.config.overrides import Names, is_list, match, set_path, split_list, upper, variable_names
from s3lake.config.report import Path, Place, Report, variable
from s3lake.config.syntax import toml_file
from s3lake.config.syntax.toml_file import TomlFile
from s3lake.config.variables import Variables
from s3lake.errors import ConfigurationError
from s3lake.text.option_values import did_you_mean

SECTION = "iggy"
_ADDRESS = (ConnectorKey("iggy.address", "address", default="localhost:8090"), ConnectorKey("iggy.token", "token"))
_TLS = (ConnectorKey("iggy.tls.ca_file", "ca_file"), ConnectorKey("iggy.tls.domain", "domain"))
_LOGIN = tuple(ConnectorKey(f"iggy.{name}", name, default="iggy") for name in ("username", "password"))
TABLES = (
    (SECTION, "tls"),
    *(("connectors", name) for name in ("request_headers", "retry", "url_templates", "response")),
)
"""The groups of settings inside the runtime's sections."""
ELSEWHERE = ("s3lake.kafka.", "s3lake.source.type")
"""The beginnings of settings that name another source of a connector."""
_ACTIVE = "/configs/active"
_NAMES = ("config_type", "config_dir", "base_url", "timeout", "request_headers", "retry", "url_templates", "response")

PREFIX = "IGGY_CONNECTORS_"
_CONNECTORS = (f"{PREFIX}SINK_", f"{PREFIX}SOURCE_")
_PLACES = (f"{PREFIX}CONFIG_PATH", f"{PREFIX}ENV_PATH")  # where the files are: others read them
_Titles = Mapping[str, Any]
"""The names that there are below a name, in the order of messages; empty if Iggy knows none there."""


def _names(*titles: str) -> _Titles:
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


def read_connectors(runtime: TomlFile, report: Report, references: Variables) -> Iterator[TomlFile]:
    """Yield the files of the connectors that run; of several versions of a key the highest."""
    options = runtime.table("connectors")
    match options.get("config_type", "local"):
        case "local":
            yield from _of_directory(options, runtime, report, references)
        case "http":
            yield from _of_server(options, runtime, report)
        case other:
            report.error(runtime.place("connectors", "config_type"), f"{other!r} is not allowed; write local or http")
    for name in options:
        if name not in _NAMES:
            message = f"unknown name; allowed in connectors: {', '.join(_NAMES)}"
            report.error(runtime.place("connectors", name), message)


def _of_directory(
    options: Mapping[str, Any], runtime: TomlFile, report: Report, references: Variables
) -> Iterator[TomlFile]:
    at, name = runtime.place("connectors", "config_dir"), options.get("config_dir")
    if not isinstance(name, str):
        message = 'config_dir is missing; add [connectors] config_dir = "DIRECTORY"'
        if runtime.table("sinks"):  # as the runtime had them before it read a directory
            message = f"{message}, and write each table of [sinks] in a file of its own there, with type and key"
        report.error(at, message)
        return
    directory = references.base / name
    if not directory.is_dir():
        report.error(at, f"{name!r} is not a directory, seen from the runtime's file; correct it")
        return
    if (directory / ".active_versions.toml").exists():
        report.error(at, ".active_versions.toml is not read; keep one version of each file there, and remove it")
    newest: dict[tuple[str, str], TomlFile] = {}
    for connector in map(toml_file.read_toml, locations.list_files(str(directory))):
        name = (connector.role, connector.key)
        if _version(connector) >= _version(newest.setdefault(name, connector)):
            newest[name] = connector
    yield from newest.values()


def _version(file: TomlFile) -> int:
    version = file.data.get("version", 0)
    return version if isinstance(version, int) else 0


def _of_server(options: Mapping[str, Any], runtime: TomlFile, report: Report) -> Iterator[TomlFile]:
    """Yield the active versions that a server has: `sinks` and `sources` by their keys."""
    at = runtime.place("connectors", "base_url")
    if not isinstance(options.get("base_url"), str):
        report.error(at, 'base_url is missing; add [connectors] base_url = "http://HOST:PORT"')
        return
    path = str(runtime.table("connectors", "url_templates").get("get_active_configs", _ACTIVE))
    values = {name: options[name] for name in ("timeout",) if name in options}
    for group in ("retry", "response"):
        values |= {f"{group}_{name}": value for name, value in runtime.table("connectors", group).items()}
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    if headers := runtime.table("connectors", "request_headers"):
        texts["headers"] = json.dumps(headers)
    try:
        settings = locations.read_options({f"{locations.PREFIX}{name.upper()}": text for name, text in texts.items()})
    except ConfigurationError as error:
        report.error(runtime.place("connectors"), str(error).removeprefix(locations.PREFIX).lower())
        return
    answer = locations.fetch(f"{options['base_url'].rstrip('/')}{path}", settings)
    try:
        active = json.loads(answer.text)
        groups = [(role, active.get(f"{role}s") or {}) for role in ("sink", "source")]
        files = [
            TomlFile(f"{answer.name} {role} {key}", {**_present(content), "type": role})
            for role, group in groups
            for key, content in group.items()
        ]
    except (ValueError, AttributeError, TypeError):
        raise ConfigurationError(
            f"{answer.name}: the answer is not Iggy's list of active connectors, an object with sinks and "
            "sources; correct base_url, url_templates.get_active_configs or response.data_path"
        ) from None
    yield from files


def _present(value: Any) -> Any:
    """Return a value without nulls, which TOML does not have."""
    if isinstance(value, dict):
        return {name: _present(inner) for name, inner in value.items() if inner is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


# The server with the records


def read_server(runtime: TomlFile, report: Report, references: Variables) -> Draft:
    """Return the server that the runtime names as a source; an empty draft if it names none.

    The runtime's own defaults hold for what its section leaves out.
    """
    server = Draft()
    if SECTION not in runtime.data:
        return server
    settings = [setting for setting in runtime.settings() if setting.key.startswith(f"{SECTION}.")]
    keys = Keys(references.resolve(settings, report), report)
    server.put("type", "iggy")
    keys.put(server, _ADDRESS)
    if server.get("token") is None:
        keys.put(server, _LOGIN)
    else:
        keys.no_effect({key.name: "the token is the login" for key in _LOGIN})
    tls = keys.boolean("iggy.tls.enabled", False)
    if tls.value:
        server.put("tls", tls)
        keys.put(server, _TLS)
    else:
        keys.no_effect({key.name: "iggy.tls.enabled is not true" for key in _TLS})
    keys.report_unused([server])
    return server


# Iggy's own variables


def apply_to_runtime(file: TomlFile, environment: Mapping[str, str], report: Report) -> TomlFile:
    """Return the runtime's file with what variables set."""
    data = copy.deepcopy(file.data)
    places = _apply(data, _RUNTIME, _select(environment, connectors=False), report)
    return replace(file, data=data, places={**file.places, **places})


def apply_to_connectors(files: Sequence[TomlFile], environment: Mapping[str, str], report: Report) -> list[TomlFile]:
    """Return the connectors' files with what variables set."""
    files = [replace(file, data=copy.deepcopy(file.data)) for file in files]
    tree: dict[str, dict[str, Any]] = {}
    for file in files:
        tree.setdefault(file.role, {})[file.key] = file.data
    titles = {role: dict.fromkeys(group, _CONNECTOR) for role, group in tree.items()}
    variables = _select(environment, connectors=True)
    # Only sinks land anything: the files of sources are not read.
    variables = {name: text for name, text in variables.items() if "source" in tree or name.startswith(_CONNECTORS[0])}
    keys = [(role, key) for role, group in tree.items() for key in group]
    own = tuple(f"{PREFIX}{upper(role)}_{upper(key)}_" for role, key in keys)
    for name in [name for name in variables if not name.startswith(own)]:
        del variables[name]
        message = (
            f"names no connector that is here; here: {', '.join(key for _, key in keys)}. Variables of connectors in "
            "several files need the runtime's file, which names their directory"
        )
        report.error(variable(name), message)
    places = _apply(tree, titles, variables, report)
    changed = []
    for file in files:
        of_file = {path[2:]: place for path, place in places.items() if path[:2] == (file.role, file.key)}
        changed.append(replace(file, places={**file.places, **of_file}))
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


def _apply(tree: dict[str, Any], titles: _Titles, variables: Mapping[str, str], report: Report) -> dict[Path, Place]:
    """Set what variables name. Return the path of each value with the variable's place."""
    places: dict[Path, Place] = {}
    for name, text in variables.items():
        below = _names_of(tree, titles)
        matched = match(name.removeprefix(PREFIX), below)
        if matched is None:
            near = did_you_mean(name.removeprefix(PREFIX), variable_names(below), f"{PREFIX}{{}}")
            report.error(variable(name), f"unknown setting; {near}Iggy's transforms cannot be set by variables")
            continue
        path, names = matched
        if isinstance(value_at(tree, path), dict):
            report.error(variable(name), "is a group of settings; set one of them")
            continue
        try:
            set_path(tree, path, names.typed(text))
        except ConfigurationError as error:
            report.error(variable(name), str(error))
        places[path] = variable(name)
    return places


def _names_of(value: Any, titles: _Titles) -> Names:
    """Return the names of a table of a file, and the names that Iggy allows there."""
    inside: dict[str | int, Names] = {}
    if isinstance(value, list):
        inside = {position: _names_of(item, {}) for position, item in enumerate([*value, {}])}
    elif isinstance(value, dict):
        for title in {*titles, *value} - {"transforms"}:
            group: Any = ([] if title == "streams" else {}) if title in (*_GROUPS, *_RUNTIME) else None
            inside[title] = _names_of(value.get(title, group), titles.get(title, {}))
    added = Names({}, _parse_text) if isinstance(value, dict) and not titles else None
    return Names(inside, str if isinstance(value, str) else _parse_text, added)


def _parse_text(text: str) -> Any:
    """Return a list, or the text: a password of digits is not a number."""
    return split_list(text) if is_list(text) else text
