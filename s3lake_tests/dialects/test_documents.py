"""Every configuration that the four documents print, and the keys that they state."""

import json
from pathlib import Path

import pytest

from s3lake.dialects import Loaded, loads
from s3lake.dialects.kcql import parse
from s3lake.errors import ConfigurationError
from s3lake_tests.dialects import bases
from s3lake_tests.dialects.bases import ENVIRONMENT, keys_of
from s3lake_tests.layout.files import Record

LENSES = "connector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector\nname=demo\ntopics=demo\n"
CAR_SPEED = LENSES.replace("topics=demo", "topics=car_speed_events")
STRING_KEY = "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
JSON_VALUE = "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
AVRO_VALUE = (
    "value.converter=io.confluent.connect.avro.AvroConverter\n"
    "value.converter.schema.registry.url=http://localhost:8081\n"
)
BYTES = (
    "value.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
    "key.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
)
NOON = 1_705_314_600_000  # 2024-01-15T10:30Z


def load(text: str, **environment: str) -> Loaded:
    secrets = {"aws/access-key": "AKIA", "aws/secret-key": "hush-hush"}
    return loads(text, "document", None, {**ENVIRONMENT, **environment}, Path(), secrets.__getitem__)


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(text)
    return str(refused.value)


# Lenses


def test_lenses_example() -> None:
    loaded = load(
        LENSES + "connect.s3.kcql=insert into lensesio:demo select * from demo PARTITIONBY _value.ts STOREAS `JSON` "
        "PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, 'flush.count'=5000)\n"
    )
    (sink,) = loaded.config.sinks
    assert (sink.bucket, sink.prefix, sink.topics) == ("lensesio", "demo", ("demo",))
    assert (sink.flush.size, sink.flush.interval, sink.flush.count) == (1_000_000, 30, 5_000)
    assert keys_of(loaded, Record(7, value=b'{"ts":12}')) == ["demo/demo/ts=12/demo(0_000000000007).json"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("INSERT INTO testbucket:pathToWriteTo SELECT * FROM topicA;", ("testbucket", "pathToWriteTo", ())),
        ("INSERT INTO testbucket SELECT * FROM topicA;", ("testbucket", "", ())),
        (
            "INSERT INTO testbucket:path/To/Write/To SELECT * FROM topicA PARTITIONBY fieldA;",
            ("testbucket", "path/To/Write/To", (("fieldA",),)),
        ),
        (
            "INSERT INTO `bucket-name`:`prefix` SELECT * FROM `kafka-topic` PARTITIONBY `a.b`",
            ("bucket-name", "prefix", (("a.b",),)),
        ),
        ("INSERT INTO $target SELECT * FROM  `*`", ("$target", "", ())),
        (
            "INSERT INTO $bucket:$prefix\nSELECT * FROM $topic\nPARTITIONBY fieldA, _key.fieldB, _headers.fieldC\n"
            "STOREAS `AVRO`\nPROPERTIES (\n    'partition.include.keys'=true,\n)",
            ("$bucket", "$prefix", (("fieldA",), ("_key", "fieldB"), ("_headers", "fieldC"))),
        ),
        (
            "INSERT INTO b:p SELECT * FROM t PARTITIONBY (a, b) STOREAS JSON PROPERTIES(\n'flush.size'=1,\n"
            "'flush.count'=2,\n)",
            ("b", "p", (("a",), ("b",))),
        ),
        ("INSERT INTO lensesioaws:car_speed SELECT * FROM car_speed_events STOREAS `PARQUET` ", None),
    ],
)
def test_lenses_statements(query: str, expected: tuple[str, str, tuple[tuple[str, ...], ...]] | None) -> None:
    (statement,) = parse(query)
    if expected is not None:
        assert (statement.bucket, statement.prefix, statement.partition_by) == expected


def test_lenses_field_with_a_dot_in_its_name() -> None:
    loaded = load(
        LENSES.replace("topics=demo", "topics=kafka-topic")
        + "connect.s3.kcql=INSERT INTO `bucket-name`:`prefix` SELECT * FROM `kafka-topic` PARTITIONBY `a.b`\n"
    )
    made = keys_of(loaded, Record(value=b'{"a.b":"value"}'))
    assert made == ["prefix/kafka-topic/a.b=value/kafka-topic(0_000000000000).json"]


def test_lenses_all_topics_of_an_expression() -> None:
    loaded = load(
        LENSES.replace("topics=demo", r"topics.regex = ^sensor_data_\d+$")
        + "connect.s3.kcql= INSERT INTO target SELECT * FROM  `*`\n"
    )
    (sink,) = loaded.config.sinks
    assert sink.reads("sensor_data_12")
    assert not sink.reads("sensor_data_x")
    assert keys_of(loaded, Record(5), topic="sensor_data_12") == ["sensor_data_12/0/000000000005.json"]


def test_lenses_default_key() -> None:
    loaded = load(LENSES + "connect.s3.kcql=INSERT INTO bucket:prefix SELECT * FROM demo\n")
    assert keys_of(loaded, Record(3, partition=2)) == ["prefix/demo/2/000000000003.json"]


@pytest.mark.parametrize("include", ["true", "false"])
def test_lenses_custom_key(include: str) -> None:
    loaded = load(
        LENSES
        + STRING_KEY.replace("storage.StringConverter", "json.JsonConverter")
        + "connect.s3.kcql=INSERT INTO bucket:prefix SELECT * FROM demo PARTITIONBY fieldA, _key.fieldB, "
        f"_headers.fieldC STOREAS `AVRO` PROPERTIES ('partition.include.keys'={include},)\n"
    )
    record = Record(value=b'{"fieldA":1}', key=b'{"fieldB":2}', headers=(("fieldC", b"3"),))
    directory = "fieldA=1/fieldB=2/fieldC=3" if include == "true" else "1/2/3"
    assert keys_of(loaded, record) == [f"prefix/demo/{directory}/demo(0_000000000000).avro"]


ROLLING_WINDOW = (
    "connect.s3.kcql=insert into lensesio:demo select * from demo PARTITIONBY _value.metadata_id, _value.customer_id, "
    "_header.ts, _header.wallclock STOREAS `JSON` PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, "
    "'flush.count'=5000)\n"
)
SMT = """\
transforms=insertFormattedTs,insertWallclock
transforms.insertFormattedTs.type=io.lenses.connect.smt.header.TimestampConverter
transforms.insertFormattedTs.header.name=ts
transforms.insertFormattedTs.field=timestamp
transforms.insertFormattedTs.target.type=string
transforms.insertFormattedTs.format.to.pattern=yyyy-MM-dd-HH
transforms.insertWallclock.type=io.lenses.connect.smt.header.InsertWallclock
transforms.insertWallclock.header.name=wallclock
transforms.insertWallclock.value.type=format
transforms.insertWallclock.format=yyyy-MM-dd-HH
"""


def test_lenses_rolling_window() -> None:
    loaded = load(LENSES + ROLLING_WINDOW + JSON_VALUE + STRING_KEY + SMT)
    assert [(one.name, one.type.rpartition(".")[2]) for one in loaded.config.sinks[0].transforms] == [
        ("insertFormattedTs", "TimestampConverter"),
        ("insertWallclock", "InsertWallclock"),
    ]
    headers = (("ts", b"2024-01-15-10"), ("wallclock", b"2024-01-15-11"))  # as the transforms make them
    assert keys_of(loaded, Record(value=b'{"metadata_id":1,"customer_id":2}', headers=headers)) == [
        "demo/demo/metadata_id=1/customer_id=2/ts=2024-01-15-10/wallclock=2024-01-15-11/demo(0_000000000000).json"
    ]


@pytest.mark.parametrize(
    ("query", "converters", "form", "extension"),
    [
        ("STOREAS `PARQUET` ", AVRO_VALUE + STRING_KEY, "parquet", ".parquet"),
        ("STOREAS `PARQUET` ", JSON_VALUE + STRING_KEY, "parquet", ".parquet"),
        ("STOREAS `JSON` PROPERTIES('store.envelope'=true)", JSON_VALUE + STRING_KEY, "json", ".json"),
        ("STOREAS `AVRO` PROPERTIES('store.envelope'=true)", AVRO_VALUE + STRING_KEY, "avro", ".avro"),
        ("STOREAS `AVRO` PROPERTIES('store.envelope'=true)", BYTES, "avro", ".avro"),
    ],
)
def test_lenses_storage_examples(query: str, converters: str, form: str, extension: str) -> None:
    text = (
        f"{CAR_SPEED}connect.s3.kcql=INSERT INTO lensesioaws:car_speed SELECT * FROM car_speed_events {query}\n"
        f"{converters}"
    )
    loaded = load(text)
    (sink,) = loaded.config.sinks
    assert (sink.format.type, sink.format.codec) == (form, "none")
    assert (sink.envelope is not None) == ("envelope" in query)
    assert keys_of(loaded, Record()) == [f"car_speed/car_speed_events/0/000000000000{extension}"]


def test_lenses_credentials() -> None:
    loaded = load(
        f"{LENSES}connect.s3.kcql=INSERT INTO bucket SELECT * FROM demo\n"
        "connect.s3.aws.auth.mode=Credentials\nconnect.s3.aws.region=eu-west-2\n"
        "connect.s3.aws.access.key=$AWS_ACCESS_KEY\nconnect.s3.aws.secret.key=$AWS_SECRET_KEY\n",
        AWS_ACCESS_KEY="AKIA",
        AWS_SECRET_KEY="hush-hush",
    )
    credentials = loaded.config.s3.credentials
    assert credentials != "default"
    assert (credentials.access_key_id, credentials.secret_access_key.get_secret_value()) == ("AKIA", "hush-hush")
    assert loaded.config.s3.region == "eu-west-2"


def test_lenses_retries_and_errors() -> None:
    loaded = load(
        f"""{LENSES}connect.s3.kcql=INSERT INTO bucket SELECT * FROM demo
# Layer 1 - leave at defaults, or relax for noisy networks
# connect.s3.http.max.retries=5
# connect.s3.http.retry.interval=50

# Layer 2 - ride through up to ~30 minutes of S3 unavailability
connect.s3.error.policy=RETRY
connect.s3.max.retries=30
connect.s3.retry.interval=60000

errors.tolerance=all
errors.log.enable=true
errors.log.include.messages=true
errors.deadletterqueue.topic.name=my-connector-dlq
errors.deadletterqueue.context.headers.enable=true
errors.deadletterqueue.topic.replication.factor=3
"""
    )
    assert loaded.config.sinks[0].errors.tolerance == "all"
    assert loaded.config.s3.retries.max_attempts == 5
    errors = loaded.config.sinks[0].errors
    assert (errors.max_retries, errors.retry_interval) == (30, 60.0)
    assert errors.dead_letter_topic is not None
    assert errors.dead_letter_topic.model_dump() == {
        "name": "my-connector-dlq",
        "context_headers": True,
        "replication_factor": 3,
    }
    noticed = {notice.place.key for notice in loaded.notices}
    assert noticed >= {"connect.s3.error.policy", "errors.log.enable", "errors.log.include.messages"}
    assert not {key for key in noticed if "deadletterqueue" in key or "retr" in key}


@pytest.mark.parametrize("name", [".indexes", "custom-indexes", "indexes/s3-connector-logs", "logs/indexes"])
def test_lenses_index_names(name: str) -> None:
    text = f"{LENSES}connect.s3.kcql=INSERT INTO bucket SELECT * FROM demo\nconnect.s3.indexes.name={name}\n"
    assert load(text).config.sinks[0].index.prefix == name


# Confluent

BASIC = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "3",
    "topics": "events",
    "s3.bucket.name": "data-lake-bucket",
    "s3.region": "us-east-1",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "flush.size": "10000",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
}
TIME = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "locale": "en-US",
    "timezone": "UTC",
    "partition.duration.ms": "3600000",
}
FIELD = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
    "partition.field.name": "region,event_type",
}
DEFAULT = {"partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner"}
AVRO_CONVERTERS = {
    "key.converter": "io.confluent.connect.avro.AvroConverter",
    "key.converter.schema.registry.url": "http://schema-registry:8081",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://schema-registry:8081",
}
SCHEMALESS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
COMPLETE = {
    **BASIC,
    **TIME,
    "tasks.max": "6",
    "topics": "events,transactions",
    "s3.bucket.name": "analytics-data-lake",
    "s3.credentials.provider.class": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
    "parquet.codec": "snappy",
    "flush.size": "50000",
    "rotate.interval.ms": "600000",
    "s3.part.size": "52428800",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dlq-s3-sink",
    "errors.deadletterqueue.topic.replication.factor": 3,
}


def posted(**config: object) -> str:
    return json.dumps({"name": "s3-sink", "config": config}, indent=2)


def confluent(fragment: dict[str, object]) -> Loaded:
    return load(posted(**{**BASIC, **fragment}))


def test_confluent_basic() -> None:
    loaded = load(posted(**BASIC))
    (sink,) = loaded.config.sinks
    assert (sink.name, sink.bucket, sink.flush.count, sink.format.codec) == (
        "s3-sink",
        "data-lake-bucket",
        10_000,
        "snappy",
    )
    assert loaded.config.spark.master == "local[3]"
    assert keys_of(loaded, Record(), wallclock_ms=NOON) == [
        "topics/events/year=2024/month=01/day=15/hour=10/events+0+0000000000.parquet"
    ]


def test_confluent_time_based_key() -> None:
    loaded = confluent({**TIME, "timestamp.extractor": "Record"})
    assert keys_of(loaded, Record(timestamp=NOON)) == [
        "topics/events/year=2024/month=01/day=15/hour=10/events+0+0000000000.parquet"
    ]


def test_confluent_field_key() -> None:
    record = Record(value=b'{"region":"us-east","event_type":"click"}')
    assert keys_of(confluent({**FIELD}), record) == [
        "topics/events/region=us-east/event_type=click/events+0+0000000000.parquet"
    ]


def test_confluent_default_key() -> None:
    assert keys_of(confluent({**DEFAULT}), Record()) == ["topics/events/partition=0/events+0+0000000000.parquet"]


@pytest.mark.parametrize(
    ("fragment", "form", "codec"),
    [
        *(
            (
                {"format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat", "parquet.codec": codec},
                "parquet",
                codec,
            )
            for codec in ("snappy", "gzip", "zstd", "none")
        ),
        ({"format.class": "io.confluent.connect.s3.format.avro.AvroFormat", "avro.codec": "snappy"}, "avro", "snappy"),
        ({"format.class": "io.confluent.connect.s3.format.json.JsonFormat"}, "json", "none"),
    ],
)
def test_confluent_formats(fragment: dict[str, object], form: str, codec: str) -> None:
    written = confluent(fragment).config.sinks[0].format
    assert (written.type, written.codec) == (form, codec)


def test_confluent_credentials_of_a_secret_provider() -> None:
    fragment: dict[str, object] = {
        "aws.access.key.id": "${secrets:aws/access-key}",
        "aws.secret.access.key": "${secrets:aws/secret-key}",
    }
    credentials = confluent(fragment).config.s3.credentials
    assert credentials != "default"
    assert (credentials.access_key_id, credentials.secret_access_key.get_secret_value()) == ("AKIA", "hush-hush")


def test_confluent_role() -> None:
    loaded = confluent({"s3.credentials.provider.class": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"})
    assert loaded.config.s3.credentials == "default"


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ({"flush.size": "10000"}, {"count": 10_000}),
        ({"rotate.schedule.interval.ms": "3600000"}, {"interval": 3600.0}),
        ({"s3.part.size": "26214400"}, {"size": 26_214_400}),
        (
            {"s3.part.size": "52428800", "flush.size": "50000", "rotate.interval.ms": "600000"},
            {"size": 52_428_800, "count": 50_000, "span": 600.0},
        ),
    ],
)
def test_confluent_rotation(fragment: dict[str, object], expected: dict[str, object]) -> None:
    flush = confluent(fragment).config.sinks[0].flush
    assert {name: getattr(flush, name) for name in expected} == expected


def test_confluent_converters() -> None:
    sink = confluent({**SCHEMALESS}).config.sinks[0]
    assert (sink.converter.key, sink.converter.value) == ("string", "json")
    sink = confluent({**AVRO_CONVERTERS}).config.sinks[0]
    assert (sink.converter.key, sink.converter.value) == ("avro", "avro")
    assert sink.converter.registry is not None
    assert sink.converter.registry.url == "http://schema-registry:8081"


def test_confluent_errors_parallelism_and_retries() -> None:
    loaded = confluent(
        {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "dlq-s3-sink",
            "errors.deadletterqueue.topic.replication.factor": 3,
            "errors.deadletterqueue.context.headers.enable": True,
            "errors.log.enable": True,
            "tasks.max": "6",
            "s3.retry.backoff.ms": "200",
            "s3.part.retries": "3",
            "schema.compatibility": "FULL",
        }
    )
    assert loaded.config.sinks[0].errors.tolerance == "all"
    assert loaded.config.spark.master == "local[6]"
    assert (loaded.config.s3.retries.max_attempts, loaded.config.s3.retries.backoff_ms) == (3, 200)


def test_confluent_complete_example() -> None:
    loaded = load(posted(**{**COMPLETE, **AVRO_CONVERTERS}))
    (sink,) = loaded.config.sinks
    assert (sink.topics, sink.flush.count, sink.flush.span) == (("events", "transactions"), 50_000, 600)
    assert keys_of(loaded, Record(12), topic="transactions", wallclock_ms=NOON) == [
        "topics/transactions/year=2024/month=01/day=15/hour=10/transactions+0+0000000012.parquet"
    ]


# Aiven

AIVEN = "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector"
BYTE_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


def test_aiven_console_example() -> None:
    loaded = load(
        json.dumps(
            {
                "name": "example-s3-sink",
                "connector.class": AIVEN,
                "key.converter": BYTE_CONVERTER,
                "value.converter": BYTE_CONVERTER,
                "topics": "YOUR-TOPIC",
                "aws.access.key.id": "AKI",
                "aws.secret.access.key": "hush-hush",
                "aws.s3.bucket.name": "aiven-example",
                "aws.s3.region": "eu-west-1",
            }
        )
    )
    assert loaded.config.s3.region == "eu-west-1"
    assert keys_of(loaded, Record(5)) == ["YOUR-TOPIC-0-5.gz"]


def test_aiven_rest_example() -> None:
    loaded = load(
        json.dumps(
            {
                "name": "example-s3-sink",
                "config": {
                    "connector.class": AIVEN,
                    "aws.access.key.id": "AKI...",
                    "aws.secret.access.key": "SECRET_ACCESS_KEY",
                    "aws.s3.bucket.name": "aiven-example",
                    "aws.s3.prefix": "example-s3-sink/",
                    "aws.s3.region": "us-east-1",
                    "file.compression.type": "gzip",
                    "format.output.fields": "value,key,timestamp",
                    "tasks.max": 1,
                    "topics": "source_topic,another_topic",
                },
            }
        )
    )
    (sink,) = loaded.config.sinks
    assert sink.envelope is not None
    assert (sink.envelope.style, sink.envelope.fields) == ("flat", ("value", "key", "timestamp"))
    assert (sink.format.type, sink.format.codec, sink.flush.interval) == ("csv", "gzip", 60)
    assert keys_of(loaded, Record()) == ["example-s3-sink/source_topic-0-00000000000000000000.gz"]


def test_aiven_dates_in_the_prefix() -> None:
    text = json.dumps(
        {
            "name": "n",
            "connector.class": AIVEN,
            "topics": "t",
            "aws_s3_bucket": "aiven-example",
            "aws_s3_prefix": "{{ utc_date }}/",
        }
    )
    assert keys_of(load(text), Record(), wallclock_ms=NOON) == ["2024-01-15/t-0-00000000000000000000.gz"]


# Every key of the option references

LENSES_KEYS = """
aws.auth.mode aws.access.key aws.secret.key aws.region pool.max.connections custom.endpoint vhost.bucket
path.style.access error.policy max.retries retry.interval http.max.retries http.retry.interval local.tmp.directory kcql
compression.codec compression.level seek.max.files indexes.name exactly.once.enable schema.change.detector
skip.null.values latest.schema.optimization.enabled disable.flush.count padding.strategy padding.length
http.socket.timeout http.connection.timeout delete.mode log.metrics indexes.gc.interval.seconds indexes.gc.batch.size
indexes.gc.sweep.enabled indexes.gc.sweep.interval.seconds indexes.gc.sweep.min.age.seconds indexes.gc.sweep.max.reads
task.index
"""
CONFLUENT_KEYS = """
connector.class s3.bucket.name s3.region s3.part.size s3.part.retries s3.retry.backoff.ms s3.credentials.provider.class
aws.access.key.id aws.secret.access.key s3.ssea.name s3.sse.customer.key s3.sse.kms.key.id s3.acl.canned s3.wan.mode
s3.path.style.access.enabled s3.compression.type s3.compression.level s3.proxy.url s3.proxy.user s3.proxy.password
s3.http.send.expect.continue s3.send.digest s3.object.tagging s3.object.tagging.key.value.pairs
s3.object.behavior.on.tagging.error s3.elastic.buffer.enable s3.elastic.buffer.init.capacity
s3.schema.partition.affix.type store.url storage.class format.class flush.size rotate.interval.ms
rotate.schedule.interval.ms rotate.file.on.partition.change max.write.duration.ms retry.backoff.ms shutdown.timeout.ms
filename.offset.zero.pad.width schema.compatibility schemas.cache.config enhanced.avro.schema.support connect.meta.data
allow.optional.map.keys avro.codec parquet.codec json.decimal.format format.bytearray.extension
format.bytearray.separator behavior.on.null.values report.null.values.to.dlq tombstone.encoded.partition
store.kafka.keys keys.format.class store.kafka.headers headers.format.class enable.conditional.writes topics.dir
directory.delim file.delim partitioner.class partition.field.name partition.duration.ms path.format locale timezone
timestamp.extractor timestamp.field max.files.scan.limit partitioner.max.open.files filename.codec.extension
"""
AIVEN_KEYS = """
connector.class aws.access.key.id aws.secret.access.key aws.s3.bucket.name aws.s3.region aws.s3.endpoint aws.s3.prefix
aws.s3.part.size.bytes aws.s3.sse.algorithm aws.s3.backoff.delay.ms aws.s3.backoff.max.delay.ms
aws.s3.backoff.max.retries aws.sts.role.arn aws.sts.role.external.id aws.sts.role.session.name
aws.sts.role.session.duration aws.sts.config.endpoint aws.credentials.provider aws.credential.provider
file.name.template file.name.timestamp.timezone file.name.timestamp.source timestamp.timezone timestamp.source
file.max.records file.compression.type format.output.type format.output.fields format.output.fields.value.encoding
format.output.envelope avro.codec connect.parquet.x kafka.retry.backoff.ms output_fields output_compression
aws_access_key_id aws_secret_access_key aws_s3_bucket aws_s3_region aws_s3_endpoint aws_s3_prefix
"""
FRAMEWORK_KEYS = """
name tasks.max topics topics.regex key.converter value.converter header.converter config.action.reload transforms
predicates errors.tolerance errors.retry.timeout errors.retry.delay.max.ms errors.log.enable
errors.log.include.messages errors.deadletterqueue.topic.name errors.deadletterqueue.topic.replication.factor
errors.deadletterqueue.context.headers.enable consumer.override.max.poll.records producer.override.acks
admin.override.client.id offset.flush.interval.ms bootstrap.servers s3lake.start
"""


@pytest.mark.parametrize(
    ("base", "prefix", "keys"),
    [
        (bases.LENSES, "connect.s3.", LENSES_KEYS),
        (bases.LENSES, "", FRAMEWORK_KEYS),
        (bases.CONFLUENT, "", CONFLUENT_KEYS + FRAMEWORK_KEYS),
        (bases.AIVEN, "", AIVEN_KEYS + FRAMEWORK_KEYS),
    ],
)
def test_every_key_of_the_references_is_known(base: dict[str, str], prefix: str, keys: str) -> None:
    changes: dict[str, str | None] = {prefix + key: "?" for key in keys.split() if key not in ("connector.class",)}
    with pytest.raises(ConfigurationError) as refused:
        bases.load(base, changes)
    assert "unknown" not in str(refused.value)
