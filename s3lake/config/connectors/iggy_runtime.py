"""The runtime of Iggy's connectors: its connectors' configurations, of a directory or a server, and Iggy's server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from s3lake.config import source
from s3lake.config.draft import Draft
from s3lake.config.keys import Key, Keys
from s3lake.config.report import Report, Setting
from s3lake.config.syntax import toml
from s3lake.config.syntax.toml import File
from s3lake.config.variables import Variables
from s3lake.errors import ConfigurationError

SECTION = "iggy"
_ADDRESS = (Key("iggy.address", "source.address", default="localhost:8090"), Key("iggy.token", "source.token"))
_TLS = (Key("iggy.tls.ca_file", "source.ca_file"), Key("iggy.tls.domain", "source.domain"))
_LOGIN = tuple(Key(f"iggy.{name}", f"source.{name}", default="iggy") for name in ("username", "password"))
_ELSEWHERE = ("s3lake.kafka.", "s3lake.source.type")
_ACTIVE = "/configs/active"
_NAMES = ("config_type", "config_dir", "base_url", "timeout", "request_headers", "retry", "url_templates", "response")


def is_over_http(runtime: File) -> bool:
    """Return whether a server has them: no variable changes its connectors."""
    return _options(runtime).get("config_type") == "http"


def read_connectors(runtime: File, report: Report, references: Variables) -> Iterator[File]:
    """Yield the files of the connectors that run; of several versions of a key the highest."""
    options = _options(runtime)
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


def _of_directory(options: Mapping[str, Any], runtime: File, report: Report, references: Variables) -> Iterator[File]:
    at, name = runtime.place("connectors", "config_dir"), options.get("config_dir")
    if not isinstance(name, str):
        report.error(at, 'config_dir is missing; add [connectors] config_dir = "DIRECTORY"')
        return
    directory = references.base / name
    if not directory.is_dir():
        report.error(at, f"{name!r} is not a directory, seen from the runtime's file; correct it")
        return
    if (directory / ".active_versions.toml").exists():
        report.error(at, ".active_versions.toml is not read; keep one version of each file there, and remove it")
    newest: dict[str, File] = {}
    for connector in map(toml.read, sorted(directory.glob("*.toml"))):
        other = newest.setdefault(connector.key, connector)
        if _version(connector) >= _version(other):
            newest[connector.key] = connector
    yield from newest.values()


def _version(file: File) -> int:
    version = file.data.get("version", 0)
    return version if isinstance(version, int) else 0


def _of_server(options: Mapping[str, Any], runtime: File, report: Report) -> Iterator[File]:
    """Yield the active versions that a server has: `sinks` and `sources` by their keys."""
    at = runtime.place("connectors", "base_url")
    if not isinstance(options.get("base_url"), str):
        report.error(at, 'base_url is missing; add [connectors] base_url = "http://HOST:PORT"')
        return
    path = str(_table(options, "url_templates").get("get_active_configs", _ACTIVE))
    values = {name: options[name] for name in ("timeout",) if name in options}
    for group in ("retry", "response"):
        values |= {f"{group}_{name}": value for name, value in _table(options, group).items()}
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    if headers := _table(options, "request_headers"):
        texts["headers"] = json.dumps(headers)
    try:
        settings = source.read_options({f"{source.PREFIX}{name.upper()}": text for name, text in texts.items()})
    except ConfigurationError as error:
        report.error(runtime.place("connectors"), str(error).removeprefix(source.PREFIX).lower())
        return
    answer = source.fetch(f"{options['base_url'].rstrip('/')}{path}", settings)
    try:
        active = json.loads(answer.text)
        groups = [(role, active.get(f"{role}s") or {}) for role in ("sink", "source")]
        files = [
            File(f"{answer.name} {role} {key}", {**_present(said), "type": role})
            for role, group in groups
            for key, said in group.items()
        ]
    except (ValueError, AttributeError, TypeError):
        raise ConfigurationError(
            f"{answer.name}: the answer is not what Iggy's server says of active connectors, an object with sinks and "
            "sources; correct base_url, url_templates.get_active_configs or response.data_path"
        ) from None
    yield from files


def _present(value: Any) -> Any:
    """Return a value without nulls, which TOML does not have."""
    if isinstance(value, dict):
        return {name: _present(inner) for name, inner in value.items() if inner is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


def _options(runtime: File) -> Mapping[str, Any]:
    return _table(runtime.data, "connectors")


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name)
    return table if isinstance(table, dict) else {}


class Server:
    """The server that the runtime names, if it names one."""

    def __init__(self, runtime: File, report: Report, references: Variables) -> None:
        self._places = [runtime.place(*path) for path in runtime.places if path[:1] == (SECTION,)]
        self._report, self._used = report, False
        self._named = SECTION in runtime.data
        settings = [setting for setting in runtime.settings() if setting.key.startswith(f"{SECTION}.")]
        self._keys = Keys(references.resolve(settings, report), report)

    def put(self, sink: Draft, connector: Sequence[Setting]) -> bool:
        """Put the server as the source. Return False if there is none, or the connector names another source.

        The runtime's own defaults hold for what the section leaves out.
        """
        if not self._named or any(setting.key.startswith(_ELSEWHERE) for setting in connector):
            return False
        self._used = True
        sink.put("source.type", "iggy")
        self._keys.put(sink, _ADDRESS)
        if sink.get("source.token") is None:
            self._keys.put(sink, _LOGIN)
        tls = self._keys.boolean("iggy.tls.enabled", False)
        if tls.value:
            sink.put("source.tls", tls)
            self._keys.put(sink, _TLS)
        return True

    def note_if_unused(self) -> None:
        """Note a server that no sink reads."""
        for place in () if self._used else self._places[:1]:
            self._report.notice(place, "has no effect: [s3lake] says where the records are")
