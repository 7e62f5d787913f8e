"""Confluent Cloud's `S3_SINK`: its own keys become keys of the connector that it runs."""

from pathlib import Path

import pytest

from s3lake.config import load as configuration
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases

CLOUD = {
    "name": "lake",
    "connector.class": "S3_SINK",
    "topics": "demo",
    "kafka.endpoint": "SASL_SSL://pkc-1.eu.confluent.cloud:9092",
    "kafka.api.key": "KEY",
    "kafka.api.secret": "hush-hush",
    "input.data.format": "JSON",
    "output.data.format": "PARQUET",
    "time.interval": "DAILY",
    "flush.size": "1000",
    "s3.bucket.name": "lake",
    "aws.access.key.id": "AK",
    "aws.secret.access.key": "SK",
    "s3lake.start": "2026-11-20T00",
}


def test_confluent_clouds_own_keys_are_taken() -> None:
    found = bases.load(CLOUD, {"store.kafka.keys": "true", "output.keys.format": "JSON"})
    bases.check(found, "format.type: parquet, converter.value: json, sidecars.keys: json")
    bases.check(found, "nulls: skip, errors.tolerance: all")  # of which the file says nothing
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
