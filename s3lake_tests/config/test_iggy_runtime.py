"""A runtime of Iggy's whose connectors a server keeps: asked once, and the same as from files."""

from pathlib import Path

import pytest

from s3lake.config.syntax import toml
from s3lake.errors import ConfigurationError
from s3lake_tests.config.bases import load_file
from s3lake_tests.config.test_iggy import RUNTIME, SINK
from s3lake_tests.kit.http import Response, as_json, serve_script

ACTIVE = {
    "sinks": {"lake": toml.parse(SINK, "sink.toml").data | {"verbose": None}, "b": {"path": "doris_sink"}},
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


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "sink.toml").write_text(SINK)
    return tmp_path / "config.toml"


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
        (b'{"error": "no hunter2-provider"}', "", r"the server reports at error: no \*"),
        (b"{}", "[connectors.retry]\nmax_attempts = 0\n", "retry_max_attempts: 0"),
    ],
)
def test_an_invalid_answer_is_refused_without_the_request_headers(
    runtime: Path, answer: bytes, more: str, message: str
) -> None:
    with serve_script(Response(body=answer)) as server, pytest.raises(ConfigurationError, match=message) as refused:
        load_file(over_http(runtime, server.url, more), {})
    assert "hunter2" not in str(refused.value)
