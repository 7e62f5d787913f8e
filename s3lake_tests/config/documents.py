"""Every configuration that the four documents print: Lenses', Confluent's, Aiven's, and Iggy's S3 sink's README."""

import json
from collections.abc import Mapping
from pathlib import Path

from s3lake.config.draft import LoadedConfig
from s3lake_tests.config.bases import ENVIRONMENT, loads

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
NOON = 1_705_314_600_000  # 2024-01-15T10:30Z, when the examples are landed


def load(text: str, **environment: str) -> LoadedConfig:
    """One of the documents' configurations, with the secrets that they name."""
    secrets = {"aws/access-key": "AKIA", "aws/secret-key": "hush-hush"}
    return loads(text, "document", None, {**ENVIRONMENT, **environment}, Path(), secrets.__getitem__)


# Lenses

EXAMPLE = (
    LENSES + "connect.s3.kcql=insert into lensesio:demo select * from demo PARTITIONBY _value.ts STOREAS `JSON` "
    "PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, 'flush.count'=5000)\n"
)
DOTTED = (
    LENSES.replace("topics=demo", "topics=kafka-topic")
    + "connect.s3.kcql=INSERT INTO `bucket-name`:`prefix` SELECT * FROM `kafka-topic` PARTITIONBY `a.b`\n"
)
EXPRESSION = (
    LENSES.replace("topics=demo", r"topics.regex = ^sensor_data_\d+$")
    + "connect.s3.kcql= INSERT INTO target SELECT * FROM  `*`\n"
)


def statement(query: str, topics: str = "topicA", more: str = "") -> str:
    """One of the examples of KCQL."""
    return f"{LENSES.replace('topics=demo', f'topics={topics}')}connect.s3.kcql={query}\n{more}"


DEFAULT_KEY = statement("INSERT INTO bucket:prefix SELECT * FROM demo", "demo")


def custom_key(include: str) -> str:
    """Athena's `name=value`, or values alone."""
    return (
        LENSES
        + STRING_KEY.replace("storage.StringConverter", "json.JsonConverter")
        + "connect.s3.kcql=INSERT INTO bucket:prefix SELECT * FROM demo PARTITIONBY fieldA, _key.fieldB, "
        f"_headers.fieldC STOREAS `AVRO` PROPERTIES ('partition.include.keys'={include},)\n"
    )


def stored(query: str, converters: str) -> str:
    """One of the examples of formats and envelopes."""
    return (
        f"{CAR_SPEED}connect.s3.kcql=INSERT INTO lensesioaws:car_speed SELECT * FROM car_speed_events {query}\n"
        f"{converters}"
    )


PARQUET, ENVELOPED = "STOREAS `PARQUET` ", "STOREAS `{}` PROPERTIES('store.envelope'=true)"
STORED = [
    (PARQUET, AVRO_VALUE + STRING_KEY, "parquet", ".parquet"),
    (PARQUET, JSON_VALUE + STRING_KEY, "parquet", ".parquet"),
    (ENVELOPED.format("JSON"), JSON_VALUE + STRING_KEY, "json", ".json"),
    (ENVELOPED.format("AVRO"), AVRO_VALUE + STRING_KEY, "avro", ".avro"),
    (ENVELOPED.format("AVRO"), BYTES, "avro", ".avro"),
]
_WINDOW = (
    "connect.s3.kcql=insert into lensesio:demo select * from demo PARTITIONBY _value.metadata_id, _value.customer_id, "
    "_header.ts, _header.wallclock STOREAS `JSON` PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, "
    "'flush.count'=5000)\n"
)
_SMT = """\
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
ROLLING_WINDOW = LENSES + _WINDOW + JSON_VALUE + STRING_KEY + _SMT
CREDENTIALS = (
    f"{LENSES}connect.s3.kcql=INSERT INTO bucket SELECT * FROM demo\n"
    "connect.s3.aws.auth.mode=Credentials\nconnect.s3.aws.region=eu-west-2\n"
    "connect.s3.aws.access.key=$AWS_ACCESS_KEY\nconnect.s3.aws.secret.key=$AWS_SECRET_KEY\n"
)
RETRIES = f"""\
{LENSES}connect.s3.kcql=INSERT INTO bucket SELECT * FROM demo
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

INDEXES = (".indexes", "custom-indexes", "indexes/s3-connector-logs", "logs/indexes")

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


def posted(config: Mapping[str, object], name: str = "s3-sink") -> str:
    """A connector's configuration as it is posted to Kafka Connect."""
    return json.dumps({"name": name, "config": config}, indent=2)


def fragment(**changes: object) -> str:
    """The basic configuration with one of the document's fragments."""
    return posted({**BASIC, **changes})


# Aiven

AIVEN = "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector"
BYTE_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
AIVEN_CONSOLE = json.dumps(
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
AIVEN_REST = json.dumps(
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
AIVEN_DATES = json.dumps(
    {
        "name": "n",
        "connector.class": AIVEN,
        "topics": "t",
        "aws_s3_bucket": "aiven-example",
        "aws_s3_prefix": "{{ utc_date }}/",
    }
)
AIVEN_LOCAL_DATES = AIVEN_DATES.replace("utc_date", "local_date")

# Iggy

IGGY = """\
type = "sink"
key = "s3"
enabled = true
version = 0
name = "S3 sink"
path = "../../target/release/libiggy_connector_s3_sink"
verbose = false

[[streams]]
stream = "app_logs"
topics = ["api_requests", "errors"]
schema = "json"
batch_length = 1000
poll_interval = "100ms"
consumer_group = "s3_sink"

[plugin_config]
bucket = "my-data-lake"
prefix = "iggy/raw"
region = "us-east-1"
path_template = "{stream}/{topic}/{date}/{hour}"
file_rotation = "size"
max_file_size = "8MiB"
output_format = "json_lines"
include_metadata = true
include_headers = true
max_retries = 3
retry_delay = "1s"
"""

CONFLUENT: dict[str, Mapping[str, object]] = {
    "basic": {},
    "time": TIME,
    "field": FIELD,
    "default": DEFAULT,
    "parquet": {"parquet.codec": "gzip"},
    "avro": {"format.class": "io.confluent.connect.s3.format.avro.AvroFormat", "avro.codec": "snappy"},
    "json": {"format.class": "io.confluent.connect.s3.format.json.JsonFormat"},
    "credentials": {
        "aws.access.key.id": "${secrets:aws/access-key}",
        "aws.secret.access.key": "${secrets:aws/secret-key}",
    },
    "role": {"s3.credentials.provider.class": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"},
    **{f"codec {codec}": {"parquet.codec": codec} for codec in ("snappy", "zstd", "none")},
    "schedule": {"rotate.schedule.interval.ms": "3600000", "timezone": "UTC"},
    "size": {"s3.part.size": "26214400"},
    "errors": {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dlq-s3-sink",
        "errors.deadletterqueue.topic.replication.factor": 3,
        "errors.deadletterqueue.context.headers.enable": True,
        "errors.log.enable": True,
    },
    "parallelism": {"tasks.max": "6"},
    "buffers": {"s3.part.size": "52428800", "flush.size": "50000", "rotate.interval.ms": "600000"},
    "retries": {"s3.retry.backoff.ms": "200", "s3.part.retries": "3"},
    "glue": {"s3.part.size": "52428800", "schema.compatibility": "FULL"},
    "registry": AVRO_CONVERTERS,
    "schemaless": SCHEMALESS,
    "complete": {**COMPLETE, **AVRO_CONVERTERS},
    "complete without schemas": {**COMPLETE, **SCHEMALESS},
}
