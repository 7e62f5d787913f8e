"""Apache Iggy's sinks: a connector's TOML file, or the runtime's, which names a directory of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from s3lake.config.connector_keys import SERVERS, ConnectorKey, Keys, put_native, same
from s3lake.config.connectors import connect_keys, iggy_forwards, iggy_runtime, s3_credentials
from s3lake.config.connectors.connect_keys import escape_braces
from s3lake.config.connectors.iggy_runtime import ELSEWHERE, SECTION, TABLES
from s3lake.config.draft import ConfigDraft, Draft, join_drafts, value_at
from s3lake.config.model.format import LARGEST_FILE
from s3lake.config.report import Report, Setting, Value
from s3lake.config.syntax import toml_file
from s3lake.config.variables import Variables
from s3lake.text.option_values import did_you_mean, suggest
from s3lake.text.quantities import parse_duration, parse_size

TOPIC_TEMPLATE = "{stream}.{topic}"
_WHERE = (
    "the records are: set IGGY_CONNECTORS_IGGY_ADDRESS=HOST:PORT, or give the runtime's file, which has [iggy]; or, "
    f"where they are in Kafka, add [s3lake] kafka.bootstrap_servers, or set {SERVERS}"
)
_RUNTIME = ("http", "iggy", "state", "connectors", "logging", "telemetry")
_RUNTIME_REASONS = {
    "http": "Dagster has the user interface",
    "state": "the index is in the bucket",
    "logging": "Dagster configures how runs are logged",
    "telemetry": "every run's figures are in Dagster",
}
_TRANSFORMS = ("add_fields", "delete_fields", "filter_fields", "update_fields", "unwrap_envelope")
_CONVERTERS = {"json": "json", "raw": "bytes", "text": "string", "proto": "protobuf", "avro": "avro"}
_CONVERSIONS = {
    "proto": {"descriptor_set": "descriptor_set", "message_type": "message"},
    "avro": {"schema_path": "schema_file"},
}
"""By schema, the options of its conversion that describe messages, and what they are in `converter.registry`."""
_REGISTRY = "s3lake.converter.registry."
_IN_SCHEMA = ("include_paths", "preserve_unknown_fields", "conversion_options", "schema_registry_url")
_OUTPUTS = {
    "json_lines": ("json", None, ".jsonl"),
    "json_array": ("json_array", {"opening": "[", "between": ",", "closing": "]"}, ".json"),
    "raw": ("bytes", {"opening": "", "between": "", "closing": ""}, ".bin"),
}
"""By `output_format`: format, framing, extension."""
_VARIABLE = re.compile(r"\{[^{}]*\}")
_VARIABLES = {"{partition}": "{partition}", "{date}": "{time:yyyy-MM-dd}", "{hour}": "{time:HH}"}
_NO_EFFECT = {
    "version": "the file that is given is the one that runs",
    "name": "the sink is called after key",
    "path": "s3lake has no plugins",
    "plugin_config_format": "s3lake has no plugins",
    "verbose": "every run's figures are in Dagster",
    "benchmark": "every run's figures are in Dagster",
}
_STREAM_NO_EFFECT = {
    "batch_length": "batch_records sets how many records a micro-batch has",
    "poll_interval": "sensors decide when a micro-batch starts",
    "consumer_group": "offsets are in the index; no consumer group is used",
}


_P = "plugin_config."
_DECIDING = ("type", "enabled", f"{_P}file_rotation", f"{_P}store_class")
_KEYS = (
    ConnectorKey(f"{_P}bucket", "bucket", example='"my-bucket"'),
    ConnectorKey(f"{_P}region", "s3.region", example='"us-east-1"'),
    ConnectorKey(f"{_P}endpoint", "s3.endpoint_url"),
    ConnectorKey(f"{_P}retry_delay", "s3.retries.backoff_ms", lambda text: round(parse_duration(text) * 1000), 1000),
    ConnectorKey(f"{_P}prefix", "prefix", lambda prefix: prefix.strip("/")),
)


def read_iggy(content: str, report: Report, references: Variables) -> ConfigDraft:
    """Read a connector's file, or all sinks of a runtime, into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    main, variables = toml_file.parse_toml(content, report.file), references.environment
    alone = "type" in main.data or not any(section in main.data for section in _RUNTIME)
    runtime = iggy_runtime.apply_to_runtime(toml_file.TomlFile(main.name, {}) if alone else main, variables, report)
    runtime_settings: list[Setting] = []
    if alone:
        files = [main]
        for path in runtime.places:
            if path[:1] != (SECTION,):
                report.notice(
                    runtime.place(*path), "has no effect: the file is that of one connector, not the runtime's"
                )
    else:
        files = list(iggy_runtime.read_connectors(runtime, report, references))
        runtime_settings = _read_runtime_settings(runtime, report, references)
    if alone or runtime.table("connectors").get("config_type") != "http":  # Iggy changes none that a server has
        files = iggy_runtime.apply_to_connectors(files, variables, report)
    server, sinks = iggy_runtime.read_server(runtime, report, references), list[Draft]()
    # A sink of S3 first: it lands what others forward.
    for file in sorted(files, key=lambda file: "s3_sink" not in str(file.data.get("path", "s3_sink"))):
        sinks += _read_connector(file, runtime_settings, server, report, references, sinks, alone=alone)
    if sinks and server.values and not any(sink.get("source.type") == "iggy" for sink in sinks):
        place = next(runtime.place(*path) for path in runtime.places if path[:1] == (SECTION,))
        report.notice(place, "has no effect: [s3lake] sets where the records are")
    if not sinks and not report.failed:
        message = 'no sink is enabled here; a sink has type = "sink", enabled = true and the path of its plugin'
        report.error(None, message)
    return join_drafts(sinks, report)


def _put_transforms(file: toml_file.TomlFile, sink: Draft, report: Report) -> None:
    """Put the transforms that are enabled, in the order of the file."""
    tables = file.data.get("transforms", {})
    if not isinstance(tables, dict):
        message = "is not a table; write [transforms.NAME] for each, in their order"
        report.error(file.place("transforms"), message)
        return
    for name, table in tables.items():
        place = file.place("transforms", name)
        if name not in _TRANSFORMS and name.removesuffix("_convert") not in _CONVERSIONS:
            report.error(place, f"unknown transform; {suggest(name, _TRANSFORMS, 'allowed here')}")
        elif not isinstance(table, dict) or not isinstance(table.get("enabled"), bool):
            report.error(place, "needs `enabled = true` or `enabled = false`")
        elif table["enabled"] and name in _TRANSFORMS:
            transform = Draft({"name": name, "options": {}})
            transform.put("type", f"iggy.{name}", Setting(place.key, name, place))
            for key in table.keys() - {"enabled"}:
                transform.put(("options", key), table[key], file.setting("transforms", name, key))
            sink.append("transforms", transform)


def _read_connector(
    file: toml_file.TomlFile,
    runtime_settings: Sequence[Setting],
    server: Draft,
    report: Report,
    references: Variables,
    others: Sequence[Draft],
    *,
    alone: bool,
) -> list[Draft]:
    """Return the sinks of a connector's file; none if others land its topics, and forward them."""
    settings = references.resolve([*file.settings("transforms"), *runtime_settings], report)
    template = next((setting for setting in settings if setting.key == "s3lake.topic_template"), None)
    keys = Keys([setting for setting in settings if setting is not template], report, _DECIDING)
    sink = Draft()
    plugin = _find_plugin(keys, report, alone=alone)
    if plugin is None:
        return []
    key = keys.require("key", '"lake"')
    keys.no_effect(_NO_EFFECT)
    sink.put("from", "earliest")
    sink.put("nulls", "write")
    _put_transforms(file, sink, report)
    forward = None
    if plugin == "s3":
        _put_plugin(keys, sink)
    elif plugin == "iceberg":
        iggy_forwards.put_table(keys, sink, file.data.get("plugin_config"))
    else:
        forward = iggy_forwards.read_forward(plugin, keys, key)
    if server.values and not any(setting.key.startswith(ELSEWHERE) for setting in settings):
        sink.put("source", server)
        if template is not None:
            report.notice(template, "has no effect: the topics are Iggy's own, and called after stream and topic")
            template = None
    sinks = list(_read_streams(file, keys, sink, key, template, plugin=plugin))
    if forward is not None:
        sinks = iggy_forwards.attach(forward, sinks, others)
    put_native(keys, sinks, references.environment, where=_WHERE)
    if plugin != "s3":
        iggy_forwards.require_buckets(sinks, keys.get("path"), keys, references.environment)
    keys.report_unused(sinks)
    return sinks


def _find_plugin(keys: Keys, report: Report, *, alone: bool) -> str | None:
    """Return which sink the file is, `s3` or one of `iggy_forwards.PLUGINS`. Return None if it lands nothing.

    A file that is given alone has to be an enabled sink.
    """
    role, path, enabled = keys.get("type"), keys.get("path"), keys.boolean("enabled", True)
    if role is None or role.value not in ("sink", "source"):
        report.error(
            role, (f"{role.masked_value} is not allowed" if role else "type is missing") + '; write type = "sink"'
        )
        return None
    plugins = ("s3", *iggy_forwards.PLUGINS)
    plugin = "s3" if path is None else next((name for name in plugins if f"{name}_sink" in path.value), None)
    refusal: tuple[Setting | None, str] | None = None
    if role.value == "source":
        refusal = role, "is a source; s3lake has sinks only"
    elif path is None:
        report.notice(role, "path is missing: the sink is taken for the S3 sink; write the path of its plugin")
    elif plugin is None:
        refusal = path, f"{path.masked_value} is not a sink that s3lake has: it has {', '.join(plugins)}"
    elif not enabled.value:
        refusal = enabled.setting, "is false, so nothing is landed; write enabled = true"
    if refusal is not None:
        (report.error if alone else report.notice)(*refusal)
        return None
    return plugin


def _put_plugin(keys: Keys, sink: Draft) -> None:
    keys.put(sink, _KEYS)
    sink.put("s3.path_style", keys.boolean(f"{_P}path_style", sink.get("s3.endpoint_url") is not None))
    s3_credentials.put_pair(keys, sink, f"{_P}access_key_id", f"{_P}secret_access_key")
    attempts, retries = keys.text(f"{_P}max_attempts"), keys.text(f"{_P}max_retries")
    if attempts.setting and retries.setting:
        keys.error(retries.setting, f"is given next to {_P}max_attempts; take one of them out")
    name = f"{_P}max_retries" if retries.setting else f"{_P}max_attempts"
    sink.put("s3.retries.max_attempts", keys.integer(name, 3, 1))
    _put_rotation(keys, sink)
    output = keys.choice(f"{_P}output_format", _OUTPUTS, "json_lines")
    form, framing, extension = output.value
    sink.put("format.type", form, output.setting)
    sink.put("format.codec", "none")
    if framing is not None:
        sink.put("format.framing", framing, output.setting)
    sink.put("layout.extension", extension, output.setting)
    metadata, headers = keys.boolean(f"{_P}include_metadata", True), keys.boolean(f"{_P}include_headers", False)
    if form != "bytes":
        fields = [name for name, flag in (("metadata", metadata), ("headers", headers)) if flag.value]
        sink.put("envelope.style", "iggy")
        sink.put("envelope.fields", [*fields, "value"], headers.setting or metadata.setting)


def _put_rotation(keys: Keys, sink: Draft) -> None:
    by = keys.choice(f"{_P}file_rotation", same("size", "messages"), "size")
    size = keys.read(f"{_P}max_file_size", parse_size("8MiB"), parse_size)
    count = keys.integer(f"{_P}max_messages_per_file", 0, 1)
    if by.value == "size":
        sink.put("flush", {**connect_keys.FLUSH, "count": None})
        sink.put("flush.size", size)
        return
    sink.put("flush", {**connect_keys.FLUSH, "size": LARGEST_FILE})
    sink.put("flush.count", count)
    if not keys.has(f"{_P}max_messages_per_file"):
        keys.error(by.setting, f"'messages' needs a number; add {_P}max_messages_per_file = 10000")


def _read_streams(
    file: toml_file.TomlFile, keys: Keys, each: Draft, key: Value[str], template: Setting | None, *, plugin: str
) -> Iterator[Draft]:
    """Yield one sink for each stream and topic: both names are in its keys and its lines."""
    streams = file.data.get("streams")
    if not isinstance(streams, list) or not streams:
        message = "[[streams]] is missing; add one with stream, topics and schema"
        keys.report.error(file.place("streams"), message)
        return
    pairs = [(at, topic) for at, stream in enumerate(streams) for topic in _topics(keys, at, stream)]
    form = template.value if template else TOPIC_TEMPLATE
    if template and "{stream}" not in form and "{topic}" not in form:
        message = "is the same for every topic; write it with {stream} and {topic}"
        keys.error(template, f"{template.masked_value} {message}")
    for at, topic in pairs:
        stream, sink = keys.text(f"streams[{at}].stream").value, each.copy()
        title = key.value if len(pairs) == 1 else f"{key.value}-{stream}-{topic}"
        sink.put("name", re.sub(r"[^A-Za-z0-9_-]+", "-", title), key.setting)
        name = form.replace("{stream}", stream).replace("{topic}", topic)
        sink.put("topics", [name], template or keys.get(f"streams[{at}].topics"))
        if plugin == "s3":
            sink.put("layout.template", _template(keys, stream, topic), keys.get(f"{_P}path_template"))
        else:
            sink.put("prefix", sink.get("name"))
        if sink.get("envelope") is not None:
            sink.put("envelope.stream", stream)
            sink.put("envelope.topic", topic)
        _put_schema(file, sink, keys, at)
        yield sink


def _topics(keys: Keys, at: int, stream: Any) -> list[str]:
    prefix = f"streams[{at}]."
    keys.require(f"{prefix}stream", '"application_logs"')
    keys.deciding.add(f"{prefix}stream")
    keys.no_effect({f"{prefix}{name}": reason for name, reason in _STREAM_NO_EFFECT.items()})
    setting = keys.get(f"{prefix}topics")
    if keys.get(f"{prefix}schema") is None:
        keys.require(f"{prefix}schema", '"json"')
    topics = stream.get("topics") if isinstance(stream, dict) else None
    if not setting or not isinstance(topics, list) or not topics or not all(isinstance(name, str) for name in topics):
        message = "is not a list of names" if setting else f"{prefix}topics is missing"
        keys.error(setting, f'{message}; write topics = ["name", "name"]')
        return []
    return topics


def _template(keys: Keys, stream: str, topic: str) -> str:
    path = keys.text(f"{_P}path_template", "{stream}/{topic}/{date}/{hour}")
    names = {"stream": stream, "topic": topic}
    safe = {f"{{{name}}}": escape_braces(re.sub(r"[^A-Za-z0-9._-]", "_", text)) for name, text in names.items()}
    if "{timestamp}" in path.value:
        message = "{timestamp} is the time of the upload, so a retry would write another object; take it out"
        keys.error(path.setting, message)
    variables = {**_VARIABLES, **safe}
    directory = connect_keys.translate_template(
        keys, path.setting, path.value.replace("{timestamp}", ""), _VARIABLE, variables
    ).strip("/")
    return f"{directory}/".lstrip("/") + "{partition:05}-{offset:020}-{last_offset:020}"


def _read_runtime_settings(file: toml_file.TomlFile, report: Report, references: Variables) -> list[Setting]:
    """Return the `s3lake.*` settings of the runtime's file. Note unused and unknown sections."""
    for path in (*((section,) for section in (*_RUNTIME, "s3lake")), *TABLES):
        if not isinstance(value_at(file.data, path), dict | None):
            name = ".".join(path)
            report.error(file.place(*path), f"is not a table; write [{name}], and its settings below it")
    for section in file.data:
        if section in _RUNTIME_REASONS:
            report.no_effect(file.place(section), _RUNTIME_REASONS[section])
        elif section not in (*_RUNTIME, "s3lake"):
            near = did_you_mean(section, _RUNTIME)
            message = f"unknown section: nothing reads it here; {near}known are: {', '.join(_RUNTIME)}, s3lake"
            report.notice(file.place(section), message)
    return references.resolve([setting for setting in file.settings() if setting.key.startswith("s3lake.")], report)


def _put_schema_of_stream(sink: Draft, keys: Keys, prefix: str, *, is_avro: bool) -> bool:
    """Put the Avro schema that a stream itself names. Return True if it does."""
    path, text = keys.get(f"{prefix}path"), keys.get(f"{prefix}json")
    for setting in filter(None, (path, text)):
        if not is_avro:
            keys.report.no_effect(setting, 'only messages of schema = "avro" are read by it')
    if not is_avro:
        return False
    if text is not None:
        where = "write it into a file, and avro_schema_path with its name in its place"
        keys.error(text, f"the text of a schema is not read from here; {where}")
    elif path is not None:
        sink.put("converter.registry.schema_file", path.value, path)
    return path is not None or text is not None


def _put_schema(file: toml_file.TomlFile, sink: Draft, keys: Keys, stream: int) -> None:
    """Put the converter of a stream's messages; a conversion's settings of the schema become the registry's."""
    schema = keys.choice(f"streams[{stream}].schema", _CONVERTERS, "json")
    sink.put("converter.value", schema)
    has_path = _put_schema_of_stream(sink, keys, f"streams[{stream}].avro_schema_", is_avro=schema.value == "avro")
    for name, described in _CONVERSIONS.items():
        conversion = file.table("transforms", f"{name}_convert")
        is_enabled = conversion.get("enabled") is True
        if is_enabled and schema.value != _CONVERTERS[name]:
            message = f"messages of another schema are not read so; write schema = {name!r}, or enabled = false"
            keys.report.error(file.place("transforms", f"{name}_convert"), message)
        elif is_enabled:
            formats = {"enabled": True, "source_format": name, "target_format": "json"}
            for option, value in conversion.items():
                setting = file.setting("transforms", f"{name}_convert", option)
                if option in described:
                    sink.put(f"converter.registry.{described[option]}", value, setting)
                elif option in _IN_SCHEMA:
                    keys.report.no_effect(setting, "the schema contains it all")
                elif formats.get(option) != value:
                    keys.error(setting, f"{setting.masked_value} is not read here: fields land as the schema has them")
        elif schema.value == _CONVERTERS[name] and not has_path and not keys.with_prefix(_REGISTRY):
            message = f"write [transforms.{name}_convert] with {' and '.join(described)}"
            message += ", or avro_schema_path in [[streams]]" * (name == "avro")
            keys.error(schema.setting, f"{name!r} does not define how messages are read: {message}")
