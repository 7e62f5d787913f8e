"""Confluent Cloud's `S3_SINK`: its own keys become keys of the connector that it runs."""

from pathlib import Path

import pytest

from s3lake.config import load as configuration
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import CLOUD


def test_confluent_clouds_own_keys_are_taken() -> None:
    found = bases.load(CLOUD, {"store.kafka.keys": "true", "output.keys.format": "JSON"})
    bases.check(found, "format.type: parquet, converter.value: json, sidecars.keys: json")
    bases.check(found, "nulls: skip, errors.tolerance: all")  # which the file does not set
    bases.check(found, 'kafka.bootstrap_servers: "pkc-1.eu.confluent.cloud:9092"')
    assert "'day'=dd}" in str(found.config.sinks[0].layout.template)
    assert 'password="hush-hush"' in found.config.kafka.properties["sasl.jaas.config"]


def test_a_format_that_confluent_cloud_has_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="did you mean PARQUET"):
        bases.load(CLOUD, {"output.data.format": "PARKET"})


def test_the_one_format_of_older_releases_is_of_what_is_read_and_written() -> None:
    former: dict[str, str | None] = {"input.data.format": None, "output.data.format": None, "data.format": "BYTES"}
    found = bases.load(CLOUD, former)
    bases.check(found, "format.type: bytes, converter.value: bytes")
    bases.check(found, "remark: is an old name: write input.data.format and output.data.format")


def test_the_format_of_older_releases_next_to_the_present_ones_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"data\.format: is the old name of input\.data\.format, which"):
        bases.load(CLOUD, {"data.format": "JSON"})


def test_a_missing_format_is_named_as_confluent_cloud_names_it() -> None:
    with pytest.raises(ConfigurationError) as refused:
        bases.load(CLOUD, {"output.data.format": None})
    (line,) = str(refused.value).split("\n")
    assert line.endswith("output.data.format is missing; add it, for example output.data.format=JSON")


def test_the_registry_comes_from_a_variable_and_is_a_placeholder_in_check(tmp_path: Path) -> None:
    formats: dict[str, str | None] = {"input.data.format": "AVRO", "output.data.format": "AVRO"}
    with pytest.raises(ConfigurationError, match="AVRO needs the registry: set S3LAKE_REGISTRY_URL"):
        bases.load(CLOUD, formats)
    loaded = bases.load(CLOUD, formats, S3LAKE_REGISTRY_URL="http://registry:8081")
    bases.check(loaded, 'converter.registry.url: "http://registry:8081"')
    path = tmp_path / "cloud.properties"
    path.write_text(bases.properties(CLOUD, formats))
    checked = configuration.load_configuration(str(path), environment={}, to_land=False)
    assert any("S3LAKE_REGISTRY_URL: is not set" in str(notice) for notice in checked.notices)


@pytest.mark.parametrize(
    ("form", "codec", "native"),
    [
        ("JSON", "JSON - gzip", "gzip"),
        ("AVRO", "AVRO - bzip2", "bzip2"),
        ("AVRO", "AVRO - deflate", "deflate"),
        ("AVRO", "AVRO - snappy", "snappy"),
        ("PARQUET", "PARQUET - gzip", "gzip"),
        ("PARQUET", "PARQUET - none", "none"),
        ("PARQUET", "PARQUET - snappy", "snappy"),
        ("PARQUET", "GZIP", "gzip"),
        ("JSON", "", "none"),
    ],
)
def test_a_codec_may_name_its_format(form: str, codec: str, native: str) -> None:
    found = bases.load(CLOUD, {"output.data.format": form, "compression.codec": codec})
    bases.check(found, f"format.codec: {native}")


def test_a_codec_of_another_format_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"format than output.data.format=PARQUET; write PARQUET - gzip$"):
        bases.load(CLOUD, {"compression.codec": "JSON - gzip"})


@pytest.mark.parametrize(("interval", "duration"), [("HOURLY", 3600), ("DAILY", 86400), (None, 3600)])
def test_directories_follow_path_format(interval: str | None, duration: float) -> None:
    found = bases.load(CLOUD, {"path.format": "'dt'=YYYY-MM-dd", "time.interval": interval})
    assert "{topic}/{time:'dt'=YYYY-MM-dd}/" in str(found.config.sinks[0].layout.template)
    assert (found.config.sinks[0].layout.time.duration, found.config.sinks[0].layout.time.source) == (
        duration,
        "wallclock",
    )


def test_an_interval_next_to_path_format_is_checked() -> None:
    with pytest.raises(ConfigurationError, match="did you mean HOURLY"):
        bases.load(CLOUD, {"path.format": "'dt'=YYYY-MM-dd", "time.interval": "HOURLIES"})


def test_the_field_of_a_time_is_read() -> None:
    found = bases.load(CLOUD, {"timestamp.field": "at"})
    bases.check(found, "layout.time.source: field, layout.time.field: at")
    bases.check(bases.load(CLOUD, {"timestamp.field": ""}), "layout.time.source: wallclock")


def test_keys_are_bytes_unless_a_format_is_set() -> None:
    bases.check(bases.load(CLOUD), "converter.key: bytes")
    bases.check(bases.load(CLOUD, {"input.key.format": "STRING"}), "converter.key: string")


def test_a_dead_letter_topic_by_the_connectors_id_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError) as refused:
        bases.load(CLOUD, {"errors.deadletterqueue.topic.name": "dlq-${connector}"})
    assert (
        "errors.deadletterqueue.topic.name: 'dlq-${connector}': ${connector} is the connector's id, which only "
        "Confluent Cloud knows; write the topic's name, for example dlq-lcc-abc123"
    ) in str(refused.value)
    assert bases.load(CLOUD, {"errors.deadletterqueue.topic.name": "dlq-lcc-abc123"}).config.sinks
