"""Aiven's S3 sink: names from a prefix or a template of its own, lines of chosen fields."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from s3lake.config.connectors import connect, converters, credentials
from s3lake.config.connectors.connect import escape_braces
from s3lake.config.draft import ConfigDraft, Draft
from s3lake.config.keys import Key, Keys, choice, milliseconds, same, whole
from s3lake.config.report import Report, Setting, Value
from s3lake.text.options import did_you_mean

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
    Key("aws.s3.bucket.name", "bucket", example="my-bucket"),
    Key("aws.s3.region", "s3.region", default="us-east-1"),
    Key("aws.s3.endpoint", "s3.endpoint_url"),
    Key("aws.s3.backoff.max.retries", "s3.retries.max_attempts", whole(1, 30), 3),
    Key("aws.s3.backoff.delay.ms", "s3.retries.backoff_ms", whole(1), 100),
    Key("file.max.records", "flush.count", lambda text: whole(0)(text) or None),
    Key("offset.flush.interval.ms", "flush.interval", milliseconds(1), 60.0),
    Key("format.output.fields.value.encoding", "envelope.value_encoding", choice(same("base64", "none")), "base64"),
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
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*(?::\s*(\w+)\s*=\s*(\w+)\s*)?\}\}")
_UNITS = ("yyyy", "MM", "dd", "HH")
_NAME_VARIABLES = ("topic", "partition", "start_offset", "timestamp", "key")
_PREFIX_VARIABLES = ("topic", "partition", "start_offset", "timestamp", "utc_date", "local_date")
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


def loads(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys, sink = connect.open_keys(settings, report, _RENAMED), Draft()
    connect.put_name_and_topics(keys, sink)
    form = keys.choice("format.output.type", _TYPES, "csv")
    raw = form.value == "csv"
    converters.put_converters(keys, sink, "bytes" if raw else "string", "bytes" if raw else "json")
    connect.put_framework(keys, sink)
    sink.put("flush", {**connect.FLUSH, "count": None, "size": connect.LARGEST_FILE})
    sink.put("nulls", "write")
    keys.put(sink, _KEYS)
    sink.put("s3.path_style", sink.get("s3.endpoint_url") is not None)
    credentials.put_pair(keys, sink, "aws.access.key.id", "aws.secret.access.key")
    credentials.put_provider(keys, sink, "aws.credentials.provider")
    credentials.put_encryption(keys, sink, "aws.s3.sse.algorithm")
    credentials.put_role(keys, sink, "aws.sts.")
    codec = _put_format(keys, sink, form)
    _put_envelope(keys, sink)
    _put_layout(keys, sink, form.value, codec)
    for setting in keys.with_prefix("connect.parquet."):
        report.no_effect(setting, "it is an option of another Parquet writer")
    return connect.finish(keys, [sink], environment, _NO_EFFECT)


def _put_format(keys: Keys, sink: Draft, form: Value[str]) -> str | None:
    """Put the format. Return the codec that the file's name has; None if it has none."""
    sink.put("format.type", form)
    codec = keys.choice("file.compression.type", same(*_EXTENSIONS), "gzip")
    avro = keys.choice("avro.codec", _AVRO_CODECS, "null")
    if form.value == "avro":
        sink.put("format.codec", avro)
        if codec.setting and codec.value != "none":
            message = "an Avro file that is compressed as a whole opens in no reader; write none, and a codec"
            keys.wrong(codec.setting, f"{codec.setting.masked_value}: {message} in avro.codec")
        return None
    name = next(name for name, native in _TYPES.items() if native == form.value)
    keys.note(f"has no effect with format.output.type {name}", avro)
    if form.value == "parquet":
        sink.put("format.codec", codec if codec.setting else "none")
        return codec.value if codec.setting else None
    sink.put("format.codec", codec.map(lambda name: "snappy_framed" if name == "snappy" else name))
    sink.put("format.framing", _FRAMINGS[form.value], form.setting)
    if form.value == "csv":
        sink.put("format.header", False)
    return codec.value


def _put_envelope(keys: Keys, sink: Draft) -> None:
    """Put which fields a row has."""
    fields = keys.names("format.output.fields")
    for field in fields.value:
        if field not in _FIELDS:
            near = did_you_mean(field, _FIELDS)
            keys.wrong(fields.setting, f"{field!r} is not allowed; {near}use some of: {', '.join(_FIELDS)}")
    around = keys.boolean("format.output.envelope", True)
    if not around.value and len(fields.value) > 1:
        keys.wrong(around.setting, "false needs exactly one field; write format.output.fields=value")
    sink.put("envelope.style", "flat", fields.setting)
    sink.put("envelope.fields", [field for field in fields.value if field in _FIELDS] or ["value"], fields.setting)
    sink.put("envelope.bare", around.map(operator.not_))


@dataclass(frozen=True)
class _Clock:
    """The time that a template's variables print, and the settings that choose it."""

    source: Value[str]
    timezone: Value[str]

    @classmethod
    def read(cls, keys: Keys, prefix: str) -> _Clock:
        """Read the settings of a clock."""
        source = keys.choice(f"{prefix}source", {"wallclock": "wallclock", "event": "record"}, "wallclock")
        return cls(source, keys.text(f"{prefix}timezone", "UTC"))


def _put_layout(keys: Keys, sink: Draft, form: str, codec: str | None) -> None:
    of_prefix, of_name = _Clock.read(keys, "timestamp."), _Clock.read(keys, "file.name.timestamp.")
    prefix, name = keys.text("aws.s3.prefix"), keys.text("file.name.template")
    extension = (".avro" if form == "avro" else "") + _EXTENSIONS[codec or "none"]
    clock, unused, template = of_name, of_prefix, "{topic}-{partition}-{offset}"
    if prefix.value:
        if name.setting:
            keys.wrong(name.setting, "has no effect next to aws.s3.prefix, which names the files; take one of them out")
        directory, clock = _prefixed(keys, sink, prefix, of_prefix)
        template, unused = f"{directory}{{topic}}-{{partition}}-{{offset:020}}", of_name
    elif name.setting is not None and name.value:
        variables = {match[1] for match in _VARIABLE.finditer(name.value)}
        template = _template(keys, name.setting, name.value, _NAME_VARIABLES)
        if variables <= set(_NAME_VARIABLES) and "{{" not in _VARIABLE.sub("", name.value):
            _check_variables(keys, sink, name.setting, variables)
        extension = ""
        if codec not in (None, "none"):
            message = f"is rendered as it is: files are compressed ({codec}), and their names do not say so"
            keys.note(message, name)
    used = prefix if prefix.value else name
    sink.put("layout.template", template, used.setting if used.value else None)
    is_timed = re.search(r"\{\{.*(timestamp|_date)", used.value) is not None
    idle = (unused,) if is_timed else (of_prefix, of_name)
    for option in (option for clock_part in idle for option in (clock_part.source, clock_part.timezone)):
        keys.note("has no effect: no variable of the name prints that time", option)
    sink.put("layout.time.source", clock.source)
    sink.put("layout.time.timezone", clock.timezone.map(lambda zone: "UTC" if zone in ("", "Z") else zone))
    sink.put("layout.extension", extension)
    sink.put("layout.missing", "null")


def _prefixed(keys: Keys, sink: Draft, prefix: Value[str], clock: _Clock) -> tuple[str, _Clock]:
    """Return the template before the file name; plain text up to a slash becomes the sink's prefix."""
    assert prefix.setting is not None
    setting = prefix.setting
    keys.report.notice(setting, "is an old way to name files: write file.name.template")
    names = {match[1] for match in _VARIABLE.finditer(prefix.value)}
    dates = names & {"utc_date", "local_date"}
    if len(dates) == 2 or (dates and "timestamp" in names and clock.source.value != "wallclock"):
        keys.wrong(
            setting, f"{setting.masked_value}: the dates are of two times; use {{{{timestamp:unit=…}}}} for all of them"
        )
    if "utc_date" in names:
        clock = _Clock(Value("wallclock", setting), Value("UTC", setting))
    elif "local_date" in names:
        clock = _Clock(Value("wallclock", setting), clock.timezone)
        if clock.timezone.setting is None:
            keys.report.notice(setting, "local_date is in UTC, unless timestamp.timezone says another zone")
    literal = prefix.value.partition("{{")[0]
    head, slash, _ = literal.rpartition("/")
    if slash and not head.startswith("/") and head:
        sink.put("prefix", head, setting)
    else:
        head = slash = ""
    return _template(keys, setting, prefix.value[len(head + slash) :], _PREFIX_VARIABLES), clock


def _template(keys: Keys, setting: Setting, template: str, variables: Sequence[str]) -> str:
    pieces, position = [], 0
    for match in _VARIABLE.finditer(template):
        pieces.append(_literal(keys, setting, template[position : match.start()]))
        pieces.append(_variable(keys, setting, match, variables))
        position = match.end()
    return "".join([*pieces, _literal(keys, setting, template[position:])])


def _literal(keys: Keys, setting: Setting, plain: str) -> str:
    if "{{" in plain or "}}" in plain:
        keys.wrong(setting, f"{plain!r} holds no variable; write one as {{{{topic}}}} or {{{{timestamp:unit=yyyy}}}}")
    return escape_braces(plain)


def _variable(keys: Keys, setting: Setting, match: re.Match[str], variables: Sequence[str]) -> str:
    name, parameter, value = match.groups()
    if name not in variables:
        keys.wrong(setting, f"{match[0]} is unknown; {did_you_mean(name, variables)}use {', '.join(variables)}")
        return ""
    allowed = {"partition": "padding", "start_offset": "padding", "timestamp": "unit"}.get(name)
    if parameter is not None and parameter != allowed:
        message = f"takes only {allowed}" if allowed else "takes no parameter"
        keys.wrong(setting, f"{match[0]}: {name} {message}; take {parameter} out")
        return ""
    if name == "timestamp":
        unit = "yyyy" if value == "YYYY" and "utc_date" in variables else value
        if unit not in _UNITS:
            keys.wrong(
                setting, f"{match[0]}: a unit is needed; write {{{{timestamp:unit=U}}}} with one of {', '.join(_UNITS)}"
            )
            return ""
        return f"{{time:{unit}}}"
    if parameter == "padding" and value not in ("true", "false"):
        keys.wrong(setting, f"{match[0]}: padding is true or false")
    padded = value == "true"
    return {
        "partition": "{partition:010}" if padded else "{partition}",
        "start_offset": "{offset:020}" if padded else "{offset}",
        "topic": "{topic}",
        "key": "{key}",
    }.get(name, "{time:yyyy-MM-dd}")


def _check_variables(keys: Keys, sink: Draft, setting: Setting, variables: set[str]) -> None:
    """Check the variables of a name: which records share a file follows from them, and some sets are invalid."""
    named = variables - {"timestamp"}
    if named not in _GROUPS:
        sets = "; ".join(", ".join(sorted(group)) for group in _GROUPS)
        message = f"these make no name; use one of the sets: {sets} (timestamp next to start_offset)"
        keys.wrong(setting, f"{setting.masked_value}: {message}")
        return
    if "start_offset" in named:
        return
    if "timestamp" in variables:
        keys.wrong(setting, f"{setting.masked_value}: timestamp needs start_offset next to it; take it out")
    most = keys.get("file.max.records")
    if most is not None and most.value not in ("0", "1"):
        keys.wrong(most, f"{most.masked_value}: a name of a key holds one record; write 1, or take it out")
    sink.put("exactly_once", False, setting)
    keys.report.notice(setting, "the last record of a key replaces the one before it, so exactly_once is false")
