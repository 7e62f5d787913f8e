"""Confluent's S3 sink: its layout becomes a template, its rotation the flush policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from s3lake.config.connectors import connect, converters, credentials, native_keys
from s3lake.config.connectors.connect import escape_braces
from s3lake.config.draft import Draft, Sketch, join_drafts
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Report, Setting
from s3lake.text.options import did_you_mean

CLASSES = ("io.confluent.connect.s3.S3SinkConnector",)
_FIELDS_AND_TIME = "FieldAndTimeBasedPartitioner"
_PARTITIONERS = {
    "DefaultPartitioner": "default",
    "FieldPartitioner": "field",
    "TimeBasedPartitioner": "time",
    "DailyPartitioner": "daily",
    "HourlyPartitioner": "hourly",
    _FIELDS_AND_TIME: "fields and time",
}
_FORMATS = {"ParquetFormat": "parquet", "AvroFormat": "avro", "JsonFormat": "json", "ByteArrayFormat": "bytes"}
_SIDECARS = {"AvroFormat": "avro", "JsonFormat": "json", "ParquetFormat": "parquet", "ByteArrayFormat": "bytes"}
_AVRO_CODECS = {"null": "none", "deflate": "deflate", "snappy": "snappy", "bzip2": "bzip2"}
_PARQUET_CODECS = {
    "none": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "lzo": "lzo",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
_PARQUET_EXTENSIONS = {
    "snappy": ".snappy.parquet",
    "gzip": ".gz.parquet",
    "zstd": ".zstd.parquet",
    "brotli": ".br.parquet",
    "lz4": ".lz4raw.parquet",
}
SECONDS = 1000
"""In milliseconds, as the connector counts."""
_DAY, _HOUR = 86_400_000, 3_600_000
_ONE_BY_ONE = "files are uploaded in parts of a few MB, whatever is in memory"
_NO_EFFECT = {
    "s3.http.send.expect.continue": "boto3 decides that",
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
    "max.files.scan.limit": "the index says which files there are",
    "partitioner.max.open.files": "memory_budget bounds what is open",
    "offset.flush.interval.ms": "offsets are committed with the files",
    "parquet.avro.write-old-list-structure": "lists have three levels",
}


def loads(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> Sketch:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys = Keys(settings, report)
    common, sink = Draft(), Draft()
    keys.get("connector.class")
    connect.put_name_and_topics(keys, sink)
    converters.put_converters(keys, sink)
    connect.put_framework(keys, common, sink)
    _store(keys, common, sink)
    beside = _format(keys, sink)
    _flush(keys, sink, lambda: _partitioner(keys).value not in ("default", "field"))
    _layout(keys, sink)
    _nulls(keys, sink, beside)
    keys.no_effect(_NO_EFFECT)
    told = keys.boolean("connect.meta.data", True)
    if not told.value:
        keys.report.no_effect(told.setting, "Avro's schemas keep what Connect says of types; readers ignore it")
    native_keys.apply(keys, common, [sink], environment)
    keys.report_unknown()
    return join_drafts(common, [sink], report, connect.connector(keys))


def _store(keys: Keys, common: Draft, sink: Draft) -> None:
    sink.put("bucket", keys.required("s3.bucket.name", "my-bucket"))
    common.put("s3.region", keys.text("s3.region", "us-west-2"))
    endpoint = keys.text("store.url")
    if endpoint.value:
        common.put("s3.endpoint_url", endpoint)
    edges = keys.boolean("s3.wan.mode", False)
    common.put("s3.path_style", keys.boolean("s3.path.style.access.enabled", not edges.value))
    if edges.value:
        common.put("s3.accelerate", edges)
    attempts = keys.integer("s3.part.retries", 3, 0)
    common.put("s3.retries.max_attempts", attempts.map(lambda count: max(1, count)))
    common.put("s3.retries.backoff_ms", keys.integer("s3.retry.backoff.ms", 200, 0))
    credentials.pair(keys, common, "aws.access.key.id", "aws.secret.access.key")
    credentials.provider(keys, common, "s3.credentials.provider.class")
    storage = keys.get("storage.class")
    if storage is not None and storage.value.rpartition(".")[2] != "S3Storage":
        keys.wrong(storage, f"{storage.masked_value} is not known; use io.confluent.connect.s3.storage.S3Storage")
    credentials.encryption(keys, common, "s3.ssea.name", "s3.sse.kms.key.id", "s3.sse.customer.key")
    acl = keys.text("s3.acl.canned").map(lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower())
    if acl.value:
        common.put("s3.objects.acl", acl)
    _tags(keys, common)
    credentials.proxy(keys, common, "s3.proxy.")


def _tags(keys: Keys, common: Draft) -> None:
    tagged, pairs = keys.boolean("s3.object.tagging", False), keys.names("s3.object.tagging.key.value.pairs")
    refused = keys.choice("s3.object.behavior.on.tagging.error", {"ignore": "tried", "fail": "required"}, "ignore")
    if not tagged.value:
        for setting in (pairs.setting if pairs.value else None, refused.setting):
            if setting is not None:
                keys.report.notice(setting, "has no effect without s3.object.tagging=true")
        return
    common.put("s3.objects.offset_tags", refused.value, refused.setting or tagged.setting)
    if pairs.setting is not None and not all(":" in pair for pair in pairs.value):
        keys.wrong(pairs.setting, f"{pairs.setting.masked_value} is not a list of tags; write NAME:VALUE,NAME:VALUE")
        return
    for pair in pairs.value:
        name, _, value = pair.partition(":")
        common.put(["s3", "objects", "tags", name], value, pairs.setting)


def _partitioner(keys: Keys) -> Value[str]:
    return _class(keys, "partitioner.class", _PARTITIONERS, "DefaultPartitioner")


def _class(keys: Keys, key: str, classes: Mapping[str, str], default: str) -> Value[str]:
    setting = keys.get(key)
    if setting is None or not setting.value:
        return Value(classes[default])
    name = setting.value.rpartition(".")[2]
    ours = setting.value.startswith("io.confluent.connect.") or name == _FIELDS_AND_TIME
    if name not in classes or ("." in setting.value and not ours):
        near = did_you_mean(name, list(classes))
        keys.wrong(setting, f"{setting.masked_value} is not known; {near}use one of: {', '.join(classes)}")
        return Value(classes[default])
    return Value(classes[name], setting)


_Beside = Mapping[str, tuple[Value[str], Value[str]]]
"""Codec and extension of a sidecar by its format."""


def _format(keys: Keys, sink: Draft) -> _Beside:
    """Put the files' format. Return codec and extension of sidecars for each format."""
    if not keys.has("format.class"):
        keys.required("format.class", "io.confluent.connect.s3.format.json.JsonFormat")
    form = _class(keys, "format.class", _FORMATS, "JsonFormat")
    sink.put("format.type", form)
    avro = keys.choice("avro.codec", _AVRO_CODECS, "null")
    parquet = keys.choice("parquet.codec", _PARQUET_CODECS, "snappy")
    lines = keys.choice("s3.compression.type", {"none": "none", "gzip": "gzip"}, "none")
    level = keys.integer("s3.compression.level", -1, -1, 9)
    extension, separator = keys.text("format.bytearray.extension", ".bin"), keys.get("format.bytearray.separator")
    decimals = keys.choice("json.decimal.format", {"BASE64": "base64", "NUMERIC": "number"}, "NUMERIC")
    if decimals.value == "base64" and form.value == "json":
        sink.put("format.decimals", decimals)
    elif decimals.value == "base64":
        keys.report.notice(decimals.setting, f"has no effect with format {form.value}")
    codec = {"avro": avro, "parquet": parquet}.get(form.value, lines)
    sink.put("format.codec", codec)
    for other, formats in ((avro, ["avro"]), (parquet, ["parquet"]), (lines, ["json", "bytes"])):
        if other.setting and form.value not in formats:
            keys.report.notice(other.setting, f"has no effect with format {form.value}")
    if level.setting and level.value != -1:
        sink.put("format.level", level)
    if parquet.setting and parquet.setting.value.lower() == "lz4":
        keys.report.notice(parquet.setting, "is written as LZ4_RAW, which replaced Hadoop's own LZ4 in Parquet")
    named = _PARQUET_EXTENSIONS.get(parquet.value)
    if form.value == "parquet" and named is not None:
        message = f"files end in .parquet, as the document says; the connector writes {named}"
        connect.note_deviation(keys, sink, parquet.setting or form.setting, message, "layout.extension", named)
    ended = extension.map(lambda name: name + (".gz" if lines.value == "gzip" else ""))
    if form.value == "bytes":
        between = separator.value if separator is not None and separator.value else "\n"
        sink.put("format.framing", {"between": between, "closing": between}, separator)
        sink.put("layout.extension", ended)
    else:
        for setting in (extension.setting, separator):
            if setting is not None:
                keys.report.notice(setting, f"has no effect with format {form.value}")
    own = Value("")
    return {"avro": (avro, own), "parquet": (parquet, own), "json": (lines, own), "bytes": (lines, ended)}


def _flush(keys: Keys, sink: Draft, timed: Callable[[], bool]) -> None:
    """Put when files are closed; `timed` returns whether the partitioner goes by time."""
    sink.put("flush", connect.FLUSH)
    count = keys.integer("flush.size", 1, 1)
    if count.setting is None:
        keys.required("flush.size", "10000")
    sink.put("flush.count", count)
    size = keys.integer("s3.part.size", 0, 5_242_880, 2_147_483_647)
    sink.put("flush.size", connect.LARGEST_FILE)
    if size.setting:
        sink.put("flush.size", size)
        message = "closes a file at that size, as the document says; the connector closes none"
        connect.note_deviation(keys, sink, size.setting, message, "flush.size", "80GB")
    for key in ("rotate.interval.ms", "rotate.schedule.interval.ms"):
        if (zero := keys.get(key)) is not None and zero.value == "0":
            keys.wrong(zero, "'0' is not allowed; write milliseconds, or -1 for never")
    span = keys.integer("rotate.interval.ms", -1, -1)
    if span.setting and span.value > 0:
        if not timed():
            keys.report.notice(span.setting, "has no effect without a time based partitioner")
        else:
            _rotation(keys, sink, span)
    schedule = keys.integer("rotate.schedule.interval.ms", -1, -1)
    if schedule.setting and schedule.value > 0:
        if not keys.text("timezone").value:
            keys.wrong(
                schedule.setting,
                "needs a timezone, without which the connector does not start; write timezone, for example UTC",
            )
        if sink.get("flush.interval") > schedule.value / SECONDS:
            sink.put("flush.interval", schedule.map(connect.seconds))
    modes = {word: word.lower() for word in ("NONE", "BACKWARD", "FORWARD", "FULL")}
    connect.put_compatibility(keys, sink, keys.choice("schema.compatibility", modes, "NONE"))


def _rotation(keys: Keys, sink: Draft, span: Value[int]) -> None:
    """A file's time span is of the extractor's time, which by the wall clock does not move within a micro-batch."""
    seconds = span.map(connect.seconds)
    extractor = keys.text("timestamp.extractor").value.rpartition(".")[2].removesuffix("TimestampExtractor")
    if extractor in ("", "Wallclock"):
        sink.put("flush.interval", seconds)
        keys.report.notice(span.setting, "is by the wall clock: a micro-batch begins when a record waits that long")
    else:
        sink.put("flush.span", seconds)


def _layout(keys: Keys, sink: Draft) -> None:
    top = keys.text("topics.dir", "topics")
    slash, plus = keys.text("directory.delim", "/"), keys.text("file.delim", "+")
    width = keys.integer("filename.offset.zero.pad.width", 10, 0, 64)
    affix = keys.choice("s3.schema.partition.affix.type", {"NONE": 0, "PREFIX": -1, "SUFFIX": 1}, "NONE")
    partitioner = _partitioner(keys)
    encoded, fields_setting = _partition_template(keys, sink, partitioner, slash.value)
    schema = "schema_name={schema}"
    parts = {0: [encoded], -1: [schema, encoded], 1: [encoded, schema]}[affix.value]
    between = escape_braces(slash.value)
    offset = f"{{offset:0{width.value}}}" if width.value else "{offset}"
    name = escape_braces(plus.value).join(("{topic}", "{partition}", offset))

    def key(parts: Sequence[str]) -> str:
        return between.join(["{topic}", *parts, name])

    source = fields_setting or partitioner.setting or slash.setting or plus.setting or width.setting or top.setting
    above = ""
    if slash.value == "/":
        sink.put("prefix", top.map(str.strip))
    elif top.value.strip():
        above = escape_braces(top.value) + between
    sink.put("layout.template", above + key(parts), source)
    sink.put("layout.missing", "null")
    directory = keys.text("tombstone.encoded.partition", "tombstone")
    nulls = keys.get("behavior.on.null.values")
    if nulls is not None and nulls.value.lower() == "write":
        sink.put("layout.tombstones", above + key([escape_braces(directory.value)]), directory.setting or nulls)


def _partition_template(keys: Keys, sink: Draft, partitioner: Value[str], delimiter: str) -> tuple[str, Setting | None]:
    """Return the template between topic and file name, and the setting that it comes from."""
    fields = keys.names("partition.field.name")
    for field in fields.value:
        if not all(step.strip() for step in field.split(".")) and fields.setting is not None:
            keys.wrong(fields.setting, f"{field!r} is not a field: a step of the path is empty")
    pattern = keys.text("path.format")
    fielded = partitioner.value == "fields and time"
    if fielded and partitioner.setting is not None:
        keys.report.notice(
            partitioner.setting, "is taken as one of several of that name: NAME=VALUE/… and then path.format"
        )
        partitioner = Value("time", partitioner.setting)
    duration = keys.integer("partition.duration.ms", -1, 1 if partitioner.value == "time" else -1)
    locale, timezone = keys.text("locale"), keys.text("timezone")
    _extractor(keys, sink)
    if timezone.value:
        sink.put("layout.time.timezone", timezone)
    if locale.value:
        sink.put("layout.time.locale", locale)
    _unused(keys, Value("fields and time") if fielded else partitioner, (fields, pattern, duration, locale, timezone))
    if partitioner.value == "default":
        return "partition={partition}", None
    named = escape_braces(delimiter).join(f"{escape_braces(field)}={{field:{field}}}" for field in fields.value)
    if (fielded or partitioner.value == "field") and not fields.value and partitioner.setting is not None:
        keys.wrong(partitioner.setting, "the partitioner needs fields; add partition.field.name=NAME,NAME")
    if fielded:
        dated = _time(keys, sink, partitioner, delimiter, (pattern, duration, locale, timezone))
        return f"{named}{escape_braces(delimiter)}{dated}", pattern.setting or fields.setting
    if partitioner.value == "field":
        return named or "partition={partition}", fields.setting
    return _time(keys, sink, partitioner, delimiter, (pattern, duration, locale, timezone)), pattern.setting


def _unused(keys: Keys, partitioner: Value[str], options: Sequence[Value[Any]]) -> None:
    """Note options of partitioners that are not used: people who write `path.format` expect directories of dates."""
    fields, *timed = options
    if fields.setting and partitioner.value not in ("field", "fields and time"):
        keys.report.notice(fields.setting, "has no effect without partitioner.class=FieldPartitioner")
    if partitioner.value not in ("default", "field"):
        return
    scheduled = keys.get("rotate.schedule.interval.ms")
    for option in timed:
        if option.setting is None or (option.setting.key == "timezone" and scheduled is not None):
            continue
        if option.setting.key == "path.format":
            message = "is read by nothing without partitioner.class=TimeBasedPartitioner: keys have no dates"
        else:
            message = "has no effect without a time based partitioner"
        keys.report.notice(option.setting, message)
    extractor = keys.get("timestamp.extractor")
    if extractor is not None:
        keys.report.notice(extractor, "has no effect without a time based partitioner")


def _time(
    keys: Keys,
    sink: Draft,
    partitioner: Value[str],
    delimiter: str,
    options: tuple[Value[str], Value[int], Value[str], Value[str]],
) -> str:
    pattern, duration, locale, timezone = options
    quoted = delimiter if not delimiter.isalpha() else f"'{delimiter}'"
    steps = ["'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH"]
    for value, taken in ((locale, "en"), (timezone, "UTC")):
        if not value.value:
            key = "locale" if value is locale else "timezone"
            keys.report.notice(value.setting or partitioner.setting, f"{key} is missing; {taken} is taken")
    if partitioner.value in ("daily", "hourly"):
        for option in (pattern, duration):
            if option.setting:
                keys.report.notice(option.setting, f"has no effect: the {partitioner.value} partitioner has its own")
        sink.put(
            "layout.time.duration", (_DAY if partitioner.value == "daily" else _HOUR) / SECONDS, partitioner.setting
        )
        return f"{{time:{quoted.join(steps[: 3 if partitioner.value == 'daily' else 4])}}}"
    if keys.get("partition.duration.ms") is None:
        keys.report.notice(partitioner.setting, f"partition.duration.ms is missing; {_HOUR} (an hour) is taken")
    sink.put("layout.time.duration", (duration.value if duration.value > 0 else _HOUR) / SECONDS, duration.setting)
    path = pattern.value.removesuffix(delimiter)
    if path.count("'") % 2:
        keys.report.notice(pattern.setting, "a quote is not closed; it is closed at the end, as the connector does")
        path = pattern.value + "'"
    if not path:
        if pattern.setting:
            keys.wrong(
                pattern.setting, "is empty; write a pattern such as 'year'=YYYY/'month'=MM/'day'=dd, or take it out"
            )
        default = quoted.join(steps)
        keys.report.notice(partitioner.setting, f"path.format is missing; {default} is taken")
        return f"{{time:{default}}}"
    return f"{{time:{path}}}"


def _extractor(keys: Keys, sink: Draft) -> None:
    sources = {"Wallclock": "wallclock", "Record": "record", "RecordField": "field"}
    setting = keys.get("timestamp.extractor")
    name = setting.value.rpartition(".")[2].split("$")[-1].removesuffix("TimestampExtractor") if setting else ""
    chosen = sources.get(name, "wallclock")
    if setting is not None and setting.value and name not in sources:
        near = did_you_mean(name, list(sources))
        keys.wrong(setting, f"{setting.masked_value} is not known; {near}use one of: {', '.join(sources)}")
    sink.put("layout.time.source", chosen, setting)
    field = keys.text("timestamp.field", "timestamp")
    if chosen == "field":
        sink.put("layout.time.field", field)
    elif field.setting:
        keys.report.notice(field.setting, "has no effect without timestamp.extractor=RecordField")


def _nulls(keys: Keys, sink: Draft, beside: _Beside) -> None:
    nulls = keys.choice("behavior.on.null.values", {"fail": "fail", "ignore": "skip", "write": "write"}, "fail")
    sink.put("nulls", nulls)
    for part in ("keys", "headers"):
        asked = keys.boolean(f"store.kafka.{part}", False)
        sidecars = (
            _SIDECARS
            if part == "keys"
            else {name: form_name for name, form_name in _SIDECARS.items() if form_name != "bytes"}
        )
        form = _class(keys, f"{part}.format.class", sidecars, "AvroFormat")
        if asked.value:
            sink.put(f"sidecars.{part}", form.value, form.setting or asked.setting)
            codec, ending = beside[form.value]
            sink.put(f"sidecars.codecs.{form.value}", codec)
            if ending.value:
                sink.put(f"sidecars.extensions.{form.value}", ending)
        elif form.setting:
            keys.report.notice(form.setting, f"has no effect without store.kafka.{part}=true")
        if part == "keys" and nulls.value == "write" and not asked.value and nulls.setting is not None:
            keys.wrong(nulls.setting, "'write' keeps keys of records without a value; add store.kafka.keys=true")
