"""Which dialect a text is written in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from s3lake.config.connectors import aiven, cloud, confluent, lenses, wrappers
from s3lake.config.read import json, yaml
from s3lake.config.read.document import position_of
from s3lake.config.setting import Report, Setting
from s3lake.errors import ConfigurationError
from s3lake.options import meant


class Dialect(Enum):
    """The dialects, by the names that `--dialect` takes."""

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

_AROUND = (
    (
        re.compile(r"^\s*(\S+\s+)*?curl\s", re.MULTILINE),
        "this is a shell's command: give the JSON text that it posts alone, the part from { to }",
    ),
    (
        re.compile(r"^#!", re.MULTILINE),
        "this is a script: give the JSON text that it posts alone, the part from { to }",
    ),
    (
        re.compile(r"\bCREATE\s+SINK\s+CONNECTOR\b", re.IGNORECASE),
        "this is a statement of ksqlDB: give what stands in WITH (…) as JSON, or what "
        "GET /connectors/NAME of its Connect answers",
    ),
    (
        re.compile(r"^\s*resource\s+\"[\w-]+\"\s+\"", re.MULTILINE),
        "this is Terraform's language: give the plan, terraform show -json PLAN, or the connector's map alone as JSON",
    ),
    (
        re.compile(r"\{\{-?\s*(\.Values\b|include\b|if\b|range\b|toYaml\b|tpl\b|end\b)"),
        "this is a Helm chart's template: give what it renders, helm template CHART, the connector's part alone",
    ),
    (
        re.compile(r"^\s*[\w.-]+:\s*[|>][+-]?\s*\n\s*\{[^}]*\"connector\.class\"", re.MULTILINE),
        "this holds a connector's JSON as a text: give that JSON alone, the part from { to }",
    ),
)
"""What people keep a connector's configuration in, and which part of it is the connector's."""


def named(name: str, file: str) -> Dialect:
    """The dialect of that name.

    Raises:
        ConfigurationError: there is none.
    """
    try:
        return Dialect(name)
    except ValueError:
        known = [one.value for one in Dialect]
        raise ConfigurationError(
            f"{file}: dialect {name!r} is not known; {meant(name, known)}use one of: {', '.join(known)}"
        ) from None


def recognised(text: str, file: str) -> Dialect:
    """The dialect that `text` is written in.

    Raises:
        ConfigurationError: it is none, or connector.class names another connector.
    """
    held = json.names(text)
    if held is not None and held & {"sinks", "kafka"}:
        return Dialect.native
    if not text.lstrip().startswith("{"):
        if _TOML.search(text):
            return Dialect.iggy
        for pattern, told in _AROUND:
            if (around := pattern.search(text)) is not None:
                line, column = position_of(text[: around.start()])
                raise ConfigurationError(f"{file}:{line}:{column}: {told}")
    settings = wrappers.read(text, Report(file))
    found = _by_class(settings) or _by_keys(one.key for one in settings)
    if found is not None and (not _NATIVE.search(text) or yaml.is_connector(text, file)):
        return found
    if not text.strip() or _NATIVE.search(text) or file.endswith((".yaml", ".yml")):
        return Dialect.native
    raise ConfigurationError(
        f"{file}:1:1: this is no configuration that s3lake knows: add connector.class for a connector's, or give "
        f"--dialect, one of: {', '.join(one.value for one in Dialect)}"
    )


def _by_class(settings: Iterable[Setting]) -> Dialect | None:
    for one in settings:
        if one.key == "connector.class":
            if one.value in CLASSES:
                return CLASSES[one.value]
            near = meant(one.value, list(CLASSES))
            raise ConfigurationError(
                f"{one.place}: connector.class: {one.shown} is not known; {near}use one of: {', '.join(CLASSES)}"
            )
    return None


def _by_keys(keys: Iterable[str]) -> Dialect | None:
    for key in keys:
        for pattern, dialect in ((_LENSES, Dialect.lenses), (_AIVEN, Dialect.aiven), (_CONFLUENT, Dialect.confluent)):
            if pattern.fullmatch(key):
                return dialect
    return None
