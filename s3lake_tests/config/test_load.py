"""The configuration of a process: several files together, each with its own variables."""

from pathlib import Path
from typing import Any

import pytest

from s3lake.config import load as configuration
from s3lake.config.draft import ConfigDraft
from s3lake.config.native import write_native
from s3lake.errors import ConfigurationError

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


def native(name: str, servers: str = "kafka:9092", topic: str = "orders", prefix: str = "") -> str:
    return NATIVE.format(name=name, servers=servers, topic=topic, prefix=prefix or name)


def loaded(directory: Path, files: dict[str, str], **variables: str) -> configuration.LoadedConfig:
    for name, text in files.items():
        (directory / name).write_text(text)
    return configuration.load_configuration(str(directory), environment=variables)


def test_the_files_of_a_directory_are_one_configuration(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"b.yaml": native("clicks"), "a.yaml": native("events")})
    assert [sink.name for sink in found.config.sinks] == ["events", "clicks"]
    assert found.origins["sinks", 1, "name"].file.endswith("b.yaml")


def test_a_variable_changes_the_sink_that_it_names(tmp_path: Path) -> None:
    files = {"a.yaml": native("events"), "b.yaml": native("clicks")}
    found = loaded(tmp_path, files, S3LAKE_SINKS_CLICKS_FLUSH_COUNT="7")
    assert [sink.flush.count for sink in found.config.sinks] == [None, 7]


def test_every_file_is_read_once_also_where_variables_change_sinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    read_draft = configuration.read_draft

    def counted(text: str, name: str, *others: Any, **options: Any) -> ConfigDraft:
        read.append(Path(name).name)
        return read_draft(text, name, *others, **options)

    monkeypatch.setattr(configuration, "read_draft", counted)
    files = {"a.yaml": native("events"), "b.yaml": native("clicks")}
    loaded(tmp_path, files, S3LAKE_SINKS_CLICKS_FLUSH_COUNT="7", S3LAKE_SINKS_EVENTS_PREFIX="raw")
    assert read == ["a.yaml", "b.yaml"]


def test_a_variable_that_no_file_knows_is_an_error(tmp_path: Path) -> None:
    files = {"a.yaml": native("events"), "b.yaml": native("clicks")}
    with pytest.raises(ConfigurationError, match="S3LAKE_SINKS_OTHERS_FLUSH_COUNT"):
        loaded(tmp_path, files, S3LAKE_SINKS_OTHERS_FLUSH_COUNT="7")


def test_files_have_to_agree_on_kafka(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="kafka differs from another file's"):
        loaded(tmp_path, {"a.yaml": native("events"), "b.yaml": native("clicks", servers="other:9092")})


def test_what_a_file_says_of_s3_holds_for_its_sinks_alone(tmp_path: Path) -> None:
    own = "s3: {credentials: {access_key_id: AK, secret_access_key: '${SECRET}'}, objects: {encryption: AES256}}\n"
    files = {"a.yaml": native("events"), "b.yaml": own + native("clicks")}
    configuration = loaded(tmp_path, files, SECRET="hush-hush")
    events, clicks = configuration.config.sinks
    assert configuration.config.s3_of(events).objects.encryption is None
    assert configuration.config.s3_of(clicks).objects.encryption == "AES256"
    assert configuration.origins["sinks", 1, "s3", "objects", "encryption"].file.endswith("b.yaml")
    text, _ = write_native(configuration.config, configuration.references)
    assert "hush" not in text + repr(configuration)
    assert "secret_access_key: '${SECRET}'" in text


def test_files_have_to_fit_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="two sinks are called 'events'"):
        loaded(tmp_path, {"a.yaml": native("events"), "b.yaml": native("events", topic="clicks")})


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


def test_what_a_connectors_file_does_not_say_is_needed_to_land(tmp_path: Path) -> None:
    path = tmp_path / "cars.properties"
    path.write_text(LENSES)
    with pytest.raises(ConfigurationError, match="S3LAKE_BOOTSTRAP_SERVERS") as refused:
        configuration.load_configuration(str(path), environment={})
    assert "S3LAKE_START" in str(refused.value)


def test_what_it_does_not_say_is_stood_in_for_where_nothing_is_landed(tmp_path: Path) -> None:
    path = tmp_path / "cars.properties"
    path.write_text(LENSES)
    found = configuration.load_configuration(str(path), environment={"S3LAKE_START": "2026-11-20T00"}, to_land=False)
    assert (found.config.kafka.bootstrap_servers, found.config.sinks[0].start) == ("localhost:9092", "2026-11-20T00")
    said = [str(notice) for notice in found.notices if "placeholder" in str(notice)]
    assert [one.partition(": ")[0] for one in said] == ["environment variable S3LAKE_BOOTSTRAP_SERVERS"]


def test_a_placeholder_is_written_as_the_variable_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "cars.properties"
    path.write_text(LENSES)
    found = configuration.load_configuration(str(path), environment={}, to_land=False)
    text, secrets = write_native(found.config, found.references)
    assert "bootstrap_servers: '${S3LAKE_BOOTSTRAP_SERVERS}'" in text
    assert "start: '${S3LAKE_START}'" in text
    assert secrets == {}
