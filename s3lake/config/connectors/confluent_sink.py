"""Confluent's S3 sink: its layout becomes a template, its rotation the flush policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from s3lake.config.connector_keys import ConnectorKey, Keys, same, whole
from s3lake.config.connectors import connect_keys, converter_keys, s3_credentials
from s3lake.config.connectors.connect_keys import escape_braces
from s3lake.config.draft import ConfigDraft, Draft
from s3lake.config.model.format import LARGEST_FILE
from s3lake.config.report import Report, Setting, Value
from s3lake.text.option_values import suggest

CLASSES = ("io.confluent.connect.s3.S3SinkConnector",)
_FORMATS = {"ParquetFormat": "parquet", "AvroFormat": "avro", "JsonFormat": "json", "ByteArrayFormat": "bytes"}
_AVRO_CODECS = {"null": "none", **same("deflate", "snappy", "bzip2")}
_PARQUET_CODECS = {**same("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd"), "lz4_raw": "lz4"}
_PARQUET_EXTENSIONS = {
    "snappy": ".snappy.parquet",
    "gzip": ".gz.parquet",
    "zstd": ".zstd.parquet",
    "brotli": ".br.parquet",
    "lz4": ".lz4raw.parquet",
}
_PARTITIONERS = {
    "DefaultPartitioner": "default",
    "FieldPartitioner": "field",
    "TimeBasedPartitioner": "time",
    "DailyPartitioner": "daily",
    "HourlyPartitioner": "hourly",
    "FieldAndTimeBasedPartitioner": "field and time",
}
_OF_COMMUNITY = ("FieldAndTimeBasedPartitioner",)
"""Classes that are no part of the connector; many packages have a copy. The public page of the first one,
github.com/canelmas/kafka-connect-field-and-time-partitioner, describes it."""
_EXTRACTORS = {"Wallclock": "wallclock", "Record": "record", "RecordField": "field"}
_WITH_PATTERN = ("time", "field and time")
_TIMED = (*_WITH_PATTERN, "daily", "hourly")
_DAY_S, _HOUR_S = 86_400, 3_600
_DECIDING = (
    *("storage.class", "partitioner.class", "directory.delim", "file.delim", "s3.schema.partition.affix.type"),
    *("s3.ssea.name", "s3.object.tagging", "store.kafka.keys", "store.kafka.headers"),
)
"""Keys that decide what others mean."""
_ONE_BY_ONE = "files are uploaded in parts of a few MB, whatever is in memory"
_INSTEAD = {
    "partitioner.class": "take it out, and write the directories that it makes as s3lake.layout.template",
    "timestamp.extractor": "use RecordField, with the field of the time in timestamp.field, or Record or Wallclock",
}
"""What replaces a class of one's own."""
_NO_EFFECT = {
    "s3.http.send.expect.continue": "the store is asked first for parts of more than 2 MiB, and not for smaller ones",
    "s3.send.digest": "every upload carries a checksum",
    "s3.elastic.buffer.enable": _ONE_BY_ONE,
    "s3.elastic.buffer.init.capacity": _ONE_BY_ONE,
    "max.write.duration.ms": "a micro-batch is a job, not a call that has to end in time",
    "retry.backoff.ms": "Dagster tries a micro-batch again by its own retry policy",
    "shutdown.timeout.ms": "a run ends when its hours are landed",
    "schemas.cache.config": "schemas are kept for a whole run",
    "schemas.cache.size": "schemas are kept for a whole run",
    "enhanced.avro.schema.support": "logical types, unions and enums are always kept",
    "allow.optional.map.keys": "keys of maps are text",
    "report.null.values.to.dlq": "ignored records are counted, refused ones become dead letters",
    "enable.conditional.writes": "every commit is conditional",
    "rotate.file.on.partition.change": "a change of output partition closes no file",
    "max.files.scan.limit": "the index lists the files",
    "partitioner.max.open.files": "memory_budget bounds what is open",
    "offset.flush.interval.ms": "offsets are committed with the files",
    "schema.generator.class": "it makes schemas for Hive, which is not used",
    "parquet.avro.write-old-list-structure": "lists have three levels",
}


_KEYS = (
    ConnectorKey("s3.bucket.name", "bucket", example="my-bucket"),
    ConnectorKey("s3.region", "s3.region", default="us-west-2"),
    ConnectorKey("store.url", "s3.endpoint_url"),
    ConnectorKey("s3.part.retries", "s3.retries.max_attempts", lambda text: max(1, whole(0)(text)), 3),
    ConnectorKey("s3.retry.backoff.ms", "s3.retries.backoff_ms", whole(0), 200),
    ConnectorKey("s3.acl.canned", "s3.objects.acl", lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()),
    ConnectorKey("flush.size", "flush.count", whole(1), 1),
)


def read_connector(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys, sink = connect_keys.open_keys(settings, report, deciding=_DECIDING), Draft()
    connect_keys.put_name_and_topics(keys, sink)
    converter_keys.put_converters(keys, sink)
    connect_keys.put_framework(keys, sink)
    sink.put("flush", {**connect_keys.FLUSH, "size": LARGEST_FILE})
    keys.put(sink, _KEYS)
    _put_store(keys, sink)
    _put_format(keys, sink)
    _put_flush(keys, sink)
    _put_layout(keys, sink)
    return connect_keys.finish_draft(keys, [sink], environment, _NO_EFFECT)


def _put_store(keys: Keys, sink: Draft) -> None:
    wide = keys.boolean("s3.wan.mode", False)
    sink.put("s3.path_style", keys.boolean("s3.path.style.access.enabled", not wide.value))
    if wide.value:
        sink.put("s3.accelerate", wide)
    s3_credentials.put_pair(keys, sink, "aws.access.key.id", "aws.secret.access.key")
    s3_credentials.put_provider(keys, sink, "s3.credentials.provider.class")
    _read_class(keys, "storage.class", same("S3Storage"), "S3Storage")
    s3_credentials.put_encryption(keys, sink, "s3.ssea.name", "s3.sse.kms.key.id", "s3.sse.customer.key")
    _put_tags(keys, sink)
    s3_credentials.put_proxy(keys, sink, "s3.proxy.")


def _put_tags(keys: Keys, sink: Draft) -> None:
    tagged, pairs = keys.boolean("s3.object.tagging", False), keys.names("s3.object.tagging.key.value.pairs")
    refused = keys.choice("s3.object.behavior.on.tagging.error", {"ignore": "tried", "fail": "required"}, "ignore")
    if not tagged.value:
        return
    sink.put("s3.objects.offset_tags", refused.value, refused.setting or tagged.setting)
    if pairs.setting is not None and not all(":" in pair for pair in pairs.value):
        keys.error(pairs.setting, f"{pairs.setting.masked_value} is not a list of tags; write NAME:VALUE,NAME:VALUE")
        return
    for name, _, value in (pair.partition(":") for pair in pairs.value):
        sink.put(["s3", "objects", "tags", name], value, pairs.setting)


def _put_format(keys: Keys, sink: Draft) -> None:
    """Put the files' format, and how sidecars of each format are written."""
    if not keys.has("format.class"):
        keys.require("format.class", "io.confluent.connect.s3.format.json.JsonFormat")
    form = _read_class(keys, "format.class", _FORMATS, "JsonFormat")
    lines = keys.choice("s3.compression.type", same("none", "gzip"), "none")
    codecs = {
        "avro": keys.choice("avro.codec", _AVRO_CODECS, "null"),
        "parquet": keys.choice("parquet.codec", _PARQUET_CODECS, "snappy"),
        "json": lines,
        "bytes": lines,
    }
    sink.put("format.type", form)
    sink.put("format.codec", codecs[form.value])
    level = keys.integer("s3.compression.level", -1, -1, 9)
    if level.value != -1 and codecs[form.value] is lines:
        sink.put("format.level", level)
    decimals = keys.choice("json.decimal.format", same("BASE64", "NUMERIC"), "NUMERIC")
    if decimals.value == "BASE64" and connect_keys.lines_have_decimals(sink):
        keys.error(decimals.setting, "'BASE64' is not supported: decimals of JSON are numbers; write NUMERIC")
    elif decimals.setting is None and connect_keys.lines_have_decimals(sink):
        message = "decimals are numbers; the connector writes them as base64 by default"
        keys.report.notice(form.setting, f"{message}: write json.decimal.format=NUMERIC")
    codec = codecs["parquet"]
    if form.value == "parquet" and codec.value in _PARQUET_EXTENSIONS:
        extension = _PARQUET_EXTENSIONS[codec.value]
        message = f"files end in .parquet, as documented; the connector writes {extension}"
        connect_keys.note_deviation(keys, sink, codec.setting or form.setting, message, "layout.extension", extension)
    connect_properties = keys.boolean("connect.meta.data", True)
    if form.value == "avro":
        sink.put("format.connect_properties", connect_properties)
    suffix = ".gz" if lines.value == "gzip" else ""
    ending = keys.text("format.bytearray.extension", ".bin").map(lambda name: name + suffix)
    if form.value == "bytes":
        separator = keys.text("format.bytearray.separator")
        between = separator.value or "\n"
        sink.put("format.framing", {"between": between, "closing": between}, separator.setting)
        sink.put("layout.extension", ending)
    for part in ("keys", "headers"):
        asked = keys.boolean(f"store.kafka.{part}", False)
        allowed = {name: form for name, form in _FORMATS.items() if part == "keys" or form != "bytes"}
        form = _read_class(keys, f"{part}.format.class", allowed, "AvroFormat")
        if not asked.value:
            continue
        sink.put(f"sidecars.{part}", form.value, form.setting or asked.setting)
        sink.put(f"sidecars.codecs.{form.value}", codecs[form.value])
        if form.value == "bytes":
            sink.put("sidecars.extensions.bytes", ending)


def _put_flush(keys: Keys, sink: Draft) -> None:
    """Put when files are closed."""
    if keys.get("flush.size") is None:
        keys.require("flush.size", "10000")
    size = keys.integer("s3.part.size", 0, 5_242_880, 2_147_483_647)
    if size.setting:
        sink.put("flush.size", size)
        message = "closes a file at that size, as documented; the connector closes none"
        connect_keys.note_deviation(keys, sink, size.setting, message, "flush.size", "80GB")
    span, schedule = (keys.integer(f"rotate.{name}interval.ms", -1, -1) for name in ("", "schedule."))
    for interval in (span, schedule):
        if interval.value == 0:
            keys.error(interval.setting, "'0' is not allowed; write milliseconds, or -1 for never")
    is_timed = span.value > 0 and _read_partitioner(keys).value in _TIMED
    if is_timed and _read_extractor(keys).value == "wallclock":  # its time does not move within a micro-batch
        sink.put("flush.interval", span.map(connect_keys.seconds))
        keys.note("is by the wall clock: a micro-batch begins when a record waits that long", span)
    elif is_timed:
        sink.put("flush.span", span.map(connect_keys.seconds))
    if schedule.value > 0:
        if not keys.text("timezone").value:
            message = "needs a timezone, without which the connector does not start; write timezone, for example UTC"
            keys.error(schedule.setting, message)
        if sink.get("flush.interval") > connect_keys.seconds(schedule.value):
            sink.put("flush.interval", schedule.map(connect_keys.seconds))
    modes = {word: word.lower() for word in ("NONE", "BACKWARD", "FORWARD", "FULL")}
    connect_keys.put_compatibility(keys, sink, keys.choice("schema.compatibility", modes, "NONE"))


def _put_layout(keys: Keys, sink: Draft) -> None:
    """Put the template of object keys."""
    top = keys.text("topics.dir", "topics")
    slash, plus = keys.text("directory.delim", "/"), keys.text("file.delim", "+")
    width = keys.integer("filename.offset.zero.pad.width", 10, 0, 64)
    affix = keys.choice("s3.schema.partition.affix.type", {"NONE": 0, "PREFIX": -1, "SUFFIX": 1}, "NONE")
    partitioner = _read_partitioner(keys)
    encoded, encoded_setting = _partition_template(keys, sink, partitioner, slash.value)
    schema = "schema_name={schema}"
    parts = {0: [encoded], -1: [schema, encoded], 1: [encoded, schema]}[affix.value]
    between = escape_braces(slash.value)
    offset = f"{{offset:0{width.value}}}" if width.value else "{offset}"
    name = escape_braces(plus.value).join(("{topic}", "{partition}", offset))

    def key(parts: Sequence[str]) -> str:
        return between.join(["{topic}", *parts, name])

    source = encoded_setting or partitioner.setting or slash.setting or plus.setting or width.setting or top.setting
    above = ""
    if slash.value == "/":
        sink.put("prefix", top.map(str.strip))
        _note_trailing_slash(keys, top.map(str.strip))
    elif top.value.strip():
        above = escape_braces(top.value) + between
    sink.put("layout.template", above + key(parts), source)
    sink.put("layout.missing", "null")
    directory = keys.text("tombstone.encoded.partition", "tombstone")
    nulls = keys.choice("behavior.on.null.values", {"fail": "fail", "ignore": "skip", "write": "write"}, "fail")
    sink.put("nulls", nulls)
    if nulls.value == "write":
        sink.put("layout.tombstones", above + key([escape_braces(directory.value)]), directory.setting or nulls.setting)
        if not keys.boolean("store.kafka.keys", False).value:
            keys.error(nulls.setting, "'write' keeps keys of records without a value; add store.kafka.keys=true")


def _read_partitioner(keys: Keys) -> Value[str]:
    return _read_class(keys, "partitioner.class", _PARTITIONERS, "DefaultPartitioner")


def _note_trailing_slash(keys: Keys, directories: Value[str]) -> None:
    """Note that a directory ends with a slash, to which the connector adds its own one.

    Source: its `fileKey`. `TimeBasedPartitioner` removes a slash that is written last, but looks at two characters.
    """
    if directories.value.strip("/") and directories.value.endswith("/"):
        message = "ends with '/': the connector writes its objects below '//', and here it is one '/'; take it out"
        keys.note(message, directories)


def _read_extractor(keys: Keys) -> Value[str]:
    return _read_class(keys, "timestamp.extractor", _EXTRACTORS, "Wallclock")


def _read_class(keys: Keys, key: str, classes: Mapping[str, str], default: str) -> Value[str]:
    """Return what a class of the connector means, by its simple name."""

    def read(text: str) -> str:
        name = text.rpartition(".")[2].rpartition("$")[2].removesuffix("TimestampExtractor") or default
        is_own = "." not in text or text.startswith("io.confluent.connect.") or name in _OF_COMMUNITY
        if not is_own:
            instead = _INSTEAD.get(key, f"use one of: {', '.join(classes)}")
            raise ValueError(f"is a Java class, which cannot run here; {instead}")
        if name not in classes:
            raise ValueError(f"is not known; {suggest(name, classes)}")
        return classes[name]

    return keys.read(key, classes[default], read)


def _partition_template(keys: Keys, sink: Draft, partitioner: Value[str], delimiter: str) -> tuple[str, Setting | None]:
    """Return the template between topic and file name, and the setting that it comes from."""
    fields = keys.names("partition.field.name")
    for field in fields.value:
        if not all(step.strip() for step in field.split(".")):
            keys.error(fields.setting, f"{field!r} is not a field: a step of the path is empty")
    dated, dated_setting = _time_template(keys, sink, partitioner, delimiter)
    if partitioner.value not in ("field", "field and time"):
        return dated or "partition={partition}", dated_setting
    if not fields.value:
        keys.error(partitioner.setting, "the partitioner needs fields; add partition.field.name=NAME,NAME")
    if partitioner.value == "field":
        parts = [f"{escape_braces(field)}={{field:{field}}}" for field in fields.value]
        return escape_braces(delimiter).join(parts), fields.setting
    keys.note("is taken for the community's: directories of partition.field.name, then of path.format", partitioner)
    has_names = keys.boolean("partition.field.format.path", True).value
    parts = [f"{escape_braces(field)}=" * has_names + f"{{field:{field}}}" for field in fields.value]
    return f"{'/'.join(parts)}{escape_braces(delimiter)}{dated}", fields.setting


def _time_template(keys: Keys, sink: Draft, partitioner: Value[str], delimiter: str) -> tuple[str, Setting | None]:
    """Put the time of the partitioner. Return its part of the template, and the setting that it comes from."""
    pattern, locale, timezone = keys.text("path.format"), keys.text("locale"), keys.text("timezone")
    own_pattern = partitioner.value in _WITH_PATTERN
    duration = keys.integer("partition.duration.ms", -1, 1 if own_pattern else -1)
    extractor, field = _read_extractor(keys), keys.text("timestamp.field", "timestamp")
    sink.put("layout.time.source", extractor)
    if extractor.value == "field":
        sink.put("layout.time.field", field)
    for name, option in (("timezone", timezone), ("locale", locale)):
        if option.value:
            sink.put(f"layout.time.{name}", option)
    if partitioner.value not in _TIMED:
        message = "is read by nothing without partitioner.class=TimeBasedPartitioner: keys have no dates"
        keys.note(message, pattern)
        return "", None
    for name, option, taken in (("locale", locale, "en"), ("timezone", timezone, "UTC")):
        if not option.value:
            keys.report.notice(option.setting or partitioner.setting, f"{name} is missing; {taken} is taken")
    if extractor.value == "field":
        message = "a time before 1970 is in the bucket that it falls into; the connector takes the next one"
        at = extractor.setting or partitioner.setting
        connect_keys.note_deviation(keys, sink, at, message, "layout.time.before_1970", "toward_zero")
    quoted = f"'{delimiter}'" if delimiter.isalpha() else delimiter
    steps = ["'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH"]
    if not own_pattern:
        is_daily = partitioner.value == "daily"
        sink.put("layout.time.duration", float(_DAY_S if is_daily else _HOUR_S), partitioner.setting)
        return f"{{time:{quoted.join(steps[: 3 if is_daily else 4])}}}", None
    if duration.setting is None:
        message = f"partition.duration.ms is missing; {_HOUR_S * 1000} (an hour) is taken"
        keys.report.notice(partitioner.setting, message)
    sink.put("layout.time.duration", duration.map(lambda ms: ms / 1000 if ms > 0 else float(_HOUR_S)))
    path = pattern.value.removesuffix(delimiter)
    if delimiter == "/":
        _note_trailing_slash(keys, pattern)
    if path.count("'") % 2:
        keys.note("a quote is not closed; it is closed at the end, as the connector does", pattern)
        path = pattern.value + "'"
    if not path:
        message = "is empty; write a pattern such as 'year'=YYYY/'month'=MM/'day'=dd, or take it out"
        if pattern.setting:
            keys.error(pattern.setting, message)
        path = quoted.join(steps)
        keys.report.notice(partitioner.setting, f"path.format is missing; {path} is taken")
    return f"{{time:{path}}}", pattern.setting
