"""The native YAML configuration: every error says file, line, column, dotted path, value, what is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from s3lake.config.draft import Draft, Sketch
from s3lake.config.kept import restore_references
from s3lake.config.overrides import fields
from s3lake.config.read import yaml as reader
from s3lake.config.read.yaml import Dumper
from s3lake.config.report import Path, Reference, Report
from s3lake.errors import ConfigurationError
from s3lake.sink import Config, ConfigModel
from s3lake.text.masking import is_masked, is_secret

_HIDDEN = (("s3", "credentials"), ("kafka", "properties"), ("source", "options"))


def loads(text: str, name: str) -> Config:
    """The configuration in `text`; `name` is what errors call the file.

    Raises:
        ConfigurationError: what stands there cannot be right; one line per error, in the file's order.
    """
    return read(text, name, os.environ).validate(os.environ).config


def read(text: str, name: str, environment: Mapping[str, str]) -> Sketch:
    """What `text` says: the dialect whose names are the model's own.

    Raises:
        ConfigurationError: it is no mapping.
    """
    report = Report(name)
    data, settings = reader.read(text, report, _hidden, environment)
    if isinstance(data, dict):
        return Sketch(Draft(data, settings), report, native=True)
    report.check()
    what = f"the file holds {settings[()].shape or 'text'}" if () in settings else "the file is empty"
    raise ConfigurationError(f"{name}:1:1: {what}; a mapping is needed with {', '.join(fields(Config))}")


def dump_effective(config: Config) -> str:
    """The effective configuration: every default present, quantities as people write them, secrets masked."""
    values = escape_references(config.model_dump(mode="json", by_alias=True))
    text: str = yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def write_native(
    config: Config, references: Mapping[Path, Reference] = MappingProxyType({})
) -> tuple[str, dict[str, str], list[str]]:
    """A configuration as YAML that can be loaded again, defaults left out, and the variables that hold its secrets.

    Args:
        references: where its values came from: they stand in the text instead of the values.

    Returns:
        The text, variable -> dotted path of the secret that it stands for, and what has to be said of references.
    """
    parts = {name: getattr(config, name) for name in ("kafka", "source", "s3", "spark")}
    least = {name: _least(part) for name, part in parts.items() if part is not None}
    values: dict[str, Any] = {name: part for name, part in least.items() if part}
    values["sinks"] = [_least(sink) for sink in config.sinks]
    if config.examples:
        values["examples"] = True
    done = restore_references(config, escape_references(values), references)
    variables: dict[str, str] = {}

    def named(value: Any, path: Path, words: tuple[str, ...]) -> Any:
        if path in done.texts:
            return value
        hidden = any(path[: len(item)] == item for item in done.hidden)
        match value:
            case dict():
                return {name: named(item, (*path, name), (*words, name)) for name, item in value.items()}
            case list():
                called = [
                    str(item.get("name", at)) if isinstance(item, dict) else str(at) for at, item in enumerate(value)
                ]
                return [named(item, (*path, at), (*words, called[at])) for at, item in enumerate(value)]
            case _ if hidden or (isinstance(value, str) and is_masked(value)):
                # Not S3LAKE_SINKS_, which changes settings.
                variable = "S3LAKE_SECRET_" + re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper())
                while variable in variables:
                    variable += "_"
                variables[variable] = ".".join(map(str, path))
                return f"${{{variable}}}"
        return value

    text: str = yaml.dump(named(done.values, (), ()), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text, variables, done.notices


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
    """Values as they are written where `${NAME}` stands for a variable."""
    match value:
        case dict():
            return {name: escape_references(item) for name, item in value.items()}
        case list():
            return [escape_references(item) for item in value]
        case str():
            return value.replace("${", "$${")
    return value


def _hidden(path: Path) -> bool:
    own = path[2:] if path[:1] == ("sinks",) else path
    if own[:1] == ("forwards",) and "options" in own:
        return True
    return own[:2] in _HIDDEN or any(is_secret(str(step)) for step in path)
