"""The native YAML configuration: every error says file, line, column, dotted path, value, what is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import SecretStr, ValidationError

from s3lake.config.draft import Draft, Sketch
from s3lake.config.overrides import fields, set_path
from s3lake.config.read import yaml as reader
from s3lake.config.read.yaml import Dumper
from s3lake.config.report import Path, Reference, Report, dotted
from s3lake.errors import ConfigurationError
from s3lake.sink import Config, ConfigModel
from s3lake.text.masking import is_masked, is_secret

_HIDDEN = (("s3", "credentials"), ("kafka", "properties"), ("source", "options"))


def loads(text: str, name: str) -> Config:
    """Return the configuration in `text`; `name` is the file's name in errors.

    Raises:
        ConfigurationError: the content is invalid; one line per error, in the file's order.
    """
    return read(text, name, os.environ).validate(os.environ).config


def read(text: str, name: str, environment: Mapping[str, str]) -> Sketch:
    """Read a text of the dialect whose names are the model's own.

    Raises:
        ConfigurationError: it is not a mapping.
    """
    report = Report(name)
    data, settings = reader.read(text, report, _hidden, environment)
    if isinstance(data, dict):
        return Sketch(Draft(data, settings), report, native=True)
    report.check()
    what = f"the file holds {settings[()].shape or 'text'}" if () in settings else "the file is empty"
    raise ConfigurationError(f"{name}:1:1: {what}; a mapping is needed with {', '.join(fields(Config))}")


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
    done = _restore_references(config, escape_references(values), references)
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
    """Return values with `${` written as `$${`, so that it is not read as a variable."""
    match value:
        case dict():
            return {name: escape_references(item) for name, item in value.items()}
        case list():
            return [escape_references(item) for item in value]
        case str():
            return value.replace("${", "$${")
    return value


@dataclass
class _Restored:
    """A configuration that is written, with references in the place of values.

    Attributes:
        texts: paths of the values that are references now.
        hidden: paths of values that came from a secret and cannot be written as its reference.
        notices: of values that are written instead of the references that they came from.
    """

    values: dict[str, Any]
    texts: set[Path] = field(default_factory=set)
    hidden: set[Path] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)


def _restore_references(config: Config, values: dict[str, Any], references: Mapping[Path, Reference]) -> _Restored:
    """Put a reference back where the written value is the text that it resolves to."""
    done, written = _Restored(values), config.model_dump(mode="json", by_alias=True)
    for path, reference in references.items():
        plain, shown = _at(config, path), _at(written, path)
        plain = plain.get_secret_value() if isinstance(plain, SecretStr) else plain
        value = plain if isinstance(plain, str) else shown
        parts = reference.written.split(",")
        is_list = isinstance(value, list) and ",".join(map(str, value)) == reference.value and len(parts) == len(value)
        # Next to a reference a secret may be written as it is.
        is_safe = reference.alone or not (isinstance(shown, str) and is_masked(shown))
        if is_list and reference.written and _put(values, path, parts):
            done.texts |= {(*path, at) for at in range(len(parts))}
        elif reference.written and is_safe and _is_same(value, reference) and _put(values, path, reference.written):
            done.texts.add(path)
        elif reference.secret:
            done.hidden.add(path)
        elif reference.written and _at(values, path) is not None:
            done.notices.append(f"{dotted(path)}: is written as it is now, without the reference that it came from")
    return done


def _is_same(value: Any, reference: Reference) -> bool:
    """Return whether a value is written as what a reference resolves to: `7m`, `true`, `700`."""
    return value is not None and (str(value).lower() if isinstance(value, bool) else str(value)) == reference.value


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


def _put(values: dict[str, Any], path: Path, text: Any) -> bool:
    """Set the value at a path. Return False if there is no place for it."""
    try:
        set_path(values, path, text)
    except (ConfigurationError, IndexError):
        return False
    return True


def _hidden(path: Path) -> bool:
    own = path[2:] if path[:1] == ("sinks",) else path
    if own[:1] == ("forwards",) and "options" in own:
        return True
    return own[:2] in _HIDDEN or any(is_secret(str(step)) for step in path)
