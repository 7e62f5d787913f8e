"""Texts of files, directories and a real HTTP server, with all that can fail on the way; and the environment's file."""

import gzip
import socket

import pytest

from s3lake.config.load import load_configuration
from s3lake.config.locations import PREFIX, ConfigText, read_options, read_texts, with_dotenv
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.kit.http import Response, as_json, serve_script


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_a_file_is_one_source_and_a_byte_order_mark_is_not_its_text(tmp_path, mark):
    path = tmp_path / "Lake.YAML"
    path.write_bytes(mark + b"sinks: []")
    assert read_texts(str(path), {}) == (ConfigText(str(path), "sinks: []"),)


def test_a_directorys_files_come_in_the_order_of_their_names(tmp_path):
    for name in ("b.json", "a.properties", "c"):
        (tmp_path / name).write_text(name)
    assert [source.text for source in read_texts(str(tmp_path), {})] == ["a.properties", "b.json", "c"]


def test_hidden_files_and_directories_inside_are_left_out_so_a_mounted_config_map_is_read_once(tmp_path):
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "a.yaml").write_text("a")
    (tmp_path / "a.yaml").symlink_to(tmp_path / "..data" / "a.yaml")
    (tmp_path / ".hidden.yaml").write_text("b")
    assert [source.text for source in read_texts(str(tmp_path), {})] == ["a"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "there is no file in this directory"),
        ("nothing.yaml", r"nothing.yaml: no such file or directory; correct the path, or set S3LAKE_CONFIG"),
        ("a" * 300, "cannot be read: File name too long"),
    ],
)
def test_a_path_that_leads_to_no_file_is_refused(tmp_path, name, message):
    with pytest.raises(ConfigurationError, match=message):
        read_texts(str(tmp_path / name), {})


@pytest.mark.parametrize("target", ["missing.yaml", "link.yaml"])
def test_a_link_of_a_directory_that_leads_to_no_file_is_refused(tmp_path, target):
    (tmp_path / "a.yaml").write_text("a: 1")
    (tmp_path / "link.yaml").symlink_to(tmp_path / target)
    with pytest.raises(
        ConfigurationError, match=r"link\.yaml: (no such file or directory|cannot be read: Too many levels)"
    ):
        read_texts(str(tmp_path), {})


@pytest.mark.parametrize("scheme", ["s3", "file", "ftp", "S3A", "git+ssh"])
def test_an_address_of_another_scheme_is_refused_without_its_login(scheme):
    with pytest.raises(ConfigurationError) as refusal:
        read_texts(f"{scheme}://me:hush@host/s3lake.yaml", {})
    assert str(refusal.value) == (
        f"the address of the configuration begins with {scheme}://, which s3lake does not read; give a file, a "
        "directory, or an address that begins with http:// or https://"
    )


def test_the_query_of_an_address_may_be_long():
    with serve_script(Response(body=(bases.KAFKA + bases.SINK).encode())) as server:
        location = f"{server.url}/c?X-Amz-Signature={'a' * 5000}"
        assert load_configuration(location, environment={}).config.sinks[0].name == "events"


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigurationError) as refusal:
        read_texts(str(path), {})
    assert str(refusal.value) == f"{path}:2:4: byte 0xff is not UTF-8; save it as UTF-8"


# .env


@pytest.mark.parametrize("variable", ["S3LAKE_ENV_PATH", "IGGY_CONNECTORS_ENV_PATH"])
def test_the_real_environment_wins_over_the_file(tmp_path, variable):
    path = tmp_path / ".env"
    path.write_text("# keys\nexport A=file\nB='file b'\nEMPTY=\n")
    real = {variable: str(path), "A": "real"}
    assert with_dotenv(real) == {variable: str(path), "A": "real", "B": "file b", "EMPTY": ""}


def test_the_environment_is_unchanged_when_there_is_no_dotenv_file():
    assert with_dotenv({"A": "1"}) == {"A": "1"}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"S3LAKE_ENV_PATH": "/nowhere/none"}, r"S3LAKE_ENV_PATH: .*none cannot be read: No such file"),
        ({"S3LAKE_ENV_PATH": "a", "IGGY_CONNECTORS_ENV_PATH": "b"}, "name different files: unset one of them"),
    ],
)
def test_a_file_that_is_not_there_and_two_files_are_refused(environment, message):
    with pytest.raises(ConfigurationError, match=message):
        with_dotenv(environment)


@pytest.mark.parametrize("line", ["no value here", "NAME", "A='unterminated"])
def test_a_line_that_sets_no_variable_is_refused_with_its_place(tmp_path, line):
    path = tmp_path / "env"
    path.write_text(f"A=1\n{line}\n")
    with pytest.raises(ConfigurationError) as refusal:
        with_dotenv({"S3LAKE_ENV_PATH": str(path)})
    assert str(refusal.value) == f"{path}:2:1: this is not NAME=value; correct the line, or begin it with #"


# One GET

QUICK = {f"{PREFIX}RETRY_INITIAL_BACKOFF": "1ms", f"{PREFIX}RETRY_MAX_BACKOFF": "2ms", f"{PREFIX}TIMEOUT": "2s"}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")


def fetch(url, **settings):
    return read_texts(url, {**QUICK, **{f"{PREFIX}{name}": value for name, value in settings.items()}})


def refused(url, **settings):
    with pytest.raises(ConfigurationError) as refusal:
        fetch(url, **settings)
    return str(refusal.value)


def test_the_answer_is_the_text_and_login_query_and_headers_are_sent_but_not_in_its_name():
    with serve_script(Response(body=b"kafka: {}\nsinks: []\n")) as server:
        url = server.url.replace("//", "//me:p%40ss@") + "/c?token=abc"
        assert fetch(url, HEADERS='{"X-Tenant": "a"}') == (ConfigText(f"{server.url}/c", "kafka: {}\nsinks: []\n"),)
        (asked,) = server.requests
    assert asked.target == "/c?token=abc"
    assert (asked.headers["authorization"], asked.headers["x-tenant"]) == ("Basic bWU6cEBzcw==", "a")


def test_an_authorization_header_is_not_replaced_by_netrc(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve_script(Response()) as server:
        fetch(server.url, HEADERS='{"Authorization": "Bearer mine"}')
        assert server.headers[0]["authorization"] == "Bearer mine"


# Retries


@pytest.mark.parametrize(
    ("failure", "settings"),
    [
        *((Response(status=status), {}) for status in (429, 500, 503)),
        (Response(wait_s=0.5), {"TIMEOUT": "100ms"}),
        (Response(body=b"half", cut=True), {}),
    ],
    ids=["429", "500", "503", "timeout", "broken off"],
)
def test_a_request_that_may_succeed_later_is_tried_again(failure, settings):
    with serve_script(failure, Response(body=b"whole")) as server:
        assert fetch(server.url, **settings)[0].text == "whole"
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        ("302 Found", "the answer must be 200 with the configuration in it"),
        ("401 Unauthorized", "give what it asks for in S3LAKE_CONFIG_HTTP_HEADERS"),
        ("404 Not Found", "correct the address"),
    ],
)
def test_another_answer_is_refused_at_once_with_the_remedy_and_no_redirect_is_followed(status, remedy):
    headers = {"Location": "https://lake.example/there"}
    with serve_script(Response(status=int(status[:3]), headers=headers)) as server:
        assert refused(f"{server.url}/c") == f"{server.url}/c: the server answered {status}; {remedy}"
        assert len(server.asked) == 1


def test_attempts_have_an_end_and_pauses_grow_up_to_the_longest(monkeypatch):
    pauses = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    options = {"INITIAL_BACKOFF": "1 s", "BACKOFF_MULTIPLIER": "3", "MAX_BACKOFF": "10s", "MAX_ATTEMPTS": "5"}
    with serve_script(Response(status=503)) as server:
        message = refused(server.url, **{f"RETRY_{name}": text for name, text in options.items()})
        assert len(server.asked) == 5
        refused(server.url, RETRY_ENABLED="false")
        assert len(server.asked) == 6
    assert [pause for pause in pauses if pause >= 1] == [1, 3, 9, 10]
    assert message == (
        f"{server.url}: no configuration came in 5 attempts: the server answered 503 Service Unavailable; check the "
        "address and that the server is up"
    )


def test_a_refused_connection_is_reported_without_the_query():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert refused(f"{url}/?token=hunter2").startswith(f"{url}/: no configuration came in 3 attempts: the connection")


# A place in the answer (vectors I22)

DOCUMENT = {"data": {"config": "sinks: []"}, "items": [{"name": "lake", "n": 1}], "error": None}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("data.config", "sinks: []"),
        ("items.0", '{\n  "name": "lake",\n  "n": 1\n}'),
        ("items.0.name", "lake"),
    ],
)
def test_the_data_path_leads_to_the_configuration(path, text):
    with serve_script(as_json(DOCUMENT)) as server:
        (configuration,) = fetch(server.url, RESPONSE_DATA_PATH=path, RESPONSE_ERROR_PATH="error")
    assert configuration.text == text


@pytest.mark.parametrize("path", ["missing.path", "items.1", "items.-1", "error"])
def test_a_data_path_that_leads_nowhere_is_refused(path):
    with serve_script(as_json(DOCUMENT)) as server:
        assert refused(server.url, RESPONSE_DATA_PATH=path) == (
            f"{server.url}: Data path '{path}' not found in the answer; correct S3LAKE_CONFIG_HTTP_RESPONSE_DATA_PATH"
        )


def test_an_error_in_the_answer_is_reported_without_its_text():
    with serve_script(Response(body=b'{"error": {"text": "token t0ken-1 unknown"}}')) as server:
        assert refused(server.url, RESPONSE_ERROR_PATH="error.text", RESPONSE_DATA_PATH="error") == (
            f"{server.url}: the server reports an error, at error.text of its answer"
        )


def test_an_answer_that_is_not_json_or_not_utf8_is_refused():
    with serve_script(Response(body=b'{"a": 1,\n oops}'), Response(body=b"a: 1\nb: \xff")) as server:
        assert refused(server.url, RESPONSE_DATA_PATH="a").startswith(f"{server.url}: the answer is not JSON")
        assert refused(server.url) == f"{server.url}:2:4: byte 0xff is not UTF-8; save it as UTF-8"


def test_a_compressed_answer_is_read():
    headers = {"Content-Encoding": "gzip"}
    with serve_script(Response(body=gzip.compress(b"sinks: []"), headers=headers)) as server:
        assert fetch(server.url)[0].text == "sinks: []"


@pytest.mark.parametrize(
    "answer", [Response(status=500), Response(status=404), Response(body=b"\xff"), Response(status=302)]
)
def test_no_secret_is_in_an_error_or_its_chain(answer):
    with serve_script(answer) as server, pytest.raises(ConfigurationError) as refusal:
        read_texts(
            server.url.replace("//", "//user:hunter2@") + "/?token=hunter3",
            {**QUICK, f"{PREFIX}HEADERS": '{"X-Api-Key": "hunter4"}'},
        )
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    assert "hunter" not in str(refusal.value)


# Options


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TIMEOUT", "soon", "'soon' is not a duration: write a number with ms, s, m, h or d, for example 5m"),
        ("TIMEOUT", "0", "0s is out of range: at least 1ms"),
        ("RETRY_ENABLED", "maybe", "Input should be a valid boolean"),
        ("RETRY_MAX_ATTEMPTS", "0", "0 is out of range: 1 to 100"),
        ("RETRY_BACKOFF_MULTIPLIER", "0.5", "0.5 is out of range: 1 to 100"),
        ("RESPONSE_DATA_PATH", "a..b", "String should have at least 1 character"),
        ("HEADERS", "secret", "Invalid JSON: expected value at line 1 column 1"),
        ("HEADERS", '{"a": 1}', "Input should be a valid string"),
        ("HEADERS", '{"A": "ä"}', "String should match pattern"),
        ("TIME_OUT", "1", "unknown name; did you mean S3LAKE_CONFIG_HTTP_TIMEOUT? allowed after S3LAKE_CONFIG_HTTP_"),
    ],
)
def test_an_invalid_option_is_refused(name, value, message):
    with pytest.raises(ConfigurationError) as refusal:
        read_options({f"{PREFIX}{name}": value, f"{PREFIX}RETRY_MAX_BACKOFF": " "})
    assert str(refusal.value).startswith(f"{PREFIX}{name}: {message}")


@pytest.mark.parametrize("url", ["http:///c", "http://[::1/c", "https://"])
def test_an_address_without_host_is_refused(url):
    assert refused(url) == "the address of the configuration has no host; write https://HOST/PATH"
