"""Confluent's S3 sink: its layout becomes a template, its rotation the flush policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from s3lake.config.connectors import connect, converters, credentials
from s3lake.config.connectors.confluent_layout import put_layout, read_class, read_partitioner
from s3lake.config.draft import ConfigDraft, Draft
from s3lake.config.keys import Key, Keys, same, whole
from s3lake.config.report import Report, Setting, Value

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
    "schema.generator.class": "it makes schemas for Hive, which is not used",
    "parquet.avro.write-old-list-structure": "lists have three levels",
}


_KEYS = (
    Key("s3.bucket.name", "bucket", example="my-bucket"),
    Key("s3.region", "s3.region", default="us-west-2"),
    Key("store.url", "s3.endpoint_url"),
    Key("s3.part.retries", "s3.retries.max_attempts", lambda text: max(1, whole(0)(text)), 3),
    Key("s3.retry.backoff.ms", "s3.retries.backoff_ms", whole(0), 200),
    Key("s3.acl.canned", "s3.objects.acl", lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()),
    Key("flush.size", "flush.count", whole(1), 1),
)


def loads(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys, sink = connect.open_keys(settings, report), Draft()
    connect.put_name_and_topics(keys, sink)
    converters.put_converters(keys, sink)
    connect.put_framework(keys, sink)
    sink.put("flush", {**connect.FLUSH, "size": connect.LARGEST_FILE})
    keys.put(sink, _KEYS)
    _put_store(keys, sink)
    beside = _put_format(keys, sink)
    _put_flush(keys, sink)
    put_layout(keys, sink)
    _put_nulls(keys, sink, beside)
    metadata = keys.boolean("connect.meta.data", True)
    if not metadata.value:
        report.no_effect(metadata.setting, "Avro's schemas keep what Connect says of types; readers ignore it")
    return connect.finish(keys, [sink], environment, _NO_EFFECT)


def _put_store(keys: Keys, sink: Draft) -> None:
    wide = keys.boolean("s3.wan.mode", False)
    sink.put("s3.path_style", keys.boolean("s3.path.style.access.enabled", not wide.value))
    if wide.value:
        sink.put("s3.accelerate", wide)
    credentials.put_pair(keys, sink, "aws.access.key.id", "aws.secret.access.key")
    credentials.put_provider(keys, sink, "s3.credentials.provider.class")
    storage = keys.get("storage.class")
    if storage is not None and storage.value.rpartition(".")[2] != "S3Storage":
        keys.wrong(storage, f"{storage.masked_value} is not known; use io.confluent.connect.s3.storage.S3Storage")
    credentials.put_encryption(keys, sink, "s3.ssea.name", "s3.sse.kms.key.id", "s3.sse.customer.key")
    _put_tags(keys, sink)
    credentials.put_proxy(keys, sink, "s3.proxy.")


def _put_tags(keys: Keys, sink: Draft) -> None:
    tagged, pairs = keys.boolean("s3.object.tagging", False), keys.names("s3.object.tagging.key.value.pairs")
    refused = keys.choice("s3.object.behavior.on.tagging.error", {"ignore": "tried", "fail": "required"}, "ignore")
    if not tagged.value:
        keys.note("has no effect without s3.object.tagging=true", *([pairs] if pairs.value else []), refused)
        return
    sink.put("s3.objects.offset_tags", refused.value, refused.setting or tagged.setting)
    if pairs.setting is not None and not all(":" in pair for pair in pairs.value):
        keys.wrong(pairs.setting, f"{pairs.setting.masked_value} is not a list of tags; write NAME:VALUE,NAME:VALUE")
        return
    for name, _, value in (pair.partition(":") for pair in pairs.value):
        sink.put(["s3", "objects", "tags", name], value, pairs.setting)


_Beside = Mapping[str, tuple[Value[str], Value[str]]]
"""Codec and extension of a sidecar by its format."""


def _put_format(keys: Keys, sink: Draft) -> _Beside:
    """Put the files' format. Return codec and extension of sidecars for each format."""
    if not keys.has("format.class"):
        keys.required("format.class", "io.confluent.connect.s3.format.json.JsonFormat")
    form = read_class(keys, "format.class", _FORMATS, "JsonFormat")
    unused = f"has no effect with format {form.value}"
    avro = keys.choice("avro.codec", _AVRO_CODECS, "null")
    parquet = keys.choice("parquet.codec", _PARQUET_CODECS, "snappy")
    lines = keys.choice("s3.compression.type", same("none", "gzip"), "none")
    extension, separator = keys.text("format.bytearray.extension", ".bin"), keys.text("format.bytearray.separator")
    decimals = keys.choice("json.decimal.format", {"BASE64": "base64", "NUMERIC": "number"}, "NUMERIC")
    sink.put("format.type", form)
    sink.put("format.codec", {"avro": avro, "parquet": parquet}.get(form.value, lines))
    for codec, formats in ((avro, ["avro"]), (parquet, ["parquet"]), (lines, ["json", "bytes"])):
        if form.value not in formats:
            keys.note(unused, codec)
    level = keys.integer("s3.compression.level", -1, -1, 9)
    if level.value != -1:
        sink.put("format.level", level)
    if decimals.value == "base64" and form.value == "json":
        sink.put("format.decimals", decimals)
    elif decimals.value == "base64":
        keys.note(unused, decimals)
    if parquet.setting and parquet.setting.value.lower() == "lz4":
        keys.note("is written as LZ4_RAW, which replaced Hadoop's own LZ4 in Parquet", parquet)
    connectors = _PARQUET_EXTENSIONS.get(parquet.value)
    if form.value == "parquet" and connectors is not None:
        message = f"files end in .parquet, as the document says; the connector writes {connectors}"
        connect.note_deviation(keys, sink, parquet.setting or form.setting, message, "layout.extension", connectors)
    ending = extension.map(lambda name: name + (".gz" if lines.value == "gzip" else ""))
    if form.value == "bytes":
        between = separator.value or "\n"
        sink.put("format.framing", {"between": between, "closing": between}, separator.setting)
        sink.put("layout.extension", ending)
    else:
        keys.note(unused, extension, separator)
    own = Value("")
    return {"avro": (avro, own), "parquet": (parquet, own), "json": (lines, own), "bytes": (lines, ending)}


def _put_flush(keys: Keys, sink: Draft) -> None:
    """Put when files are closed."""
    if keys.get("flush.size") is None:
        keys.required("flush.size", "10000")
    size = keys.integer("s3.part.size", 0, 5_242_880, 2_147_483_647)
    if size.setting:
        sink.put("flush.size", size)
        message = "closes a file at that size, as the document says; the connector closes none"
        connect.note_deviation(keys, sink, size.setting, message, "flush.size", "80GB")
    span, schedule = (keys.integer(f"rotate.{name}interval.ms", -1, -1) for name in ("", "schedule."))
    for interval in (span, schedule):
        if interval.value == 0:
            keys.wrong(interval.setting, "'0' is not allowed; write milliseconds, or -1 for never")
    extractor = keys.text("timestamp.extractor").value.rpartition(".")[2].removesuffix("TimestampExtractor")
    if span.value > 0 and read_partitioner(keys).value in ("default", "field"):
        keys.note("has no effect without a time based partitioner", span)
    elif span.value > 0 and extractor in ("", "Wallclock"):  # its time does not move within a micro-batch
        sink.put("flush.interval", span.map(connect.seconds))
        keys.note("is by the wall clock: a micro-batch begins when a record waits that long", span)
    elif span.value > 0:
        sink.put("flush.span", span.map(connect.seconds))
    if schedule.value > 0:
        if not keys.text("timezone").value:
            message = "needs a timezone, without which the connector does not start; write timezone, for example UTC"
            keys.wrong(schedule.setting, message)
        if sink.get("flush.interval") > connect.seconds(schedule.value):
            sink.put("flush.interval", schedule.map(connect.seconds))
    modes = {word: word.lower() for word in ("NONE", "BACKWARD", "FORWARD", "FULL")}
    connect.put_compatibility(keys, sink, keys.choice("schema.compatibility", modes, "NONE"))


def _put_nulls(keys: Keys, sink: Draft, beside: _Beside) -> None:
    nulls = keys.choice("behavior.on.null.values", {"fail": "fail", "ignore": "skip", "write": "write"}, "fail")
    sink.put("nulls", nulls)
    for part in ("keys", "headers"):
        asked = keys.boolean(f"store.kafka.{part}", False)
        formats = {name: form for name, form in _FORMATS.items() if part == "keys" or form != "bytes"}
        form = read_class(keys, f"{part}.format.class", formats, "AvroFormat")
        if asked.value:
            sink.put(f"sidecars.{part}", form.value, form.setting or asked.setting)
            codec, ending = beside[form.value]
            sink.put(f"sidecars.codecs.{form.value}", codec)
            if ending.value:
                sink.put(f"sidecars.extensions.{form.value}", ending)
        else:
            keys.note(f"has no effect without store.kafka.{part}=true", form)
        if part == "keys" and nulls.value == "write" and not asked.value:
            keys.wrong(nulls.setting, "'write' keeps keys of records without a value; add store.kafka.keys=true")
