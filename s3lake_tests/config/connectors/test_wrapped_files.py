"""A connector's file as it is: without a name, or as some tool wraps it."""

import json

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads

NAMELESS = {key: value for key, value in bases.CONFLUENT.items() if key != "name"}
STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: lake-sink
  labels:
    strimzi.io/cluster: connect
spec:
  class: io.confluent.connect.s3.S3SinkConnector
  tasksMax: 2
  autoRestart:
    enabled: true
  config:
    topics: demo
    key.converter: org.apache.kafka.connect.storage.StringConverter
    value.converter: org.apache.kafka.connect.json.JsonConverter
    value.converter.schemas.enable: false
    bootstrap.servers: kafka:9092
    s3lake.start: "2026-11-20T00"
    s3.bucket.name: lake
    format.class: io.confluent.connect.s3.format.json.JsonFormat
    flush.size: 1000
"""


def given(text: str, file: str = "orders-sink.json", **environment: str) -> LoadedConfig:
    return loads(text, file, None, environment)


def test_a_sink_without_a_name_is_called_after_its_file_with_a_notice() -> None:
    loaded = given(json.dumps(NAMELESS), "dir/orders-sink.json.tmpl")
    assert loaded.config.sinks[0].name == "orders-sink"
    assert loaded.connectors["orders-sink"].name == "orders-sink"
    assert (
        "name is missing; 'orders-sink', the name of the file, is used: set another with --name"
        in bases.remarks_text(loaded)
    )


def test_a_name_from_the_command_line_is_used_if_the_file_has_none() -> None:
    loaded = given(json.dumps(NAMELESS), S3LAKE_NAME="prod-orders")
    assert loaded.config.sinks[0].name == "prod-orders"
    assert "name is missing" not in bases.remarks_text(loaded)


def test_a_strimzi_resource_is_its_connector() -> None:
    loaded = given(STRIMZI, "connector.yaml")
    (sink,) = loaded.config.sinks
    assert (sink.name, sink.topics, sink.flush.count) == ("lake-sink", ("demo",), 1000)
    assert loaded.config.spark.master == "local[2]"
    assert "connector.yaml:10:3: autoRestart: Dagster" in bases.remarks_text(loaded)


WRAPPED = {
    "expanded": {"wrapped": {"info": {"name": "wrapped", "config": NAMELESS, "tasks": [], "type": "sink"}}},
    "map of connectors": {"wrapped": NAMELESS},
    "map of configs": {"wrapped": {"config": NAMELESS}},
    "list": {"connectors": [{"name": "wrapped", "config": NAMELESS}]},
    "MSK Connect": {"connectorName": "wrapped", "capacity": {}, "connectorConfiguration": NAMELESS},
    "Terraform's map": {"name": "wrapped", "connector_configuration": NAMELESS},
}
"""`test_public.py` has what Connect's REST API takes and answers, and a plan of Terraform's."""


@pytest.mark.parametrize("how", WRAPPED)
def test_a_wrapped_connector_is_taken_out_of_what_is_round_it(how: str) -> None:
    (sink,) = given(json.dumps(WRAPPED[how], indent=1)).config.sinks
    assert (sink.name, sink.bucket, sink.flush.count) == ("wrapped", "lake", 1000)


def test_secrets_that_terraform_keeps_apart_belong_to_the_connector() -> None:
    apart = {
        "config_nonsensitive": {**NAMELESS, "name": "wrapped", "aws.access.key.id": "AK"},
        "config_sensitive": {"aws.secret.access.key": "hush"},
    }
    credentials = given(json.dumps({"values": apart})).config.s3.credentials
    assert not isinstance(credentials, str)
    assert credentials.secret_access_key.get_secret_value() == "hush"


def test_a_connector_in_plain_yaml_is_read_with_its_quotes() -> None:
    text = "\n".join(f'{key}: "{value}"' for key, value in bases.CONFLUENT.items())
    assert given(text, "sink.yaml").config.sinks[0].flush.count == 1000


CLUSTER = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnect\nmetadata: {name: connect}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STRIMZI.replace("flush.size: 1000", "flush.size: many"), "^f:21:5: flush.size: 'many' is not allowed"),
        (
            f"{STRIMZI}---\n{STRIMZI.replace('lake-sink', 'other-sink')}",
            "holds 2 connectors: lake-sink, other-sink; give each a file of its own",
        ),
        (CLUSTER, "its KafkaConnector"),
        (json.dumps({"a": NAMELESS, "b": NAMELESS}), "holds 2 connectors: a, b;"),
        ('#!/bin/sh\ncurl -d \'{"name": "a"}\' http://c:8083\n', "give the connector's part alone"),
        ("CREATE SINK CONNECTOR a WITH (\n 'name'='x');", "give the connector's part alone"),
    ],
)
def test_a_file_without_one_connector_is_refused_with_what_is_needed(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        given(text, "f")


def test_a_name_that_contradicts_the_files_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'demo' is in the file, so --name other has no use"):
        given(bases.properties(bases.CONFLUENT, {}), S3LAKE_NAME="other")


def test_a_strimzi_file_may_hold_its_cluster_too() -> None:
    assert given(f"{CLUSTER}---\n{STRIMZI}", "all.yaml").config.sinks[0].name == "lake-sink"
