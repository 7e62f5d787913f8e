"""The settings of a registry in a configuration, and which of it is refused at load."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from s3lake.config import native
from s3lake.config.model import Converter, Registry
from s3lake.errors import ConfigurationError
from s3lake.land.request import stage_values
from s3lake.records.schema.registry.registry_connection import Connection


def text(converter: str) -> str:
    sink = f"{{name: e, topics: [t], bucket: lake, start: 2026-01-05T00, converter: {converter}}}"
    return f"kafka: {{bootstrap_servers: 'h:9092'}}\nsinks:\n  - {sink}\n"


def test_a_connection_has_the_settings_of_the_configuration() -> None:
    registry = "{url: 'http://a:8081, https://b/sr', user: u, password: p, ca_file: /ca.pem, timeout: 2s}"
    found = native.load_text(text(f"{{key: avro, value: avro, registry: {registry}}}"), "s3lake.yaml").sink("e")
    connection = stage_values.build_conversion(found, "t").registry
    assert connection == Connection(("http://a:8081", "https://b/sr"), "u", "p", ca_file="/ca.pem", timeout=2.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "http://user:pw@h"}, "a URL with user and password is printed in logs"),
        ({"url": "h:8081"}, "'h:8081' is not an address of a registry: write http://HOST:PORT"),
        ({"url": "http://h,"}, "is not an address of a registry"),
        ({"url": "http://h?x=1"}, "is not an address of a registry"),
        ({"url": "http://h", "user": "u"}, "user is given without password: give both, or neither"),
        ({"url": "http://h", "password": "p"}, "password is given without user: give both, or neither"),
        ({"url": "http://h", "user": "u", "password": "p", "token": "t"}, "either a token or user and password"),
        ({"url": "http://h", "key_file": "k"}, "a key belongs to a certificate: give cert_file too"),
        ({"url": "http://h", "timeout": 0}, "0s is out of range: at least 1ms"),
    ],
)
def test_a_contradictory_registry_is_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Registry(**given)
    assert expected in str(caught.value)


@pytest.mark.parametrize("part", ["key", "value"])
def test_avro_needs_a_registry_and_json_schema_none(part: str) -> None:
    with pytest.raises(ValidationError, match=f"converter.{part} avro needs its schemas: give converter.registry.url"):
        Converter(**{part: "avro"})  # type: ignore[arg-type]
    assert Converter(**{part: "json_schema"}).registry is None  # type: ignore[arg-type]


def test_protobuf_has_a_registry_or_a_descriptor_set(tmp_path: Path) -> None:
    path = tmp_path / "orders.desc"
    path.write_bytes(b"descriptors")
    loaded = native.load_text(
        text(f"{{value: protobuf, registry: {{descriptor_set: {path}, message: a.B}}}}"), "s3lake.yaml"
    )
    registry = loaded.sink("e").converter.registry
    assert registry is not None
    assert (registry.connection.descriptors, registry.connection.message) == (b"descriptors", "a.B")
    path.unlink()
    with pytest.raises(ConfigurationError, match="No such file or directory: write the file with protoc"):
        assert registry.connection


@pytest.mark.parametrize(
    ("registry", "why"),
    [
        ("{}", "url, descriptor_set, schema_file are missing: give one of them"),
        ("{url: 'http://h', descriptor_set: x, message: a.B}", "url and descriptor_set are given: give one of them"),
        ("{descriptor_set: x}", "message names the type of a descriptor_set's values: give both, or neither"),
    ],
)
def test_a_registry_is_one_of_three(registry: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        native.load_text(text(f"{{value: protobuf, registry: {registry}}}"), "s3lake.yaml")
