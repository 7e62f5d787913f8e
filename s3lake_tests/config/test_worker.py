"""A worker's file or image, which has what the connector's own file does not set."""

from pathlib import Path

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads


def load(*lines: str, base: dict[str, str] = bases.CONFLUENT, **environment: str) -> LoadedConfig:
    return loads("\n".join([bases.properties(base, {}), *lines]), "f", None, environment)


WITHOUT = {key: value for key, value in bases.CONFLUENT.items() if not key.startswith("value.converter")}
WORKER = """\
bootstrap.servers=broker:9092
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=io.confluent.connect.avro.AvroConverter
value.converter.schema.registry.url=http://registry:8081
consumer.security.protocol=SSL
offset.storage.topic=offsets
"""


def test_a_workers_file_says_the_converters_and_where_kafka_is(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(WORKER)
    base = {key: value for key, value in WITHOUT.items() if key != "bootstrap.servers"}
    loaded = load(base=base, S3LAKE_WORKER=str(tmp_path / "worker.properties"))
    (sink,) = loaded.config.sinks
    assert (sink.converter.key, sink.converter.value) == ("string", "avro")
    assert sink.converter.registry is not None
    assert sink.converter.registry.url == "http://registry:8081"
    assert loaded.config.kafka.bootstrap_servers == "broker:9092"
    assert loaded.config.kafka.properties == {"security.protocol": "SSL"}
    assert "is taken: the connector names no value.converter" in bases.remarks_text(loaded)


def test_a_workers_image_says_its_converters_as_variables() -> None:
    loaded = load(
        base=WITHOUT,
        CONNECT_VALUE_CONVERTER="org.apache.kafka.connect.json.JsonConverter",
        CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE="true",
        CONNECT_REST_PORT="8083",
    )
    assert loaded.config.sinks[0].converter.value == "connect_json"


def test_a_connectors_own_converter_wins_with_its_own_options(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(WORKER)
    (sink,) = load(S3LAKE_WORKER=str(tmp_path / "worker.properties")).config.sinks
    assert (sink.converter.value, sink.converter.registry) == ("json", None)


def test_options_of_a_converter_that_the_worker_names_are_noted(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(WORKER)
    loaded = load(
        "value.converter.schemas.enable=true", base=WITHOUT, S3LAKE_WORKER=str(tmp_path / "worker.properties")
    )
    assert loaded.config.sinks[0].converter.value == "avro"
    assert "does not read it without value.converter: the worker's options hold" in bases.remarks_text(loaded)


def test_a_workers_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"--worker nowhere\.properties: cannot be read"):
        load(S3LAKE_WORKER="nowhere.properties")
