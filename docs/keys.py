"""Every key of every connector's own definition: its default, a value that is another, and what it needs beside.

`reference.py` loads each and writes what becomes of it; a test counts.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from s3lake.config.dialects import sketched
from s3lake.config.draft import Loaded
from s3lake.errors import ConfigurationError

ENVIRONMENT = {"S3LAKE_START": "2026-11-20T00", "S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092", "S3LAKE_NAME": ""}
CUSTOMER_KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
TIMED = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "partition.duration.ms": "3600000",
    "locale": "en",
    "timezone": "UTC",
}


@dataclass(frozen=True)
class Key:
    """A key of a connector's definition.

    Attributes:
        name: as files write it.
        default: the connector's own; empty where it has none.
        value: one that is not the default.
        beside: what has to be said too, for the connector itself to read the key.
    """

    name: str
    default: str
    value: Any
    beside: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Definition:
    """What one connector knows.

    Attributes:
        title: how the page calls it.
        base: the least configuration that loads.
        keys: all of them.
        toml: whether its files are TOML.
    """

    title: str
    base: dict[str, Any]
    keys: tuple[Key, ...]
    toml: bool = False

    def text(self, settings: dict[str, Any]) -> str:
        """The base with settings of its own, as a file."""
        whole = {name: value for name, value in {**self.base, **settings}.items() if value is not None}
        return _toml(whole) if self.toml else json.dumps(whole)


def _toml(settings: dict[str, Any]) -> str:
    """Dotted keys as TOML; what begins with `streams.` is of the one stream."""
    top = [f"{name} = {json.dumps(value)}" for name, value in settings.items() if "." not in name]
    tables: dict[str, list[str]] = {}
    for name, value in settings.items():
        if "." in name:
            table, _, key = name.rpartition(".")
            tables.setdefault(table, []).append(f"{key} = {_inline(value)}")
    heads = {table: "[[streams]]" if table == "streams" else f"[{table}]" for table in tables}
    return "\n".join([*top, *(line for table, lines in tables.items() for line in (heads[table], *lines))])


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_inline(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def keys(*rows: tuple[Any, ...]) -> tuple[Key, ...]:
    """Rows of name, default, value and what has to stand beside."""
    return tuple(Key(*row) for row in rows)


_STRING = "org.apache.kafka.connect.storage.StringConverter"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_CONVERTERS = {"key.converter": _STRING, "value.converter": _JSON, "value.converter.schemas.enable": "false"}
_S3 = "io.confluent.connect.s3"
_PARTITIONER = "io.confluent.connect.storage.partitioner"
_EXTRACTOR = {**TIMED, "timestamp.extractor": "RecordField"}
_LINES = {"format.class": f"{_S3}.format.bytearray.ByteArrayFormat", "value.converter": _BYTES}
_PARQUET = {"format.class": f"{_S3}.format.parquet.ParquetFormat"}

CONNECT = Definition(
    "Kafka Connect",
    {
        "name": "lake",
        "connector.class": f"{_S3}.S3SinkConnector",
        "topics": "orders",
        **_CONVERTERS,
        "s3.bucket.name": "lake",
        "storage.class": f"{_S3}.storage.S3Storage",
        "format.class": f"{_S3}.format.json.JsonFormat",
        "flush.size": "1000",
    },
    keys(
        ("name", "", "other"),
        ("connector.class", "", "io.confluent.connect.s3.S3SinkConnector"),
        ("tasks.max", "1", "4"),
        ("tasks.max.enforce", "true", "false"),
        ("topics", "", "orders,clicks"),
        ("topics.regex", "", "orders.*", {"topics": None}),
        ("key.converter", "the worker's", _BYTES),
        ("value.converter", "the worker's", _BYTES, {"value.converter.schemas.enable": None}),
        ("header.converter", "SimpleHeaderConverter", "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
        ("key.converter.schemas.enable", "true", "false", {"key.converter": _JSON}),
        ("value.converter.schemas.enable", "true", "true"),
        (
            "transforms",
            "",
            "t",
            {"transforms.t.type": "org.apache.kafka.connect.transforms.HoistField$Value", "transforms.t.field": "v"},
        ),
        (
            "predicates",
            "",
            "p",
            {
                "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
                "transforms": "t",
                "transforms.t.type": "org.apache.kafka.connect.transforms.Filter",
                "transforms.t.predicate": "p",
            },
        ),
        ("config.action.reload", "restart", "none"),
        ("errors.tolerance", "none", "all"),
        ("errors.retry.timeout", "0", "60000"),
        ("errors.retry.delay.max.ms", "60000", "1000"),
        ("errors.log.enable", "false", "true"),
        ("errors.log.include.messages", "false", "true"),
        ("errors.deadletterqueue.topic.name", "", "dead", {"errors.tolerance": "all"}),
        (
            "errors.deadletterqueue.topic.replication.factor",
            "3",
            "1",
            {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"},
        ),
        (
            "errors.deadletterqueue.context.headers.enable",
            "false",
            "true",
            {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"},
        ),
        ("consumer.override.max.poll.records", "500", "100"),
        ("consumer.override.auto.offset.reset", "the worker's", "latest"),
        ("consumer.override.isolation.level", "read_uncommitted", "read_uncommitted"),
        ("consumer.override.security.protocol", "PLAINTEXT", "SSL"),
        ("producer.override.acks", "all", "1"),
        ("admin.override.client.id", "", "lake"),
        ("connector.plugin.version", "", "11.0.0"),
        ("key.converter.plugin.version", "", "4.0.0"),
        ("value.converter.plugin.version", "", "4.0.0"),
    ),
)

CONFLUENT = Definition(
    "Confluent's S3 sink",
    CONNECT.base,
    keys(
        ("s3.bucket.name", "", "other"),
        ("s3.region", "us-west-2", "eu-west-1"),
        ("s3.part.size", "26214400", "5242880"),
        ("s3.part.retries", "3", "7"),
        ("s3.retry.backoff.ms", "200", "500"),
        (
            "s3.credentials.provider.class",
            "DefaultCredentialsProvider",
            "com.amazonaws.auth.InstanceProfileCredentialsProvider",
        ),
        ("aws.access.key.id", "", "AKIAEXAMPLE", {"aws.secret.access.key": "example"}),
        ("aws.secret.access.key", "", "example", {"aws.access.key.id": "AKIAEXAMPLE"}),
        ("s3.ssea.name", "", "AES256"),
        ("s3.sse.customer.key", "", CUSTOMER_KEY, {"s3.ssea.name": "AES256"}),
        ("s3.sse.kms.key.id", "", "alias/lake", {"s3.ssea.name": "aws:kms"}),
        ("s3.acl.canned", "", "bucket-owner-full-control"),
        ("s3.wan.mode", "false", "true"),
        ("s3.path.style.access.enabled", "true", "false"),
        ("s3.compression.type", "none", "gzip"),
        ("s3.compression.level", "-1", "9", {"s3.compression.type": "gzip"}),
        ("s3.proxy.url", "", "http://proxy:3128"),
        ("s3.proxy.user", "", "me", {"s3.proxy.url": "http://proxy:3128"}),
        ("s3.proxy.password", "", "example", {"s3.proxy.url": "http://proxy:3128", "s3.proxy.user": "me"}),
        ("s3.http.send.expect.continue", "true", "false"),
        ("s3.send.digest", "false", "true"),
        ("s3.object.tagging", "false", "true"),
        ("s3.object.tagging.key.value.pairs", "", "team:data", {"s3.object.tagging": "true"}),
        ("s3.object.behavior.on.tagging.error", "ignore", "fail"),
        ("s3.elastic.buffer.enable", "false", "true"),
        ("s3.elastic.buffer.init.capacity", "131072", "262144"),
        ("s3.schema.partition.affix.type", "NONE", "PREFIX"),
        ("store.url", "", "http://minio:9000"),
        ("storage.class", "", f"{_S3}.storage.S3Storage"),
        ("format.class", "", f"{_S3}.format.parquet.ParquetFormat"),
        ("flush.size", "", "500"),
        ("rotate.interval.ms", "-1", "600000", {**TIMED, "timestamp.extractor": "Record"}),
        ("rotate.schedule.interval.ms", "-1", "600000", {"timezone": "UTC"}),
        ("rotate.file.on.partition.change", "true", "false"),
        ("max.write.duration.ms", "9223372036854775807", "60000"),
        ("retry.backoff.ms", "5000", "1000"),
        ("shutdown.timeout.ms", "3000", "1000"),
        ("filename.offset.zero.pad.width", "10", "12"),
        ("schema.compatibility", "NONE", "BACKWARD"),
        ("schemas.cache.config", "1000", "500"),
        ("enhanced.avro.schema.support", "true", "false"),
        ("connect.meta.data", "true", "false"),
        ("allow.optional.map.keys", "false", "true"),
        ("avro.codec", "null", "snappy", {"format.class": f"{_S3}.format.avro.AvroFormat"}),
        ("parquet.codec", "snappy", "zstd", _PARQUET),
        ("json.decimal.format", "BASE64", "BASE64"),
        ("format.bytearray.extension", ".bin", ".raw", _LINES),
        ("format.bytearray.separator", "the system's line separator", "|", _LINES),
        ("behavior.on.null.values", "fail", "ignore"),
        ("report.null.values.to.dlq", "true", "false"),
        (
            "tombstone.encoded.partition",
            "tombstone",
            "gone",
            {"behavior.on.null.values": "write", "store.kafka.keys": "true"},
        ),
        ("store.kafka.keys", "false", "true"),
        ("keys.format.class", "AvroFormat", f"{_S3}.format.json.JsonFormat", {"store.kafka.keys": "true"}),
        ("store.kafka.headers", "false", "true"),
        ("headers.format.class", "AvroFormat", f"{_S3}.format.json.JsonFormat", {"store.kafka.headers": "true"}),
        ("enable.conditional.writes", "true", "false"),
        ("topics.dir", "topics", "raw"),
        ("directory.delim", "/", "-"),
        ("file.delim", "+", "_"),
        ("partitioner.class", "DefaultPartitioner", f"{_PARTITIONER}.HourlyPartitioner"),
        ("partition.field.name", "", "type", {"partitioner.class": f"{_PARTITIONER}.FieldPartitioner"}),
        ("partition.duration.ms", "-1", "86400000", TIMED),
        ("path.format", "", "'dt'=YYYY-MM-dd", TIMED),
        ("locale", "", "de-CH", TIMED),
        ("timezone", "", "Europe/Zurich", TIMED),
        ("timestamp.extractor", "Wallclock", "Record", TIMED),
        ("timestamp.field", "timestamp", "created", _EXTRACTOR),
        ("max.files.scan.limit", "100", "10"),
        ("partitioner.max.open.files", "-1", "10"),
        ("schema.generator.class", "", "io.confluent.connect.storage.hive.schema.DefaultSchemaGenerator"),
    ),
)

CLOUD = Definition(
    "Confluent Cloud's S3_SINK",
    {
        "name": "lake",
        "connector.class": "S3_SINK",
        "topics": "orders",
        "input.data.format": "JSON",
        "output.data.format": "JSON",
        "time.interval": "HOURLY",
        "flush.size": "1000",
        "s3.bucket.name": "lake",
    },
    keys(
        ("topics", "", "orders,clicks"),
        ("topics.regex", "", "orders.*", {"topics": None}),
        ("input.data.format", "JSON", "BYTES", {"output.data.format": "BYTES"}),
        ("input.key.format", "BYTES", "JSON"),
        ("schema.context.name", "default", "lake", {"schema.registry.url": "https://psrc-1.confluent.cloud"}),
        ("kafka.auth.mode", "KAFKA_API_KEY", "SERVICE_ACCOUNT"),
        ("kafka.api.key", "", "KEY", {"kafka.api.secret": "example"}),
        ("kafka.api.secret", "", "example", {"kafka.api.key": "KEY"}),
        ("kafka.service.account.id", "", "sa-1"),
        ("kafka.endpoint", "", "SASL_SSL://pkc-1.eu-west-1.aws.confluent.cloud:9092"),
        ("kafka.region", "", "eu-west-1"),
        ("authentication.method", "Access Keys", "IAM Roles"),
        ("provider.integration.id", "", "cspi-1", {"s3lake.s3.role.arn": "arn:aws:iam::123456789012:role/lake"}),
        ("aws.access.key.id", "", "AKIAEXAMPLE", {"aws.secret.access.key": "example"}),
        ("aws.secret.access.key", "", "example", {"aws.access.key.id": "AKIAEXAMPLE"}),
        ("s3.bucket.name", "", "other"),
        ("s3.region", "", "eu-west-1"),
        ("s3.part.size", "5242880", "26214400"),
        ("s3.path.style.access.enabled", "true", "false"),
        ("s3.ssea.name", "", "AES256"),
        ("s3.sse.customer.key", "", CUSTOMER_KEY, {"s3.ssea.name": "AES256"}),
        ("s3.sse.kms.key.id", "", "alias/lake", {"s3.ssea.name": "aws:kms"}),
        ("s3.acl.canned", "", "private"),
        ("s3.wan.mode", "false", "true"),
        ("s3.object.tagging", "false", "true"),
        ("s3.compression.type", "none", "gzip"),
        ("s3.compression.level", "-1", "9", {"s3.compression.type": "gzip"}),
        ("s3.schema.partition.affix.type", "NONE", "SUFFIX"),
        ("output.data.format", "", "PARQUET"),
        ("json.decimal.format", "BASE64", "BASE64"),
        ("parquet.codec", "snappy", "gzip", {"output.data.format": "PARQUET"}),
        ("compression.codec", "", "GZIP", {"output.data.format": "PARQUET"}),
        ("avro.codec", "null", "snappy", {"output.data.format": "AVRO"}),
        ("store.kafka.keys", "false", "true"),
        ("output.keys.format", "AVRO", "JSON", {"store.kafka.keys": "true"}),
        ("store.kafka.headers", "false", "true"),
        ("output.headers.format", "AVRO", "JSON", {"store.kafka.headers": "true"}),
        ("behavior.on.null.values", "ignore", "fail"),
        (
            "tombstone.encoded.partition",
            "tombstone",
            "gone",
            {"behavior.on.null.values": "write", "store.kafka.keys": "true"},
        ),
        ("topics.dir", "topics", "raw"),
        ("path.format", "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "'dt'=YYYY-MM-dd"),
        ("time.interval", "", "DAILY"),
        ("timestamp.field", "", "created"),
        ("rotate.interval.ms", "-1", "600000"),
        ("rotate.schedule.interval.ms", "-1", "600000"),
        ("flush.size", "1000", "5000"),
        ("timezone", "UTC", "Europe/Zurich"),
        ("locale", "en", "de-CH"),
        ("directory.delim", "/", "-"),
        ("file.delim", "+", "_"),
        ("schema.compatibility", "NONE", "BACKWARD"),
        ("enhanced.avro.schema.support", "true", "false"),
        ("value.converter.connect.meta.data", "true", "false"),
        (
            "value.converter.reference.subject.name.strategy",
            "DefaultReferenceSubjectNameStrategy",
            "QualifiedReferenceSubjectNameStrategy",
        ),
        ("value.subject.name.strategy", "TopicNameStrategy", "RecordNameStrategy"),
        ("key.subject.name.strategy", "TopicNameStrategy", "RecordNameStrategy"),
        ("max.poll.interval.ms", "300000", "60000"),
        ("max.poll.records", "500", "100"),
        ("auto.restart.on.user.error", "true", "false"),
        ("csfle.enabled", "false", "false"),
        ("errors.tolerance", "all", "none"),
        ("tasks.max", "", "2"),
    ),
)

AIVEN = Definition(
    "Aiven's S3 sink",
    {
        "name": "lake",
        "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
        "topics": "orders",
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "aws.s3.bucket.name": "lake",
    },
    keys(
        ("aws.access.key.id", "", "AKIAEXAMPLE", {"aws.secret.access.key": "example"}),
        ("aws.secret.access.key", "", "example", {"aws.access.key.id": "AKIAEXAMPLE"}),
        ("aws.s3.bucket.name", "", "other"),
        ("aws.s3.region", "us-east-1", "eu-west-1"),
        ("aws.s3.endpoint", "", "http://minio:9000"),
        ("aws.s3.prefix", "", "raw/"),
        ("aws.s3.part.size.bytes", "5242880", "10485760"),
        ("aws.s3.sse.algorithm", "", "AES256"),
        ("aws.s3.backoff.delay.ms", "100", "200"),
        ("aws.s3.backoff.max.delay.ms", "20000", "10000"),
        ("aws.s3.backoff.max.retries", "3", "7"),
        ("aws.sts.role.arn", "", "arn:aws:iam::123456789012:role/lake"),
        ("aws.sts.role.external.id", "", "example", {"aws.sts.role.arn": "arn:aws:iam::123456789012:role/lake"}),
        ("aws.sts.role.session.name", "", "connect", {"aws.sts.role.arn": "arn:aws:iam::123456789012:role/lake"}),
        ("aws.sts.role.session.duration", "3600", "900", {"aws.sts.role.arn": "arn:aws:iam::123456789012:role/lake"}),
        (
            "aws.sts.config.endpoint",
            "",
            "https://sts.eu-west-1.amazonaws.com",
            {"aws.sts.role.arn": "arn:aws:iam::123456789012:role/lake"},
        ),
        ("aws.credentials.provider", "the default chain", "com.amazonaws.auth.InstanceProfileCredentialsProvider"),
        ("aws.credential.provider", "the default chain", "com.amazonaws.auth.InstanceProfileCredentialsProvider"),
        (
            "file.name.template",
            "{{topic}}-{{partition}}-{{start_offset}}",
            "raw/{{topic}}/{{partition}}/{{start_offset}}",
        ),
        (
            "file.name.timestamp.timezone",
            "Z",
            "Europe/Zurich",
            {"file.name.template": "{{timestamp:unit=yyyy}}/{{topic}}-{{partition}}-{{start_offset}}"},
        ),
        (
            "file.name.timestamp.source",
            "wallclock",
            "event",
            {"file.name.template": "{{timestamp:unit=yyyy}}/{{topic}}-{{partition}}-{{start_offset}}"},
        ),
        ("timestamp.timezone", "Z", "Europe/Zurich", {"aws.s3.prefix": "{{timestamp:unit=yyyy}}/"}),
        ("timestamp.source", "wallclock", "event", {"aws.s3.prefix": "{{timestamp:unit=yyyy}}/"}),
        ("file.max.records", "0", "100"),
        ("file.compression.type", "gzip", "zstd"),
        (
            "format.output.type",
            "csv",
            "jsonl",
            {"value.converter": _JSON, "value.converter.schemas.enable": "false", "key.converter": _STRING},
        ),
        ("format.output.fields", "value", "key,value,timestamp"),
        ("format.output.fields.value.encoding", "base64", "none"),
        (
            "format.output.envelope",
            "true",
            "false",
            {
                "format.output.fields": "value",
                "format.output.type": "jsonl",
                "value.converter": _JSON,
                "value.converter.schemas.enable": "false",
                "key.converter": _STRING,
            },
        ),
        (
            "avro.codec",
            "null",
            "snappy",
            {
                "format.output.type": "avro",
                "file.compression.type": "none",
                "value.converter": _STRING,
                "key.converter": _STRING,
            },
        ),
        ("connect.parquet.compression.codec", "", "snappy"),
        ("kafka.retry.backoff.ms", "", "5000"),
        ("offset.flush.interval.ms", "60000", "30000"),
        ("aws_access_key_id", "", "AKIAEXAMPLE", {"aws_secret_access_key": "example"}),
        ("aws_secret_access_key", "", "example", {"aws_access_key_id": "AKIAEXAMPLE"}),
        ("aws_s3_bucket", "", "other", {"aws.s3.bucket.name": None}),
        ("aws_s3_region", "", "eu-west-1"),
        ("aws_s3_endpoint", "", "http://minio:9000"),
        ("aws_s3_prefix", "", "raw/"),
        ("output_fields", "", "key,value"),
        ("output_compression", "", "none"),
    ),
)

_P = "connect.s3"
_KCQL = "INSERT INTO lake:raw SELECT * FROM orders"


def _statement(rest: str) -> dict[str, str]:
    return {f"{_P}.kcql": f"{_KCQL} {rest}"}


_PAIR = {f"{_P}.aws.auth.mode": "Credentials", f"{_P}.aws.access.key": "AKIAEXAMPLE", f"{_P}.aws.secret.key": "example"}
LENSES = Definition(
    "Lenses' S3 sink",
    {
        "name": "lake",
        "connector.class": "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
        "topics": "orders",
        **_CONVERTERS,
        f"{_P}.kcql": _KCQL,
    },
    keys(
        (f"{_P}.kcql", "", f"{_KCQL} STOREAS `PARQUET`"),
        (f"{_P}.aws.auth.mode", "Default", "Credentials", _PAIR),
        (f"{_P}.aws.access.key", "", "AKIAEXAMPLE", _PAIR),
        (f"{_P}.aws.secret.key", "", "example", _PAIR),
        (f"{_P}.aws.region", "", "eu-west-1"),
        (f"{_P}.pool.max.connections", "-1", "10"),
        (f"{_P}.custom.endpoint", "", "http://minio:9000"),
        (f"{_P}.vhost.bucket", "false", "true"),
        (f"{_P}.path.style.access", "false", "true"),
        (f"{_P}.error.policy", "THROW", "RETRY"),
        (f"{_P}.max.retries", "20", "5", {f"{_P}.error.policy": "RETRY"}),
        (f"{_P}.retry.interval", "60000", "1000", {f"{_P}.error.policy": "RETRY"}),
        (f"{_P}.http.max.retries", "5", "7"),
        (f"{_P}.http.retry.interval", "50", "100"),
        (f"{_P}.http.socket.timeout", "60000", "30000"),
        (f"{_P}.http.connection.timeout", "60000", "30000"),
        (f"{_P}.local.tmp.directory", "", "/var/tmp"),
        (f"{_P}.compression.codec", "UNCOMPRESSED", "GZIP"),
        (f"{_P}.compression.level", "-1", "9", {f"{_P}.compression.codec": "GZIP"}),
        (f"{_P}.seek.max.files", "5", "10"),
        (f"{_P}.indexes.name", ".indexes", "indexes"),
        (f"{_P}.indexes.gc.interval.seconds", "300", "60"),
        (f"{_P}.indexes.gc.batch.size", "1000", "100"),
        (f"{_P}.indexes.gc.sweep.enabled", "true", "false"),
        (f"{_P}.indexes.gc.sweep.interval.seconds", "86400", "3600"),
        (f"{_P}.indexes.gc.sweep.min.age.seconds", "86400", "3600"),
        (f"{_P}.indexes.gc.sweep.max.reads", "1000", "100"),
        (f"{_P}.exactly.once.enable", "true", "false"),
        (f"{_P}.schema.change.detector", "default", "version"),
        (f"{_P}.skip.null.values", "false", "true"),
        (f"{_P}.latest.schema.optimization.enabled", "false", "true"),
        (f"{_P}.disable.flush.count", "false", "true"),
        (f"{_P}.padding.strategy", "", "NoOp"),
        (f"{_P}.padding.length", "-1", "5"),
        (f"{_P}.delete.mode", "BatchDelete", "SeparateDelete"),
        (f"{_P}.log.metrics", "false", "true"),
        (f"{_P}.task.index", "", "0:1"),
    ),
)
_FIELDS = ("key", "value", "headers", "metadata")


def _given(**values: str) -> str:
    return ", ".join(f"'{name.replace('_', '.')}'={value}" for name, value in values.items())


def _envelope(**changed: str) -> str:
    fields = {f"store_envelope_fields_{part}": "true" for part in _FIELDS}
    return _given(
        store_envelope="true", **fields | {f"store_envelope_fields_{part}": value for part, value in changed.items()}
    )


PROPERTIES = {
    "flush.count": ("50000", "", _given(flush_count="10")),
    "flush.size": ("500000000", "", _given(flush_size="1000000")),
    "flush.interval": ("3600", "", _given(flush_interval="60")),
    "padding.type": ("LeftPad", "", _given(padding_type="NoOp")),
    "padding.char": ("0", "", _given(padding_char="' '")),
    "padding.length.partition": ("0", "", _given(padding_length_partition="'05'")),
    "padding.length.offset": ("12", "", _given(padding_length_offset="'20'")),
    "partition.include.keys": ("true", "", _given(partition_include_keys="false")),
    "key.suffix": ("", "", _given(key_suffix="'-a'")),
    "store.envelope": ("false", "", _given(store_envelope="true")),
    **{f"store.envelope.fields.{part}": ("true", _envelope(), _envelope(**{part: "false"})) for part in _FIELDS},
    "store.file.namer": ("", "", _given(store_file_namer="'com.acme.Namer'")),
    "store.file.namer.param": ("", "", _given(store_file_namer_param="'a'")),
}
"""Of KCQL's PROPERTIES: default, what stands beside, and that with a value that is not the default."""

_C = "plugin_config"
_TRANSFORM = {"enabled": True}
IGGY = Definition(
    "Iggy's S3 sink",
    {
        "type": "sink",
        "key": "lake",
        "enabled": True,
        "path": "libiggy_connector_s3_sink",
        "streams.stream": "logs",
        "streams.topics": ["api"],
        "streams.schema": "json",
        f"{_C}.bucket": "lake",
        f"{_C}.region": "us-east-1",
        "s3lake.bootstrap_servers": None,
    },
    keys(
        ("type", "", "sink"),
        ("key", "", "other"),
        ("enabled", "", True),
        ("version", "0", 3),
        ("name", "", "S3 lake"),
        ("path", "", "target/release/libiggy_connector_s3_sink"),
        ("plugin_config_format", "toml", "toml"),
        ("verbose", "false", True),
        ("benchmark", "false", True),
        ("streams.stream", "", "other"),
        ("streams.topics", "", ["api", "web"]),
        ("streams.schema", "", "text"),
        ("streams.batch_length", "1000", 500),
        ("streams.poll_interval", "5ms", "10ms"),
        ("streams.consumer_group", "iggy-connect-sink-KEY", "lake"),
        (f"{_C}.bucket", "", "other"),
        (f"{_C}.region", "", "eu-west-1"),
        (f"{_C}.prefix", "", "raw"),
        (f"{_C}.endpoint", "", "http://minio:9000"),
        (f"{_C}.access_key_id", "", "AKIAEXAMPLE", {f"{_C}.secret_access_key": "example"}),
        (f"{_C}.secret_access_key", "", "example", {f"{_C}.access_key_id": "AKIAEXAMPLE"}),
        (f"{_C}.path_template", "{stream}/{topic}/{date}/{hour}", "{topic}/{date}"),
        (f"{_C}.file_rotation", "size", "messages", {f"{_C}.max_messages_per_file": 100}),
        (f"{_C}.max_file_size", "8MiB", "64MiB"),
        (f"{_C}.max_messages_per_file", "", 100, {f"{_C}.file_rotation": "messages"}),
        (f"{_C}.output_format", "json_lines", "json_array"),
        (f"{_C}.include_metadata", "true", False),
        (f"{_C}.include_headers", "false", True),
        (f"{_C}.max_attempts", "3", 7),
        (f"{_C}.retry_delay", "1s", "5s"),
        (f"{_C}.path_style", "false", True),
        ("transforms.add_fields", "", {**_TRANSFORM, "fields": [{"key": "a", "value": {"static": "b"}}]}),
        ("transforms.update_fields", "", {**_TRANSFORM, "fields": [{"key": "a", "value": {"static": "b"}}]}),
        ("transforms.filter_fields", "", {**_TRANSFORM, "keep_fields": ["a"]}),
        ("transforms.delete_fields", "", {**_TRANSFORM, "fields": ["a"]}),
        ("transforms.unwrap_envelope", "", {**_TRANSFORM, "field": "data"}),
    ),
    toml=True,
)
DEFINITIONS = (CONNECT, CONFLUENT, CLOUD, AIVEN, LENSES, IGGY)


@dataclass(frozen=True)
class Outcome:
    """What becomes of a key.

    Attributes:
        key: of the definition.
        becomes: `silent` is what none may be.
        says: the native settings that it changes, the notice, or the refusal.
    """

    key: Key
    becomes: Literal["honoured", "notice", "refused", "silent"]
    says: str


@functools.cache
def outcomes(definition: Definition) -> tuple[Outcome, ...]:
    """What becomes of each key, by loading it."""
    plain, found = _loaded(definition, {}), []
    for key in definition.keys:
        beside = {name: value for name, value in key.beside.items() if name != key.name}
        without, changed = (_loaded(definition, {**beside, key.name: value}) for value in (None, key.value))
        found.append(_outcome(key, plain, without, changed))
    return tuple(found)


@functools.cache
def outcomes_of_properties() -> tuple[Outcome, ...]:
    """The same of KCQL's properties."""
    found = []
    for name, (default, beside, given) in PROPERTIES.items():
        without, changed = (
            _loaded(LENSES, _statement(f"PARTITIONBY type PROPERTIES({text})" if text else "PARTITIONBY type"))
            for text in (beside, given)
        )
        found.append(_outcome(Key(name, default, given), without, without, changed))
    return tuple(found)


def _loaded(definition: Definition, settings: dict[str, Any]) -> Loaded | ConfigurationError:
    try:
        return sketched(definition.text(settings), "f", None, ENVIRONMENT, Path()).loaded(ENVIRONMENT)
    except ConfigurationError as error:
        return error


def _outcome(key: Key, plain: Any, without: Any, changed: Any) -> Outcome:
    if isinstance(changed, ConfigurationError):
        return Outcome(key, "refused", str(changed).split("\n")[0].partition(f"{key.name}: ")[2])
    notices = [notice.message for notice in changed.notices if _is(key, notice.place.key)]
    if notices:
        return Outcome(key, "notice", notices[0])
    # What selects the connector has one value alone, and that is in every configuration that loads.
    selects = key.name in ("connector.class", "storage.class", "type", "enabled")
    if selects or any(_differs(changed, other) for other in (plain, without)):
        other = without if isinstance(without, Loaded) and _differs(changed, without) else plain
        return Outcome(key, "honoured", ", ".join(f"`{path}`" for path in _changes(changed, other)))
    return Outcome(key, "silent", "")


def _is(key: Key, name: str) -> bool:
    return name.replace("[0]", "") == key.name or name.startswith(f"{key.name}.")


def _changes(one: Loaded, other: Loaded) -> list[str]:
    """The native settings in which two configurations differ, of their last sinks."""
    first, second = (dict(_flat(loaded.config.model_dump(mode="json", by_alias=True))) for loaded in (one, other))
    return [path for path in {**first, **second} if first.get(path) != second.get(path)]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if path == "sinks":
        value, path = value[-1], ""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}".lstrip("."))
    else:
        yield path, value


def _differs(one: Loaded, other: Any) -> bool:
    return isinstance(other, ConfigurationError) or (one.config, one.connectors) != (other.config, other.connectors)


def counted(definition: Definition) -> tuple[int, int]:
    """How many keys are honoured or harmless, and how many there are."""
    every = [*outcomes(definition), *(outcomes_of_properties() if definition is LENSES else ())]
    return sum(outcome.becomes in ("honoured", "notice") for outcome in every), len(every)
