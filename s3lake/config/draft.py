"""A native configuration in the making: values at native paths, and the settings that they were read from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from s3lake.config.model import Config, ConfigModel, RuleError
from s3lake.config.overrides import apply_variables, fields, model_at
from s3lake.config.report import Notice, Path, Place, Reference, Report, Setting, Value, format_path, variable
from s3lake.errors import ConfigurationError
from s3lake.text.masking import is_secret
from s3lake.text.option_values import did_you_mean, suggest

_LIST = "write a list: one entry a line after '- ', or [one, two]"
_MAPPING = "write a mapping: one `name: value` a line"
_WANTED = {
    **dict.fromkeys(("bool_parsing", "bool_type"), "write true or false"),
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "write a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "write a number"),
    "string_type": "write text",
    "tuple_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
}
"""The remedy by pydantic's type of error."""


@dataclass(frozen=True)
class Connector:
    """The connector of Kafka Connect whose configuration was read: what `s3lake adopt` has to know of it.

    Attributes:
        name: the connector's name in Kafka Connect; the sink's may differ.
        indexes: where the Lenses connector kept its index; None if it kept none, as the others.
        group: the value of `consumer.override.group.id`; empty for Kafka Connect's own.
    """

    name: str
    lenses: bool = False
    indexes: str | None = None
    group: str = ""


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration, in whichever dialect it was written.

    Attributes:
        settings: native path -> the setting that its value was read from; defaults have none.
        connectors: sink name -> connector, if the dialect is one of Kafka Connect's.
        without_effect: known settings that have no effect here, each with the reason.
        placeholders: places of variables that are not set, in the place of what landing needs.
    """

    config: Config
    notices: tuple[Notice, ...] = ()
    settings: Mapping[Path, Setting] = field(default_factory=dict, repr=False)
    connectors: Mapping[str, Connector] = field(default_factory=dict)
    without_effect: tuple[Notice, ...] = ()
    placeholders: frozenset[Place] = frozenset()

    @property
    def origins(self) -> dict[Path, Place]:
        """The place that each value was read from."""
        return {path: setting.place for path, setting in self.settings.items()}

    @property
    def references(self) -> dict[Path, Reference]:
        """The origin of each value that is not written in the file."""
        return {path: setting.reference for path, setting in self.settings.items() if setting.reference}


@dataclass
class Draft:
    """Values at native paths: of a whole configuration, or of one sink with what it needs of `SHARED`."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Setting] = field(default_factory=dict)

    def put(self, path: str | Sequence[Any], value: Any, setting: Setting | None = None) -> None:
        """Set the value at a path, dotted or as steps; a `Value` brings its setting along, a `Draft` all of its own."""
        inside: Mapping[Path, Setting] = {}
        if isinstance(value, Value):
            value, setting = value.value, value.setting or setting
        elif isinstance(value, Draft):
            value, inside = value.values, value.origins
        steps = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
        holder = self.values
        for step in steps[:-1]:
            inner = holder.get(step)
            if not isinstance(inner, dict):
                inner = holder[step] = {}
            holder = inner
        # What a dialect puts may be its constant, which a later `put` inside of it would change for all.
        holder[steps[-1]] = _copy(value) if isinstance(value, dict) else value
        self.forget(steps)
        if setting is not None:
            self.origins[steps] = setting
        self.origins |= {(*steps, *path): setting for path, setting in inside.items()}

    def append(self, name: str, part: Draft) -> None:
        """Append a draft to the list of that name."""
        parts = self.values.setdefault(name, [])
        self.origins |= {(name, len(parts), *path): setting for path, setting in part.origins.items()}
        parts.append(_copy(part.values))

    def forget(self, path: Path) -> None:
        """Forget where the value at a path, and what is in it, came from."""
        for inside in [inside for inside in self.origins if inside[: len(path)] == path]:
            del self.origins[inside]

    def at(self, path: Path) -> Any:
        """Return the value at a path; None if there is none."""
        return value_at(self.values, path)

    def copy(self) -> Draft:
        """Return a copy that can be changed apart from this draft."""
        return Draft(_copy(self.values), dict(self.origins))

    def get(self, path: str) -> Any:
        """Return the value at a dotted path; None if there is none."""
        return self.at(tuple(path.split(".")))


def value_at(holder: Any, path: Path) -> Any:
    """Return the value at a path of a model or of plain values; None if there is none."""
    for step in path:
        if isinstance(holder, ConfigModel):
            name = next((name for name, info in type(holder).model_fields.items() if step in (info.alias, name)), None)
            holder = getattr(holder, name) if name else None
        elif isinstance(holder, Mapping):
            holder = holder.get(step)
        elif isinstance(holder, list | tuple) and isinstance(step, int) and step < len(holder):
            holder = holder[step]
        else:
            return None
    return holder


def _copy(value: Any) -> Any:
    match value:
        case dict():
            return {name: _copy(item) for name, item in value.items()}
        case list() | tuple():
            return [_copy(item) for item in value]
    return value


@dataclass
class ConfigDraft:
    """The content of a text, before variables change it and the model validates it.

    A `native` one has native names, which messages then use, and the place of every value.
    """

    draft: Draft
    report: Report
    connector: Connector | None = None
    native: bool = False

    @property
    def sinks(self) -> list[str]:
        """Return the names of its sinks."""
        sinks = self.draft.values.get("sinks")
        named = [sink.get("name") for sink in sinks if isinstance(sink, dict)] if isinstance(sinks, list) else []
        return [name for name in named if isinstance(name, str)]

    def validate(self, environment: Mapping[str, str]) -> LoadedConfig:
        """Return the configuration, with what `S3LAKE_SINKS_<NAME>_<PROPERTY>` in the environment set.

        Raises:
            ConfigurationError: it is not valid; each error at the setting that it comes from.
        """
        if not self.native:
            self.report.check()
        wrong_variable = None
        try:
            self._override(environment)
        except ConfigurationError as error:
            wrong_variable = error
        config = self._validate_model()
        self.report.check()
        if wrong_variable is not None:  # the last error: one in the file may cause it
            raise wrong_variable
        assert config is not None, "an error of the model was not reported"
        connectors = {sink.name: self.connector for sink in config.sinks} if self.connector else {}
        notices = tuple(sorted(notice for notice in self.report.notices if not self._is_overridden(notice)))
        without_effect = tuple(sorted(self.report.without_effect))
        return LoadedConfig(config, notices, self.draft.origins, connectors, without_effect)

    def split(self) -> list[Draft]:
        """Return a draft of each sink, with what holds for all: what `join_drafts` joins."""
        values, origins = self.draft.values, self.draft.origins
        shared = {"s3": {}, **{name: value for name, value in values.items() if name != "sinks"}}
        parts = []
        for position, sink in enumerate(values["sinks"]):
            at, taken = ("sinks", position), ("sinks", *sink)
            settings = {path: setting for path, setting in origins.items() if path[:1] and path[0] not in taken}
            settings |= {path[2:]: setting for path, setting in origins.items() if path[:2] == at and path[2:]}
            parts.append(Draft({**shared, **sink}, settings))
        return parts

    def _is_overridden(self, notice: Notice) -> bool:
        """True if a file or a variable sets what the notice names, with any value."""
        sink, path = notice.override
        if not path or sink not in self.sinks:
            return False
        setting = self.draft.origins.get(("sinks", self.sinks.index(sink), *path.split(".")))
        return setting is not None and (setting.key == f"s3lake.{path}" or setting.place.line == 0)

    def _override(self, environment: Mapping[str, str]) -> None:
        for change in apply_variables(self.draft.values, environment):
            self.draft.forget(change.path)
            setting = Setting(format_path(change.path), str(change.value), variable(change.variable))
            self.draft.origins[change.path] = setting
            if is_secret(setting.key):
                self.report.secrets.add(setting.value)

    def _validate_model(self) -> Config | None:
        try:
            return Config.model_validate(self.draft.values)
        except ValidationError as refused:
            errors = refused.errors(include_url=False, include_input=False)
        if self._use_texts(errors):
            return self._validate_model()
        for error in errors:
            self._report_error(error)
        return None

    def _use_texts(self, errors: Sequence[Any]) -> bool:
        """Make a scalar its own text if the model wants text, so that `char: 0` needs no quotes."""
        changed = False
        for error in errors:
            path = self._path(error["loc"]) or ()
            setting = self.draft.origins.get(path)
            if error["type"] == "string_type" and path and setting and not setting.shape:
                holder = self.draft.at(path[:-1])
                changed = changed or not isinstance(holder[path[-1]], str)
                holder[path[-1]] = setting.value
        return changed

    def _path(self, location: Sequence[str | int]) -> Path | None:
        """Return a location of pydantic's as a path; None for an alternative of a union that was not meant."""
        path: Path = ()
        for step in location:
            holder = self.draft.at(path)
            alternative = step == "Credentials" or str(step).startswith("literal[")
            if not alternative or (isinstance(holder, dict) and step in holder):
                path = (*path, step)
            elif (step == "Credentials") != isinstance(holder, dict):
                return None
        return path

    def _report_error(self, error: Any) -> None:
        path = self._path(error["loc"])
        if path is None:
            return
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, RuleError):
            path += cause.path
        if (
            any(format_path(path[:size]) in self.report.unresolved_keys for size in range(len(path) + 1))
            and self.native
        ):
            return
        origin = self._origin(path)
        setting = self.draft.origins[origin] if origin is not None else None
        message = self._message(error, path, setting if origin == path else None)
        if self.native:
            assert setting is not None, "every value of a native text has its place"
            place = setting.place if error["type"] == "extra_forbidden" and origin == path else setting.at(0)
            self.report.error(replace(place, key=format_path(path)), message)
        else:
            self.report.error(setting, message if origin == path else f"{format_path(path)}: {message}")

    def _origin(self, path: Path) -> Path | None:
        """Return the nearest path that has a setting: itself, one above it, else one next to it."""
        origins = self.draft.origins
        if len(path) == 2 and path[0] == "sinks" and path not in origins:  # what is wrong between two sinks
            path = (*path, "prefix") if (*path, "prefix") in origins else (*path, "bucket")
        outside = 2 if path[:1] == ("sinks",) else 0
        for size in range(len(path), -1 if self.native else outside, -1):
            if path[:size] in origins:
                return path[:size]
            inner = next((near for near in origins if near[:size] == path[:size]), None)
            if inner is not None:
                return inner
        return None

    def _message(self, error: Any, path: Path, setting: Setting | None) -> str:
        shown = f"{setting.masked_value} is not allowed" if setting else "is not allowed"
        match error["type"]:
            case "value_error":
                return str(error["ctx"]["error"])
            case "missing":
                examples = fields(model_at(path[:-1]))[str(path[-1])].examples
                example = f"`{path[-1]}: {examples[0]}`" if self.native and examples else examples and examples[0]
                return f"is missing; add it, for example {example}" if examples else "is missing; add it"
            case "extra_forbidden":
                allowed = list(fields(model_at(path[:-1])))
                return f"unknown name; {suggest(str(path[-1]), allowed, 'allowed here')}"
            case "literal_error":
                choices = re.findall(r"'([^']*)'", error["ctx"]["expected"])
                also = f", or {_MAPPING}" if self.native and path[-2:] == ("s3", "credentials") else ""
                near = did_you_mean(setting.value, choices) if setting else ""
                return f"{shown}; {near}use one of: {', '.join(choices)}{also}"
        return f"{shown}; {_WANTED.get(error['type'], error['msg'])}"


SHARED = tuple(name for name in fields(Config) if name != "sinks")
"""Names at the top of a configuration that hold for all sinks."""


def join_drafts(sinks: Sequence[Draft], report: Report, connector: Connector | None = None) -> ConfigDraft:
    """Join the drafts of sinks, each with what it needs of `SHARED`.

    S3 is put to a sink if it differs from the first one's. If anything else differs, an error is reported.
    """
    whole, own = Draft(), [Draft() for _ in sinks]
    for sink, rest in zip(sinks, own, strict=True):
        for name, value in sink.values.items():
            settings = {path: setting for path, setting in sink.origins.items() if path[0] == name}
            if name in SHARED and whole.values.setdefault(name, value) == value:
                whole.origins.update(settings)
            elif name in SHARED and name != "s3":
                place = next((setting.place for setting in settings.values()), None)
                message = f"{name} differs from another file's; write the same into each"
                report.error(place, message)
            else:
                rest.values[name] = value
                rest.origins.update(settings)
    whole.values["sinks"] = [_copy(rest.values) for rest in own]
    for position, rest in enumerate(own):
        whole.origins |= {("sinks", position, *path): setting for path, setting in rest.origins.items()}
    return ConfigDraft(whole, report, connector)
