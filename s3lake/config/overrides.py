"""Single settings from outside of a file: `s3lake.<path>`, `S3LAKE_SINKS_<NAME>_<PATH>`, `S3LAKE_KAFKA_<PATH>`, ….

The name of a variable is in upper case with `_` between its steps and for `-`. It is matched against what may be there,
the longest names first. An empty variable has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from s3lake.config.model import Config, ConfigModel, Sink
from s3lake.config.model.base import models_in
from s3lake.config.report import Path, format_path
from s3lake.errors import ConfigurationError
from s3lake.text.option_values import did_you_mean

PREFIX = "S3LAKE_SINKS_"
_SHARED = ("kafka", "s3", "spark")
"""Groups of the configuration that hold for all sinks, set by `S3LAKE_KAFKA_…` and so on."""
_OTHERS = {
    *("BENCHMARK_CLOCK", "BOOTSTRAP_SERVERS", "BUCKET", "CACHE", "CONFIG", "COUNT", "DIALECT", "ENV_PATH", "EXAMPLES"),
    *("FAILURES", "IVY_SETTINGS", "LOGS_BUCKET", "NAME", "REGISTRY_URL", "SENSORS", "START", "TEST", "WHEEL", "WORKER"),
}
"""What else comes after `S3LAKE_`: variables of s3lake, its compose file, its build, its tests and its trials."""
_FREE = ("S3LAKE_CONFIG_HTTP_", "S3LAKE_SECRET_")
"""Beginnings of variables that are read elsewhere, or that files name."""


# The model as a tree of names


def fields(model: type[ConfigModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the names that files write."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def model_at(path: Sequence[str | int]) -> type[ConfigModel]:
    """Return the model that a mapping at a path of the configuration becomes."""
    model: type[ConfigModel] = Config
    for step in path:
        if isinstance(step, str):
            model = next(models_in(fields(model)[step].annotation))
    return model


def union_members(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union; the annotation itself if it is not one."""
    if get_origin(annotation) is Annotated:
        yield from union_members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for argument in get_args(annotation):
            yield from union_members(argument)
    else:
        yield annotation


def accepts(annotation: Any, *types: Any) -> bool:
    """True if an annotation is, or is a union with, one of some types: tuple, dict, str or NoneType."""
    return any(option in types or get_origin(option) in types for option in union_members(annotation))


# One matcher for the names of variables


@dataclass(frozen=True)
class Names:
    """A place in a configuration.

    Attributes:
        inside: the places below it by their names.
        typed: returns the value that a text has here.
        added: the place of a name that is not known; None if there cannot be one.
        is_dotted: whether such names are written with dots, as properties of Kafka and Spark are.
        annotation: the annotation of the model's field.
    """

    inside: Mapping[str | int, Names]
    typed: Callable[[str], Any]
    added: Names | None = None
    annotation: Any = None
    is_dotted: bool = False


def match(name: str, names: Names) -> tuple[Path, Names] | None:
    """Return the path that a variable's name means below a place, and what is there; None if there is no such name."""
    for title, place in names.inside.items():
        if name == upper(title):
            return (title,), place
    for title, place in sorted(names.inside.items(), key=lambda item: -len(str(item[0]))):
        rest = name.removeprefix(f"{upper(title)}_")
        if rest != name and (below := match(rest, place)) is not None:
            return (title, *below[0]), below[1]
    if names.added is None or not name:
        return None
    return (name.lower().replace("_", ".") if names.is_dotted else name.lower(),), names.added


def names_of_model(annotation: Any, present: Any = None, *, is_dotted: bool = False) -> Names:
    """Return the names of the model, and of what the file has at this place: `present`."""
    inside: dict[str | int, Names] = {}
    added = None
    for option in union_members(annotation):
        if is_group(option):
            for name, info in fields(option).items():
                inner = present.get(name) if isinstance(present, Mapping) else None
                inside[name] = names_of_model(info.annotation, inner, is_dotted=is_dotted)
        elif get_origin(option) is dict:
            added = names_of_model(get_args(option)[1])
            inside |= dict.fromkeys(present if isinstance(present, Mapping) else (), added)
        elif get_origin(option) is tuple:  # the positions of a list, and the one after its last
            for position, element in enumerate([*(present if isinstance(present, list) else ()), None]):
                inside[position] = names_of_model(get_args(option)[0], element)
    return Names(inside, partial(_parse_text, annotation), added, annotation, is_dotted)


def _parse_text(annotation: Any, text: str) -> Any:
    """Return a text as the model takes it: None or a list where it wants them; it makes numbers of texts itself."""
    if text == "null" and accepts(annotation, NoneType):
        return None
    if accepts(annotation, tuple):
        return split_list(text if is_list(text) else f"[{text}]")
    return text


def is_group(option: Any) -> bool:
    """True if a member of a union is a model."""
    return any(model is option for model in models_in(option))


def set_path(document: Any, path: Path, value: Any) -> None:
    """Set the value at a path of nested dicts and lists; what is missing on the way is added.

    Raises:
        ConfigurationError: the file has another kind of value on the way.
    """
    for step, following in pairwise(path):
        fresh: Any = [] if isinstance(following, int) else {}
        if isinstance(document, list) and step == len(document):
            document.append(fresh)
        elif isinstance(document, dict) and document.get(str(step)) is None:
            document[str(step)] = fresh
        document = document[step]
        if not isinstance(document, type(fresh)):
            shape = "list" if isinstance(fresh, list) else "group of settings"
            raise ConfigurationError(f"{step!r} is not a {shape} in the file: correct it there")
    last: Any = path[-1]
    if isinstance(document, list) and last == len(document):
        document.append(value)
    else:
        document[last] = value


def upper(name: str | int) -> str:
    """Return a name as variables have it."""
    return str(name).upper().replace("-", "_").replace(".", "_")


def is_list(text: str) -> bool:
    """True if a text is a list as variables write it, `[a,b]`."""
    return text.startswith("[") and text.endswith("]")


def split_list(text: str) -> list[str]:
    """Return the items of `[a,b]`."""
    return [item.strip() for item in text[1:-1].split(",")] if text[1:-1].strip() else []


# `S3LAKE_SINKS_<NAME>_<PATH>`


class Override(NamedTuple):
    """One variable: the path of the setting in the document, and the value that it gets there."""

    variable: str
    path: Path
    value: Any


def prefix_of(sink: str) -> str:
    """Return what the names of the variables of a sink begin with."""
    return f"{PREFIX}{upper(sink)}_"


def apply_variables(document: dict[str, Any], environment: Mapping[str, str]) -> list[Override]:
    """Set the values of variables in a native document. Return these variables.

    Raises:
        ConfigurationError: a variable names no sink, or no setting.
    """
    sinks = document.get("sinks")
    by_name = {
        sink["name"]: (position, sink)
        for position, sink in enumerate(sinks if isinstance(sinks, list) else ())
        if isinstance(sink, Mapping) and isinstance(sink.get("name"), str)
    }
    shared = {f"S3LAKE_{upper(group)}_": group for group in _SHARED}
    overrides = []
    for variable, text in sorted(environment.items()):
        group = next((shared[prefix] for prefix in shared if variable.startswith(prefix)), None)
        if text.strip() and group is not None:
            overrides.append(_override_shared(variable, text.strip(), group, document.get(group)))
        elif text.strip() and variable.startswith(PREFIX):
            overrides.append(_override(variable, text.strip(), by_name))
    for override in overrides:
        try:
            set_path(document, override.path, override.value)
        except ConfigurationError as error:
            raise ConfigurationError(f"{override.variable}: {error}") from None
    return overrides


def refuse_unknown(environment: Mapping[str, str], texts: Iterable[str]) -> None:
    """Refuse a variable that begins with `S3LAKE_` and that nothing reads; ones that `texts` of files name are theirs.

    Raises:
        ConfigurationError: a variable that nothing reads; the message has the nearest name.
    """
    prefixes = (PREFIX, *_FREE, *(f"S3LAKE_{upper(group)}_" for group in _SHARED))
    for variable in sorted(environment):
        name = variable.removeprefix("S3LAKE_")
        if name == variable or name in _OTHERS or variable.startswith(prefixes):
            continue
        if not any(variable in text for text in texts):
            groups = [f"{upper(group)}_{upper(field)}" for group in _SHARED for field in fields(model_at([group]))]
            hint = did_you_mean(name, [*sorted(_OTHERS), *groups, "SINKS_"], "S3LAKE_{}", 0.6)
            beginnings = ", ".join(f"{prefix}…" for prefix in prefixes)
            raise ConfigurationError(
                f"{variable}: nothing reads this variable; {hint}unset it, or correct its name: settings begin with "
                f"{beginnings}"
            )


def _override_shared(variable: str, text: str, group: str, present: Any) -> Override:
    """Read a variable of a group that holds for all sinks."""
    names = names_of_model(fields(Config)[group].annotation, present, is_dotted=group != "s3")
    prefix = f"S3LAKE_{upper(group)}_"
    matched = match(variable.removeprefix(prefix), names)
    if matched is None:
        hint = did_you_mean(variable.removeprefix(prefix), variable_names(names), f"{prefix}{{}}", 0.5)
        settings = ", ".join(upper(field) for field in fields(model_at([group])))
        raise ConfigurationError(f"{variable}: unknown setting of {group}; {hint}settings begin with: {settings}")
    path, place = matched
    _refuse_group(variable, path, place)
    return Override(variable, (group, *path), place.typed(text))


def _override(variable: str, text: str, sinks: Mapping[str, tuple[int, Any]]) -> Override:
    begun = [name for name in sinks if variable.startswith(prefix_of(name))]
    if not begun:
        allowed = [upper(name) for name in sinks]
        hint = did_you_mean(variable.removeprefix(PREFIX), allowed, f"{PREFIX}{{}}_…", 0.4)
        raise ConfigurationError(
            f"{variable}: no sink of the configuration has this name; {hint}sinks here: {', '.join(allowed) or 'none'}"
        )
    settings = {
        name: matched
        for name in begun
        if (matched := match(variable.removeprefix(prefix_of(name)), names_of_model(Sink, sinks[name][1])))
    }
    if len(settings) > 1:
        meanings = " and ".join(f"{format_path(path)} of sink {name}" for name, (path, _) in settings.items())
        raise ConfigurationError(f"{variable} can mean {meanings}: set it in the file instead")
    if not settings:
        sink = max(begun, key=len)
        name = variable.removeprefix(prefix_of(sink))
        hint = did_you_mean(name, variable_names(names_of_model(Sink)), f"{prefix_of(sink)}{{}}", 0.5)
        groups = ", ".join(field.upper() for field in fields(Sink))
        raise ConfigurationError(f"{variable}: unknown setting of sink {sink}; {hint}settings begin with: {groups}")
    ((name, (path, place)),) = settings.items()
    _refuse_group(variable, path, place)
    return Override(variable, ("sinks", sinks[name][0], *path), place.typed(text))


def _refuse_group(variable: str, path: Path, place: Names) -> None:
    groups_here = [option for option in union_members(place.annotation) if option is not NoneType]
    if all(map(is_group, groups_here)):
        inner = ", ".join(f"{variable}_{field.upper()}" for field in fields(groups_here[0]))
        raise ConfigurationError(f"{variable}: {format_path(path)} is a group of settings; set one of {inner}")


def variable_names(names: Names, start: str = "") -> Iterator[str]:
    """Yield the names of variables for what is below a place."""
    for title, place in names.inside.items():
        yield f"{start}{upper(title)}"
        yield from variable_names(place, f"{start}{upper(title)}_")
