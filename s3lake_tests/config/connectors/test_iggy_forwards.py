"""Iggy's sinks of other systems: each file of TOML is a sink that forwards its hours, or one with a table."""

from pathlib import Path

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake.lake.forwarding.destination import open_forwards
from s3lake_tests.config import bases
from s3lake_tests.config.bases import IGGY, load_file, loads

HEAD = """\
type = "sink"
key = "{key}"
enabled = true
version = 0
name = "a sink"
path = "../../target/release/libiggy_connector_{kind}_sink"
verbose = false
[[streams]]
stream = "logs"
topics = ["api"]
schema = "json"
batch_length = 100
poll_interval = "5ms"
consumer_group = "a_sink"
[plugin_config]
"""
TAIL = """\
[s3lake]
bucket = "lake"
start = "2026-11-20T00"
kafka.bootstrap_servers = "kafka:9092"
"""
POSTGRES = """\
connection_string = "postgresql://me:hunter2@db:5432/shop"
target_table = "lake.events"
batch_size = 100
max_connections = 10
auto_create_table = true
include_metadata = true
include_checksum = true
include_origin_timestamp = true
payload_format = "json"
max_retries = 3
retry_delay = "1s"
verbose_logging = false
"""
MONGODB = """\
connection_uri = "mongodb://db:27017"
database = "shop"
collection = "messages"
batch_size = 100
payload_format = "string"
auto_create_collection = false
"""
ELASTICSEARCH = """\
url = "http://es:9200"
index = "messages"
username = "me"
password = "hunter2"
create_index_if_not_exists = true
batch_size = 100
timeout_seconds = 30
"""
QUICKWIT = """\
url = "http://quickwit:7280"
index = '''
version: 0.9
index_id: messages
doc_mapping: {mode: strict}
'''
"""
ICEBERG = """\
tables = ["nyc.users"]
catalog_type = "rest"
warehouse = "warehouse"
uri = "http://catalog:8181"
dynamic_routing = false
dynamic_route_field = "db_table"
store_url = "http://minio:9000"
store_access_key_id = "admin"
store_secret_access_key = "hunter2"
store_region = "us-east-1"
store_class = "s3"
"""
FORWARDS = {
    "postgres": (POSTGRES, '{conninfo: "postgresql://me:hunter2@db:5432/shop", table: lake.events, record: jsonb}'),
    "mongodb": (MONGODB, '{uri: "mongodb://db:27017", database: shop, collection: messages, record: text}'),
    "elasticsearch": (ELASTICSEARCH, '{url: "http://es:9200", index: messages, username: me, password: hunter2}'),
    "quickwit": (QUICKWIT, '{url: "http://quickwit:7280", index: messages}'),
    "stdout": ("print_payload = true\n", "{}"),
}


def sink_file(kind: str, settings: str, *, key: str = "orders", tail: str = TAIL) -> str:
    return HEAD.format(key=key, kind=kind) + settings + tail


def load(text: str, **environment: str) -> LoadedConfig:
    return loads(text, "sink.toml", None, environment)


@pytest.mark.parametrize("kind", FORWARDS)
def test_a_file_alone_is_a_sink_that_lands_the_topic_and_forwards_it(kind: str) -> None:
    settings, options = FORWARDS[kind]
    loaded = load(sink_file(kind, settings))
    bases.check(loaded, "name: orders, topics: [logs.api], bucket: lake, prefix: orders")
    bases.check(loaded, f"forwards.0.to: {kind}, forwards.0.name: orders, forwards.0.options: {options}")
    ((_, destination),) = open_forwards(loaded.config.sinks[0])
    assert "hunter2" not in destination.place
    assert "unknown" not in " ".join(map(str, loaded.notices))


def test_the_iceberg_sink_is_a_sink_of_parquet_with_a_table() -> None:
    loaded = load(sink_file("iceberg", ICEBERG))
    bases.check(loaded, "format.type: parquet, table.name: nyc.users, forwards: []")
    bases.check(loaded, 'table.catalog: {type: rest, uri: "http://catalog:8181", warehouse: warehouse}')
    bases.check(loaded, 's3.endpoint_url: "http://minio:9000", s3.region: us-east-1, s3.path_style: true')


def test_the_bucket_may_be_a_variable() -> None:
    bases.check(load(sink_file("stdout", "", tail=""), S3LAKE_BUCKET="lake", **bases.ENVIRONMENT), "bucket: lake")


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A runtime with the S3 sink of stream `logs` and topic `api`."""
    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "s3.toml").write_text(IGGY)
    (tmp_path / "config.toml").write_text('[connectors]\nconfig_type = "local"\nconfig_dir = "connectors"\n')
    return tmp_path


def add(runtime: Path, key: str, text: str) -> None:
    (runtime / "connectors" / f"{key}.toml").write_text(text)


def test_a_file_next_to_the_s3_sink_of_its_topic_forwards_what_that_sink_lands(runtime: Path) -> None:
    for kind in ("postgres", "elasticsearch"):
        add(runtime, kind, sink_file(kind, FORWARDS[kind][0], key=kind, tail=""))
    (sink,) = load_file(runtime / "config.toml", bases.ENVIRONMENT).config.sinks
    assert (sink.name, sink.bucket, [forward.to for forward in sink.forwards]) == (
        "lake",
        "lake",
        ["elasticsearch", "postgres"],
    )


def test_a_file_with_other_transforms_lands_its_topic_itself(runtime: Path) -> None:
    transform = '[transforms.delete_fields]\nenabled = true\nfields = ["password"]\n'
    add(runtime, "pg", sink_file("postgres", POSTGRES, key="pg", tail=TAIL + transform))
    lake, other = load_file(runtime / "config.toml", bases.ENVIRONMENT).config.sinks
    assert (lake.forwards, other.name, len(other.transforms)) == ((), "pg", 1)
    assert [forward.to for forward in other.forwards] == ["postgres"]


def test_two_files_without_an_s3_sink_share_one_landing(tmp_path: Path) -> None:
    (tmp_path / "connectors").mkdir()
    (tmp_path / "config.toml").write_text('[connectors]\nconfig_type = "local"\nconfig_dir = "connectors"\n')
    for kind in ("postgres", "stdout"):
        add(tmp_path, kind, sink_file(kind, FORWARDS[kind][0], key=kind))
    (sink,) = load_file(tmp_path / "config.toml", bases.ENVIRONMENT).config.sinks
    assert [forward.name for forward in sink.forwards] == ["postgres", "stdout"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sink_file("stdout", "", tail=""), "names no bucket, and hours are landed in one before they are forwarded"),
        (sink_file("postgres", 'target_table = "t"\n'), "plugin_config.connection_string is missing"),
        (sink_file("postgres", POSTGRES.replace('"json"', '"xml"')), "payload_format: 'xml'"),
        (sink_file("quickwit", 'url = "http://q:7280"\nindex = "[1]"\n'), "is not an index of Quickwit"),
        (sink_file("iceberg", ICEBERG.replace('"nyc.users"', '"a.b", "c.d"')), "a sink has one table"),
        (sink_file("iceberg", ICEBERG.replace("routing = false", "routing = true")), "a sink has one table"),
        (sink_file("iceberg", ICEBERG.replace('"s3"', '"gcs"')), "store_class: 'gcs'"),
        (sink_file("redshift", ""), "it has s3, postgres, mongodb, elasticsearch, quickwit, stdout, iceberg"),
    ],
)
def test_a_file_that_cannot_run_is_refused_with_the_remedy(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(text, **bases.ENVIRONMENT)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)
