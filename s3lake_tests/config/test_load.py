"""The configuration of a process: several files together, each with its own variables."""

from pathlib import Path

import pytest

from s3lake.config import load as configuration
from s3lake.config.native import write_native
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import CLOUD, load_file, loads

NATIVE = """\
kafka: {{bootstrap_servers: "{servers}"}}
sinks: [{{name: {name}, topics: [{topic}], bucket: lake, prefix: {prefix}, start: 2026-11-20T00}}]
"""
LENSES = """\
connector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector
name=cars
topics=cars
connect.s3.kcql=insert into lake:cars select * from cars
value.converter=org.apache.kafka.connect.storage.StringConverter
"""


def native_text(name: str, servers: str = "kafka:9092", topic: str = "orders", prefix: str = "") -> str:
    return NATIVE.format(name=name, servers=servers, topic=topic, prefix=prefix or name)


def loaded(directory: Path, files: dict[str, str], **variables: str) -> configuration.LoadedConfig:
    for name, text in files.items():
        (directory / name).write_text(text)
    return configuration.load_configuration(str(directory), environment=variables)


def test_the_files_of_a_directory_are_one_configuration(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"b.yaml": native_text("clicks"), "a.yaml": native_text("events")})
    assert [sink.name for sink in found.config.sinks] == ["events", "clicks"]
    assert found.origins["sinks", 1, "name"].file.endswith("b.yaml")


@pytest.mark.parametrize(("name", "text"), [("a.yaml", native_text("events")), ("a.toml", bases.IGGY)])
def test_a_worker_is_noted_where_no_connector_needs_it(name: str, text: str, tmp_path: Path) -> None:
    found = loaded(tmp_path, {name: text}, S3LAKE_WORKER="worker.properties")
    assert "environment variable S3LAKE_WORKER: no worker is read" in "\n".join(map(str, found.notices))


def test_a_variable_changes_the_sink_that_it_names(tmp_path: Path) -> None:
    files = {"a.yaml": native_text("events"), "b.yaml": native_text("clicks")}
    found = loaded(tmp_path, files, S3LAKE_SINKS_CLICKS_FLUSH_COUNT="7")
    assert [sink.flush.count for sink in found.config.sinks] == [None, 7]


@pytest.mark.parametrize(
    ("other", "variables", "message"),
    [
        ({"name": "clicks"}, {"S3LAKE_SINKS_OTHERS_FLUSH_COUNT": "7"}, "S3LAKE_SINKS_OTHERS_FLUSH_COUNT"),
        ({"name": "clicks", "servers": "other:9092"}, {}, "kafka differs from another file's"),
        ({"name": "events", "topic": "clicks"}, {}, "two sinks are called 'events'"),
    ],
)
def test_files_and_variables_that_do_not_fit_together_are_refused(
    other: dict[str, str], variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        loaded(tmp_path, {"a.yaml": native_text("events"), "b.yaml": native_text(**other)}, **variables)


def test_s3_settings_of_a_file_hold_for_its_sinks_alone(tmp_path: Path) -> None:
    own = "s3: {credentials: {access_key_id: AK, secret_access_key: '${SECRET}'}, objects: {encryption: AES256}}\n"
    files = {"a.yaml": native_text("events"), "b.yaml": own + native_text("clicks")}
    configuration = loaded(tmp_path, files, SECRET="hush-hush")
    events, clicks = configuration.config.sinks
    assert configuration.config.s3_of(events).objects.encryption is None
    assert configuration.config.s3_of(clicks).objects.encryption == "AES256"
    assert configuration.origins["sinks", 1, "s3", "objects", "encryption"].file.endswith("b.yaml")
    text, _ = write_native(configuration.config, configuration.references)
    assert "hush" not in text + repr(configuration)
    assert "secret_access_key: '${SECRET}'" in text


def test_load_returns_the_configuration_and_logs_its_notices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3LAKE_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("S3LAKE_START", "2026-11-20T00")
    path = tmp_path / "cars.properties"
    path.write_text(LENSES + "tasks.max=2\n")
    config = configuration.load(path)
    assert (config.sinks[0].name, config.spark.master) == ("cars", "local[2]")
    assert "s3lake.layout.connector_names=true" in caplog.text


def test_settings_that_a_connectors_file_lacks_are_required_to_land(tmp_path: Path) -> None:
    path = tmp_path / "cars.properties"
    path.write_text(LENSES)
    with pytest.raises(ConfigurationError, match="S3LAKE_BOOTSTRAP_SERVERS") as refused:
        configuration.load_configuration(str(path), environment={})
    assert "S3LAKE_START" in str(refused.value)


def test_settings_that_a_connectors_file_lacks_get_placeholders_when_nothing_is_landed(tmp_path: Path) -> None:
    path = tmp_path / "cars.properties"
    path.write_text(LENSES)
    found = configuration.load_configuration(str(path), environment={"S3LAKE_START": "2026-11-20T00"}, to_land=False)
    assert (found.config.kafka.bootstrap_servers, found.config.sinks[0].start) == ("localhost:9092", "2026-11-20T00")
    expected = [str(notice) for notice in found.notices if "placeholder" in str(notice)]
    assert [one.partition(": ")[0] for one in expected] == ["environment variable S3LAKE_BOOTSTRAP_SERVERS"]


def test_a_placeholder_is_written_as_the_variable_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "cars.properties"
    path.write_text(LENSES)
    found = configuration.load_configuration(str(path), environment={}, to_land=False)
    text, secrets = write_native(found.config, found.references)
    assert "bootstrap_servers: '${S3LAKE_BOOTSTRAP_SERVERS}'" in text
    assert "start: '${S3LAKE_START}'" in text
    assert secrets == {}


# Which dialect


ONE_SINK = "kafka: {bootstrap_servers: a:1}\nsinks: [{name: e, topics: [e], bucket: lake, start: 2026-11-20T00}]\n"


@pytest.mark.parametrize(
    ("text", "bucket"),
    [
        (bases.properties(bases.LENSES, {}), "lake"),
        (bases.properties(bases.LENSES, {"connector.class": None}), "lake"),
        (bases.properties(bases.CONFLUENT, {"connector.class": None}), "lake"),
        (bases.properties(bases.AIVEN, {"connector.class": None}), "lake"),
        (bases.JSON, "lake"),
        (bases.IGGY, "lake"),
        (ONE_SINK, "lake"),
        ('{"kafka": {"bootstrap_servers": "a:1"}, "sinks": [{"name": "e", "topics": ["e"], "bucket": "lake", '
         '"start": "2026-11-20T00"}]}', "lake"),
    ],
)  # fmt: skip
def test_the_dialect_is_seen_from_the_content(text: str, bucket: str) -> None:
    assert loads(text, "f", None, {}).config.sinks[0].bucket == bucket


@pytest.mark.parametrize(("name", "dialect"), configuration.CLASSES.items())
def test_the_dialect_follows_from_any_class_of_a_connector(name: str, dialect: str) -> None:
    base = {"lenses": bases.LENSES, "confluent": bases.CONFLUENT, "aiven": bases.AIVEN}[dialect]
    if name == "S3_SINK":
        base = CLOUD
    assert bases.load(base, {"connector.class": name}).config.sinks[0].bucket == "lake"


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (bases.LENSES, "S3SinkConnector"),
        (bases.LENSES, "S3Sink"),
        (bases.LENSES, "S3SinkConnectorDeprecated"),
        (bases.CONFLUENT, "S3SinkConnector"),
        (bases.CONFLUENT, "S3Sink"),
        (bases.AIVEN, "S3SinkConnector"),
        (bases.AIVEN, "S3Sink"),
        (bases.AIVEN, "AivenKafkaConnectS3SinkConnector"),
        (bases.AIVEN, "AivenKafkaConnectS3Sink"),
    ],
)
def test_a_class_may_have_each_name_that_kafka_connect_knows_it_by(base: dict[str, str], name: str) -> None:
    assert bases.load(base, {"connector.class": name}).config == bases.load(base).config


def test_a_short_name_of_several_connectors_is_refused_when_no_key_is_of_only_one() -> None:
    text = bases.properties({"name": "demo", "topics": "demo"}, {"connector.class": "S3Sink"})
    with pytest.raises(ConfigurationError, match=r"'S3Sink' is the short name of several connectors; write one of: io"):
        loads(text, "f", None, {})


def test_the_dialect_can_be_set() -> None:
    text = bases.properties(bases.CONFLUENT, {"connector.class": None})
    assert loads(text, "f", "confluent", {}).config.sinks[0].flush.count == 1_000
    with pytest.raises(ConfigurationError, match=r"aws\.s3\.bucket\.name is missing"):
        loads(text, "f", "aiven", {})
    with pytest.raises(ConfigurationError, match=r"dialect 'confluence' is not known; did you mean confluent\?"):
        loads(text, "f", "confluence", {})


def test_a_text_that_is_not_a_configuration_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="this is not a configuration that s3lake knows"):
        loads("a=b", "f", None, {})
    with pytest.raises(ConfigurationError, match="the file is empty"):
        loads("", "f", None, {})


def test_a_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "connector.properties"
    path.write_text(bases.properties(bases.LENSES, {"connect.s3.kcql": "${file:kcql.properties:query}"}))
    (tmp_path / "kcql.properties").write_text("query=INSERT INTO lake SELECT * FROM demo")
    assert load_file(path, {}).config.sinks[0].bucket == "lake"
