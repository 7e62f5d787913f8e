"""Detection of a text's dialect, and the draft that it becomes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path, PurePosixPath

from s3lake.config import native
from s3lake.config.connectors import aiven, cloud, confluent, iggy, lenses, worker, wrappers
from s3lake.config.draft import Sketch
from s3lake.config.read import json, yaml
from s3lake.config.read.yaml import position_of
from s3lake.config.report import Place, Report, Setting, by_key, is_comment, variable
from s3lake.config.variables import PROVIDERS, Variables
from s3lake.errors import ConfigurationError
from s3lake.text.options import did_you_mean

NAME = "S3LAKE_NAME"
"""Environment variable: the name of a connector whose file has none."""


class Dialect(Enum):
    """The dialects, with the names that `--dialect` takes."""

    native = "native"
    lenses = "lenses"
    confluent = "confluent"
    aiven = "aiven"
    iggy = "iggy"


CLASSES = {
    **dict.fromkeys(lenses.CLASSES, Dialect.lenses),
    **dict.fromkeys(confluent.CLASSES, Dialect.confluent),
    **dict.fromkeys(aiven.CLASSES, Dialect.aiven),
    cloud.CLASS: Dialect.confluent,
}
_TOML = re.compile(
    r"^\s*(\[\[?\s*(streams|transforms|plugin_config|iggy|http|state|connectors|s3lake|logging|telemetry)\b[^\]\n]*\]"
    r"|type\s*=\s*[\"'](sink|source)[\"'])",
    re.MULTILINE,
)
_NATIVE = re.compile(r"^[ \t]*(sinks|kafka|s3|spark)\s*:(\s|$)", re.MULTILINE)
_LENSES = re.compile(r"connect\.s3\..+", re.IGNORECASE)
_AIVEN = re.compile(
    r"aws[._]s3[._].+|aws_(access_key_id|secret_access_key)|format\.output\..+|file\.(name|compression|max)\..+"
)
_CONFLUENT = re.compile(
    r"s3\..+|format\.class|storage\.class|partitioner\.class|path\.format|topics\.dir|rotate\..+|store\.(url|kafka\..+)"
)

_CLUSTER = re.compile(r"^kind: *KafkaConnect$", re.MULTILINE)
_AROUND = re.compile(
    r"^#!|^\s*(\S+\s+)*?curl\s|\bCREATE\s+SINK\s+CONNECTOR\b|^\s*resource\s+\"[\w-]+\"\s+\""
    r"|\{\{-?\s*(\.Values|include|if|range|toYaml|tpl|end)\b|^\s*[\w.-]+:\s*[|>][+-]?\s*\n\s*\{[^}]*\"connector\.class\"",
    re.MULTILINE | re.IGNORECASE,
)
"""The beginnings of a script, a statement of ksqlDB, Terraform's language, a chart's template, JSON inside of YAML."""
_REGIONS = ("s3.region", "aws.s3.region", "aws_s3_region", "connect.s3.aws.region", "aws.region")
_CONNECTORS = {Dialect.lenses: lenses.loads, Dialect.confluent: confluent.loads, Dialect.aiven: aiven.loads}


def read_draft(
    text: str,
    name: str,
    dialect: str | None,
    environment: Mapping[str, str],
    base: Path,
    *,
    ask_servers: bool = True,
) -> Sketch:
    """Read a text into a draft; `name` is the file's name in errors, relative paths in it begin at `base`.

    Without `ask_servers` secrets of servers stay references.

    Raises:
        ConfigurationError: the content is invalid; one line per error.
    """
    report = Report(name)
    if dialect:
        language = find_dialect(dialect, name)
        settings = wrappers.unwrap(text, report) if language in _CONNECTORS else []
    else:
        language, settings = detect(text, report)
    if language is Dialect.native:
        return native.read(text, name, environment)
    references = Variables(environment, base, ask_servers=ask_servers)
    if language is Dialect.iggy:
        return iggy.loads(text, report, references)
    settings = [setting for setting in settings if not is_comment(setting.key)]
    own = list(by_key(settings, report).values())
    region = next((setting.value for setting in own if setting.key in _REGIONS and "${" not in setting.value), "")
    references = replace(references, region=region)
    references = worker.with_providers(own, report, references)
    settings = worker.fill_from_worker([one for one in own if not one.key.startswith(PROVIDERS)], report, references)
    settings += _named(settings, report, environment.get(NAME, ""))
    resolved = cloud.translate_keys(references.resolve(settings, report), report, environment)
    return _CONNECTORS[language](resolved, report, environment)


def _named(settings: Sequence[Setting], report: Report, name: str) -> list[Setting]:
    """Return the connector's name if the file does not have it: `name`, of the command line, else the file's own."""
    own = next((setting for setting in settings if setting.key == "name"), None)
    if own is not None:
        if name and own.value != name:
            report.error(own, f"{own.masked_value} is in the file, so --name {name} has no use; take one of them out")
        return []
    if name:
        return [Setting("name", name, variable(NAME))]
    stem = PurePosixPath(report.file.replace(os.sep, "/")).name.split(".", 1)[0] or "connector"
    place = Place(report.file)
    report.notice(place, f"name is missing; {stem!r} is taken, after the file: say another with --name (or {NAME})")
    return [Setting("name", stem, place)]


def find_dialect(name: str, file: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    try:
        return Dialect(name)
    except ValueError:
        names = [dialect.value for dialect in Dialect]
        raise ConfigurationError(
            f"{file}: dialect {name!r} is not known; {did_you_mean(name, names)}use one of: {', '.join(names)}"
        ) from None


def detect(text: str, report: Report) -> tuple[Dialect, list[Setting]]:
    """Return the dialect of a text, and its settings if it is one of Kafka Connect's.

    Raises:
        ConfigurationError: it has none, or connector.class names another connector.
    """
    names = json.names(text)
    if names is not None and names & {"sinks", "kafka"}:
        return Dialect.native, []
    if not text.lstrip().startswith("{"):
        if _TOML.search(text):
            return Dialect.iggy, []
        if (around := _AROUND.search(text)) is not None:
            line, column = position_of(text[: around.start()])
            hint = "give the connector's part alone: its JSON from { to }, or what the template or plan renders"
            raise ConfigurationError(f"{report.file}:{line}:{column}: this holds more than a configuration; {hint}")
    settings = wrappers.unwrap(text, report)
    dialect = _by_class(settings) or _by_keys(setting.key for setting in settings)
    if dialect is not None and (not _NATIVE.search(text) or yaml.is_connector(text, report.file)):
        return dialect, settings
    if (cluster := _CLUSTER.search(text)) is not None:
        line, column = position_of(text[: cluster.start()])
        raise ConfigurationError(
            f"{report.file}:{line}:{column}: this is Strimzi's worker, KafkaConnect: give its KafkaConnector, and the "
            "worker's spec.config as a .properties with --worker"
        )
    if not text.strip() or _NATIVE.search(text) or report.file.endswith((".yaml", ".yml")):
        return Dialect.native, []
    raise ConfigurationError(
        f"{report.file}:1:1: this is not a configuration that s3lake knows: add connector.class for a connector's, or "
        f"give --dialect, one of: {', '.join(dialect.value for dialect in Dialect)}"
    )


def _by_class(settings: Iterable[Setting]) -> Dialect | None:
    for setting in settings:
        if setting.key == "connector.class":
            if setting.value in CLASSES:
                return CLASSES[setting.value]
            near = did_you_mean(setting.value, CLASSES)
            raise ConfigurationError(
                f"{setting.place}: connector.class: {setting.masked_value} is not known; {near}use one of: "
                f"{', '.join(CLASSES)}"
            )
    return None


def _by_keys(keys: Iterable[str]) -> Dialect | None:
    for key in keys:
        for pattern, dialect in ((_LENSES, Dialect.lenses), (_AIVEN, Dialect.aiven), (_CONFLUENT, Dialect.confluent)):
            if pattern.fullmatch(key):
                return dialect
    return None
