"""`S3LAKE_SINKS_<NAME>_<PROPERTY>`: single settings of a sink from the environment, whatever its dialect.

NAME is the sink's name in upper case with `-` as `_`; PROPERTY is the native path in upper case with `_` between its
steps. An empty variable says nothing.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr

from s3lake.config.model import alternatives, fields, holds
from s3lake.config.setting import Path, dotted
from s3lake.errors import ConfigurationError
from s3lake.sink import ConfigModel, Sink
from s3lake.text.options import suggestion

PREFIX = "S3LAKE_SINKS_"
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Override:
    """One variable: the place of the setting in the document, and the value that it gets there."""

    variable: str
    place: Path
    value: Any


def prefix_of(sink: str) -> str:
    """What the names of the variables of a sink begin with."""
    return f"{PREFIX}{_upper(sink)}_"


def overridden(document: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, Any], list[Override]]:
    """The native document with what the environment says otherwise, and that; `document` itself is left as it is.

    Raises:
        ConfigurationError: a variable names no sink, or no setting.
    """
    sinks = document.get("sinks")
    named = [
        (position, sink)
        for position, sink in enumerate(sinks if isinstance(sinks, list) else ())
        if isinstance(sink, Mapping) and isinstance(sink.get("name"), str)
    ]
    overrides = [
        _override(variable, text.strip(), named)
        for variable, text in sorted(environment.items())
        if variable.startswith(PREFIX) and text.strip()
    ]
    changed = copy.deepcopy(dict(document))
    for override in overrides:
        *steps, last = override.place
        holder: Any = changed
        for step, following in zip(steps, override.place[1:], strict=True):
            holder = _below(holder, step, [] if isinstance(following, int) else {}, override)
        if isinstance(holder, list) and last == len(holder):
            holder.append(override.value)
        else:
            holder[last] = override.value
    return changed, overrides


def _below(holder: Any, step: str | int, fresh: Any, override: Override) -> Any:
    """What stands at `step`; where there is nothing yet, a fresh group."""
    if isinstance(holder, list) and step == len(holder):
        holder.append(fresh)
    elif isinstance(holder, dict) and holder.get(str(step)) is None:
        holder[str(step)] = fresh
    inner = holder[step]
    if not isinstance(inner, type(fresh)):
        shape = "list" if isinstance(fresh, list) else "group of settings"
        raise ConfigurationError(f"{override.variable}: {step!r} is no {shape} in the file: correct it there")
    return inner


def _override(variable: str, text: str, sinks: list[tuple[int, Mapping[str, Any]]]) -> Override:
    rest = variable.removeprefix(PREFIX)
    begun = {sink["name"]: (position, sink) for position, sink in sinks if rest.startswith(f"{_upper(sink['name'])}_")}
    if not begun:
        allowed = [_upper(sink["name"]) for _, sink in sinks]
        hint = suggestion(rest, allowed, f"{PREFIX}{{}}_…", 0.4)
        raise ConfigurationError(
            f"{variable}: no sink of the configuration has this name; {hint}sinks here: {', '.join(allowed) or 'none'}"
        )
    fits: dict[str, tuple[Path, Any]] = {}
    for name, (position, sink) in begun.items():
        for path, annotation in _settings(Sink, rest[len(name) + 1 :], sink):
            fits[name] = (("sinks", position, *path), annotation)
            break
    if len(fits) > 1:
        meanings = " and ".join(f"{dotted(path[2:])} of sink {name}" for name, (path, _) in fits.items())
        raise ConfigurationError(f"{variable} can mean {meanings}: say it in the file instead")
    if not fits:
        raise _unknown(variable, rest, max(begun, key=len))
    ((path, annotation),) = fits.values()
    groups = [option for option in alternatives(annotation) if option is not NoneType]
    if all(isinstance(option, type) and issubclass(option, ConfigModel) for option in groups):
        inner = ", ".join(f"{variable}_{name.upper()}" for name in fields(groups[0]))
        raise ConfigurationError(f"{variable}: {dotted(path[2:])} is a group of settings; set one of {inner}")
    return Override(variable, path, _value(text, annotation))


def _settings(model: type[ConfigModel], name: str, present: Any) -> Iterator[tuple[Path, Any]]:
    """Paths below `model` that `name` can mean, the longest field names first, with what the model wants there."""
    for field, info in sorted(fields(model).items(), key=lambda item: -len(item[0])):
        if name == field.upper():
            yield (field,), info.annotation
        elif name.startswith(f"{field.upper()}_"):
            inside = present.get(field) if isinstance(present, Mapping) else None
            for path, annotation in _inside(info.annotation, name[len(field) + 1 :], inside):
                yield (field, *path), annotation


def _inside(annotation: Any, name: str, present: Any) -> Iterator[tuple[Path, Any]]:
    for option in alternatives(annotation):
        if isinstance(option, type) and issubclass(option, ConfigModel):
            yield from _settings(option, name, present)
        elif get_origin(option) is dict:
            keys = [key for key in present if str(key).upper() == name] if isinstance(present, Mapping) else []
            yield (keys[0] if keys else name.lower(),), get_args(option)[1]
        elif get_origin(option) is tuple:
            yield from _element(get_args(option)[0], name, present)


def _element(annotation: Any, name: str, present: Any) -> Iterator[tuple[Path, Any]]:
    """A list is changed at its numbers; the one after the last adds to it."""
    elements = present if isinstance(present, list) else []
    number, _, rest = name.partition("_")
    if not number.isascii() or not number.isdigit() or int(number) > len(elements):
        return
    position = int(number)
    if not rest:
        yield (position,), annotation
        return
    for path, inner in _inside(annotation, rest, elements[position] if position < len(elements) else None):
        yield (position, *path), inner


def _value(text: str, annotation: Any) -> Any:
    """Iggy's typing, but where the model wants text the text, and where it wants a list one value is a list of one."""
    options = list(alternatives(annotation))
    lists = [option for option in options if get_origin(option) is tuple]
    if lists:
        texts = items_of(text) if is_list(text) else [text]
        return [_value(item, get_args(lists[0])[0]) for item in texts]
    texts_only = holds(annotation, str, SecretStr, Literal) and not holds(annotation, int, float, bool)
    return text if texts_only else value_of(text)


def _unknown(variable: str, rest: str, sink: str) -> ConfigurationError:
    name = rest[len(sink) + 1 :]
    hint = suggestion(name, _names(Sink), f"{variable.removesuffix(name)}{{}}", 0.5)
    groups = ", ".join(field.upper() for field in fields(Sink))
    return ConfigurationError(f"{variable}: unknown setting of sink {sink}; {hint}settings begin with: {groups}")


def _names(model: type[ConfigModel]) -> Iterator[str]:
    for field, info in fields(model).items():
        yield field.upper()
        for option in alternatives(info.annotation):
            if isinstance(option, type) and issubclass(option, ConfigModel):
                yield from (f"{field.upper()}_{inner}" for inner in _names(option))


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def value_of(text: str) -> Any:
    """What the text of a variable is worth, by Iggy's rule.

    `[a,b]` is a list, `true` and `false` are booleans, then whole numbers of 64 bits, then numbers, else text.
    """
    if is_list(text):
        return [value_of(item) for item in items_of(text)]
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**64:
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]")


def items_of(text: str) -> list[str]:
    return [item.strip() for item in text[1:-1].split(",")] if text[1:-1].strip() else []
