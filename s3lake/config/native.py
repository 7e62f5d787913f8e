"""The native YAML configuration: every error has file, line, column, dotted path, value, what is allowed.

`${NAME}` and `${NAME:-default}` in a scalar come from the environment; without quotes the result is typed as if it had
been written there. Scalars are typed as YAML 1.2 has it: `on`, `yes`, `0x10`, `1:30` and `2026-11-20` are text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import SecretStr, ValidationError
from yaml.nodes import ScalarNode

from s3lake.config.draft import ConfigDraft, Draft, value_at
from s3lake.config.model import Config, ConfigModel
from s3lake.config.overrides import fields, set_path
from s3lake.config.report import Path, Place, Reference, Report, Setting, format_path
from s3lake.config.syntax.node import Node
from s3lake.config.syntax.yaml_file import parse_yaml
from s3lake.config.variables import Substituted, is_malformed, look_up_variable, substitute
from s3lake.errors import ConfigurationError
from s3lake.text.masking import is_masked, is_secret

_HIDDEN = (("s3", "credentials"), ("kafka", "properties"), ("source", "options"))
_FORM = "write ${NAME} or ${NAME:-default}; $${ is a plain ${"
_INTEGER = re.compile(r"[-+]?[0-9]+")
_DIGITS = 4_000  # Python makes no integer of more than 4,300
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def load_text(text: str, name: str) -> Config:
    """Return the configuration in `text`; `name` is the file's name in errors.

    Raises:
        ConfigurationError: the content is invalid; one line per error, in the file's order.
    """
    return read_native(parse_yaml(text, name), Report(name), os.environ).validate(os.environ).config


def read_native(documents: list[Node], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the tree of a text whose names are the model's own.

    Raises:
        ConfigurationError: it is not one mapping.
    """
    if len(documents) > 1:
        raise ConfigurationError(f"{documents[1].place}: a second document begins; a file holds one configuration")
    reader = _NodeReader(report, environment)
    data = reader.read(documents[0], ()) if documents else None
    if isinstance(data, dict):
        return ConfigDraft(Draft(data, reader.settings), report, native=True)
    report.check()
    what = f"the file holds {reader.settings[()].shape or 'text'}" if documents else "the file is empty"
    raise ConfigurationError(f"{report.file}:1:1: {what}; a mapping is needed with {', '.join(fields(Config))}")


def _is_hidden(path: Path) -> bool:
    """Return whether the value at a path must never be printed."""
    own = path[2:] if path[:1] == ("sinks",) else path
    if own[:1] == ("forwards",) and "options" in own:
        return True
    return own[:2] in _HIDDEN or any(is_secret(str(step)) for step in path)


def parse_scalar(text: str) -> Any:
    """Return what a text without quotes is in YAML 1.2; an integer that no setting takes stays text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and len(text) <= _DIGITS:
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


class _NodeReader:
    def __init__(self, report: Report, environment: Mapping[str, str]) -> None:
        self.settings: dict[Path, Setting] = {}
        self._report = report
        self._environment = environment

    def read(self, node: Node, path: Path) -> Any:
        """Return the value of a node at `path`."""
        if node.tag:
            return self._refuse(node, path, "a tag is not supported; a value that begins with ! needs quotes")
        match node.value:
            case tuple():
                self._note(node, path, shape="a mapping")
                return self._mapping(node, path)
            case list():
                self._note(node, path, shape="a list")
                return [self.read(item, (*path, position)) for position, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: Node, path: Path) -> dict[str, Any]:
        nodes: dict[str, Node] = {}
        for child in node.nodes:
            first = nodes.setdefault(child.key, child)
            if first is not child:
                message = f"is given twice, first in line {first.place.line}; take one out"
                self._report.error(replace(child.place, key=format_path((*path, child.key))), message)
        return {name: self.read(child, (*path, name)) for name, child in nodes.items()}

    def _scalar(self, node: Node, path: Path) -> Any:
        if node.value is None:
            self._note(node, path, shape="null")
            return None
        text, reference, secret = str(node.value), None, _is_hidden(path)
        if "${" in text:
            part = self._substitute(node, path, text, secret=secret)
            if part is None:
                return None
            text, reference = part.value, part.reference
        if secret:
            self._report.secrets.add(text)
        value = text if node.is_quoted else parse_scalar(text)
        if type(value) in (int, float) and any(is_secret(str(step)) for step in path[-1:]):
            value = text  # a password of digits is not a number
        self._note(node, path, text, "null" if value is None else "", secret=secret, reference=reference)
        return value

    def _substitute(self, node: Node, path: Path, text: str, *, secret: bool) -> Substituted | None:
        def look_up(reference: str) -> tuple[str, str, bool]:
            variable = look_up_variable(reference, self._environment)
            if variable is None:
                raise ValueError(_FORM)
            name, value = variable
            if value is None:
                raise ValueError(f"environment variable {name} is not set; set it, or write ${{{name}:-default}}")
            if is_secret(name):
                self._report.secrets.add(value)
            return value, f"${{{reference}}}", is_secret(name)

        try:
            if is_malformed(text):
                raise ValueError(_FORM)
            return substitute(text, look_up, secret=secret)
        except ValueError as error:
            self._refuse(node, path, str(error))
            return None

    def _note(self, node: Node, path: Path, text: str = "", shape: str = "", **more: Any) -> None:
        place = replace(node.place, key=format_path(path))
        self.settings[path] = Setting(place.key, text, place, [node.start], shape=shape, **more)

    def _refuse(self, node: Node, path: Path, message: str) -> None:
        """Report what is wrong with a value, about which nothing else is reported then."""
        key = format_path(path)
        self._report.error(Place(node.place.file, *node.start, key), message)
        self._report.unresolved_keys.add(key)


# Writing


class Dumper(yaml.SafeDumper):
    """Writes text so that it is read as text here: YAML 1.1, PyYAML's own, has other numbers than 1.2.

    The value of a variable is text too.
    """


def _write_text(dumper: Dumper, value: str) -> ScalarNode:
    plain = isinstance(parse_scalar(value), str) and "${" not in value and value != "<<"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else "'")


Dumper.add_representer(str, _write_text)


def write_native(
    config: Config, references: Mapping[Path, Reference] = MappingProxyType({})
) -> tuple[str, dict[str, str]]:
    """Write a configuration as YAML that can be loaded again. Return it, and variable -> path of each secret.

    Args:
        references: where its values came from; the text has them instead of the values.
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
        if value_at(values, path) is None and value_at(every, path) is not None:
            set_path(values, path, value_at(every, path))
    variables: dict[str, str] = {}

    def write(value: Any, path: Path, words: tuple[str, ...], *, hidden: bool) -> Any:
        reference = references.get(path)
        if reference is not None:
            written = _restore(reference, value_at(config, path), value)
            if written is not None:
                return written
            hidden = hidden or reference.secret
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
        return value.replace("${", "$${") if isinstance(value, str) else value

    values = write(values, (), (), hidden=False)
    return yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120), variables


def _restore(reference: Reference, plain: Any, shown: Any) -> str | None:
    """Return the reference that a value came from as it is written; None if the value is not what it resolves to.

    Args:
        plain: the value in the configuration.
        shown: the value as it is dumped: secrets are masked, quantities are texts.
    """
    plain = plain.get_secret_value() if isinstance(plain, SecretStr) else plain
    value = plain if isinstance(plain, str) else shown
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # Next to a reference a secret may be written as it is.
    is_safe = reference.alone or not (isinstance(shown, str) and is_masked(shown))
    return reference.written or None if is_safe and text == reference.value else None


def _least(part: ConfigModel) -> dict[str, Any]:
    """Return the settings that make a part what it is, the fewest that are sure to. Secrets are masked."""
    whole = type(part).model_validate(part.model_dump(mode="json", by_alias=True))
    for unset, defaults in ((True, True), (True, False)):
        values = part.model_dump(mode="json", by_alias=True, exclude_unset=unset, exclude_defaults=defaults)
        with suppress(ValidationError):
            if type(part).model_validate(values) == whole:
                return values
    return part.model_dump(mode="json", by_alias=True)
