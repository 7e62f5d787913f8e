"""Configurations that load, one per dialect: tests change single settings of them.

In tables of changes (`kit/tables.py`) `a.key=1 + -other => flush.count: 1` means that with `a.key` set and `other`
taken out the native setting is that, in YAML. `=> remark: text` means that a notice, or the reason of a setting without
effect, contains the text.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from pydantic import BaseModel, SecretStr

from s3lake.config import load as configuration
from s3lake.config.draft import SHARED, LoadedConfig
from s3lake.config.report import Notice
from s3lake.config.variables import SecretsManager
from s3lake.land.request import stage_values
from s3lake_tests.kit.tables import read_yaml
from s3lake_tests.records.layout.files import LaidOutRecord, files

ENVIRONMENT = {"S3LAKE_START": "2026-11-20T00", "S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092"}
_CONNECT = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "bootstrap.servers": "kafka:9092",
    "s3lake.start": "2026-11-20T00",
}
LENSES = {
    "name": "demo",
    "connector.class": "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
    "topics": "demo",
    **_CONNECT,
    "connect.s3.kcql": "INSERT INTO lake:raw SELECT * FROM demo",
}
CONFLUENT = {
    "name": "demo",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "demo",
    **_CONNECT,
    "s3.bucket.name": "lake",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "1000",
}
AIVEN = {
    "name": "demo",
    "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
    "topics": "demo",
    **_CONNECT,
    "aws.s3.bucket.name": "lake",
    "format.output.type": "jsonl",
}
IGGY = """\
type = "sink"
key = "lake"
enabled = true
path = "libiggy_connector_s3_sink"
[[streams]]
stream = "logs"
topics = ["api"]
schema = "json"
[plugin_config]
bucket = "lake"
region = "us-east-1"
[s3lake]
start = "2026-11-20T00"
kafka.bootstrap_servers = "kafka:9092"
"""
_POSTED = {key: value for key, value in CONFLUENT.items() if key not in ("name", "value.converter.schemas.enable")}
JSON = json.dumps({"name": "demo", "config": {**_POSTED, "flush.size": 1000}}, indent=2) + "\n"
KAFKA = "kafka: {bootstrap_servers: localhost:9092}\n"
SINK = """\
sinks:
  - name: events
    topics: [events]
    bucket: lake
    start: 2026-11-20T00
"""
CASES = Path(__file__).parent / "broken"


def loads(
    text: str,
    name: str,
    dialect: str | None,
    environment: Mapping[str, str],
    base: Path = Path(),
    secret: Callable[[str], str] | None = None,
) -> LoadedConfig:
    """The configuration in a text, whatever it is written in."""
    stored = mock.patch.object(SecretsManager, "read", lambda _, name: secret(name)) if secret else nullcontext()
    with stored:
        return configuration.read_draft(text, name, dialect, environment, base).validate(environment)


def native(text: str, environment: Mapping[str, str] = os.environ) -> LoadedConfig:
    """The configuration in a native text."""
    return loads(text, "s3lake.yaml", "native", environment)


def load_file(path: Path, environment: Mapping[str, str]) -> LoadedConfig:
    """The configuration in a file."""
    return configuration.load_configuration(str(path), environment=environment)


def properties(base: dict[str, str], changes: dict[str, str | None]) -> str:
    """The base as `.properties`, with settings changed, added, or taken out where they are None."""
    settings = {**base, **changes}
    return "\n".join(f"{key}={value}" for key, value in settings.items() if value is not None)


def load(base: dict[str, str], changes: dict[str, str | None] | None = None, **environment: str) -> LoadedConfig:
    """What the base, changed, loads to."""
    return loads(properties(base, changes or {}), "connector.properties", None, environment)


def iggy(old: str = "", new: str = "") -> LoadedConfig:
    """What the Iggy base loads to with one text in place of another."""
    assert old in IGGY
    return loads(IGGY.replace(old, new, 1), "sink.toml", None, {})


def values(loaded: LoadedConfig, *paths: str) -> dict[str, Any]:
    """Return what is at native paths: of the first sink, or of what holds for all."""
    found = {}
    for path in paths:
        value: Any = loaded.config if path.partition(".")[0] in (*SHARED, "sinks") else loaded.config.sinks[0]
        for step in path.split("."):
            value = (
                value[int(step) if step.isdigit() else step]
                if isinstance(value, tuple | dict)
                else getattr(value, step)
            )
        found[path] = value
    return found


def changes(text: str, **named: dict[str, str | None]) -> dict[str, str | None]:
    """Return the changes on the left of a row; a word without `=` is a name of several changes."""
    found: dict[str, str | None] = {}
    for change in filter(None, text.strip().split(" + ")):
        key, equals, value = change.partition("=")
        found |= {key: value} if equals else {key[1:]: None} if key.startswith("-") else named[key]
    return found


def check(loaded: LoadedConfig, expected: str) -> None:
    """Assert what is on the right of a row."""
    kind, _, text = expected.partition(": ")
    if kind.endswith("remark"):
        assert (text in remarks_text(loaded)) == (kind == "remark"), remarks_text(loaded)
    else:
        settings = read_yaml(expected)
        assert {path: _plain(value) for path, value in values(loaded, *settings).items()} == settings


def _plain(value: Any) -> Any:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case BaseModel():
            return {name: _plain(inner) for name, inner in value}
        case tuple():
            return [_plain(inner) for inner in value]
    return value


def remarks(loaded: LoadedConfig) -> list[Notice]:
    """Return the notices, and the settings without effect with their reasons."""
    return [*loaded.notices, *loaded.without_effect]


def remarks_by_key(loaded: LoadedConfig) -> dict[str, str]:
    """Return the message of the last remark about each key."""
    return {notice.place.key: notice.message for notice in remarks(loaded)}


def remarks_text(loaded: LoadedConfig) -> str:
    """Return all remarks as they are printed, one a line."""
    return "\n".join(map(str, remarks(loaded)))


def keys_of(loaded: LoadedConfig, *records: LaidOutRecord, wallclock_ms: int = 0) -> list[str]:
    """The keys of the files that the first sink makes of records of its first topic, closed by its count."""
    sink = loaded.config.sinks[0]
    rule = stage_values.build_key_layout(sink, sink.topics[0], wallclock_ms=wallclock_ms)
    return files(rule, *records, count=sink.flush.count)


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
