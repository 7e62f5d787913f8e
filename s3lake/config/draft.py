"""A native configuration in the making: values at native paths, and the settings that they were read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from s3lake.config.keys import Given
from s3lake.config.model import WANTED, dotted, meant, model_at, names
from s3lake.config.model import field as field_of
from s3lake.config.read.document import Place as Path
from s3lake.config.setting import Notice, Place, Reference, Report, Setting, variable
from s3lake.config.variables import overridden, overrides
from s3lake.sink import Config, Misfit


@dataclass(frozen=True)
class Connector:
    """The connector of Kafka Connect whose configuration was read: what `s3lake adopt` has to know of it.

    Attributes:
        name: as in Kafka Connect, where a sink may have to be called otherwise.
        lenses: it is the Lenses connector.
        indexes: where the Lenses connector kept its index; None where it kept none, as others do not.
        group: the consumer group that `consumer.override.group.id` says; empty for Kafka Connect's own.
    """

    name: str
    lenses: bool = False
    indexes: str | None = None
    group: str = ""


@dataclass(frozen=True)
class Loaded:
    """A configuration, whichever dialect it was written in.

    Attributes:
        notices: what has to be said of settings that were accepted.
        origins: native path -> where its value was read from; defaults have none.
        references: native path -> where a value came from that does not stand in the file.
        connectors: sink name -> connector; none where the dialect is not one of Kafka Connect's.
    """

    config: Config
    notices: tuple[Notice, ...] = ()
    origins: Mapping[Path, Place] = field(default_factory=dict)
    connectors: Mapping[str, Connector] = field(default_factory=dict)
    references: Mapping[Path, Reference] = field(default_factory=dict)


@dataclass
class Draft:
    """Values at native paths: of one sink, or of what all sinks share (kafka, s3, spark)."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Setting] = field(default_factory=dict)

    def put(self, path: str | Sequence[str], value: Any, setting: Setting | None = None) -> None:
        """Set the value at a path, dotted or as steps; a `Given` brings its setting along."""
        if isinstance(value, Given):
            value, setting = value.value, value.setting or setting
        steps = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
        holder = self.values
        for step in steps[:-1]:
            inner = holder.get(step)
            if not isinstance(inner, dict):
                inner = holder[step] = {}
            holder = inner
        # What a dialect puts may be its constant, which a later `put` inside of it would change for all.
        holder[steps[-1]] = _copied(value) if isinstance(value, dict) else value
        for known in [known for known in self.origins if known[: len(steps)] == steps]:
            del self.origins[known]
        if setting is not None:
            self.origins[steps] = setting

    def copy(self) -> Draft:
        """The same once more, to go on with apart from this one."""
        return Draft(_copied(self.values), dict(self.origins))

    def get(self, path: str) -> Any:
        """The value at a dotted path; None where there is none."""
        found: Any = self.values
        for step in path.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return found


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {name: _copied(one) for name, one in value.items()}
        case list() | tuple():
            return [_copied(one) for one in value]
    return value


def compose(
    common: Draft,
    sinks: Sequence[Draft],
    report: Report,
    environment: Mapping[str, str],
    connector: Connector | None = None,
) -> Loaded:
    """The configuration that was drafted, from that of a connector where it is one.

    Args:
        common: what all sinks share.
        sinks: each sink.
        report: what is wrong so far.
        environment: `S3LAKE_SINKS_<NAME>_<PROPERTY>` in it say otherwise.
        connector: the connector.

    Raises:
        ConfigurationError: it cannot be right; each error at the setting that it comes from.
    """
    report.check()
    values = {**common.values, "sinks": [_copied(sink.values) for sink in sinks]}
    origins: dict[Path, Setting] = dict(common.origins)
    for position, sink in enumerate(sinks):
        origins |= {("sinks", position, *path): setting for path, setting in sink.origins.items()}
    values = _overridden(values, origins, environment)
    config = None
    try:
        config = Config.model_validate(values)
    except ValidationError as errors:
        for error in errors.errors(include_url=False, include_input=False):
            _note(error, origins, report)
    report.check()  # after the handler, or the model's own text would follow ours wherever the chain is shown
    if config is None:
        raise AssertionError("an error of the model was told nobody")
    places = {path: setting.place for path, setting in origins.items()}
    references = {path: setting.reference for path, setting in origins.items() if setting.reference is not None}
    connectors = {sink.name: connector for sink in config.sinks} if connector else {}
    return Loaded(config, tuple(sorted(report.notices)), places, connectors, references)


def _overridden(values: dict[str, Any], origins: dict[Path, Setting], environment: Mapping[str, str]) -> dict[str, Any]:
    for one in overrides(values, environment):
        for known in [known for known in origins if known[: len(one.place)] == one.place]:
            del origins[known]
        origins[one.place] = Setting(dotted(one.place), str(one.value), variable(one.variable))
    return overridden(values, environment)


def _note(error: Any, origins: Mapping[Path, Setting], report: Report) -> None:
    path: Path = tuple(step for step in error["loc"] if not str(step).startswith(("literal[", "Credentials")))
    if any(str(step).startswith("literal[") for step in error["loc"]) and path[:2] == ("s3", "credentials"):
        return  # the alternative that was not meant
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, Misfit):
        path += cause.path
    found = _origin(path, origins)
    setting = origins[found] if found is not None else None
    message = _message(error, path, setting if found == path else None)
    if found != path:
        message = f"{dotted(path)}: {message}"
    report.error(setting, message)


def _origin(path: Path, origins: Mapping[Path, Setting]) -> Path | None:
    """The path that has a setting and is nearest: itself, what it lies in, else what lies beside it."""
    if len(path) == 2 and path[0] == "sinks":  # what is wrong between two sinks
        path = (*path, "prefix") if (*path, "prefix") in origins else (*path, "bucket")
    for size in range(len(path), 2 if path[:1] == ("sinks",) else 0, -1):
        if path[:size] in origins:
            return path[:size]
        inner = next((known for known in origins if known[:size] == path[:size]), None)
        if inner is not None:
            return inner
    return None


def _message(error: Any, path: Path, setting: Setting | None) -> str:
    shown = f"{setting.shown} is not allowed" if setting else "is not allowed"
    match error["type"]:
        case "value_error":
            return str(error["ctx"]["error"])
        case "missing":
            examples = field_of(model_at(path[:-1]), path[-1]).examples
            return f"is missing; add it, for example {examples[0]}" if examples else "is missing; add it"
        case "extra_forbidden":
            allowed = names(model_at(path[:-1]))
            return f"unknown name; {meant(str(path[-1]), allowed)}allowed here: {', '.join(allowed)}"
        case "literal_error":
            return f"{shown}; use one of: {error['ctx']['expected']}"
    return f"{shown}; {WANTED.get(error['type'], error['msg'])}"
