"""A runtime of Iggy's connectors, run as it is: its server, its sink's file, its objects."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from s3lake.config import native
from s3lake.config.load import load_configuration
from s3lake.config.model import Config
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake_tests.kit.lake import START, at
from s3lake_tests.source.iggy.iggy_settings import build_config
from s3lake_tests.source.iggy.server import PASSWORD, USER, IggyServer, header, serving
from s3lake_tests.source.inline import body, inline, verified

RUNTIME = """\
[iggy]
address = "{address}"
username = "{user}"
password = "{password}"
[connectors]
config_type = "local"
config_dir = "connectors"
[s3lake]
start = "{start}"
source.transport = "http"
"""
SINK = """\
type = "sink"
key = "lake"
enabled = true
path = "target/release/libiggy_connector_s3_sink"
[[streams]]
stream = "shop"
topics = ["orders"]
schema = "{schema}"
consumer_group = "lake"
{transforms}
[plugin_config]
bucket = "lake"
region = "us-east-1"
include_headers = true
"""


@pytest.fixture
def server() -> Iterator[IggyServer]:
    with serving() as server:
        server.topic("shop", "orders")
        yield server


def run(server: IggyServer, directory: Path, schema: str = "json", transforms: str = "") -> tuple[Config, list[str]]:
    """The lines that are landed of the first hour, by a runtime in a directory."""
    message = {"address": server.address, "user": USER, "password": PASSWORD, "start": START}
    (directory / "config.toml").write_text(RUNTIME.format(**message))
    (directory / "connectors").mkdir()
    (directory / "connectors" / "s3.toml").write_text(SINK.format(schema=schema, transforms=transforms))
    config = load_configuration(str(directory / "config.toml"), environment={}).config
    target = inline(config, "shop.orders", MemoryStore("lake"), lambda: at(START, 90))
    land(target, [START])
    assert verified(config, target).clean
    return config, body(target, START).decode().splitlines()


def test_a_runtime_lands_its_own_streams(server: IggyServer, tmp_path: Path) -> None:
    server.append("shop", "orders", [b'{"id": 1}'], at(START) * 1000 + 7, headers=[header("tier", "uint8", b"\x07")])
    server.append("shop", "orders", [b'{"id": 2}'], at(START, 60) * 1000)
    _, lines = run(server, tmp_path)
    assert [json.loads(line) for line in lines] == [
        {
            "offset": 0,
            "timestamp": "2026-01-05T08:00:00Z",
            "stream": "shop",
            "topic": "orders",
            "partition_id": 0,
            "headers": {"tier": "7"},
            "payload": {"id": 1},
        }
    ]


def test_protobuf_is_converted_by_the_connectors_descriptors(server: IggyServer, tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    number = descriptor_pb2.FieldDescriptorProto.TYPE_INT32
    file.message_type.add(name="Order").field.add(name="id", number=1, type=number, label=1)
    (tmp_path / "orders.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    server.append("shop", "orders", [order(id=one).SerializeToString() for one in (5, 6)], at(START, 1) * 1000)
    server.append("shop", "orders", [order(id=7).SerializeToString()], at(START, 60) * 1000)
    transforms = f"""\
[transforms.proto_convert]
enabled = true
source_format = "proto"
target_format = "json"
descriptor_set = "{tmp_path / "orders.desc"}"
message_type = "shop.Order"
"""
    _, lines = run(server, tmp_path, "proto", transforms)
    assert [json.loads(line)["payload"] for line in lines] == [{"id": 5}, {"id": 6}]


def test_avro_is_converted_by_the_connectors_schema(server: IggyServer, tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    schema = {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    rows = [encoded(schema, {"id": one, "at": 1_000 * one}) for one in (5, 6, 7)]
    server.append("shop", "orders", [*rows[:2], b"\xff"], at(START, 1) * 1000)
    server.append("shop", "orders", rows[2:], at(START, 60) * 1000)
    transforms = f"""\
[transforms.avro_convert]
enabled = true
source_format = "avro"
target_format = "json"
schema_path = "{tmp_path / "order.avsc"}"
[s3lake]
errors.tolerance = "all"
"""
    config, lines = run(server, tmp_path, "avro", transforms)
    assert [json.loads(line)["payload"] for line in lines] == [{"id": 5, "at": 5_000}, {"id": 6, "at": 6_000}]
    assert "schema_file" in native.write_native(config)[0]


@pytest.mark.parametrize("form", ["parquet", "avro", "json"])
def test_avro_without_a_registry_lands_in_every_format(server: IggyServer, tmp_path: Path, form: str) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    server.append("shop", "orders", [encoded(schema, {"id": one}) for one in range(20)], at(START, 1) * 1000)
    server.append("shop", "orders", [b"\x02"], at(START, 60) * 1000)
    converter = f"converter: {{value: avro, registry: {{schema_file: '{tmp_path / 'order.avsc'}'}}}}"
    config = build_config(server, f"format: {{type: {form}}}, {converter}")
    target = inline(config, "shop.orders", MemoryStore("lake"), lambda: at(START, 90))
    land(target, [START])
    report = verified(config, target)
    assert report.clean
    assert sum(one.landed for one in report.checked) == 20


def encoded(schema: dict[str, Any], datum: dict[str, Any]) -> bytes:
    """A datum with nothing before it."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, datum)
    return stream.getvalue()
