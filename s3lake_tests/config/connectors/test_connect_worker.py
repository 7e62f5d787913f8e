"""A worker's file or image, which has what the connector's own file does not set."""

from pathlib import Path

import pytest

from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.kit.tables import rows

WITHOUT: dict[str, str | None] = dict.fromkeys(["value.converter", "value.converter.schemas.enable"])
WORKER = """\
bootstrap.servers=broker:9092
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=io.confluent.connect.avro.AvroConverter
value.converter.schema.registry.url=http://registry:8081
consumer.security.protocol=SSL
offset.storage.topic=offsets
"""


IMAGE = {
    "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE": "true",
    "CONNECT_REST_PORT": "8083",
}
SETTINGS = """
file | WITHOUT => converter.key: string, converter.value: avro, converter.registry.url: "http://registry:8081"
file | WITHOUT => remark: is taken: the connector names no value.converter
file | -bootstrap.servers =>
    kafka.bootstrap_servers: "broker:9092", kafka.properties: {security.protocol: SSL}
file | => converter.value: json, converter.registry: null
file | WITHOUT + value.converter.schemas.enable=true => converter.value: avro
file | WITHOUT + value.converter.schemas.enable=true =>
    remark: does not read it without value.converter: the worker's options hold
image | WITHOUT => converter.value: connect_json
"""


@pytest.mark.parametrize(("given", "expected"), rows(SETTINGS))
def test_a_worker_sets_what_the_connector_leaves_out(given: str, expected: str, tmp_path: Path) -> None:
    where, _, changes = given.partition(" | ")
    (tmp_path / "worker.properties").write_text(WORKER)
    environment = IMAGE if where == "image" else {"S3LAKE_WORKER": str(tmp_path / "worker.properties")}
    bases.check(bases.load(bases.CONFLUENT, bases.changes(changes, WITHOUT=WITHOUT), **environment), expected)


def test_a_workers_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"--worker nowhere\.properties: cannot be read"):
        bases.load(bases.CONFLUENT, S3LAKE_WORKER="nowhere.properties")
