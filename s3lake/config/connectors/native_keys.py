"""`s3lake.<native path>`: any native setting, which a connector has no key for, or in place of its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType

from s3lake.config.draft import SHARED, Draft
from s3lake.config.keys import Key, Keys
from s3lake.config.overrides import accepts, fields, nested_models
from s3lake.config.report import Reference, Report, Setting, variable
from s3lake.sink import Config, ConfigModel, Sink
from s3lake.text.options import did_you_mean

PREFIX = "s3lake."
SERVERS, START = "S3LAKE_BOOTSTRAP_SERVERS", "S3LAKE_START"
_WHERE = f"Kafka is; add bootstrap.servers=HOST:PORT, or set {SERVERS}"


def apply(keys: Keys, sinks: Sequence[Draft], environment: Mapping[str, str], *, where: str = _WHERE) -> None:
    """Put what the file says after `s3lake.` over everything else, and what only this or the environment can say.

    Args:
        where: what to do if neither says where the records are.
    """
    for sink in sinks:
        keys.put(sink, [Key("bootstrap.servers", "kafka.bootstrap_servers")])
    for setting in keys.with_prefix(PREFIX):
        put(setting, sinks, keys.report)
    for sink in sinks:
        if not sink.get("start"):
            fix = f"which hour is the first; add {PREFIX}start=2026-11-20T00 (UTC), or set {START}"
            _fill(sink, "start", START, environment, fix, keys.report)
        if not sink.get("kafka.bootstrap_servers") and not sink.get("source.type"):
            _fill(sink, "kafka.bootstrap_servers", SERVERS, environment, f"where {where}", keys.report)


def _fill(sink: Draft, path: str, name: str, environment: Mapping[str, str], missing: str, report: Report) -> None:
    """Put what a variable says."""
    if environment.get(name):
        sink.put(path, environment[name], of_variable(name, name, environment))
    else:
        report.error(None, f"the file does not say {missing}")


def put(setting: Setting, sinks: Sequence[Draft], report: Report) -> None:
    """Put the text of a setting at the native path that its key names, in each of the sinks."""
    path, value = setting.key.removeprefix(PREFIX), setting.value
    if path == "kafka.bootstrap.servers":
        path = "kafka.bootstrap_servers"
    steps: list[str] = []
    rest = path
    model: type[ConfigModel] = Config if path.partition(".")[0] in SHARED else Sink
    while True:
        name, _, rest = rest.partition(".")
        allowed_names = list(fields(model))
        if name not in allowed_names:
            allowed = [*allowed_names, *(SHARED if model is Sink else ())]
            near = did_you_mean(name, allowed)
            report.error(setting, f"{name!r} is not a native setting; {near}allowed here: {', '.join(allowed)}")
            return
        steps.append(name)
        annotation = fields(model)[name].annotation
        inner = list(nested_models(annotation))
        if accepts(annotation, dict) and rest:
            steps.append(rest)
            break
        if not rest:
            if (inner and value == "") or accepts(annotation, dict):
                message = f"holds several settings: name one of them, for example {setting.key}.NAME"
                report.error(setting, f"{path!r} {message}")
                return
            break
        if not inner:
            report.error(setting, f"{name!r} holds nothing below it; take {'.' + rest!r} out")
            return
        model = inner[0]
    for sink in sinks:
        sink.put(steps, _typed(value, annotation), setting)


def _typed(value: str, annotation: object) -> object:
    if value == "null" and accepts(annotation, NoneType):
        return None
    if accepts(annotation, tuple):
        return [part.strip() for part in value.split(",")] if value else []
    return value


def of_variable(key: str, name: str, environment: Mapping[str, str]) -> Setting:
    """Return what a variable sets for `key`; written as native YAML, it stays that variable."""
    reference = Reference(f"${{{name}}}", environment[name], alone=True, secret=False)
    return Setting(key, environment[name], variable(name), reference=reference)
