"""Keys that Kafka Connect ignores are noted, and a placeholder is what Connect takes for one."""

from pathlib import Path

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads


def given(*lines: str, base: dict[str, str] = bases.CONFLUENT, **environment: str) -> LoadedConfig:
    return loads("\n".join([bases.properties(base, {}), *lines]), "f", None, environment)


def remarks(loaded: LoadedConfig) -> list[str]:
    return [str(one) for one in bases.remarks(loaded)]


def test_of_a_key_that_is_given_twice_the_last_counts_and_that_is_noted() -> None:
    loaded = given("flush.size=2")
    assert loaded.config.sinks[0].flush.count == 2
    assert "f:11:1: flush.size: is given again in line 12; that one counts, as in Java" in remarks(loaded)


ROUTER = (
    "transforms=r",
    "transforms.r.type=org.apache.kafka.connect.transforms.TimestampRouter",
    "transforms.r.topic.format=${topic}-${timestamp}",
)


def test_a_routers_own_placeholders_are_text_also_if_the_environment_has_them() -> None:
    (router,) = given(*ROUTER, topic="wrong").config.sinks[0].transforms
    assert router.options["topic.format"] == "${topic}-${timestamp}"


def test_a_group_of_an_expression_is_text() -> None:
    lines = ("transforms=r", "transforms.r.type=org.apache.kafka.connect.transforms.RegexRouter")
    (router,) = (
        given(*lines, "transforms.r.regex=(?<n>.*)", "transforms.r.replacement=x-${n}").config.sinks[0].transforms
    )
    assert router.options["replacement"] == "x-${n}"


def test_a_shell_variable_that_is_set_is_replaced() -> None:
    assert given("topics.dir=${STAGE}/raw", STAGE="prod").config.sinks[0].prefix == "prod/raw"


def test_a_shell_variable_that_is_not_set_is_text_and_that_is_noted() -> None:
    loaded = given("topics.dir=${STAGE}/raw")
    assert loaded.config.sinks[0].prefix == "${STAGE}/raw"
    assert "f:12:1: topics.dir: ${STAGE} is text: environment variable STAGE is not set" in remarks(loaded)


def test_an_invalid_text_with_a_shell_variable_names_the_variable() -> None:
    with pytest.raises(ConfigurationError, match=r"environment variable BUCKET is not set, so .* is text"):
        given("s3.bucket.name=${BUCKET}")


def test_a_secret_is_never_a_placeholder() -> None:
    with pytest.raises(ConfigurationError, match="environment variable NOWHERE is not set; set it"):
        given("aws.access.key.id=AK", "aws.secret.access.key=${NOWHERE}")


def test_a_file_of_a_directory_is_a_value_by_either_name(tmp_path: Path) -> None:
    (tmp_path / "bucket").write_text("from-file\n")
    for provider in ("directory", "dir"):
        loaded = given(f"s3.bucket.name=${{{provider}:{tmp_path}:bucket}}")
        assert loaded.config.sinks[0].bucket == "from-file"


def test_a_secret_that_may_be_strimzis_has_a_remedy() -> None:
    def nowhere(_: str) -> str:
        from s3lake.config.variables import UnresolvedReferenceError

        raise UnresolvedReferenceError("AWS answers AccessDenied")

    text = bases.properties(bases.CONFLUENT, {"s3.bucket.name": "${secrets:ns/lake:bucket}"})
    with pytest.raises(ConfigurationError, match=r"Strimzi's Kubernetes secret NAMESPACE/NAME, mount it"):
        loads(text, "f", None, {}, secret=nowhere)


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
    loaded = given(base=base, S3LAKE_WORKER=str(tmp_path / "worker.properties"))
    (sink,) = loaded.config.sinks
    assert (sink.converter.key, sink.converter.value) == ("string", "avro")
    assert sink.converter.registry is not None
    assert sink.converter.registry.url == "http://registry:8081"
    assert loaded.config.kafka.bootstrap_servers == "broker:9092"
    assert loaded.config.kafka.properties == {"security.protocol": "SSL"}
    assert any("is taken: the connector names no value.converter" in one for one in remarks(loaded))


def test_a_workers_image_says_its_converters_as_variables() -> None:
    loaded = given(
        base=WITHOUT,
        CONNECT_VALUE_CONVERTER="org.apache.kafka.connect.json.JsonConverter",
        CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE="true",
        CONNECT_REST_PORT="8083",
    )
    assert loaded.config.sinks[0].converter.value == "connect_json"


def test_a_connectors_own_converter_wins_with_its_own_options(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(WORKER)
    (sink,) = given(S3LAKE_WORKER=str(tmp_path / "worker.properties")).config.sinks
    assert (sink.converter.value, sink.converter.registry) == ("json", None)


def test_options_of_a_converter_that_the_worker_names_are_noted(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(WORKER)
    loaded = given(
        "value.converter.schemas.enable=true", base=WITHOUT, S3LAKE_WORKER=str(tmp_path / "worker.properties")
    )
    assert loaded.config.sinks[0].converter.value == "avro"
    assert any("does not read it without value.converter: the worker's options hold" in one for one in remarks(loaded))


def test_a_workers_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"--worker nowhere\.properties: cannot be read"):
        given(S3LAKE_WORKER="nowhere.properties")
