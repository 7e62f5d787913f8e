"""The native YAML configuration: every error says file, line, column, dotted path, value, what is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from s3lake.config.draft import Loaded
from s3lake.config.kept import kept
from s3lake.config.model import MAPPING, WANTED, dotted, field, meant, model_at, names
from s3lake.config.read.document import Document, Dumper, Place, position_of
from s3lake.config.setting import Place as Origin
from s3lake.config.setting import Reference
from s3lake.config.setting import variable as variable_place
from s3lake.config.variables import overridden, overrides
from s3lake.errors import ConfigurationError
from s3lake.masking import is_masked, is_secret
from s3lake.sink import Config, Misfit, Part

VARIABLE = "S3LAKE_CONFIG"
"""Environment variable that names the configuration file."""

_HIDDEN = (("s3", "credentials"), ("kafka", "properties"))


def load(path: Path) -> Config:
    """The configuration in the file `path`.

    Raises:
        ConfigurationError: the file cannot be read, or what stands in it cannot be right; one line per error.
    """
    return loads(read(path), str(path))


def read(path: Path) -> str:
    """The text of a configuration's file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file; set {VARIABLE} or give CONFIG") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = position_of(error.object[: error.start].decode())
        found = f"byte 0x{error.object[error.start]:02x} is no UTF-8"
        raise ConfigurationError(f"{path}:{line}:{column}: {found}; save the file as UTF-8") from None


def loads(text: str, name: str) -> Config:
    """The configuration in `text`; `name` is what errors call the file.

    Raises:
        ConfigurationError: what stands there cannot be right; one line per error, in the file's order.
    """
    return loaded(text, name).config


def loaded(text: str, name: str, environment: Mapping[str, str] = os.environ) -> Loaded:
    """As `loads`, with the place of every value.

    Args:
        text: the configuration.
        name: what errors call the file.
        environment: variables that the file may name, and `S3LAKE_SINKS_<NAME>_<PROPERTY>` that change it.

    Raises:
        ConfigurationError: what stands there cannot be right; one line per error, in the file's order.
    """
    document = Document.read(text, name, _hidden, environment)
    if not isinstance(document.data, dict):
        document.check()
        what = f"the file holds {document.kind(())}" if document.holds(()) else "the file is empty"
        raise ConfigurationError(f"{name}:1:1: {what}; a mapping is needed with {', '.join(names(Config))}")
    misfit = _override(document)
    _text_where_wanted(document)
    config = None
    try:
        config = Config.model_validate(document.data)
    except ValidationError as errors:
        _note(errors, document)
    document.check()  # after the handler, or the model's own text would follow ours wherever the chain is shown
    if config is None:
        raise AssertionError("an error of the model was told nobody")
    if misfit is not None:  # told last: what is wrong in the file may be why
        raise misfit
    origins = {path: Origin(name, *at, dotted(path)) for path, at in document.positions()}
    origins |= {path: variable_place(variable) for path, variable in document.variables.items()}
    changed = {place[:size] for place in document.variables for size in range(len(place) + 1)}
    references = {path: one for path, one in document.references.items() if path not in changed}
    return Loaded(config, origins=origins, references=references)


def dump(config: Config) -> str:
    """The effective configuration: every default present, quantities as people write them, secrets masked."""
    values = _escaped(config.model_dump(mode="json", by_alias=True))
    text: str = yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def rewritten(
    config: Config, references: Mapping[Place, Reference] = MappingProxyType({})
) -> tuple[str, dict[str, str], list[str]]:
    """A configuration as YAML that can be loaded again, defaults left out, and the variables that hold its secrets.

    Args:
        config: the configuration.
        references: where its values came from: they stand in the text instead of the values.

    Returns:
        The text, variable -> dotted path of the secret that it stands for, and what has to be said of references.
    """
    values: dict[str, Any] = {name: _least(getattr(config, name)) for name in ("kafka", "s3", "spark")}
    values = {name: held for name, held in values.items() if held}
    values["sinks"] = [_least(sink) for sink in config.sinks]
    if config.examples:
        values["examples"] = True
    done = kept(config, _escaped(values), references)
    variables: dict[str, str] = {}

    def named(value: Any, path: Place, words: tuple[str, ...]) -> Any:
        if path in done.texts:
            return value
        hidden = any(path[: len(one)] == one for one in done.hidden)
        match value:
            case dict():
                return {name: named(one, (*path, name), (*words, name)) for name, one in value.items()}
            case list():
                called = [
                    str(one.get("name", at)) if isinstance(one, dict) else str(at) for at, one in enumerate(value)
                ]
                return [named(one, (*path, at), (*words, called[at])) for at, one in enumerate(value)]
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


def _least(part: Part) -> dict[str, Any]:
    """What has to be said of a part: without any of it, it would be another one. Secrets are masked."""
    values: dict[str, Any] = part.model_dump(mode="json", by_alias=True)
    whole = type(part).model_validate(values)

    def leave_out(held: dict[str, Any]) -> None:
        for name in list(held):
            value = held.pop(name)
            try:
                if type(part).model_validate(values) == whole:
                    continue
            except ValidationError:
                pass
            held[name] = value
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict):
                    leave_out(inner)

    leave_out(values)
    return values


def _escaped(value: Any) -> Any:
    match value:
        case dict():
            return {name: _escaped(one) for name, one in value.items()}
        case list():
            return [_escaped(one) for one in value]
        case str():
            return value.replace("${", "$${")
    return value


def _hidden(place: Place) -> bool:
    return place[:2] in _HIDDEN or any(is_secret(str(step)) for step in place)


def _override(document: Document) -> ConfigurationError | None:
    """Put what the environment says of single settings over what the file says; what does not fit is returned."""
    try:
        said = overrides(document.data, document.environment)
        document.data = overridden(document.data, document.environment)
    except ConfigurationError as error:
        return error
    for one in said:
        document.replace(one.place, one.value, one.variable)
    return None


def _text_where_wanted(document: Document) -> None:
    """Where the model wants text a scalar is its own text, so that `char: 0` needs no quotes."""
    try:
        Config.model_validate(document.data)
    except ValidationError as errors:
        for error in errors.errors(include_url=False, include_input=False):
            place, _ = _placed(error["loc"], document)
            if error["type"] == "string_type" and place in document.texts and document.kind(place) != "null":
                document.put(place, document.texts[place])


def _note(errors: ValidationError, document: Document) -> None:
    for error in errors.errors(include_url=False, include_input=False):
        place, chosen = _placed(error["loc"], document)
        if not chosen:
            continue
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, Misfit):
            place += cause.path
        if not any(place[: len(known)] == known for known in document.unknown):
            document.note(place, _message(error, place, document), at_name=error["type"] == "extra_forbidden")


def _placed(location: Sequence[str | int], document: Document) -> tuple[Place, bool]:
    """A location of pydantic's as a place in the file; False for an alternative of a union that was not meant."""
    place: Place = ()
    chosen = True
    for step in location:
        alternative = step == "Credentials" or str(step).startswith("literal[")
        if alternative and not document.holds((*place, step)):
            chosen = (step == "Credentials") == (document.kind(place) == "a mapping")
        else:
            place = (*place, step)
    return place, chosen


def _message(error: Any, place: Place, document: Document) -> str:
    match error["type"]:
        case "value_error":
            return document.without_secrets(str(error["ctx"]["error"]))
        case "extra_forbidden":
            allowed = names(model_at(place[:-1]))
            return f"unknown name; {meant(str(place[-1]), allowed)}allowed here: {', '.join(allowed)}"
        case "missing":
            return f"is missing; add {_example(place)}"
        case "literal_error":
            allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
            also = f", or {MAPPING}" if place == ("s3", "credentials") else ""
            near = meant(document.texts.get(place, ""), allowed)
            return f"{document.shown(place)} is not allowed; {near}use one of: {', '.join(allowed)}{also}"
    return f"{document.shown(place)} is not allowed; {WANTED.get(error['type'], error['msg'])}"


def _example(place: Place) -> str:
    examples = field(model_at(place[:-1]), place[-1]).examples
    return f"it, for example `{place[-1]}: {examples[0]}`" if examples else "it"
