"""A configuration from a real HTTP server, with everything that can go wrong on the way."""

import gzip
import json
import socket

import pytest

from s3lake.config.http import PREFIX, Settings
from s3lake.config.report import Text
from s3lake.config.source import read_texts
from s3lake.errors import ConfigurationError
from s3lake_tests.config.server import Answer, serving

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


def test_the_answer_is_the_text():
    with serving(Answer(b"kafka: {}\nsinks: []\n")) as server:
        address = f"{server.url}/lake.yaml"
        assert fetch(address) == (Text(address, "kafka: {}\nsinks: []\n"),)


def test_headers_are_sent():
    with serving(Answer()) as server:
        fetch(server.url, HEADERS='{"Authorization": "Bearer t0ken", "X-Tenant": "a"}')
        assert server.asked[0].headers["authorization"] == "Bearer t0ken"
        assert server.asked[0].headers["x-tenant"] == "a"


def test_user_and_password_of_the_address_are_sent_and_not_named():
    with serving(Answer()) as server:
        (found,) = fetch(f"http://me:p%40ss@127.0.0.1:{server.port}/c?token=abc")
        assert server.asked[0].headers["authorization"] == "Basic bWU6cEBzcw=="
        assert server.asked[0].path == "/c?token=abc"
        assert found.name == f"{server.url}/c"


def test_an_authorization_header_is_not_replaced_by_netrc(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(Answer()) as server:
        fetch(server.url, HEADERS='{"Authorization": "Bearer mine"}')
        assert server.asked[0].headers["authorization"] == "Bearer mine"


# Retries


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_429_and_5xx_are_tried_again(status):
    with serving(Answer(status=status), Answer(b"x")) as server:
        assert fetch(server.url)[0].text == "x"
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        ("400 Bad Request", "the answer must be 200 with the configuration in it"),
        ("401 Unauthorized", "give what it asks for in S3LAKE_CONFIG_HTTP_HEADERS"),
        ("404 Not Found", "correct the address"),
    ],
)
def test_other_4xx_are_refused_at_once_with_the_remedy(status, remedy):
    with serving(Answer(status=int(status[:3]))) as server:
        assert refused(f"{server.url}/c") == f"{server.url}/c: the server answered {status}; {remedy}"
        assert len(server.asked) == 1


def test_attempts_have_an_end():
    with serving(Answer(status=503)) as server:
        message = refused(server.url, RETRY_MAX_ATTEMPTS="4")
        assert len(server.asked) == 4
    assert message == (
        f"{server.url}: no configuration came in 4 attempts: the server answered 503 Service Unavailable; check the "
        "address and that the server is up"
    )


def test_without_retries_there_is_one_attempt():
    with serving(Answer(status=503)) as server:
        refused(server.url, RETRY_ENABLED="false")
        assert len(server.asked) == 1


def test_pauses_grow_up_to_the_longest(monkeypatch):
    pauses = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    with serving(Answer(status=500)) as server:
        refused(
            server.url,
            RETRY_MAX_ATTEMPTS="5",
            RETRY_INITIAL_BACKOFF="1 s",
            RETRY_BACKOFF_MULTIPLIER="3",
            RETRY_MAX_BACKOFF="10s",
        )
    assert [pause for pause in pauses if pause >= 1] == [1, 3, 9, 10]


def test_a_refused_connection_is_tried_again_and_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert refused(url) == (
        f"{url}: no configuration came in 3 attempts: the connection failed; check the address and that the server "
        "is up"
    )


def test_a_timeout_is_tried_again():
    with serving(Answer(wait_s=0.5), Answer(b"x")) as server:
        assert fetch(server.url, TIMEOUT="100ms")[0].text == "x"


def test_a_connection_that_breaks_off_is_tried_again():
    with serving(Answer(b"half", cut=True), Answer(b"whole")) as server:
        assert fetch(server.url)[0].text == "whole"


# Redirects


def test_a_redirect_is_refused_with_the_address_to_write():
    with serving(
        Answer(status=302, headers={"Location": "https://u:hunter2@lake.example/there?token=hunter3"})
    ) as server:
        message = refused(server.url, HEADERS='{"X-Api-Key": "k"}')
    assert message.endswith("give the address that it redirects to, https://lake.example/there")
    assert "hunter" not in message


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
    with serving(Answer(json.dumps(DOCUMENT).encode())) as server:
        (configuration,) = fetch(server.url, RESPONSE_DATA_PATH=path)
    assert configuration.text == text


@pytest.mark.parametrize("path", ["missing.path", "items.1", "items.-1", "error"])
def test_a_data_path_that_leads_nowhere_is_refused(path):
    with serving(Answer(json.dumps(DOCUMENT).encode())) as server:
        assert refused(server.url, RESPONSE_DATA_PATH=path) == (
            f"{server.url}: Data path '{path}' not found in the answer; correct S3LAKE_CONFIG_HTTP_RESPONSE_DATA_PATH"
        )


def test_an_error_path_that_is_null_is_no_error():
    with serving(Answer(json.dumps(DOCUMENT).encode())) as server:
        assert json.loads(fetch(server.url, RESPONSE_ERROR_PATH="error")[0].text) == DOCUMENT


def test_what_stands_at_the_error_path_is_told_without_secrets():
    with serving(Answer(b'{"error": {"text": "token t0ken-1 of p%40ss and p@ss unknown"}}')) as server:
        message = refused(
            f"http://me:p%40ss@127.0.0.1:{server.port}/?key=q-secret",
            RESPONSE_ERROR_PATH="error.text",
            HEADERS='{"Authorization": "Bearer t0ken-1"}',
        )
    assert (
        message == f"{server.url}/: the server reports at error.text: token ******** of ******** and ******** unknown"
    )


def test_an_answer_that_is_no_json_is_refused_with_its_place():
    with serving(Answer(b'{"a": 1,\n oops}')) as server:
        message = refused(server.url, RESPONSE_DATA_PATH="a")
    assert message.startswith(f"{server.url}:2:2: the answer is not JSON")


def test_an_answer_that_is_no_utf8_is_refused_with_its_place():
    with serving(Answer(b"a: 1\nb: \xff")) as server:
        assert refused(server.url) == f"{server.url}:2:4: byte 0xff is not UTF-8; save it as UTF-8"


def test_a_compressed_answer_is_read_and_a_bomb_is_refused(monkeypatch):
    headers = {"Content-Encoding": "gzip"}
    with serving(Answer(gzip.compress(b"sinks: []"), headers=headers)) as server:
        assert fetch(server.url)[0].text == "sinks: []"
    monkeypatch.setattr("s3lake.config.http._LARGEST", 1000)
    with serving(Answer(gzip.compress(b"x" * 2_000_000), headers=headers)) as server:
        assert "the answer has more than 1000 bytes" in refused(server.url)


# Secrets


@pytest.mark.parametrize(
    "answer",
    [Answer(status=500), Answer(status=404), Answer(b"\xff"), Answer(status=302, headers={"Location": "foo://x"})],
)
def test_no_secret_is_in_an_error_or_its_chain(answer):
    with serving(answer) as server, pytest.raises(ConfigurationError) as refusal:
        read_texts(
            f"http://user:hunter2@127.0.0.1:{server.port}/?token=hunter3",
            {**QUICK, f"{PREFIX}HEADERS": '{"X-Api-Key": "hunter4"}'},
        )
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    assert "hunter" not in str(refusal.value)


# Settings


def test_the_defaults_are_iggys_and_headers_are_not_printed():
    assert Settings.from_environment({f"{PREFIX}TIMEOUT": " "}) == Settings({}, 10.0, True, 3, 1.0, 30.0, 2.0, "", "")
    assert "hunter2" not in repr(Settings.from_environment({f"{PREFIX}HEADERS": '{"X-Api-Key": "hunter2"}'}))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TIMEOUT", "soon", "'soon' is not a duration: write a number with ms, s, m, h or d, for example 5m"),
        ("TIMEOUT", "0", "'0' is out of range: more than 0, for example 10s"),
        ("RETRY_ENABLED", "yes", "'yes' is not allowed; write true or false"),
        ("RETRY_MAX_ATTEMPTS", "0", "'0' is not allowed; write a whole number from 1 to 100"),
        ("RETRY_BACKOFF_MULTIPLIER", "0.5", "'0.5' is not allowed: a number from 1 to 100"),
        ("RESPONSE_DATA_PATH", "a..b", "'a..b' is not a path: names with dots between, for example data.items.0"),
        ("HEADERS", "secret", 'not a JSON object of texts; write {"Name": "value"}'),
        ("HEADERS", '{"a": 1}', 'not a JSON object of texts; write {"Name": "value"}'),
        ("HEADERS", '{"A b": "c"}', "a header has an invalid name: use letters, digits, '-' and '_'"),
        ("HEADERS", '{"A": "ä"}', "the value of header A has characters that HTTP does not carry: use plain ASCII"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused(name, value, message):
    with pytest.raises(ConfigurationError) as refusal:
        Settings.from_environment({f"{PREFIX}{name}": value})
    assert str(refusal.value) == f"{PREFIX}{name}: {message}"


def test_an_unknown_setting_is_refused_with_the_nearest():
    with pytest.raises(ConfigurationError, match=r"did you mean S3LAKE_CONFIG_HTTP_TIMEOUT\?"):
        Settings.from_environment({f"{PREFIX}TIME_OUT": "1"})


@pytest.mark.parametrize("url", ["http:///c", "http://[::1/c", "https://"])
def test_an_address_without_host_is_refused(url):
    assert refused(url) == "the address of the configuration has no host; write https://HOST/PATH"
