"""The configuration of this process: from a file, a directory or an address, in any dialect, with its environment."""

from __future__ import annotations

import logging
import os
import pathlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from s3lake import hours
from s3lake.config import locations, native
from s3lake.config.connector_keys import SERVERS, START
from s3lake.config.connectors import (
    aiven_sink,
    confluent_cloud_sink,
    confluent_sink,
    connect_worker,
    iggy_sink,
    lenses_sink,
)
from s3lake.config.connectors.wrapped_files import unwrap_connector_file
from s3lake.config.draft import ConfigDraft, LoadedConfig, join_drafts
from s3lake.config.model import Config
from s3lake.config.overrides import prefix_of, refuse_unknown
from s3lake.config.report import Notice, Place, Report, Setting, by_key, variable
from s3lake.config.syntax import properties_file
from s3lake.config.syntax.node import Node
from s3lake.config.syntax.yaml_file import parse_json, parse_yaml
from s3lake.config.variable_names import DIALECT, LOCATION, NAME, WORKER
from s3lake.config.variables import Variables
from s3lake.errors import ConfigurationError
from s3lake.text.option_values import suggest

_log = logging.getLogger(__name__)
IGGYS_LOCATION = "IGGY_CONNECTORS_CONFIG_PATH"
"""Iggy's own variable for the file of its runtime."""
_CONNECTORS = {"lenses": lenses_sink, "confluent": confluent_sink, "aiven": aiven_sink}
DIALECTS = ("native", *_CONNECTORS, "iggy")
CLASSES = {
    **{name: dialect for dialect, module in _CONNECTORS.items() for name in module.CLASSES},
    confluent_cloud_sink.CLASS: "confluent",
}
_TOML = re.compile(
    r"^\s*(\[\[?\s*(streams|transforms|plugin_config|iggy|http|state|connectors|s3lake|logging|telemetry)\b[^\]\n]*\]"
    r"|type\s*=\s*[\"'](sink|source)[\"'])",
    re.MULTILINE,
)
_YAML = re.compile(r"""^(---|\s*(sinks|kafka|s3|spark)\s*:(\s|$)|\s*["']?kind["']?\s*:\s*["']?Kafka)""", re.MULTILINE)
_NATIVE = {"sinks", "kafka", "s3", "spark"}
_KEYS = {
    "lenses": re.compile(r"connect\.s3\..+", re.IGNORECASE),
    "aiven": re.compile(
        r"aws[._]s3[._].+|aws_(access_key_id|secret_access_key)|format\.output\..+|file\.(name|compression|max)\..+"
    ),
    "confluent": re.compile(
        r"s3\..+|format\.class|storage\.class|partitioner\.class|path\.format|topics\.dir|rotate\..+"
        r"|store\.(url|kafka\..+)"
    ),
}
_REGIONS = ("s3.region", "aws.s3.region", "aws_s3_region", "connect.s3.aws.region", "aws.region")


def load(location: str | pathlib.Path | None = None, dialect: str | None = None) -> Config:
    """Return the configuration at `location`, and log its notices. See `load_configuration`."""
    configuration = load_configuration(None if location is None else str(location), dialect)
    for notice in configuration.notices:
        _log.warning("%s", notice)
    return configuration.config


def load_configuration(
    location: str | None = None,
    dialect: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    to_land: bool = True,
) -> LoadedConfig:
    """Return the configuration at `location`, with the place of every setting, and notices.

    Args:
        location: a file, a directory whose files are one configuration together, or an http(s) address; by default
            what `S3LAKE_CONFIG` names, or else `IGGY_CONNECTORS_CONFIG_PATH`.
        dialect: the dialect of every file there; None to find it in the content.
        environment: the environment of the process; a `.env` file that it names is read too.
        to_land: require what a connector's file may lack: Kafka's address and the first hour. Otherwise placeholders
            are used, with a notice.

    Raises:
        ConfigurationError: it is missing, cannot be read, or is not valid.
    """
    variables = locations.with_dotenv(os.environ if environment is None else environment)
    location = location or variables.get(LOCATION) or variables.get(IGGYS_LOCATION)
    if not location:
        raise ConfigurationError(
            f"no configuration: set {LOCATION} to a file, a directory or an address, or give CONFIG on the command line"
        )
    dialect = dialect or variables.get(DIALECT) or None
    if not to_land:
        return _load_with_placeholders(location, dialect, variables)
    return _load(location, dialect, variables)


def _load_with_placeholders(location: str, dialect: str | None, variables: Mapping[str, str]) -> LoadedConfig:
    present = hours.key_of_ms(hours.now_ms())
    texts = {SERVERS: "localhost:9092", START: present, confluent_cloud_sink.REGISTRY: "http://localhost:8081"}
    missing = {name: text for name, text in texts.items() if not variables.get(name)}
    configuration = _load(location, dialect, {**variables, **missing}, ask_servers=False)
    used = [name for name in missing if variable(name) in configuration.origins.values()]
    notices = tuple(
        Notice(
            variable(name),
            f"is not set, and the file does not have it: {missing[name]} is used as a placeholder; set it to land",
        )
        for name in used
    )
    placeholders = frozenset(map(variable, used))
    return replace(configuration, notices=(*configuration.notices, *notices), placeholders=placeholders)


def _load(
    location: str, dialect: str | None, variables: Mapping[str, str], *, ask_servers: bool = True
) -> LoadedConfig:
    texts = locations.read_texts(location, variables)
    refuse_unknown(variables, [text.text for text in texts])
    base = pathlib.Path(texts[0].name).parent
    drafts = [read_draft(text.text, text.name, dialect, variables, base, ask_servers=ask_servers) for text in texts]
    if len(drafts) == 1:
        return drafts[0].validate(variables)
    own = [tuple(map(prefix_of, draft.sinks)) for draft in drafts]
    every = tuple(chain.from_iterable(own))
    parts = []
    for draft, mine in zip(drafts, own, strict=True):
        # Variables for sinks of other files are left out; one that no file knows is an error.
        seen = {name: text for name, text in variables.items() if name.startswith(mine) or not name.startswith(every)}
        parts.append(draft.validate(seen))
    sinks = list(chain.from_iterable(draft.split() for draft in drafts))
    joined = join_drafts(sinks, Report(location)).validate({})
    return replace(
        joined,
        notices=tuple(chain.from_iterable(part.notices for part in parts)),
        connectors={name: connector for part in parts for name, connector in part.connectors.items()},
        without_effect=tuple(chain.from_iterable(part.without_effect for part in parts)),
    )


# One text


def read_draft(
    text: str,
    name: str,
    dialect: str | None,
    environment: Mapping[str, str],
    base: pathlib.Path,
    *,
    ask_servers: bool = True,
) -> ConfigDraft:
    """Read a text into a draft; `name` is the file's name in errors, relative paths in it begin at `base`.

    Without `ask_servers` secrets of servers stay references.

    Raises:
        ConfigurationError: the content is invalid; one line per error.
    """
    report = Report(name)
    if dialect and dialect not in DIALECTS:
        raise ConfigurationError(f"{name}: dialect {dialect!r} is not known; {suggest(dialect, DIALECTS)}")
    references = Variables(environment, base, ask_servers=ask_servers)
    is_json = text.lstrip().startswith("{")
    if dialect is None and not is_json and _TOML.search(text):
        dialect = "iggy"
    if dialect == "iggy":
        _note_worker(environment, report)
        return iggy_sink.read_iggy(text, report, references)
    documents = _parse(text, report, dialect)
    nodes = unwrap_connector_file(documents, report) if dialect != "native" else []
    dialect = dialect or _detect(documents, nodes, report)
    if dialect == "native":
        _note_worker(environment, report)
        return native.read_native([document for document in documents if document.value != ()], report, environment)
    settings = list(chain.from_iterable(node.setting(report) for node in nodes))
    own = list(by_key(settings, report).values())
    region = next((setting.value for setting in own if setting.key in _REGIONS and "${" not in setting.value), "")
    references = replace(references, region=region)
    settings, references = connect_worker.apply_worker(own, report, references)
    settings += _add_name(settings, report, environment.get(NAME, ""))
    resolved = confluent_cloud_sink.translate_keys(references.resolve(settings, report), report, environment)
    draft: ConfigDraft = _CONNECTORS[dialect].read_connector(resolved, report, environment)
    return draft


def _note_worker(environment: Mapping[str, str], report: Report) -> None:
    if environment.get(WORKER):
        report.notice(variable(WORKER), "no worker is read: this is not the file of a Kafka Connect connector")


def _add_name(settings: Sequence[Setting], report: Report, name: str) -> list[Setting]:
    """Return the connector's name if the file does not have it: `name`, of the command line, else the file's own."""
    own = next((setting for setting in settings if setting.key == "name"), None)
    if own is not None:
        if name and own.value != name:
            report.error(own, f"{own.masked_value} is in the file, so --name {name} has no use; take one of them out")
        return []
    if name:
        return [Setting("name", name, variable(NAME))]
    stem = pathlib.PurePosixPath(report.file.replace(os.sep, "/")).name.split(".", 1)[0] or "connector"
    place = Place(report.file)
    report.notice(
        place, f"name is missing; {stem!r}, the name of the file, is used: set another with --name (or {NAME})"
    )
    return [Setting("name", stem, place)]


def _parse(text: str, report: Report, dialect: str | None) -> list[Node]:
    """Return the tree of each document of a text that is JSON, YAML or Java's properties.

    Raises:
        ConfigurationError: it is not what it begins as.
    """
    if dialect != "native" and text.lstrip().startswith("{"):
        return [parse_json(text, report.file)]
    if dialect == "native" or report.file.endswith((".yaml", ".yml")) or _YAML.search(text):
        return parse_yaml(text, report.file)
    return [properties_file.parse_properties(text, report)]


def _detect(documents: Sequence[Node], nodes: Sequence[Node], report: Report) -> str:
    """Return the dialect of a text, of which `nodes` are the settings of a connector.

    Raises:
        ConfigurationError: it has none, or connector.class names another connector.
    """
    for node in nodes:
        if node.key == "connector.class" and isinstance(node.value, str):
            classes = _find_classes(node.value)
            dialects = {CLASSES[name] for name in classes}
            if len(dialects) > 1:
                dialect = _find_by_keys(nodes, dialects)
                dialects = {dialect} if dialect else set()
            if dialects:
                return dialects.pop()
            if classes:
                message = f"{node.value!r} is the short name of several connectors; write one of: {', '.join(classes)}"
            else:
                message = f"{node.value!r} is not known; {suggest(node.value, CLASSES)}"
            raise ConfigurationError(f"{node.place}: connector.class: {message}")
    if any(node.key in _NATIVE for document in documents for node in document.nodes):
        return "native"
    if name := _find_by_keys(nodes, _KEYS):
        return name
    for document in documents:
        if document.text("kind") == "KafkaConnect":
            message = "this is Strimzi's worker, KafkaConnect: give its KafkaConnector, and the worker's spec.config"
            raise ConfigurationError(f"{document.at('kind').place}: {message} as a .properties with --worker")
    if not any(document.nodes for document in documents) or report.file.endswith((".yaml", ".yml")):
        return "native"
    raise ConfigurationError(
        f"{report.file}:1:1: this is not a configuration that s3lake knows: give the connector's part alone, not a "
        f"script or template; add connector.class, or give --dialect, one of: {', '.join(DIALECTS)}"
    )


def _find_classes(name: str) -> list[str]:
    """Return the connectors that Kafka Connect knows by this name: a class, or its short name without `Connector`."""
    if name in CLASSES:
        return [name]
    short_names = {full_name: full_name.rpartition(".")[2] for full_name in CLASSES}
    return [full for full, short in short_names.items() if name in (short, short.removesuffix("Connector"))]


def _find_by_keys(nodes: Sequence[Node], dialects: Collection[str]) -> str | None:
    """Return which of the dialects the first key belongs to that only one connector reads."""
    for node in nodes:
        for name in dialects:
            if _KEYS[name].fullmatch(node.key):
                return name
    return None
