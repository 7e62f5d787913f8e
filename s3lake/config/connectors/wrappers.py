"""A connector's file, however the settings are wrapped: bare, or as some tool holds them.

Known are the bodies and answers of Connect's REST API, Strimzi's `KafkaConnector`, and anything else in JSON or YAML
that holds one map with `connector.class`: a Terraform plan, a map of connectors, an answer of MSK Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from s3lake.config.read import json as connect_json
from s3lake.config.read import properties
from s3lake.config.read import yaml as connect_yaml
from s3lake.config.read.members import Member, inside, member, text_at
from s3lake.config.report import Place, Report, Setting
from s3lake.errors import ConfigurationError

_CLASS = "connector.class"
_BESIDE = {
    "tasks": "is what Connect's REST API answers; s3lake has no tasks",
    "type": "is what Connect's REST API answers",
    "initial_state": "Dagster starts and stops the sensors",
}
_SPEC = {
    "pause": "Dagster starts and stops the sensors",
    "state": "Dagster starts and stops the sensors",
    "autoRestart": "Dagster tries a run again by its own policy",
    "version": "s3lake has no plugins",
    "listOffsets": "offsets are in the index",
    "alterOffsets": "offsets are in the index",
}
_PLANS = (("planned_values",), ("values", "root_module"))
_NAMES = ("name", "connector_name", "connectorName")
_SECRET = "config_sensitive"
_WRAPPING = ("config", "info", "values", "connector_configuration", "connectorConfiguration", "config_nonsensitive")

_Held = tuple[str, list[Member]]


def unwrap(text: str, report: Report) -> list[Setting]:
    """The settings of the connector that `text` holds, in its order; a name beside them is one of them.

    Raises:
        ConfigurationError: it cannot be read, or holds several connectors.
    """
    if text.lstrip().startswith("{"):
        return _unwrapped(connect_json.members(text, report.file), report)
    if not connect_yaml.is_connector(text, report.file):
        return properties.read(text, report)
    documents = connect_yaml.documents(text, report.file)
    resources = [document for document in documents if text_at(document, "kind") == "KafkaConnector"]
    if len(resources) > 1:
        raise _several(report.file, [text_at(inside(document, "metadata"), "name") for document in resources])
    return _unwrapped((resources or documents or [()])[0], report)


def _unwrapped(root: tuple[Member, ...], report: Report) -> list[Setting]:
    if text_at(root, "kind") == "KafkaConnector":
        return _strimzi(root, report)
    config = member(root, "config")
    if config is not None and isinstance(config.value, tuple):
        return _posted(root, config.value, report)
    for path in _PLANS:
        root = inside(root, *path) or root
    if member(root, _CLASS) is None and (connectors := list(_held(root, root, None))):
        if len(connectors) > 1:
            raise _several(report.file, [name for name, _ in connectors])
        return _settings(connectors[0][1], report)
    return _settings(root, report)


def _settings(members: Sequence[Member], report: Report) -> list[Setting]:
    return list(chain.from_iterable(entry.setting(report) for entry in members))


def _posted(root: Sequence[Member], config: tuple[Member, ...], report: Report) -> list[Setting]:
    """`{"name", "config"}`, as Connect's REST API takes and gives it."""
    settings: list[Setting] = []
    for entry in root:
        if entry.key == "config":
            settings += _settings(config, report)
        elif entry.key == "name":
            settings += _name(entry, config, report)
        elif entry.key in _BESIDE:
            report.no_effect(entry.place, _BESIDE[entry.key])
        else:
            report.notice(
                entry.place, f"is next to config, where nothing reads it; read are: name, config, {', '.join(_BESIDE)}"
            )
    return settings


def _name(beside: Member, config: Sequence[Member], report: Report) -> list[Setting]:
    twin = member(config, "name")
    if twin is None:
        return list(beside.setting(report))
    if twin.value != beside.value:
        message = f"{beside.value!r} is not the name in config, {twin.value!r}; take one out"
        report.error(beside.place, message)
    return []


def _strimzi(root: Sequence[Member], report: Report) -> list[Setting]:
    """A `KafkaConnector`: its name, class and tasks are outside of its configuration."""
    spec = inside(root, "spec")
    settings: list[Setting] = []
    for holder, key, taken in ((inside(root, "metadata"), "name", "name"), (spec, "class", _CLASS)):
        if (resource := member(holder, key)) is not None:
            settings += replace(resource, key=taken).setting(report)
    for entry in spec:
        if entry.key == "tasksMax":
            settings += replace(entry, key="tasks.max").setting(report)
        elif entry.key in _SPEC:
            report.no_effect(entry.place, _SPEC[entry.key])
        elif entry.key not in ("class", "config"):
            report.notice(
                entry.place, f"nothing reads it in spec; read are: class, tasksMax, config, {', '.join(_SPEC)}"
            )
    return settings + _settings(inside(spec, "config"), report)


def _held(members: tuple[Member, ...], above: tuple[Member, ...], title: Member | None) -> Iterator[_Held]:
    """Every map with `connector.class` below: its connector's name, and its settings with what is next to them."""
    if member(members, _CLASS) is not None:
        named = next((entry for key in _NAMES if (entry := member(above, key)) and isinstance(entry.value, str)), title)
        beside = [replace(named, key="name")] if named and member(members, "name") is None else []
        secret = () if members is inside(above, _SECRET) else inside(above, _SECRET)
        yield text_at((*members, *beside), "name") or "one without a name", [*beside, *members, *secret]
        return
    for entry in members:
        for inner in entry.value if isinstance(entry.value, list) else [entry]:
            if isinstance(inner.value, tuple):
                called = title if entry.key in _WRAPPING else replace(entry, value=entry.key, positions=())
                yield from _held(inner.value, members, called)


def _several(file: str, names: Sequence[str]) -> ConfigurationError:
    message = f"{len(names)} connectors: {', '.join(names)}; give each a file of its own, all of them in one directory"
    return ConfigurationError(f"{Place(file)}: holds {message}")
