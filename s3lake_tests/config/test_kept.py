"""References of a configuration that is written as native YAML: they stay, and secrets of theirs are never written."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from s3lake.config import native
from s3lake.config.draft import LoadedConfig
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads

NATIVE = """\
kafka: {bootstrap_servers: "${SERVERS}", properties: {sasl.password: "${PASSWORD}", sasl.username: "app-${STAGE}"}}
s3:
  region: "${REGION:-us-east-1}"
  credentials: {access_key_id: AKIA, secret_access_key: "${S3_SECRET}"}
sinks:
  - name: events
    topics: [orders, "clicks-${STAGE}"]
    bucket: ${BUCKET}
    prefix: raw-${STAGE}/$${literal}
    start: 2026-11-20T00
    flush: {count: "${COUNT}", interval: "${MINUTES}m"}
"""
ENVIRONMENT = {
    **{"SERVERS": "kafka-7:9092", "PASSWORD": "hunter2-kafka", "S3_SECRET": "hunter2-s3", "STAGE": "prod"},
    **{"BUCKET": "lake-7", "COUNT": "700", "MINUTES": "7"},
}
CONNECTOR = """\
name=events
connector.class=io.confluent.connect.s3.S3SinkConnector
topics=${env:TOPICS}
s3.bucket.name=${env:BUCKET}
s3.region=${file:place.properties:region}
aws.access.key.id=AKIA
aws.secret.access.key=${secrets:keys}
flush.size=${COUNT}
rotate.interval.ms=${MILLISECONDS}
format.class=io.confluent.connect.s3.format.json.JsonFormat
bootstrap.servers=kafka:9092
s3lake.start=2026-11-20T00
"""
CONNECTORS = {"TOPICS": "orders,clicks", "BUCKET": "lake-7", "COUNT": "700", "MILLISECONDS": "60000"}


def connector(tmp_path: Path) -> LoadedConfig:
    (tmp_path / "place.properties").write_text("region=eu-7\n")
    return loads(CONNECTOR, "a.properties", None, CONNECTORS, tmp_path, {"keys": "hunter2-s3"}.__getitem__)


def written(loaded: LoadedConfig) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    text, variables, notices = native.write_native(loaded.config, loaded.references)
    assert "hunter2" not in text + str(notices)
    return yaml.safe_load(text), variables, notices


def test_references_of_native_yaml_stay_whole_or_in_part_also_where_they_hold_a_default() -> None:
    found, _, notices = written(bases.native(NATIVE, ENVIRONMENT))
    sink = found["sinks"][0]
    assert found["kafka"]["bootstrap_servers"] == "${SERVERS}"
    assert found["s3"]["region"] == "${REGION:-us-east-1}"
    assert sink["bucket"] == "${BUCKET}"
    assert sink["prefix"] == "raw-${STAGE}/$${literal}"
    assert sink["topics"] == ["orders", "clicks-${STAGE}"]
    assert sink["flush"] == {"count": "${COUNT}", "interval": "${MINUTES}m"}
    assert notices == []


def test_a_secret_that_is_a_reference_keeps_its_own_variable() -> None:
    found, variables, _ = written(bases.native(NATIVE, ENVIRONMENT))
    assert found["s3"]["credentials"]["secret_access_key"] == "${S3_SECRET}"
    assert found["kafka"]["properties"]["sasl.password"] == "${PASSWORD}"
    assert variables == {}


def test_beside_a_reference_a_secret_is_not_written() -> None:
    text = NATIVE.replace('"${PASSWORD}"', '"hunter2-${STAGE}"')
    found, variables, _ = written(bases.native(text, ENVIRONMENT))
    (variable,) = variables
    assert found["kafka"]["properties"]["sasl.password"] == f"${{{variable}}}"


def test_what_a_variable_of_s3lake_says_is_not_the_files_reference() -> None:
    environment = {**ENVIRONMENT, "S3LAKE_SINKS_EVENTS_BUCKET": "other"}
    found, _, _ = written(bases.native(NATIVE, environment))
    assert found["sinks"][0]["bucket"] == "other"


def test_references_of_a_connector_are_spelled_as_in_native_yaml(tmp_path: Path) -> None:
    found, _, _ = written(connector(tmp_path))
    assert found["sinks"][0]["bucket"] == "${BUCKET}"
    assert found["sinks"][0]["flush"]["count"] == "${COUNT}"


def test_what_no_variable_holds_becomes_one(tmp_path: Path) -> None:
    found, variables, _ = written(connector(tmp_path))
    assert variables == {
        "S3LAKE_SECRET_S3_REGION": "s3.region",
        "S3LAKE_SECRET_S3_CREDENTIALS_SECRET_ACCESS_KEY": "s3.credentials.secret_access_key",
    }
    assert found["s3"]["region"] == "${S3LAKE_SECRET_S3_REGION}"


def test_a_value_that_is_made_of_a_reference_stands_there_and_is_told(tmp_path: Path) -> None:
    found, _, notices = written(connector(tmp_path))
    assert found["sinks"][0]["topics"] == ["orders", "clicks"]
    assert "sinks[0].topics: is written as it is now, without the reference that it came from" in notices


@pytest.mark.parametrize("dialect", ["native", "connector"])
def test_what_is_written_loads_as_the_same_configuration(dialect: str, tmp_path: Path) -> None:
    loaded = bases.native(NATIVE, ENVIRONMENT) if dialect == "native" else connector(tmp_path)
    text, variables, _ = native.write_native(loaded.config, loaded.references)
    secrets = {"s3.region": "eu-7", "s3.credentials.secret_access_key": "hunter2-s3"}
    environment = {**ENVIRONMENT, **CONNECTORS, **{name: secrets[place] for name, place in variables.items()}}
    assert bases.native(text, environment).config == loaded.config
