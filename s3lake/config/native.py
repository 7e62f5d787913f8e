"""The native YAML configuration: every error says file, line, column, dotted path, value, what is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import SecretStr, ValidationError
from yaml.nodes import ScalarNode

from s3lake.config.document import parse_scalar, values_of
from s3lake.config.draft import ConfigDraft, Draft
from s3lake.config.overrides import fields, set_path
from s3lake.config.report import Path, Reference, Report, dotted
from s3lake.config.syntax.node import Node
from s3lake.config.syntax.yaml import parse_yaml
from s3lake.errors import ConfigurationError
from s3lake.sink import Config, ConfigModel
from s3lake.text.masking import is_masked, is_secret

_HIDDEN = (("s3", "credentials"), ("kafka", "properties"), ("source", "options"))


def loads(text: str, name: str) -> Config:
    """Return the configuration in `text`; `name` is the file's name in errors.

    Raises:
        ConfigurationError: the content is invalid; one line per error, in the file's order.
    """
    return read(parse_yaml(text, name), Report(name), os.environ).validate(os.environ).config


def read(documents: list[Node], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the tree of a text whose names are the model's own.

    Raises:
        ConfigurationError: it is not one mapping.
    """
    data, settings = values_of(documents, report, _is_hidden, environment)
    if isinstance(data, dict):
        return ConfigDraft(Draft(data, settings), report, native=True)
    report.check()
    what = f"the file holds {settings[()].shape or 'text'}" if documents else "the file is empty"
    raise ConfigurationError(f"{report.file}:1:1: {what}; a mapping is needed with {', '.join(fields(Config))}")


class Dumper(yaml.SafeDumper):
    """Writes text so that it is read as text here: YAML 1.1, PyYAML's own, has other numbers than 1.2.

    The value of a variable is text too.
    """


def _write_text(dumper: Dumper, value: str) -> ScalarNode:
    try:
        plain = isinstance(parse_scalar(value), str) and "${" not in value and value != "<<"
    except ValueError:
        plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else "'")


Dumper.add_representer(str, _write_text)


def dump_effective(config: Config) -> str:
    """Return the effective configuration as YAML: every default, quantities with units, secrets masked."""
    values = escape_references(config.model_dump(mode="json", by_alias=True))
    text: str = yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def write_native(
    config: Config, references: Mapping[Path, Reference] = MappingProxyType({})
) -> tuple[str, dict[str, str], list[str]]:
    """Write a configuration as YAML that can be loaded again, and the variables that hold its secrets.

    Args:
        references: where its values came from; the text has them instead of the values.

    Returns:
        The text, variable -> dotted path of the secret that it holds, and notices of references that are not kept.
    """
    values: dict[str, Any] = {}
    for name in fields(Config):
        part = getattr(config, name)
        if isinstance(part, ConfigModel):
            values |= {name: least} if (least := _least(part)) else {}
        elif name == "sinks":
            values[name] = [_least(sink) for sink in part]
        elif part:
            values |= config.model_dump(mode="json", include={name})
    every = config.model_dump(mode="json", by_alias=True)
    for path in references:
        if _at(values, path) is None and _at(every, path) is not None:
            set_path(values, path, _at(every, path))
    variables: dict[str, str] = {}
    notices: list[str] = []

    def write(value: Any, path: Path, words: tuple[str, ...], *, hidden: bool) -> Any:
        reference = references.get(path)
        if reference is not None:
            written = _restore(reference, _at(config, path), value)
            if written is not None:
                return written
            hidden = hidden or reference.secret
            if not hidden and reference.written:
                notices.append(f"{dotted(path)}: is written as it is now, without the reference that it came from")
        match value:
            case dict():
                return {name: write(item, (*path, name), (*words, name), hidden=hidden) for name, item in value.items()}
            case list():
                names = [
                    str(item.get("name", at)) if isinstance(item, dict) else str(at) for at, item in enumerate(value)
                ]
                return [write(item, (*path, at), (*words, names[at]), hidden=hidden) for at, item in enumerate(value)]
            case _ if hidden or (isinstance(value, str) and is_masked(value)):
                # Not S3LAKE_SINKS_, which changes settings.
                variable = "S3LAKE_SECRET_" + re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper())
                while variable in variables:
                    variable += "_"
                variables[variable] = ".".join(map(str, path))
                return f"${{{variable}}}"
        return escape_references(value)

    text: str = yaml.dump(
        write(values, (), (), hidden=False), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120
    )
    return text, variables, notices


def _restore(reference: Reference, plain: Any, shown: Any) -> Any:
    """Return the reference that a value came from as it is written; None if the value is not what it resolves to.

    Args:
        plain: the value in the configuration.
        shown: the value as it is dumped: secrets are masked, quantities are texts.
    """
    plain = plain.get_secret_value() if isinstance(plain, SecretStr) else plain
    value = plain if isinstance(plain, str) else shown
    if not reference.written or value is None:
        return None
    if isinstance(value, list):
        parts = reference.written.split(",")
        return parts if ",".join(map(str, value)) == reference.value and len(parts) == len(value) else None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # Next to a reference a secret may be written as it is.
    is_safe = reference.alone or not (isinstance(shown, str) and is_masked(shown))
    return reference.written if is_safe and text == reference.value else None


def _least(part: ConfigModel) -> dict[str, Any]:
    """Return the settings that make a part what it is, the fewest that are sure to. Secrets are masked."""
    whole = type(part).model_validate(part.model_dump(mode="json", by_alias=True))
    for unset, defaults in ((True, True), (True, False)):
        values = part.model_dump(mode="json", by_alias=True, exclude_unset=unset, exclude_defaults=defaults)
        with suppress(ValidationError):
            if type(part).model_validate(values) == whole:
                return values
    return part.model_dump(mode="json", by_alias=True)


def escape_references(value: Any) -> Any:
    """Return values with `${` written as `$${`, so that it is not read as a variable."""
    match value:
        case dict():
            return {name: escape_references(item) for name, item in value.items()}
        case list():
            return [escape_references(item) for item in value]
        case str():
            return value.replace("${", "$${")
    return value


def _at(holder: Any, path: Path) -> Any:
    """Return the value at a path of a model or of plain values; None if there is none."""
    for step in path:
        if isinstance(holder, ConfigModel):
            name = next((name for name, info in type(holder).model_fields.items() if step in (info.alias, name)), None)
            holder = getattr(holder, name) if name else None
        elif isinstance(holder, Mapping):
            holder = holder.get(step)
        elif isinstance(holder, list | tuple) and isinstance(step, int):
            holder = holder[step] if step < len(holder) else None
        else:
            return None
    return holder


def _is_hidden(path: Path) -> bool:
    """Return whether the value at a path must never be printed."""
    own = path[2:] if path[:1] == ("sinks",) else path
    if own[:1] == ("forwards",) and "options" in own:
        return True
    return own[:2] in _HIDDEN or any(is_secret(str(step)) for step in path)
