"""Confluent's S3 sink: its layout becomes a template, its rotation the flush policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from s3lake.config.connectors import connect, converters, credentials, native_keys
from s3lake.config.connectors.confluent_layout import SECONDS, put_layout, read_class, read_partitioner
from s3lake.config.draft import Draft, Sketch, join_drafts
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Report, Setting

CLASSES = ("io.confluent.connect.s3.S3SinkConnector",)
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
    _flush(keys, sink, lambda: read_partitioner(keys).value not in ("default", "field"))
    put_layout(keys, sink)
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


_Beside = Mapping[str, tuple[Value[str], Value[str]]]
"""Codec and extension of a sidecar by its format."""


def _format(keys: Keys, sink: Draft) -> _Beside:
    """Put the files' format. Return codec and extension of sidecars for each format."""
    if not keys.has("format.class"):
        keys.required("format.class", "io.confluent.connect.s3.format.json.JsonFormat")
    form = read_class(keys, "format.class", _FORMATS, "JsonFormat")
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
        form = read_class(keys, f"{part}.format.class", sidecars, "AvroFormat")
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
