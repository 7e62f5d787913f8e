"""`s3lake.<native path>`: any native setting, for what a connector's file cannot say or says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType

from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.overrides import accepts, fields, nested_models
from s3lake.config.report import Reference, Report, Setting, variable
from s3lake.sink import Config, ConfigModel, Sink
from s3lake.text.options import did_you_mean

PREFIX = "s3lake."
SERVERS, START = "S3LAKE_BOOTSTRAP_SERVERS", "S3LAKE_START"
_WHERE = f"Kafka is; add bootstrap.servers=HOST:PORT, or set {SERVERS}"
_SHARED = tuple(name for name in fields(Config) if name != "sinks")


def apply(
    keys: Keys, common: Draft, sinks: Sequence[Draft], environment: Mapping[str, str], *, where: str = _WHERE
) -> None:
    """Put what the file says after `s3lake.` over everything else, and what only this or the environment can say."""
    servers = keys.get("bootstrap.servers")
    if servers is not None:
        common.put("kafka.bootstrap_servers", servers.value, servers)
    for setting in keys.with_prefix(PREFIX):
        put(setting.key.removeprefix(PREFIX), setting.value, setting, common, sinks, keys.report)
    fill_placeholders(common, sinks, environment, keys.report, where=where)


def fill_placeholders(
    common: Draft, sinks: Sequence[Draft], environment: Mapping[str, str], report: Report, *, where: str = _WHERE
) -> None:
    """Take the servers and the first hour from the environment where the file has neither."""
    if not common.get("kafka.bootstrap_servers") and not common.get("source.type"):
        if environment.get(SERVERS):
            common.put("kafka.bootstrap_servers", environment[SERVERS], of_variable(SERVERS, SERVERS, environment))
        else:
            report.error(None, f"the file does not say where {where}")
    for sink in sinks:
        if sink.get("start"):
            continue
        if environment.get(START):
            sink.put("start", environment[START], of_variable(START, START, environment))
        else:
            fix = f"add {PREFIX}start=2026-11-20T00 (UTC), or set {START}"
            report.error(None, f"the file does not say which hour is the first; {fix}")


def put(path: str, value: str, setting: Setting, common: Draft, sinks: Sequence[Draft], report: Report) -> None:
    """Put a text at a native path: of what all sinks share, or of each of the sinks."""
    if path == "kafka.bootstrap.servers":
        path = "kafka.bootstrap_servers"
    shared = path.partition(".")[0] in _SHARED
    steps: list[str] = []
    rest = path
    model: type[ConfigModel] = Config if shared else Sink
    while True:
        name, _, rest = rest.partition(".")
        allowed_names = list(fields(model))
        if name not in allowed_names:
            allowed = [*allowed_names, *(_SHARED if model is Sink else ())]
            report.error(
                setting,
                f"{name!r} is not a native setting; {did_you_mean(name, allowed)}allowed here: {', '.join(allowed)}",
            )
            return
        steps.append(name)
        annotation = fields(model)[name].annotation
        inner = list(nested_models(annotation))
        if accepts(annotation, dict) and rest:
            steps.append(rest)
            break
        if not rest:
            if (inner and value == "") or accepts(annotation, dict):
                report.error(
                    setting, f"{path!r} holds several settings: name one of them, for example {setting.key}.NAME"
                )
                return
            break
        if not inner:
            report.error(setting, f"{name!r} holds nothing below it; take {'.' + rest!r} out")
            return
        model = inner[0]
    for draft in [common] if shared else sinks:
        draft.put(steps, _typed(value, annotation), setting)


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
