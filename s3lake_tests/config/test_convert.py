"""A configuration of any dialect, written as native YAML: it means the same, and keeps its references."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from s3lake.config import native
from s3lake.config.draft import LoadedConfig
from s3lake.config.model import Config
from s3lake_tests.config import bases, documents
from s3lake_tests.config.bases import loads
from s3lake_tests.config.examples import CONFIGURATIONS

SECRETS = {"AWS_ACCESS_KEY": "AKIA", "AWS_SECRET_KEY": "hush-hush"}
KAFKA = "kafka: {bootstrap_servers: localhost:9092}\n"
SINK = "sinks: [{name: events, topics: [events], bucket: lake, start: 2026-11-20T00}]\n"


def document(name: str) -> Config:
    return documents.load(CONFIGURATIONS[name], **SECRETS).config


def again(config: Config, secrets: dict[str, str] | None = None) -> Config:
    """The configuration written and read again, with its secrets by their paths."""
    text, variables = native.write_native(config)
    environment = {variable: (secrets or {})[path] for variable, path in variables.items()}
    return bases.native(text, environment).config


def secret_access_key(config: Config) -> dict[str, str]:
    credentials = config.s3.credentials
    if credentials == "default":
        return {}
    return {"s3.credentials.secret_access_key": credentials.secret_access_key.get_secret_value()}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_document_means_the_same(name: str) -> None:
    config = document(name)
    assert again(config, secret_access_key(config)) == config


@pytest.mark.parametrize("base", [bases.LENSES, bases.CONFLUENT, bases.AIVEN])
def test_the_secrets_of_a_connector_are_variables(base: dict[str, str]) -> None:
    options = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schemas.enable": None,
        "value.converter.schema.registry.url": "http://me:hush-registry@r:8081",
        "consumer.override.sasl.jaas.config": "hush-jaas",
        "consumer.override.sasl.username": "me",
    }
    config = bases.load(base, options).config
    text, variables = native.write_native(config)
    assert variables == {
        "S3LAKE_SECRET_KAFKA_PROPERTIES_SASL_JAAS_CONFIG": "kafka.properties.sasl.jaas.config",
        "S3LAKE_SECRET_SINKS_DEMO_CONVERTER_REGISTRY_PASSWORD": "sinks.0.converter.registry.password",
    }
    assert "hush" not in text
    assert again(config, dict(zip(variables.values(), ["hush-jaas", "hush-registry"], strict=True))) == config


def test_secrets_whose_variables_would_be_one_have_two() -> None:
    config = native.load_text(
        f"kafka: {{bootstrap_servers: a:1, properties: {{my.password: '1', my-password: '2'}}}}\n{SINK}", "s3lake.yaml"
    )
    assert again(config, {"kafka.properties.my.password": "1", "kafka.properties.my-password": "2"}) == config


@pytest.mark.parametrize("secret", ["null", "12345", "true", "${HOME}", "a: b # c", "'", '"', "é"])
def test_a_secret_may_look_like_anything(secret: str) -> None:
    text = f"{KAFKA}s3: {{credentials: {{access_key_id: a, secret_access_key: '${{S}}'}}}}\n{SINK}"
    config = bases.native(text, {"S": secret}).config
    assert again(config, {"s3.credentials.secret_access_key": secret}) == config


@pytest.mark.parametrize("text", ["1e3", "0x10", "1_000", "on", "~", "null", "${HOME}", "$${", "<<", "1:30", ""])
def test_text_stays_text(text: str) -> None:
    options = {"fields": [{"key": "a", "value": {"static": text}}]}
    sink = {"name": "events", "topics": ["events"], "bucket": "lake", "start": "2026-11-20T00"}
    values = {
        "kafka": {"bootstrap_servers": "a:1", "properties": {"client.id": text}},
        "spark": {"conf": {"true": text}},
        "sinks": [{**sink, "transforms": [{"type": "iggy.add_fields", "options": options}]}],
    }
    config = Config.model_validate(values)
    assert again(config) == config


@pytest.mark.parametrize(
    "setting",
    [
        "format: {type: parquet, codec: none}",
        "format: {type: avro, codec: none}",
        "layout: {partition_by: [a], include_keys: false}",
        "hours_per_run: null",
        "flush: {interval: 1.5, size: 8MiB}",
        "envelope: {fields: [value, key]}",
    ],
)
def test_a_setting_that_differs_from_its_derived_default_is_written(setting: str) -> None:
    config = native.load_text(KAFKA + SINK.replace("}]", f", {setting}}}]"), "s3lake.yaml")
    assert again(config) == config


def test_a_default_is_left_out() -> None:
    config = native.load_text(KAFKA + SINK.replace("}]", ", nulls: skip, flush: {count: 5}}]"), "s3lake.yaml")
    (written,) = yaml.safe_load(native.write_native(config)[0])["sinks"]
    assert written.keys() == {"name", "topics", "bucket", "start", "flush"}
    assert written["flush"] == {"count": 5}


def test_settings_of_all_sinks_are_written() -> None:
    config = native.load_text(f"{KAFKA}run_history: 30d\nexamples: true\n{SINK}", "s3lake.yaml")
    assert again(config) == config
    assert "run_history: 720h" in native.write_native(config)[0]


# References

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


def written(loaded: LoadedConfig) -> tuple[dict[str, Any], dict[str, str]]:
    text, variables = native.write_native(loaded.config, loaded.references)
    assert "hunter2" not in text
    return yaml.safe_load(text), variables


def test_references_of_native_yaml_stay_whole_or_in_part_also_where_they_hold_a_default_or_a_secret() -> None:
    found, variables = written(bases.native(NATIVE, ENVIRONMENT))
    assert found == yaml.safe_load(NATIVE)
    assert variables == {}


def test_a_secret_is_not_written_next_to_a_reference() -> None:
    text = NATIVE.replace('"${PASSWORD}"', '"hunter2-${STAGE}"')
    found, variables = written(bases.native(text, ENVIRONMENT))
    (variable,) = variables
    assert found["kafka"]["properties"]["sasl.password"] == f"${{{variable}}}"


def test_the_value_of_an_s3lake_variable_is_not_written_as_a_reference_of_the_file() -> None:
    environment = {**ENVIRONMENT, "S3LAKE_SINKS_EVENTS_BUCKET": "other"}
    found, _ = written(bases.native(NATIVE, environment))
    assert found["sinks"][0]["bucket"] == "other"


def test_references_of_a_connector_are_spelled_as_in_native_yaml_and_what_no_variable_holds_becomes_one(
    tmp_path: Path,
) -> None:
    found, variables = written(connector(tmp_path))
    assert (found["sinks"][0]["bucket"], found["sinks"][0]["flush"]["count"]) == ("${BUCKET}", "${COUNT}")
    assert variables == {
        "S3LAKE_SECRET_S3_REGION": "s3.region",
        "S3LAKE_SECRET_S3_CREDENTIALS_SECRET_ACCESS_KEY": "s3.credentials.secret_access_key",
    }
    assert found["s3"]["region"] == "${S3LAKE_SECRET_S3_REGION}"


@pytest.mark.parametrize("dialect", ["native", "connector"])
def test_the_written_file_loads_as_the_same_configuration(dialect: str, tmp_path: Path) -> None:
    loaded = bases.native(NATIVE, ENVIRONMENT) if dialect == "native" else connector(tmp_path)
    text, variables = native.write_native(loaded.config, loaded.references)
    secrets = {"s3.region": "eu-7", "s3.credentials.secret_access_key": "hunter2-s3"}
    environment = {**ENVIRONMENT, **CONNECTORS, **{name: secrets[place] for name, place in variables.items()}}
    assert bases.native(text, environment).config == loaded.config
