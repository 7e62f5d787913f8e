"""`S3LAKE_SINKS_<NAME>_<PROPERTY>`: single settings of a sink from the environment, whatever its dialect.

NAME is the sink's name in upper case with `-` as `_`; PROPERTY is the native path in upper case with `_` between its
steps. An empty variable says nothing.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr

from s3lake.config import values
from s3lake.errors import ConfigurationError
from s3lake.sink import Part, Sink

PREFIX = "S3LAKE_SINKS_"
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Override:
    """One variable: the place of the setting in the document, and the value that it gets there."""

    variable: str
    place: Place
    value: Any


def prefix_of(sink: str) -> str:
    """What the names of the variables of a sink begin with."""
    return f"{PREFIX}{_upper(sink)}_"


def overridden(document: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The native document with what the environment says otherwise; `document` itself is left as it is.

    Raises:
        ConfigurationError: a variable names no sink, or no setting.
    """
    changed = copy.deepcopy(dict(document))
    for override in overrides(document, environment):
        *steps, last = override.place
        at: Any = changed
        for step, then in zip(steps, override.place[1:], strict=True):
            at = _below(at, step, [] if isinstance(then, int) else {}, override)
        if isinstance(at, list) and last == len(at):
            at.append(override.value)
        else:
            at[last] = override.value
    return changed


def overrides(document: Mapping[str, Any], environment: Mapping[str, str]) -> list[Override]:
    """What the environment says of the document's sinks, in the order of the variables' names.

    Raises:
        ConfigurationError: a variable names no sink, or no setting.
    """
    sinks = document.get("sinks")
    known = [
        (position, one)
        for position, one in enumerate(sinks if isinstance(sinks, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("name"), str)
    ]
    found: list[Override] = []
    for variable in sorted(environment):
        text = environment[variable].strip()
        if variable.startswith(PREFIX) and text:
            found.append(_override(variable, text, known))
    return found


def _below(at: Any, step: str | int, fresh: Any, override: Override) -> Any:
    """What stands at `step`; where there is nothing yet, a fresh group."""
    if isinstance(at, list) and step == len(at):
        at.append(fresh)
    elif isinstance(at, dict) and at.get(step) is None:
        at[step] = fresh
    if not isinstance(at[step], type(fresh)):
        kind = "list" if isinstance(fresh, list) else "group of settings"
        raise ConfigurationError(f"{override.variable}: {step!r} is no {kind} in the file: correct it there")
    return at[step]


def _override(variable: str, text: str, sinks: list[tuple[int, Mapping[str, Any]]]) -> Override:
    rest = variable.removeprefix(PREFIX)
    named = [(position, sink) for position, sink in sinks if rest.startswith(f"{_upper(sink['name'])}_")]
    if not named:
        allowed = [_upper(sink["name"]) for _, sink in sinks]
        near = get_close_matches(rest, allowed, 1, 0.4)
        meant = f"did you mean {PREFIX}{near[0]}_…? " if near else ""
        raise ConfigurationError(
            f"{variable}: no sink of the configuration has this name; {meant}sinks here: {', '.join(allowed) or 'none'}"
        )
    fits = []
    for position, sink in named:
        name = rest[len(_upper(sink["name"])) + 1 :]
        for place, annotation in _settings(Sink, name, sink):
            fits.append((("sinks", position, *place), annotation))
            break
    if len(fits) > 1:
        meanings = " and ".join(f"{_dotted(place[2:])} of sink {sinks[_at(place)][1]['name']}" for place, _ in fits)
        raise ConfigurationError(f"{variable} can mean {meanings}: say it in the file instead")
    if not fits:
        longest = max((sink for _, sink in named), key=lambda sink: len(sink["name"]))
        raise ConfigurationError(_unknown(variable, rest, longest))
    place, annotation = fits[0]
    if _only_parts(annotation):
        inner = ", ".join(f"{variable}_{name.upper()}" for name, _ in _fields(next(_parts(annotation))))
        raise ConfigurationError(f"{variable}: {_dotted(place[2:])} is a group of settings; set one of {inner}")
    return Override(variable, place, _value(text, annotation))


def _at(place: Place) -> int:
    return int(place[1])


def _settings(model: type[Part], name: str, have: Any) -> Iterator[tuple[Place, Any]]:
    """Places below `model` that `name` can mean, the longest field names first, with what the model wants there."""
    for field, annotation in sorted(_fields(model), key=lambda one: -len(one[0])):
        if name == field.upper():
            yield (field,), annotation
        elif name.startswith(f"{field.upper()}_"):
            inside = have.get(field) if isinstance(have, Mapping) else None
            for place, wanted in _inside(annotation, name[len(field) + 1 :], inside):
                yield (field, *place), wanted


def _inside(annotation: Any, name: str, have: Any) -> Iterator[tuple[Place, Any]]:
    for part in _parts(annotation):
        yield from _settings(part, name, have)
    for kind in _alternatives(annotation):
        if get_origin(kind) is dict:
            known = [one for one in have if str(one).upper() == name] if isinstance(have, Mapping) else []
            yield (known[0] if known else name.lower(),), get_args(kind)[1]
        elif get_origin(kind) in (tuple, list):
            yield from _element(get_args(kind)[0], name, have)


def _element(kind: Any, name: str, have: Any) -> Iterator[tuple[Place, Any]]:
    """A list is changed at its numbers; the one after the last adds to it."""
    number, _, rest = name.partition("_")
    if not number.isascii() or not number.isdigit() or int(number) > (len(have) if isinstance(have, list) else 0):
        return
    position = int(number)
    if not rest:
        yield (position,), kind
        return
    inside = have[position] if isinstance(have, list) and position < len(have) else None
    for place, wanted in _inside(kind, rest, inside):
        yield (position, *place), wanted


def _value(text: str, annotation: Any) -> Any:
    """Iggy's typing, but where the model wants text the text, and where it wants a list one value is a list of one."""
    kinds = list(_alternatives(annotation))
    lists = [kind for kind in kinds if get_origin(kind) in (tuple, list)]
    if lists:
        texts = values.items_of(text) if values.is_list(text) else [text]
        return [_value(one, get_args(lists[0])[0]) for one in texts]
    typed = values.value_of(text)
    wants_text = any(kind in (str, SecretStr) or get_origin(kind) is Literal for kind in kinds)
    wants_other = any(kind in (int, float, bool) for kind in kinds)
    return text if wants_text and not wants_other else typed


def _unknown(variable: str, rest: str, sink: Mapping[str, Any]) -> str:
    name = rest[len(_upper(sink["name"])) + 1 :]
    known = list(_paths(Sink))
    near = get_close_matches(name, known, 1, 0.5)
    prefix = variable.removesuffix(name)
    meant = f"did you mean {prefix}{near[0]}? " if near else ""
    groups = ", ".join(field.upper() for field, _ in _fields(Sink))
    return f"{variable}: unknown setting of sink {sink['name']}; {meant}settings begin with: {groups}"


def _paths(model: type[Part]) -> Iterator[str]:
    for field, annotation in _fields(model):
        yield field.upper()
        for part in _parts(annotation):
            for inner in _paths(part):
                yield f"{field.upper()}_{inner}"


def _fields(model: type[Part]) -> list[tuple[str, Any]]:
    return [(info.alias or name, info.annotation) for name, info in model.model_fields.items()]


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    else:
        yield annotation


def _parts(annotation: Any) -> Iterator[type[Part]]:
    for kind in _alternatives(annotation):
        if isinstance(kind, type) and issubclass(kind, Part):
            yield kind


def _only_parts(annotation: Any) -> bool:
    kinds = [kind for kind in _alternatives(annotation) if kind is not type(None)]
    return bool(list(_parts(annotation))) and all(isinstance(kind, type) and issubclass(kind, Part) for kind in kinds)


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _dotted(place: Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
