"""A connector's file, however the settings are wrapped: bare, or as some tool holds them.

Known are the bodies and answers of Connect's REST API, Strimzi's `KafkaConnector`, and anything else in JSON or YAML
that holds one map with `connector.class`: a Terraform plan, a map of connectors, an answer of MSK Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from s3lake.config.report import Place, Report
from s3lake.config.syntax.node import Node
from s3lake.errors import ConfigurationError

_CLASS = "connector.class"
_ANSWERED = {
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


def unwrap_connector_file(documents: Sequence[Node], report: Report) -> list[Node]:
    """Return the settings of the connector that a file holds, in its order; a name next to them is one of them.

    Raises:
        ConfigurationError: it holds several connectors.
    """
    resources = [document for document in documents if document.text("kind") == "KafkaConnector"]
    if len(resources) > 1:
        raise _several(report.file, [document.at("metadata").text("name") for document in resources])
    if resources:
        return _read_strimzi(resources[0], report)
    root = documents[0] if documents else Node("", Place(report.file), ())
    config = root.child("config")
    if config is not None and isinstance(config.value, tuple):
        return _read_posted(root, config, report)
    for path in _PLANS:
        root = root.at(*path) if root.at(*path).nodes else root
    if root.child(_CLASS) is None and (connectors := list(_find(root, root, None))):
        if len(connectors) > 1:
            raise _several(report.file, [name for name, _ in connectors])
        return connectors[0][1]
    return list(root.nodes)


def _read_posted(root: Node, config: Node, report: Report) -> list[Node]:
    """`{"name", "config"}`, as Connect's REST API takes and gives it."""
    nodes: list[Node] = []
    for node in root.nodes:
        twin = config.child("name")
        if node is config:
            nodes += config.nodes
        elif node.key == "name" and twin is None:
            nodes.append(node)
        elif node.key == "name" and twin is not None and twin.value != node.value:
            report.error(node.place, f"{node.value!r} is not the name in config, {twin.value!r}; take one out")
    _note_rest(root, ("name", "config"), _ANSWERED, report)
    return nodes


def _read_strimzi(root: Node, report: Report) -> list[Node]:
    """A `KafkaConnector`: its name, class and tasks are outside of its configuration."""
    spec = root.at("spec")
    outside = [(root.at("metadata").child("name"), "name"), (spec.child("class"), _CLASS)]
    outside.append((spec.child("tasksMax"), "tasks.max"))
    _note_rest(spec, ("class", "tasksMax", "config"), _SPEC, report)
    return [*(replace(node, key=key) for node, key in outside if node is not None), *spec.at("config").nodes]


def _note_rest(root: Node, names: Sequence[str], harmless: Mapping[str, str], report: Report) -> None:
    """Note the nodes of a mapping that nothing reads."""
    for node in root.nodes:
        if node.key in harmless:
            report.no_effect(node.place, harmless[node.key])
        elif node.key not in names:
            report.notice(node.place, f"nothing reads it here; read are: {', '.join((*names, *harmless))}")


def _find(node: Node, above: Node, title: Node | None) -> Iterator[tuple[str, list[Node]]]:
    """Yield every map with `connector.class` below: its connector's name, and its settings with what is next to it."""
    if node.child(_CLASS) is not None:
        named = next((name for key in _NAMES if (name := above.child(key)) and isinstance(name.value, str)), title)
        outside = [replace(named, key="name")] if named and node.child("name") is None else []
        secret = above.at(_SECRET).nodes if node.key != _SECRET else ()
        nodes = [*outside, *node.nodes, *secret]
        yield next((str(name.value) for name in nodes if name.key == "name"), "one without a name"), nodes
        return
    for child in node.nodes:
        for inner in child.value if isinstance(child.value, list) else [child]:
            if inner.nodes:
                called = title if child.key in _WRAPPING else replace(child, value=child.key, positions=())
                yield from _find(inner, node, called)


def _several(file: str, names: Sequence[str]) -> ConfigurationError:
    message = f"{len(names)} connectors: {', '.join(names)}; give each a file of its own, all of them in one directory"
    return ConfigurationError(f"{Place(file)}: holds {message}")
