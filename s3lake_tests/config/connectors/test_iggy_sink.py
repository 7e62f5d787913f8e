"""Apache Iggy's S3 sink: connector files, the runtime's file, and the keys of objects of its own tests."""

from pathlib import Path

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.config.syntax import toml_file
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import load_file, loads
from s3lake_tests.config.documents import IGGY as README
from s3lake_tests.kit.http import Response, as_json, serve_script
from s3lake_tests.kit.tables import rows
from s3lake_tests.records.layout.files import LaidOutRecord


def plugin(settings: str) -> LoadedConfig:
    return bases.iggy('region = "us-east-1"', f'region = "us-east-1"\n{settings}')


def test_the_example_of_the_readme_loads_as_two_sinks() -> None:
    loaded = loads(README, "sink.toml", None, bases.ENVIRONMENT)
    one, other = loaded.config.sinks
    assert (one.name, one.topics, one.prefix) == ("s3-app_logs-api_requests", ("app_logs.api_requests",), "iggy/raw")
    assert other.topics == ("app_logs.errors",)
    assert one.envelope is not None
    assert (one.envelope.stream, one.envelope.topic) == ("app_logs", "api_requests")
    assert one.envelope.fields == ("metadata", "headers", "value")
    assert loaded.notices == ()
    keys = {notice.place.key for notice in loaded.without_effect}
    of_stream = {f"streams[0].{name}" for name in ("batch_length", "poll_interval", "consumer_group")}
    assert keys == {"version", "name", "path", "verbose", *of_stream}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('path_template = "{stream}/{topic}"\noutput_format = "raw"', "logs/api/00001-{0}-{9}.bin"),
        ('path_template = "{stream}"', "logs/00001-{0}-{9}.jsonl"),
        ('prefix = "data/"\npath_template = "/{topic}/"\noutput_format = "json_array"', "data/api/00001-{0}-{9}.json"),
        ('path_template = ""', "00001-{0}-{9}.jsonl"),
        ('path_template = "p{partition}"', "p1/00001-{0}-{9}.jsonl"),
    ],
)
def test_a_path_template_places_the_files_i19(settings: str, expected: str) -> None:
    made = bases.keys_of(plugin(settings), *[LaidOutRecord(offset, partition=1) for offset in (0, 9)])
    assert made == [expected.replace("{0}", f"{0:020}").replace("{9}", f"{9:020}")]


SETTINGS = """
output_format = "json_lines" => format.type: json, format.codec: none, envelope.style: iggy
output_format = "json_array" => format.type: json_array, format.framing.opening: "[", format.framing.between: ","
output_format = "raw" => format.type: bytes, format.framing.between: "", format.framing.closing: "", envelope: null
=> envelope.fields: [metadata, value], flush.count: null, flush.size: 8388608
include_metadata = false => envelope.fields: [value]
include_metadata = false + include_headers = true => envelope.fields: [headers, value]
max_file_size = "1 GiB" => flush.count: null, flush.size: 1073741824
file_rotation = "messages" + max_messages_per_file = 5 => flush.count: 5, flush.size: 80000000000
endpoint = "http://minio:9000" + access_key_id = "AKIA" + secret_access_key = "hush-hush" => s3.region: us-east-1,
    s3.endpoint_url: "http://minio:9000", s3.path_style: true, s3.credentials.access_key_id: AKIA
max_attempts = 4 + retry_delay = "2s" => s3.retries.max_attempts: 4, s3.retries.backoff_ms: 2000
[s3lake.format] + codec = "gzip" => format.codec: gzip
"""


@pytest.mark.parametrize(("settings", "expected"), rows(SETTINGS))
def test_keys_of_the_plugin_are_native_settings(settings: str, expected: str) -> None:
    bases.check(plugin(settings.replace(" + ", "\n")), expected)


@pytest.mark.parametrize(("schema", "converter"), [("json", "json"), ("raw", "bytes"), ("text", "string")])
def test_schemas_are_converters(schema: str, converter: str) -> None:
    loaded = bases.iggy('schema = "json"', f'schema = "{schema}"')
    assert loaded.config.sinks[0].converter.value == converter


def test_the_topic_of_a_stream_can_be_named_otherwise() -> None:
    assert bases.iggy().config.sinks[0].topics == ("logs.api",)
    loaded = bases.iggy("[s3lake]", '[s3lake]\ntopic_template = "iggy_{topic}"')
    assert loaded.config.sinks[0].topics == ("iggy_api",)


def test_transforms_are_read_in_the_order_of_the_file() -> None:
    text = """\
[transforms.delete_fields]
enabled = true
fields = ["email"]
[transforms.unwrap_envelope]
enabled = false
field = "data"
[transforms.proto_convert]
enabled = false
[transforms.add_fields]
enabled = true
[[transforms.add_fields.fields]]
key = "at"
value.computed = "timestamp_millis"
[s3lake]
"""
    one, other = bases.iggy("[s3lake]\n", text).config.sinks[0].transforms
    assert (one.type, one.options) == ("iggy.delete_fields", {"fields": ["email"]})
    assert other.type == "iggy.add_fields"
    assert other.options == {"fields": [{"key": "at", "value": {"computed": "timestamp_millis"}}]}


# The runtime's file

RUNTIME = """\
[http]
enabled = true
[iggy]
address = "localhost:8090"
[state]
path = "local_state"
[connectors]
config_type = "local"
config_dir = "connectors"
[s3lake]
start = "2026-11-20T00"
kafka.bootstrap_servers = "kafka:9092"
"""
SINK = bases.IGGY.partition("[s3lake]")[0]


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(RUNTIME)
    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "sink.toml").write_text(SINK)
    return tmp_path / "config.toml"


def connector(runtime: Path, name: str, text: str) -> None:
    (runtime.parent / "connectors" / name).write_text(text)


def test_a_runtimes_connectors_are_one_configuration(runtime: Path) -> None:
    connector(runtime, "other.toml", SINK.replace('key = "lake"', 'key = "other"').replace('"lake"', '"other-bucket"'))
    loaded = load_file(runtime, {})
    assert [(sink.name, sink.bucket) for sink in loaded.config.sinks] == [("other", "other-bucket"), ("lake", "lake")]
    assert {"http", "iggy", "state"} <= bases.remarks_by_key(loaded).keys()


def test_sources_other_sinks_and_disabled_ones_are_left_out_and_noted(runtime: Path) -> None:
    connector(runtime, "a.toml", SINK.replace('type = "sink"', 'type = "source"').replace('key = "lake"', 'key = "a"'))
    connector(runtime, "b.toml", SINK.replace("s3_sink", "doris_sink").replace('key = "lake"', 'key = "b"'))
    connector(runtime, "c.toml", SINK.replace("enabled = true", "enabled = false").replace('key = "lake"', 'key = "c"'))
    loaded = load_file(runtime, {})
    assert [sink.name for sink in loaded.config.sinks] == ["lake"]
    noted = [
        (Path(one.place.file).name, one.place.key) for one in bases.remarks(loaded) if "connectors" in one.place.file
    ]
    assert {("a.toml", "type"), ("b.toml", "path"), ("c.toml", "enabled")} <= set(noted)


def test_the_highest_version_is_taken(runtime: Path) -> None:
    for version in (2, 10, 9):
        connector(
            runtime, f"sink_lake_{version}.toml", f"version = {version}\n" + SINK.replace('"logs"', f'"logs{version}"')
        )
    assert load_file(runtime, {}).config.sinks[0].topics == ("logs10.api",)


def test_every_file_of_the_directory_that_is_not_hidden_is_a_connector(runtime: Path) -> None:
    for name in (".hidden.toml", "other.conf"):
        text = SINK.replace('key = "lake"', f'key = "{name}"').replace('bucket = "lake"', 'bucket = "pond"')
        connector(runtime, name, text)
    assert [sink.name for sink in load_file(runtime, {}).config.sinks] == ["other-conf", "lake"]


def test_a_source_with_the_key_of_a_sink_replaces_no_sink(runtime: Path) -> None:
    connector(runtime, "source.toml", "version = 7\n" + SINK.replace('type = "sink"', 'type = "source"'))
    variables = {"IGGY_CONNECTORS_SOURCE_LAKE_PLUGIN_CONFIG_BUCKET": "theirs"}
    loaded = load_file(runtime, variables)
    assert [sink.bucket for sink in loaded.config.sinks] == ["lake"]
    assert loaded.origins["sinks", 0, "bucket"].file.endswith("sink.toml")


def test_a_connector_with_its_own_s3_has_it_at_its_sink(runtime: Path) -> None:
    connector(runtime, "z.toml", SINK.replace('"lake"', '"zed"').replace("us-east-1", "eu-west-1"))
    loaded = load_file(runtime, {})
    lake, other = loaded.config.sinks
    assert (lake.s3, loaded.config.s3_of(lake).region) == (None, "us-east-1")
    assert loaded.config.s3_of(other).region == "eu-west-1"
    assert Path(loaded.origins["sinks", 1, "s3", "region"].file).name == "z.toml"
    assert Path(loaded.origins["s3", "region"].file).name != "z.toml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('config_type = "local"', 'config_type = "ftp"', "'ftp' is not allowed; write local or http"),
        ('config_type = "local"', 'config_type = "http"', "base_url is missing"),
        ('config_type = "local"', 'config_typ = "local"', "unknown name; allowed in connectors: config_type"),
        ('config_dir = "connectors"', "", 'config_dir is missing; add [connectors] config_dir = "DIRECTORY"'),
        (
            'config_dir = "connectors"',
            "\n[sinks.lake]\nenabled = true",
            "and write each table of [sinks] in a file of its own there, with type and key",
        ),
        ('config_dir = "connectors"', 'config_dir = "nowhere"', "'nowhere' is not a directory"),
        ('config_dir = "connectors"', 'config_dir = "empty"', "no sink is enabled here"),
        ('[iggy]\naddress = "localhost:8090"\n', "", ":1:1: iggy: is not a table; write [iggy]"),
    ],
)
def test_a_broken_runtime_is_refused_at_its_place(runtime: Path, old: str, new: str, message: str) -> None:
    (runtime.parent / "empty").mkdir()
    runtime.write_text(("iggy = 5\n" if "iggy" in old else "") + RUNTIME.replace(old, new))
    with pytest.raises(ConfigurationError) as refused:
        load_file(runtime, {})
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{runtime}:")


# Connectors that a server has

ACTIVE = {
    "sinks": {"lake": toml_file.parse_toml(SINK, "sink.toml").data | {"verbose": None}, "b": {"path": "doris_sink"}},
    "sources": {"r": {}},
}
OVER_HTTP = """\
config_type = "http"
base_url = "{url}/lake/"
timeout = "5s"
[connectors.request_headers]
api-key = "hunter2-provider"
[connectors.response]
data_path = "data.items.0"
error_path = "error"
"""


def over_http(runtime: Path, url: str, more: str = "") -> Path:
    local = 'config_type = "local"\nconfig_dir = "connectors"\n'
    runtime.write_text(RUNTIME.replace(local, OVER_HTTP.format(url=url) + more))
    return runtime


def test_a_runtime_may_have_its_connectors_from_a_server(runtime: Path) -> None:
    with serve_script(as_json({"data": {"items": [ACTIVE]}, "error": None})) as server:
        variables = {"IGGY_CONNECTORS_SINK_LAKE_PLUGIN_CONFIG_BUCKET": "ignored"}
        over = load_file(over_http(runtime, server.url), variables).config
        runtime.write_text(RUNTIME)
        assert over == load_file(runtime, {}).config
        [asked] = server.requests
    assert (asked.target, asked.headers["api-key"]) == ("/lake/configs/active", "hunter2-provider")


@pytest.mark.parametrize(
    ("answer", "more", "message"),
    [
        (b'{"data": {"items": [[]]}}', "", "an object with sinks and sources"),
        (b'{"data": {"items": [{"sinks": {"lake": 1}}]}}', "", "an object with sinks and sources"),
        (b'{"error": "no hunter2-provider"}', "", "the server reports an error, at error of its answer"),
        (b"{}", "[connectors.retry]\nmax_attempts = 0\n", "retry_max_attempts: 0"),
    ],
)
def test_an_invalid_answer_is_refused_without_the_request_headers(
    runtime: Path, answer: bytes, more: str, message: str
) -> None:
    with serve_script(Response(body=answer)) as server, pytest.raises(ConfigurationError, match=message) as refused:
        load_file(over_http(runtime, server.url, more), {})
    assert "hunter2" not in str(refused.value)


# Iggy's own variables


def test_variables_replace_settings_of_a_runtime_and_of_its_connectors(runtime: Path) -> None:
    (runtime.parent / "connectors").rename(runtime.parent / "elsewhere")
    environment = {
        "IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR": "elsewhere",
        "IGGY_CONNECTORS_SINK_LAKE_PLUGIN_CONFIG_BUCKET": "pond",
    }
    assert [sink.bucket for sink in load_file(runtime, environment).config.sinks] == ["pond"]


def test_a_variable_of_another_files_connector_is_refused_with_the_remedy() -> None:
    variables = {"IGGY_CONNECTORS_SINK_POND_PLUGIN_CONFIG_BUCKET": "pond"}
    with pytest.raises(ConfigurationError, match=r"names no connector that is here; here: lake.*runtime's file"):
        loads(bases.IGGY, "sink.toml", None, variables)


# Where the records are

FROM_IGGY = RUNTIME.replace('kafka.bootstrap_servers = "kafka:9092"\n', "")


def of_iggy(runtime: Path, section: str, environment: dict[str, str] | None = None) -> LoadedConfig:
    runtime.write_text(FROM_IGGY.replace('address = "localhost:8090"\n', section))
    return load_file(runtime, environment or {})


def test_a_runtime_reads_its_own_server(runtime: Path) -> None:
    loaded = of_iggy(runtime, 'address = "iggy:8090"\nusername = "lake"\npassword = "hunter2"\n')
    bases.check(loaded, 'kafka: null, source.type: iggy, source.address: "iggy:8090", source.username: lake')
    bases.check(loaded, "source.settings.password: hunter2, topics: [logs.api]")
    assert "iggy" not in bases.remarks_by_key(loaded)


SERVER = """
=> source.address: "localhost:8090", source.username: iggy, source.tls: false
username = "lake" + password = "x" + token = "iggypat-1" => source.username: null
tls = { enabled = true, ca_file = "ca.pem", domain = "iggy" } =>
    source.tls: true, source.ca_file: ca.pem, source.domain: iggy
"""


@pytest.mark.parametrize(("section", "expected"), rows(SERVER))
def test_keys_of_the_server_are_settings_of_the_source(runtime: Path, section: str, expected: str) -> None:
    bases.check(of_iggy(runtime, section.replace(" + ", "\n") + "\n"), expected)


@pytest.mark.parametrize("line", ["tls = 5", "tls = false", 'tls = ""', "tls = []"])
def test_a_group_of_the_runtime_that_is_not_a_table_is_refused(runtime: Path, line: str) -> None:
    with pytest.raises(ConfigurationError, match=r"iggy\.tls: is not a table; write \[iggy\.tls\]"):
        of_iggy(runtime, f"{line}\n")


@pytest.mark.parametrize("line", ["retry = 5", 'response = "x"', "request_headers = []", "url_templates = 1"])
def test_a_group_of_the_connectors_that_is_not_a_table_is_refused(runtime: Path, line: str) -> None:
    runtime.write_text(RUNTIME.replace("[connectors]\n", f"[connectors]\n{line}\n"))
    with pytest.raises(ConfigurationError, match=r"connectors\.\w+: is not a table; write \[connectors\.\w+\]"):
        load_file(runtime, {})


@pytest.mark.parametrize(
    ("section", "key", "remark"),
    [
        ('adress = "iggy:8090"\n', "iggy.adress", "unknown key: nothing reads it here; did you mean iggy.address?"),
        ("tls = { enabled = true, insecure = 1 }\n", "iggy.tls.insecure", "unknown key: nothing reads it here"),
        ('tls = { ca_file = "ca.pem" }\n', "iggy.tls.ca_file", "iggy.tls.enabled is not true"),
        ('token = "iggypat-1"\nusername = "lake"\n', "iggy.username", "the token is the login"),
    ],
)
def test_keys_of_the_server_that_change_nothing_are_noted(runtime: Path, section: str, key: str, remark: str) -> None:
    assert remark in bases.remarks_by_key(of_iggy(runtime, section))[key]


def test_a_variable_of_the_runtime_sets_the_source_of_one_connector() -> None:
    text = bases.IGGY.replace('kafka.bootstrap_servers = "kafka:9092"\n', "")
    variables = {"IGGY_CONNECTORS_IGGY_ADDRESS": "iggy:8090", "IGGY_CONNECTORS_IGGY_PASSWORD": "hunter2"}
    loaded = loads(text, "sink.toml", None, variables)
    bases.check(loaded, 'source.address: "iggy:8090", source.username: iggy, source.settings.password: hunter2')


def test_the_runtimes_server_wins_over_kafkas_variable(runtime: Path) -> None:
    loaded = of_iggy(runtime, 'address = "iggy:8090"\n', {"S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092"})
    assert loaded.config.kafka is None


def test_a_template_of_kafkas_topics_has_no_meaning_for_iggys(runtime: Path) -> None:
    runtime.write_text(FROM_IGGY + 'topic_template = "{topic}"\n')
    loaded = load_file(runtime, {})
    assert loaded.config.sinks[0].topics == ("logs.api",)
    assert "s3lake.topic_template" in bases.remarks_by_key(loaded)


def test_a_missing_source_of_records_is_refused_with_both_remedies() -> None:
    text = bases.IGGY.replace('kafka.bootstrap_servers = "kafka:9092"\n', "")
    with pytest.raises(ConfigurationError, match=r"set IGGY_CONNECTORS_IGGY_ADDRESS=HOST:PORT, .*S3LAKE_BOOTSTRAP_SER"):
        loads(text, "sink.toml", None, {})


# Schemas that are no text

PROTO = """\
[transforms.proto_convert]
enabled = true
source_format = "proto"
target_format = "json"
descriptor_set = "orders.desc"
message_type = "shop.Order"
preserve_unknown_fields = false
[plugin_config]
"""


def proto() -> LoadedConfig:
    text = bases.IGGY.replace('schema = "json"', 'schema = "proto"').replace("[plugin_config]\n", PROTO)
    return loads(text, "sink.toml", None, {})


def test_protobuf_is_read_by_the_descriptors_of_its_conversion() -> None:
    loaded = proto()
    bases.check(loaded, "converter.value: protobuf, converter.registry.descriptor_set: orders.desc, transforms: []")
    bases.check(loaded, "converter.registry.message: shop.Order")
    assert loaded.origins["sinks", 0, "converter", "registry", "message"].line == 14
    assert "transforms.proto_convert.preserve_unknown_fields" in bases.remarks_by_key(loaded)


def test_protobuf_may_be_described_by_a_native_setting() -> None:
    text = bases.IGGY.replace('schema = "json"', 'schema = "proto"')
    text += 'converter.registry.descriptor_set = "orders.desc"\nconverter.registry.message = "shop.Order"\n'
    bases.check(loads(text, "sink.toml", None, {}), "converter.registry.message: shop.Order")
