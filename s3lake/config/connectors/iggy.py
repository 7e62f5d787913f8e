"""Apache Iggy's sinks: a connector's TOML file, or the runtime's, which names a directory of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from s3lake.config.connectors import (
    connect,
    credentials,
    iggy_forwards,
    iggy_runtime,
    iggy_variables,
    native_keys,
    transforms,
)
from s3lake.config.connectors.connect import escape_braces
from s3lake.config.connectors.iggy_file import File
from s3lake.config.connectors.iggy_runtime import SECTION, Server
from s3lake.config.connectors.iggy_schemas import CONVERSIONS, PayloadSchemas
from s3lake.config.draft import Draft, Sketch, join_drafts
from s3lake.config.keys import Keys, Value
from s3lake.config.read import toml
from s3lake.config.report import Path, Place, Report, Setting
from s3lake.config.variables import Variables
from s3lake.text.options import did_you_mean
from s3lake.text.quantities import parse_duration, parse_size

TOPIC_TEMPLATE = "{stream}.{topic}"
_WHERE = (
    "the records are: set IGGY_CONNECTORS_IGGY_ADDRESS=HOST:PORT, or give the runtime's file, which has [iggy]; or, "
    f"where they are in Kafka, add [s3lake] kafka.bootstrap_servers, or set {native_keys.SERVERS}"
)
_RUNTIME = ("http", "iggy", "state", "connectors", "logging", "telemetry")
_RUNTIME_REASONS = {
    "http": "Dagster has the user interface",
    "state": "the index is in the bucket",
    "logging": "Dagster says how runs are logged",
    "telemetry": "every run's figures are in Dagster",
}
_TRANSFORMS = ("add_fields", "delete_fields", "filter_fields", "update_fields", "unwrap_envelope")
_OUTPUTS: dict[str, tuple[str, Mapping[str, str] | None, str]] = {
    "json_lines": ("json", None, ".jsonl"),
    "json_array": ("json_array", {"opening": "[", "between": ",", "closing": "]"}, ".json"),
    "raw": ("bytes", {"opening": "", "between": "", "closing": ""}, ".bin"),
}
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_VARIABLES = {"partition": "{partition}", "date": "{time:yyyy-MM-dd}", "hour": "{time:HH}"}
_NO_EFFECT = {
    "version": "the file that is given is the one that runs",
    "name": "the sink is called after key",
    "path": "s3lake has no plugins",
    "plugin_config_format": "s3lake has no plugins",
    "verbose": "every run's figures are in Dagster",
    "benchmark": "every run's figures are in Dagster",
}
_STREAM_NO_EFFECT = {
    "batch_length": "batch_records says how many records a micro-batch has",
    "poll_interval": "sensors say when a micro-batch starts",
    "consumer_group": "offsets are in the index; no consumer group is used",
}


def loads(content: str, report: Report, references: Variables) -> Sketch:
    """Read a connector's file, or all sinks of a runtime, into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    main = File(report.file, *toml.read(content, report.file))
    alone = "type" in main.data or not any(section in main.data for section in _RUNTIME)
    files, beside = [main], []
    variables = references.environment
    if alone:
        runtime = iggy_variables.apply_to_runtime(File(main.name, {}, {}), variables, report)
        for path, place in runtime.places.items():
            if path[:1] != (SECTION,):
                report.notice(place, "has no effect: the file is that of one connector, not the runtime's")
    else:
        runtime = iggy_variables.apply_to_runtime(main, variables, report)
        files = list(iggy_runtime.read_connectors(runtime, report, references))
        beside = _runtime(runtime, report, references)
    server = Server(runtime, report, references)
    common, sinks = Draft(), list[Draft]()
    if alone or not iggy_runtime.is_over_http(runtime):  # in Iggy neither
        files = list(iggy_variables.apply_to_connectors(files, variables, report))
    # A sink of S3 first: it lands what others forward.
    for file in sorted(files, key=lambda file: "s3_sink" not in str(file.data.get("path", "s3_sink"))):
        own, of_file = _connector(file, beside, server, report, references, sinks, alone=alone)
        _join(common, own, of_file, file, report)
        sinks += of_file
    if sinks:
        server.tell()
    if not sinks and not report.failed:
        report.error(
            None, 'no sink is enabled here; a sink has type = "sink", enabled = true and the path of its plugin'
        )
    return join_drafts(common, sinks, report)


def _chain(file: File, sink: Draft, report: Report) -> None:
    """Put the transforms that are enabled, in the order of the file."""
    tables = file.data.get("transforms", {})
    if not isinstance(tables, dict):
        report.error(
            file.places.get(("transforms",)), "is not a table; write [transforms.NAME] for each, in their order"
        )
        return
    for name, table in tables.items():
        place = file.places.get(("transforms", name), Place(file.name))
        if name not in _TRANSFORMS + CONVERSIONS:
            near = did_you_mean(name, _TRANSFORMS)
            report.error(place, f"unknown transform; {near}allowed here: {', '.join(_TRANSFORMS)}")
        elif not isinstance(table, dict) or not isinstance(table.get("enabled"), bool):
            report.error(place, "needs `enabled = true` or `enabled = false`")
        elif table["enabled"] and name in _TRANSFORMS:
            options = {key: value for key, value in table.items() if key != "enabled"}
            origins: dict[Path, Setting] = {("type",): Setting(place.key, name, place)}
            for key, value in options.items():
                at = file.places.get(("transforms", name, key), place)
                origins["options", key] = Setting(at.key, str(value), at)
            transforms.add(sink, {"name": name, "type": f"iggy.{name}", "options": options}, origins)


def _connector(
    file: File,
    beside: Sequence[Setting],
    server: Server,
    report: Report,
    references: Variables,
    others: Sequence[Draft],
    *,
    alone: bool,
) -> tuple[Draft, list[Draft]]:
    settings = references.resolve([*file.settings("transforms"), *beside], report)
    template = next((setting for setting in settings if setting.key == "s3lake.topic_template"), None)
    keys = Keys([setting for setting in settings if setting is not template], report)
    common, each = Draft(), Draft()
    kind = _find_kind(keys, report, alone=alone)
    if kind is None:
        return common, []
    key = keys.required("key", '"lake"')
    keys.no_effect(_NO_EFFECT)
    each.put("from", "earliest")
    each.put("nulls", "write")
    _chain(file, each, report)
    forward = None
    if kind == "s3":
        _plugin(keys, common, each)
    elif kind == "iceberg":
        iggy_forwards.put_table(keys, common, each, file.data.get("plugin_config"))
    else:
        forward = iggy_forwards.read_forward(kind, keys, key)
    if server.put(common, settings) and template is not None:
        report.notice(template, "has no effect: the topics are Iggy's own, and called after stream and topic")
        template = None
    sinks = list(_sinks(file, keys, each, key, template, kind=kind))
    if forward is not None:
        sinks = iggy_forwards.attach(forward, sinks, others)
    native_keys.apply(keys, common, sinks, references.environment, where=_WHERE)
    if kind != "s3":
        iggy_forwards.require_buckets(sinks, keys.get("path"), keys, references.environment)
    keys.report_unknown()
    return common, sinks


def _find_kind(keys: Keys, report: Report, *, alone: bool) -> str | None:
    """Return which sink the file is, `s3` or one of `iggy_forwards.KINDS`. Return None if it lands nothing.

    A file that is given alone has to be an enabled sink.
    """
    role, plugin, enabled = keys.get("type"), keys.get("path"), keys.boolean("enabled", True)
    if role is None or role.value not in ("sink", "source"):
        report.error(
            role, (f"{role.masked_value} is not allowed" if role else "type is missing") + '; write type = "sink"'
        )
        return None
    kinds = ("s3", *iggy_forwards.KINDS)
    kind = "s3" if plugin is None else next((kind for kind in kinds if f"{kind}_sink" in plugin.value), None)
    refusal: tuple[Setting | None, str] | None = None
    if role.value == "source":
        refusal = role, "is a source; s3lake has sinks only"
    elif plugin is None:
        report.notice(role, "path is missing: the sink is taken for the S3 sink; write the path of its plugin")
    elif kind is None:
        refusal = plugin, f"{plugin.masked_value} is not a sink that s3lake has: it has {', '.join(kinds)}"
    elif not enabled.value:
        refusal = enabled.setting, "is false, so nothing is landed; write enabled = true"
    if refusal is not None:
        (report.error if alone else report.notice)(*refusal)
        return None
    return kind


def _plugin(keys: Keys, common: Draft, sink: Draft) -> None:
    p = "plugin_config."
    sink.put("bucket", keys.required(f"{p}bucket", '"my-bucket"'))
    common.put("s3.region", keys.required(f"{p}region", '"us-east-1"'))
    endpoint = keys.text(f"{p}endpoint")
    if endpoint.value:
        common.put("s3.endpoint_url", endpoint)
    common.put("s3.path_style", keys.boolean(f"{p}path_style", bool(endpoint.value)))
    credentials.pair(keys, common, f"{p}access_key_id", f"{p}secret_access_key")
    if keys.get(f"{p}max_attempts") and (old := keys.get(f"{p}max_retries")):
        keys.wrong(old, f"is given next to {p}max_attempts; take one of them out")
    name = f"{p}max_retries" if keys.get(f"{p}max_retries") else f"{p}max_attempts"
    common.put("s3.retries.max_attempts", keys.integer(name, 3, 1))
    delay = _quantity(keys, f"{p}retry_delay", "1s", parse_duration)
    common.put("s3.retries.backoff_ms", delay.map(lambda seconds: round(seconds * 1000)))
    sink.put("prefix", keys.text(f"{p}prefix").map(lambda prefix: prefix.strip("/")))
    _rotation(keys, sink)
    output = keys.choice(f"{p}output_format", _OUTPUTS, "json_lines")
    form, framing, extension = output.value
    sink.put("format.type", form, output.setting)
    sink.put("format.codec", "none")
    if framing is not None:
        sink.put("format.framing", dict(framing), output.setting)
    sink.put("layout.extension", extension, output.setting)
    metadata, headers = keys.boolean(f"{p}include_metadata", True), keys.boolean(f"{p}include_headers", False)
    if form == "bytes":
        for flag in (metadata, headers):
            if flag.setting and flag.value:
                keys.report.notice(flag.setting, "has no effect with output_format raw, which holds payloads only")
    else:
        fields = [name for name, on in (("metadata", metadata), ("headers", headers)) if on.value]
        sink.put("envelope.style", "iggy")
        sink.put("envelope.fields", [*fields, "value"], headers.setting or metadata.setting)


def _rotation(keys: Keys, sink: Draft) -> None:
    p = "plugin_config."
    by = keys.choice(f"{p}file_rotation", {"size": "size", "messages": "messages"}, "size")
    size = _quantity(keys, f"{p}max_file_size", "8MiB", parse_size)
    count = keys.integer(f"{p}max_messages_per_file", 0, 1)
    sink.put("flush", connect.FLUSH)
    if by.value == "size":
        sink.put("flush.size", size)
        sink.put("flush.count", None)
    else:
        sink.put("flush.size", connect.LARGEST_FILE)
        sink.put("flush.count", count)
        if count.setting is None and by.setting is not None and not keys.has(f"{p}max_messages_per_file"):
            keys.wrong(by.setting, f"'messages' needs a number; add {p}max_messages_per_file = 10000")
    unused = count if by.value == "size" else size
    if unused.setting is not None:
        keys.report.notice(unused.setting, f"has no effect with file_rotation {by.value}")


def _quantity(keys: Keys, key: str, default: str, read: Any) -> Value[Any]:
    setting = keys.get(key)
    if setting is None:
        return Value(read(default))
    try:
        return Value(read(setting.value.replace(" ", "")), setting)
    except ValueError as error:
        keys.wrong(setting, str(error))
        return Value(read(default))


def _sinks(
    file: File, keys: Keys, each: Draft, key: Value[str], template: Setting | None, *, kind: str
) -> Iterator[Draft]:
    """Yield one sink for each stream and topic: both names are in its keys and its lines."""
    streams = file.data.get("streams")
    if not isinstance(streams, list) or not streams:
        keys.report.error(
            file.places.get(("streams",)), "[[streams]] is missing; add one with stream, topics and schema"
        )
        return
    pairs = [(at, topic) for at, one in enumerate(streams) for topic in _topics(keys, at, one)]
    spelled = template.value if template else TOPIC_TEMPLATE
    if template and not {"{stream}", "{topic}"} & set(re.findall(r"\{\w+\}", spelled)):
        keys.wrong(
            template, f"{template.masked_value} is the same for every topic; write it with {{stream}} and {{topic}}"
        )
    schemas = PayloadSchemas(file, keys.report)
    for at, topic in pairs:
        stream = keys.text(f"streams[{at}].stream")
        sink = each.copy()
        title = key.value if len(pairs) == 1 else f"{key.value}-{stream.value}-{topic}"
        sink.put("name", re.sub(r"[^A-Za-z0-9_-]+", "-", title), key.setting)
        name = spelled.replace("{stream}", stream.value).replace("{topic}", topic)
        sink.put("topics", [name], template or keys.get(f"streams[{at}].topics"))
        if kind == "s3":
            path = keys.get("plugin_config.path_template")
            sink.put("layout.template", _template(keys, stream.value, topic), path)
        else:
            sink.put("prefix", sink.get("name"))
        if sink.get("envelope") is not None:
            sink.put("envelope.stream", stream.value)
            sink.put("envelope.topic", topic)
        schemas.put(sink, keys, at)
        yield sink


def _topics(keys: Keys, at: int, stream: Any) -> list[str]:
    prefix = f"streams[{at}]."
    keys.required(f"{prefix}stream", '"application_logs"')
    keys.no_effect({f"{prefix}{name}": reason for name, reason in _STREAM_NO_EFFECT.items()})
    setting = keys.get(f"{prefix}topics")
    if keys.get(f"{prefix}schema") is None:
        keys.required(f"{prefix}schema", '"json"')
    topics = stream.get("topics") if isinstance(stream, dict) else None
    if (
        setting is None
        or not isinstance(topics, list)
        or not topics
        or not all(isinstance(topic, str) for topic in topics)
    ):
        message = "is not a list of names" if setting else f"{prefix}topics is missing"
        keys.report.error(setting, f'{message}; write topics = ["name", "name"]')
        return []
    return topics


def _template(keys: Keys, stream: str, topic: str) -> str:
    path = keys.text("plugin_config.path_template", "{stream}/{topic}/{date}/{hour}")
    variables = {**_VARIABLES, "stream": escape_braces(_safe(stream)), "topic": escape_braces(_safe(topic))}
    pieces, position = [], 0
    for match in _VARIABLE.finditer(path.value):
        pieces.append(escape_braces(path.value[position : match.start()]))
        position = match.end()
        if match[1] in variables:
            pieces.append(variables[match[1]])
        elif path.setting is not None:
            message = (
                f"{match[0]} is unknown; {did_you_mean(match[1], list(variables))}use {', '.join(sorted(variables))}"
            )
            if match[1] == "timestamp":
                message = "{timestamp} is the time of the upload, so a retry would write another object; take it out"
            keys.wrong(path.setting, message)
    directory = "".join([*pieces, escape_braces(path.value[position:])]).strip("/")
    return f"{directory}/".lstrip("/") + "{partition:05}-{offset:020}-{last_offset:020}"


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def _runtime(file: File, report: Report, references: Variables) -> list[Setting]:
    """Return the `s3lake.*` settings of the runtime's file. Note unused and unknown sections."""
    for section, reason in _RUNTIME_REASONS.items():
        if section in file.data:
            report.no_effect(file.places.get((section,), Place(file.name, key=section)), reason)
    for section in file.data:
        if section not in (*_RUNTIME, "s3lake"):
            near = did_you_mean(section, _RUNTIME)
            report.notice(
                file.places.get((section,)),
                f"unknown section: nothing reads it here; {near}known are: {', '.join(_RUNTIME)}, s3lake",
            )
    return references.resolve([setting for setting in file.settings() if setting.key.startswith("s3lake.")], report)


def _join(common: Draft, own: Draft, sinks: Sequence[Draft], file: File, report: Report) -> None:
    """Join what sinks share: Kafka is one for all; S3 that is reached otherwise is put to the sinks."""
    for name, value in own.values.items():
        of_it = {path: setting for path, setting in own.origins.items() if path[:1] == (name,)}
        if common.values.setdefault(name, value) == value:
            common.origins.update(of_it)
        elif name == "s3":
            for sink in sinks:
                sink.put("s3", value)
                sink.origins.update(of_it)
        else:
            report.error(
                Place(file.name), f"{name} differs from that of another connector; give it a configuration of its own"
            )
