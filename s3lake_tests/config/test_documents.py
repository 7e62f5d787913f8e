"""Every configuration that the four documents print; `land/preview/test_connectors.py` has the keys that they state."""

from collections.abc import Mapping

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake_tests.config import bases, documents
from s3lake_tests.config.bases import keys_of
from s3lake_tests.config.documents import load
from s3lake_tests.config.examples import CONFIGURATIONS
from s3lake_tests.layout.files import Record

# Lenses


def test_lenses_example() -> None:
    loaded = load(documents.EXAMPLE)
    (sink,) = loaded.config.sinks
    assert (sink.bucket, sink.prefix, sink.topics) == ("lensesio", "demo", ("demo",))
    assert (sink.flush.size, sink.flush.interval, sink.flush.count) == (1_000_000, 30, 5_000)


def test_lenses_all_topics_of_an_expression() -> None:
    loaded = load(documents.EXPRESSION)
    (sink,) = loaded.config.sinks
    assert sink.reads("sensor_data_12")
    assert not sink.reads("sensor_data_x")


def test_lenses_rolling_window() -> None:
    loaded = load(documents.ROLLING_WINDOW)
    assert [(one.name, one.type.rpartition(".")[2]) for one in loaded.config.sinks[0].transforms] == [
        ("insertFormattedTs", "TimestampConverter"),
        ("insertWallclock", "InsertWallclock"),
    ]


@pytest.mark.parametrize(("query", "converters", "form", "extension"), documents.STORED)
def test_lenses_storage_examples(query: str, converters: str, form: str, extension: str) -> None:
    loaded = load(documents.stored(query, converters))
    (sink,) = loaded.config.sinks
    assert (sink.format.type, sink.format.codec) == (form, "none")
    assert (sink.envelope is not None) == ("envelope" in query)
    assert keys_of(loaded, Record()) == [f"car_speed/car_speed_events/0/000000000000{extension}"]


def test_lenses_credentials() -> None:
    loaded = load(
        documents.CREDENTIALS,
        AWS_ACCESS_KEY="AKIA",
        AWS_SECRET_KEY="hush-hush",
    )
    credentials = loaded.config.s3.credentials
    assert credentials != "default"
    assert (credentials.access_key_id, credentials.secret_access_key.get_secret_value()) == ("AKIA", "hush-hush")
    assert loaded.config.s3.region == "eu-west-2"


def test_lenses_retries_and_errors() -> None:
    loaded = load(documents.RETRIES)
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
    noticed = {notice.place.key for notice in bases.remarks(loaded)}
    assert errors.log == "place"
    assert "connect.s3.error.policy" in noticed
    assert not {key for key in noticed if "deadletterqueue" in key or "retr" in key}


@pytest.mark.parametrize("name", documents.INDEXES)
def test_lenses_index_names(name: str) -> None:
    assert load(CONFIGURATIONS[f"lenses: index {name}"]).config.sinks[0].index.prefix == name


# Confluent


def confluent(changes: Mapping[str, object]) -> LoadedConfig:
    return load(documents.fragment(**changes))


def test_confluent_basic() -> None:
    loaded = load(documents.fragment())
    (sink,) = loaded.config.sinks
    assert (sink.name, sink.bucket, sink.flush.count, sink.format.codec) == (
        "s3-sink",
        "data-lake-bucket",
        10_000,
        "snappy",
    )
    assert loaded.config.spark.master == "local[3]"


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
    changes: dict[str, object] = {
        "aws.access.key.id": "${secrets:aws/access-key}",
        "aws.secret.access.key": "${secrets:aws/secret-key}",
    }
    credentials = confluent(changes).config.s3.credentials
    assert credentials != "default"
    assert (credentials.access_key_id, credentials.secret_access_key.get_secret_value()) == ("AKIA", "hush-hush")


def test_confluent_role() -> None:
    loaded = confluent({"s3.credentials.provider.class": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"})
    assert loaded.config.s3.credentials == "default"


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ({"flush.size": "10000"}, {"count": 10_000}),
        ({"rotate.schedule.interval.ms": "3600000", "timezone": "UTC"}, {"interval": 3600.0}),
        ({"s3.part.size": "26214400"}, {"size": 26_214_400}),
        (
            {"s3.part.size": "52428800", "flush.size": "50000", "rotate.interval.ms": "600000"},
            {"size": 52_428_800, "count": 50_000, "interval": 600.0, "span": None},
        ),
    ],
)
def test_confluent_rotation(fragment: dict[str, object], expected: dict[str, object]) -> None:
    flush = confluent(fragment).config.sinks[0].flush
    assert {name: getattr(flush, name) for name in expected} == expected


def test_confluent_converters() -> None:
    sink = confluent(documents.SCHEMALESS).config.sinks[0]
    assert (sink.converter.key, sink.converter.value) == ("string", "json")
    sink = confluent(documents.AVRO_CONVERTERS).config.sinks[0]
    assert (sink.converter.key, sink.converter.value) == ("avro", "avro")
    assert sink.converter.registry is not None
    assert sink.converter.registry.url == "http://schema-registry:8081"


def test_confluent_errors_parallelism_and_retries() -> None:
    errors, parallelism, retries = (
        load(CONFIGURATIONS[f"confluent: {name}"]).config for name in ("errors", "parallelism", "retries")
    )
    assert errors.sinks[0].errors.tolerance == "all"
    assert parallelism.spark.master == "local[6]"
    assert (retries.s3.retries.max_attempts, retries.s3.retries.backoff_ms) == (3, 200)


def test_confluent_complete_example() -> None:
    loaded = load(CONFIGURATIONS["confluent: complete"])
    (sink,) = loaded.config.sinks
    assert (sink.topics, sink.flush.count, sink.flush.interval) == (("events", "transactions"), 50_000, 600)


# Aiven


def test_aiven_console_example() -> None:
    loaded = load(documents.AIVEN_CONSOLE)
    assert loaded.config.s3.region == "eu-west-1"


def test_aiven_rest_example() -> None:
    loaded = load(documents.AIVEN_REST)
    (sink,) = loaded.config.sinks
    assert sink.envelope is not None
    assert (sink.envelope.style, sink.envelope.fields) == ("flat", ("value", "key", "timestamp"))
    assert (sink.format.type, sink.format.codec, sink.flush.interval) == ("csv", "gzip", 60)
