"""Aiven's S3 sink: names from a prefix or a template of its own, lines of chosen fields."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from s3lake.config.connectors import connect, converters, credentials, native_keys
from s3lake.config.connectors.connect import escape_braces
from s3lake.config.draft import Draft, Sketch, join_drafts
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Report, Setting
from s3lake.text.options import did_you_mean

CLASSES = (
    "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
    "io.aiven.kafka.connect.s3.S3SinkConnector",
)
_OLD = {
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
_TYPES = {"csv": "csv", "json": "json_array", "jsonl": "json", "parquet": "parquet", "avro": "avro"}
_FIELDS = ("key", "value", "offset", "timestamp", "headers")
_CODECS = ("none", "gzip", "snappy", "zstd")
_EXTENSIONS = {"none": "", "gzip": ".gz", "snappy": ".snappy", "zstd": ".zst"}
_AVRO_CODECS = {
    "null": "none",
    "deflate": "deflate",
    "snappy": "snappy",
    "bzip2": "bzip2",
    "xz": "xz",
    "zstandard": "zstd",
}
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


def loads(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> Sketch:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys = Keys(settings, report)
    common, sink = Draft(), Draft()
    keys.get("connector.class")
    for old, new in _OLD.items():
        keys.renamed(old, new)
    connect.put_name_and_topics(keys, sink)
    form = keys.choice("format.output.type", _TYPES, "csv")
    raw = form.value == "csv"
    converters.put_converters(keys, sink, "bytes" if raw else "string", "bytes" if raw else "json")
    connect.put_framework(keys, common, sink)
    _store(keys, common, sink)
    codec = _format(keys, sink, form)
    _flush(keys, sink)
    _layout(keys, sink, form.value, codec)
    keys.no_effect(_NO_EFFECT)
    for setting in keys.with_prefix("connect.parquet."):
        report.no_effect(setting, "it is an option of another Parquet writer")
    native_keys.apply(keys, common, [sink], environment)
    keys.report_unknown()
    return join_drafts(common, [sink], report, connect.connector(keys))


def _store(keys: Keys, common: Draft, sink: Draft) -> None:
    sink.put("bucket", keys.required("aws.s3.bucket.name", "my-bucket"))
    common.put("s3.region", keys.text("aws.s3.region", "us-east-1"))
    endpoint = keys.text("aws.s3.endpoint")
    if endpoint.value:
        common.put("s3.endpoint_url", endpoint)
    common.put("s3.path_style", bool(endpoint.value))
    credentials.pair(keys, common, "aws.access.key.id", "aws.secret.access.key")
    credentials.provider(keys, common, "aws.credentials.provider")
    common.put("s3.retries.max_attempts", keys.integer("aws.s3.backoff.max.retries", 3, 1, 30))
    common.put("s3.retries.backoff_ms", keys.integer("aws.s3.backoff.delay.ms", 100, 1))
    credentials.encryption(keys, common, "aws.s3.sse.algorithm")
    credentials.role(keys, common, "aws.sts.")


def _format(keys: Keys, sink: Draft, form: Value[str]) -> str | None:
    """Put the format. Return the codec that the file's name has; None if it has none."""
    sink.put("format.type", form)
    codec = keys.choice("file.compression.type", {codec_name: codec_name for codec_name in _CODECS}, "gzip")
    avro = keys.choice("avro.codec", _AVRO_CODECS, "null")
    if avro.setting and form.value != "avro":
        keys.report.notice(avro.setting, f"has no effect with format.output.type {_name(form.value)}")
    named: str | None = codec.value
    if form.value == "avro":
        sink.put("format.codec", avro)
        named = None
        if codec.setting and codec.value != "none":
            message = (
                "an Avro file that is compressed as a whole opens in no reader; write none, and a codec in avro.codec"
            )
            keys.wrong(codec.setting, f"{codec.setting.masked_value}: {message}")
    elif form.value == "parquet":
        sink.put("format.codec", codec.value if codec.setting else "none", codec.setting)
        named = codec.value if codec.setting else None
    else:
        sink.put(
            "format.codec", codec.map(lambda codec_name: "snappy_framed" if codec_name == "snappy" else codec_name)
        )
        sink.put("format.framing", _FRAMINGS[form.value], form.setting)
    if form.value == "csv":
        sink.put("format.header", False)
    _envelope(keys, sink)
    return named


def _envelope(keys: Keys, sink: Draft) -> None:
    """Put which fields a row has."""
    fields = keys.names("format.output.fields")
    for field in fields.value:
        if fields.setting is not None and field not in _FIELDS:
            near = did_you_mean(field, _FIELDS)
            keys.wrong(fields.setting, f"{field!r} is not allowed; {near}use some of: {', '.join(_FIELDS)}")
    known_fields = [field for field in fields.value if field in _FIELDS]
    encoding = keys.choice("format.output.fields.value.encoding", {"base64": "base64", "none": "none"}, "base64")
    around = keys.boolean("format.output.envelope", True)
    if not around.value and around.setting is not None and len(fields.value) > 1:
        keys.wrong(around.setting, "false needs exactly one field; write format.output.fields=value")
        around = Value(True)
    sink.put("envelope.style", "flat", fields.setting)
    sink.put("envelope.fields", known_fields or ["value"], fields.setting)
    sink.put("envelope.value_encoding", encoding)
    sink.put("envelope.bare", around.map(operator.not_))
    sink.put("nulls", "write")


def _flush(keys: Keys, sink: Draft) -> None:
    sink.put("flush", connect.FLUSH)
    sink.put("flush.count", keys.integer("file.max.records", 0, 0).map(lambda most: most or None))
    sink.put("flush.size", connect.LARGEST_FILE)
    sink.put("flush.interval", keys.integer("offset.flush.interval.ms", 60_000, 1).map(connect.seconds))


@dataclass(frozen=True)
class _Clock:
    """The time that a template's variables print, and the settings that choose it."""

    source: Value[str]
    timezone: Value[str]


def _layout(keys: Keys, sink: Draft, form: str, codec: str | None) -> None:
    sources = {"wallclock": "wallclock", "event": "record"}
    of_prefix = _Clock(keys.choice("timestamp.source", sources, "wallclock"), keys.text("timestamp.timezone", "UTC"))
    of_name = _Clock(
        keys.choice("file.name.timestamp.source", sources, "wallclock"),
        keys.text("file.name.timestamp.timezone", "UTC"),
    )
    prefix, name = keys.text("aws.s3.prefix"), keys.text("file.name.template")
    extension = (".avro" if form == "avro" else "") + _EXTENSIONS[codec or "none"]
    plain = "{topic}-{partition}-{offset}"
    clock = of_name
    if prefix.value:
        if name.setting:
            keys.wrong(name.setting, "has no effect next to aws.s3.prefix, which names the files; take one of them out")
        template, clock = _prefixed(keys, sink, prefix, of_prefix)
        sink.put("layout.template", f"{template}{{topic}}-{{partition}}-{{offset:020}}", prefix.setting)
    elif name.value and name.setting is not None:
        variables = {match[1] for match in _VARIABLE.finditer(name.value)}
        template = _template(keys, name.setting, name.value, _NAME_VARIABLES)
        if variables <= set(_NAME_VARIABLES) and "{{" not in _VARIABLE.sub("", name.value):
            _groups(keys, sink, name.setting, variables)
        sink.put("layout.template", template, name.setting)
        extension = ""
        if codec not in (None, "none"):
            message = f"is rendered as it is: files are compressed ({codec}), and their names do not say so"
            keys.report.notice(name.setting, message)
    else:
        sink.put("layout.template", plain)
    used = name if prefix.value == "" else prefix
    timed = "{{" in used.value and re.search(r"timestamp|_date", used.value) is not None
    for clock_part, active in ((of_prefix, clock is not of_name), (of_name, clock is of_name)):
        for option in (clock_part.source, clock_part.timezone):
            if option.setting and not (active and timed):
                keys.report.notice(option.setting, "has no effect: no variable of the name prints that time")
    sink.put("layout.time.source", clock.source)
    zone = clock.timezone.map(lambda zone: "UTC" if zone in ("", "Z") else zone)
    sink.put("layout.time.timezone", zone)
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


def _groups(keys: Keys, sink: Draft, setting: Setting, variables: set[str]) -> None:
    """Check the variables of a name: which records share a file follows from them, and some sets are invalid."""
    named = variables - {"timestamp"}
    if named not in _GROUPS:
        sets = "; ".join(", ".join(sorted(group)) for group in _GROUPS)
        keys.wrong(
            setting,
            f"{setting.masked_value}: these make no name; use one of the sets: {sets} (timestamp next to start_offset)",
        )
        return
    if "start_offset" in named:
        return
    if "timestamp" in variables:
        keys.wrong(setting, f"{setting.masked_value}: timestamp needs start_offset next to it; take it out")
    most = keys.get("file.max.records")
    if most is not None and most.value not in ("0", "1"):
        keys.wrong(most, f"{most.masked_value}: a name of a key holds one record; write 1, or take it out")
    sink.put("exactly_once", False, setting)
    message = "the last record of a key replaces the one before it, so exactly_once is false"
    keys.report.notice(setting, message)


def _name(form: str) -> str:
    return next(name for name, native in _TYPES.items() if native == form)
