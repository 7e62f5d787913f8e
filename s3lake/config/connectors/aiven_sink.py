"""Aiven's S3 sink: names from a prefix or a template of its own, lines of chosen fields."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence

from s3lake.config.connector_keys import ConnectorKey, Keys, choice, milliseconds, same, whole
from s3lake.config.connectors import connect_keys, converter_keys, s3_credentials
from s3lake.config.draft import ConfigDraft, Draft
from s3lake.config.model.format import LARGEST_FILE
from s3lake.config.report import Report, Setting, Value
from s3lake.text.option_values import suggest

CLASSES = (
    "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
    "io.aiven.kafka.connect.s3.S3SinkConnector",
)
_RENAMED = {
    "aws_access_key_id": "aws.access.key.id",
    "aws_secret_access_key": "aws.secret.access.key",
    "aws_s3_bucket": "aws.s3.bucket.name",
    "aws_s3_region": "aws.s3.region",
    "aws_s3_endpoint": "aws.s3.endpoint",
    "aws_s3_prefix": "aws.s3.prefix",
    "output_fields": "format.output.fields",
    "output_compression": "file.compression.type",
    "aws.credential.provider": "aws.credentials.provider",
}
_KEYS = (
    ConnectorKey("aws.s3.bucket.name", "bucket", example="my-bucket"),
    ConnectorKey("aws.s3.region", "s3.region", default="us-east-1"),
    ConnectorKey("aws.s3.endpoint", "s3.endpoint_url"),
    ConnectorKey("aws.s3.backoff.max.retries", "s3.retries.max_attempts", whole(1, 30), 3),
    ConnectorKey("aws.s3.backoff.delay.ms", "s3.retries.backoff_ms", whole(1), 100),
    ConnectorKey("file.max.records", "flush.count", lambda text: whole(0)(text) or None),
    ConnectorKey("offset.flush.interval.ms", "flush.interval", milliseconds(1), 60.0),
    ConnectorKey(
        "format.output.fields.value.encoding", "envelope.value_encoding", choice(same("base64", "none")), "base64"
    ),
)
_TYPES = {"csv": "csv", "json": "json_array", "jsonl": "json", "parquet": "parquet", "avro": "avro"}
_FIELDS = ("key", "value", "offset", "timestamp", "headers")
_EXTENSIONS = {"none": "", "gzip": ".gz", "snappy": ".snappy", "zstd": ".zst"}
_AVRO_CODECS = {"null": "none", **same("deflate", "snappy", "bzip2", "xz"), "zstandard": "zstd"}
_FRAMINGS = {
    "csv": {"opening": "", "between": "\n", "closing": ""},
    "json": {"opening": "", "between": "\n", "closing": ""},
    "json_array": {"opening": "[\n", "between": ",\n", "closing": "\n]"},
}
_VARIABLE = re.compile(r"\{\{\s*(\w*)[^{}]*\}\}")
_OF_BOTH = {
    "{{topic}}": "{topic}",
    **{f"{{{{partition{padding}}}}}": "{partition}" for padding in ("", ":padding=false")},
    "{{partition:padding=true}}": "{partition:010}",
    **{f"{{{{start_offset{padding}}}}}": "{offset}" for padding in ("", ":padding=false")},
    "{{start_offset:padding=true}}": "{offset:020}",
    **{f"{{{{timestamp:unit={unit}}}}}": f"{{time:{unit}}}" for unit in ("yyyy", "MM", "dd", "HH")},
    "{{timestamp:unit=YYYY}}": "{time:yyyy}",  # as documented in Aiven's README
}
_OF_NAMES = {**_OF_BOTH, "{{key}}": "{key}"}
_OF_PREFIXES = {
    **_OF_BOTH,
    **dict.fromkeys(("{{utc_date}}", "{{local_date}}"), "{time:yyyy-MM-dd}"),
}
"""Variables of a template, and what they are in a native one."""
_GROUPS = (
    {"topic", "partition", "start_offset"},
    {"topic", "partition", "start_offset", "key"},
    {"key"},
    {"topic", "partition", "key"},
)
_NO_EFFECT = {
    "aws.s3.part.size.bytes": "parts of an upload have a size of their own",
    "aws.s3.backoff.max.delay.ms": "the pause between tries has a bound of its own",
    "kafka.retry.backoff.ms": "Dagster tries a micro-batch again by its own retry policy",
    "file.prefix.template": "the S3 sink never reads it",
}


def read_connector(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys, sink = connect_keys.open_keys(settings, report, _RENAMED), Draft()
    connect_keys.put_name_and_topics(keys, sink)
    form = keys.choice("format.output.type", _TYPES, "csv")
    raw = form.value == "csv"
    converter_keys.put_converters(keys, sink, "bytes" if raw else "string", "bytes" if raw else "json")
    connect_keys.put_framework(keys, sink)
    sink.put("flush", {**connect_keys.FLUSH, "count": None, "size": LARGEST_FILE})
    sink.put("nulls", "write")
    keys.put(sink, _KEYS)
    sink.put("s3.path_style", sink.get("s3.endpoint_url") is not None)
    s3_credentials.put_pair(keys, sink, "aws.access.key.id", "aws.secret.access.key")
    s3_credentials.put_provider(keys, sink, "aws.credentials.provider")
    s3_credentials.put_encryption(keys, sink, "aws.s3.sse.algorithm")
    s3_credentials.put_role(keys, sink, "aws.sts.")
    codec = _put_format(keys, sink, form)
    _put_envelope(keys, sink)
    _put_layout(keys, sink, form.value, codec)
    for setting in keys.with_prefix("connect.parquet."):
        report.no_effect(setting, "it is an option of another Parquet writer")
    return connect_keys.finish_draft(keys, [sink], environment, _NO_EFFECT)


def _put_format(keys: Keys, sink: Draft, form: Value[str]) -> str | None:
    """Put the format. Return the codec that the file's name has; None if it has none."""
    sink.put("format.type", form)
    codec = keys.choice("file.compression.type", same(*_EXTENSIONS), "gzip")
    avro = keys.choice("avro.codec", _AVRO_CODECS, "null")
    if form.value == "avro":
        sink.put("format.codec", avro)
        if codec.setting and codec.value != "none":
            message = "no reader opens an Avro file that is compressed as a whole; write none, and a codec"
            keys.error(codec.setting, f"{codec.setting.masked_value}: {message} in avro.codec")
        return None
    if form.value == "parquet":
        sink.put("format.codec", codec if codec.setting else "none")
        return codec.value if codec.setting else None
    sink.put("format.codec", codec.map(lambda name: "snappy_framed" if name == "snappy" else name))
    sink.put("format.framing", _FRAMINGS[form.value], form.setting)
    if connect_keys.lines_have_decimals(sink):
        keys.note("decimals are numbers; the connector writes them as base64", form)
    if form.value == "csv":
        sink.put("format.header", False)
    return codec.value


def _put_envelope(keys: Keys, sink: Draft) -> None:
    """Put which fields a row has."""
    fields = keys.names("format.output.fields")
    for field in fields.value:
        if field not in _FIELDS:
            keys.error(fields.setting, f"{field!r} is not allowed; {suggest(field, _FIELDS, 'use some of')}")
    around = keys.boolean("format.output.envelope", True)
    if not around.value and len(fields.value) > 1:
        keys.error(around.setting, "false needs exactly one field; write format.output.fields=value")
    sink.put("envelope.style", "flat", fields.setting)
    sink.put("envelope.fields", [field for field in fields.value if field in _FIELDS] or ["value"], fields.setting)
    sink.put("envelope.bare", around.map(operator.not_))


def _put_layout(keys: Keys, sink: Draft, form: str, codec: str | None) -> None:
    prefix, name = keys.text("aws.s3.prefix"), keys.text("file.name.template")
    used, clock = (prefix, "timestamp.") if prefix.value else (name, "file.name.timestamp.")
    is_timed = re.search(r"\{\{.*(timestamp|_date)", used.value) is not None
    for start in ("timestamp.", "file.name.timestamp."):
        source = keys.choice(f"{start}source", {"wallclock": "wallclock", "event": "record"}, "wallclock")
        timezone = keys.text(f"{start}timezone", "UTC")
        if start == clock and is_timed:
            sink.put("layout.time.source", source)
            sink.put("layout.time.timezone", timezone.map(lambda zone: "UTC" if zone in ("", "Z") else zone))
    template = "{topic}-{partition}-{offset}"
    extension = (".avro" if form == "avro" else "") + _EXTENSIONS[codec or "none"]
    if prefix.setting and prefix.value:
        if name.setting:
            keys.error(name.setting, "has no effect next to aws.s3.prefix, which names the files; take one of them out")
        directory = _read_prefix(keys, sink, prefix.setting)
        template = f"{directory}{{topic}}-{{partition}}-{{offset:020}}"
    elif name.setting and name.value:
        template = _translate(keys, name.setting, name.value, _OF_NAMES)
        if not keys.report.failed:
            _check_variables(keys, sink, name.setting)
        extension = ""
        if codec not in (None, "none"):
            message = f"is rendered as it is: files are compressed ({codec}), and their names do not show it"
            keys.note(message, name)
    sink.put("layout.template", template, used.setting if used.value else None)
    sink.put("layout.extension", extension)
    sink.put("layout.missing", "null")


def _read_prefix(keys: Keys, sink: Draft, setting: Setting) -> str:
    """Return the template before the file name; plain text up to a slash becomes the sink's prefix."""
    keys.report.notice(setting, "is an old way to name files: write file.name.template")
    names = {match[1] for match in _VARIABLE.finditer(setting.value)}
    dates = names & {"utc_date", "local_date"}
    if len(dates) == 2 or (dates and "timestamp" in names and sink.get("layout.time.source") != "wallclock"):
        keys.error(
            setting, f"{setting.masked_value}: the dates are of two times; use {{{{timestamp:unit=…}}}} for all of them"
        )
    if dates:
        sink.put("layout.time.source", "wallclock", setting)
    if "utc_date" in names:
        sink.put("layout.time.timezone", "UTC", setting)
    elif dates and not keys.has("timestamp.timezone"):
        keys.report.notice(setting, "local_date is in UTC, unless timestamp.timezone names another zone")
    head, slash, _ = setting.value.partition("{{")[0].rpartition("/")
    if head and not head.startswith("/"):
        sink.put("prefix", head, setting)
    else:
        head = slash = ""
    return _translate(keys, setting, setting.value[len(head + slash) :], _OF_PREFIXES)


def _translate(keys: Keys, setting: Setting, text: str, variables: Mapping[str, str]) -> str:
    if re.search(r"\{\{|\}\}", _VARIABLE.sub("", text)):
        keys.error(setting, f"{setting.masked_value}: a variable is not closed; write one of: {', '.join(variables)}")
    return connect_keys.translate_template(keys, setting, text, _VARIABLE, variables)


def _check_variables(keys: Keys, sink: Draft, setting: Setting) -> None:
    """Check the variables of a name: which records share a file follows from them, and some sets are invalid."""
    variables = {match[1] for match in _VARIABLE.finditer(setting.value)}
    named = variables - {"timestamp"}
    if named not in _GROUPS:
        sets = "; ".join(", ".join(sorted(group)) for group in _GROUPS)
        message = f"these variables do not make a name; use one of the sets: {sets} (timestamp next to start_offset)"
        keys.error(setting, f"{setting.masked_value}: {message}")
        return
    if "start_offset" in named:
        return
    if "timestamp" in variables:
        keys.error(setting, f"{setting.masked_value}: timestamp needs start_offset next to it; take it out")
    most = keys.get("file.max.records")
    if most is not None and most.value not in ("0", "1"):
        keys.error(most, f"{most.masked_value}: a name of a key holds one record; write 1, or take it out")
    sink.put("exactly_once", False, setting)
    keys.report.notice(setting, "the last record of a key replaces the one before it, so exactly_once is false")
