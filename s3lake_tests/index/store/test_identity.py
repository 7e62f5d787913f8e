"""Who a connection is to S3: keys, one place of them, a role, a web identity; and what its requests go through."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.session import Session

from s3lake.config.model import S3
from s3lake.errors import StoreDeniedError
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.lake.table.iceberg import iceberg_catalog
from s3lake_tests.index.store.conftest import BUCKET
from s3lake_tests.index.store.scripted import Scripted, answering, ok
from s3lake_tests.kit.http import Response, as_json, serve

ROLE = "arn:aws:iam::123456789012:role/lake"
KEYS = {"access_key_id": "AKIAOWN", "secret_access_key": "hush-hush"}


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of this machine, nor clients that have some."""
    monkeypatch.setattr("s3lake.index.store.client.clients", {})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


ASSUMED = b"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>
<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>role</SecretAccessKey><SessionToken>of-the-role</SessionToken>
<Expiration>2126-11-20T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>"""


def assuming(action: str = "AssumeRole") -> list[Response]:
    """A token service that lets whoever asks be the role, and then a store."""
    return [answering(200, ASSUMED.replace(b"{action}", action.encode())), ok()]


def store_of(server: Scripted, **s3: Any) -> S3Store:
    once = {"endpoint_url": server.url, "retries": {"max_attempts": 1, "patience": 0}}
    return S3Store(S3Connection.from_settings(S3.model_validate({**once, **s3})), BUCKET)


def signed_by(server: Scripted) -> str:
    """The access key of the last request."""
    return server.headers[-1].get("authorization", "").partition("Credential=")[2].partition("/")[0]


def assumed(server: Scripted) -> dict[str, str]:
    """The fields of the one request to the token service."""
    [asked] = [content for content in server.bodies if b"Action=AssumeRole" in content]
    return {name: value for name, [value] in parse_qs(asked.decode()).items()}


def test_a_role_is_assumed_with_what_it_asks_for_and_its_keys_sign(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    role = {"arn": ROLE, "external_id": "ours-alone", "session_name": "night", "duration": "15m"}
    store = store_of(server, credentials=KEYS, role={**role, "endpoint_url": server.url})
    server.script = assuming()
    with caplog.at_level(logging.DEBUG, "s3lake"):
        store.head("a")
    asked = assumed(server)
    assert (asked["RoleArn"], asked["ExternalId"], asked["RoleSessionName"]) == (ROLE, "ours-alone", "night")
    assert asked["DurationSeconds"] == "900"
    assert signed_by(server).startswith("ASIA")
    assert "x-amz-security-token" in server.headers[-1]
    for text in (caplog.text, repr(store), repr(store.connection)):
        assert "ours-alone" not in text


def test_a_web_identity_assumes_the_role_without_keys(server: Scripted, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("header.payload.signature\n")
    server.script = assuming("AssumeRoleWithWebIdentity")
    role = {"arn": ROLE, "token_file": str(tmp_path / "token"), "endpoint_url": server.url}
    store_of(server, role=role).head("a")
    asked = assumed(server)
    assert (asked["Action"], asked["WebIdentityToken"]) == ("AssumeRoleWithWebIdentity", "header.payload.signature")
    assert (asked["RoleArn"], asked["RoleSessionName"], asked["DurationSeconds"]) == (ROLE, "s3lake", "3600")
    assert "ExternalId" not in asked
    assert signed_by(server).startswith("ASIA")


def test_the_token_service_is_asked_by_the_keys_where_the_role_is_and_through_the_proxy(server: Scripted) -> None:
    server.script = assuming()
    role = {"arn": ROLE, "endpoint_url": "http://sts.invalid"}
    store_of(server, credentials=KEYS, role=role, region="eu-north-1", proxy={"url": server.url}).head("a")
    assert server.asked[0] == "POST http://sts.invalid/"
    assert "Credential=AKIAOWN/" in server.headers[0]["authorization"]
    assert "/eu-north-1/sts/" in server.headers[0]["authorization"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, server: Scripted) -> list[dict[str, Any]]:
    """What clients of the token service are made with."""
    made: list[dict[str, Any]] = []
    create = Session.create_client

    def noted(session: Session, service: str, **settings: Any) -> Any:
        if service == "sts":
            made.append(settings)
            settings = {**settings, "verify": None, "endpoint_url": server.url}
        return create(session, service, **settings)

    monkeypatch.setattr(Session, "create_client", noted)
    server.script = assuming()
    return made


@pytest.mark.parametrize("own", [True, False])
def test_certificates_of_ones_own_are_for_a_token_service_of_ones_own(
    server: Scripted, tmp_path: Path, made: list[dict[str, Any]], own: bool
) -> None:
    (tmp_path / "ca.pem").write_text("")
    role = {"arn": ROLE} | ({"endpoint_url": server.url} if own else {})
    store_of(server, credentials=KEYS, role=role, ca_file=str(tmp_path / "ca.pem")).head("a")
    assert [settings["verify"] for settings in made] == [str(tmp_path / "ca.pem") if own else None]


def test_the_token_service_is_asked_once_and_within_the_limits_of_s3(
    server: Scripted, made: list[dict[str, Any]]
) -> None:
    store = store_of(server, credentials=KEYS, role={"arn": ROLE, "endpoint_url": server.url})
    store.connection = replace(store.connection, connect_timeout_s=1.5, read_timeout_s=2.5)
    store.head("a")
    [limits] = [settings["config"] for settings in made]
    assert (limits.connect_timeout, limits.read_timeout) == (1.5, 2.5)
    assert limits.retries["total_max_attempts"] == 1


def test_a_web_identity_without_its_file_is_reported(server: Scripted, tmp_path: Path) -> None:
    role = {"arn": ROLE, "token_file": str(tmp_path / "none"), "endpoint_url": server.url}
    with pytest.raises(StoreDeniedError, match=r"s3\.role\.token_file .*none cannot be read: No such file"):
        store_of(server, role=role).head("a")


@pytest.mark.parametrize(
    ("settings", "access"),
    [
        ({"credentials": "default"}, "AKIAVARIABLE"),
        ({"credentials": "environment"}, "AKIAVARIABLE"),
        ({"credentials": "profile"}, "AKIAFILE"),
        ({"profile": "lake"}, "AKIALAKE"),
    ],
)
def test_credentials_are_looked_for_in_the_one_place_that_is_named(
    server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], access: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAVARIABLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    profile = "[{}]\naws_access_key_id = {}\naws_secret_access_key = hush\n"
    (tmp_path / "credentials").write_text(profile.format("default", "AKIAFILE") + profile.format("lake", "AKIALAKE"))
    store_of(server, **settings).head("a")
    assert signed_by(server) == access


def test_a_source_without_credentials_is_refused_though_another_one_has_some(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAVARIABLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    for source in ("profile", "instance", "container", "web_identity"):
        with pytest.raises(StoreDeniedError, match=r"Unable to locate credentials\. To go on: correct s3\.credentials"):
            store_of(server, credentials=source).head("a")


@pytest.mark.parametrize(
    ("variables", "profile", "named"),
    [
        ({"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/missing/token"}, "", "/missing/token"),
        ({}, "web_identity_token_file = /missing/token\nrole_arn = arn:aws:iam::1:role/a", "/missing/token"),
        ({}, "credential_process = /missing/program --hush", "/missing/program"),
        (
            {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/missing/token",
            },
            "",
            "/missing/token",
        ),
    ],
)
def test_a_missing_file_that_a_variable_or_a_profile_names_is_reported(
    server: Scripted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    profile: str,
    named: str,
) -> None:
    (tmp_path / "config").write_text(f"[default]\n{profile}\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    expected = rf"No such file or directory: '{named}'\. To go on: correct .*a variable AWS_… or a file of AWS"
    with pytest.raises(StoreDeniedError, match=expected):
        store_of(server).head("a")


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
@pytest.mark.parametrize("text", ["HUSHHUSH\n", "HUSH\nHUSH"])
def test_a_line_break_of_credentials_is_reported_at_once_without_them(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv(variable, text)
    with pytest.raises(StoreDeniedError, match="take the line break out of the access key or the session token") as bad:
        store_of(server).head("a")
    assert "HUSH" not in str(bad.value)


def test_the_containers_credentials_are_asked_for(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        "AccessKeyId": "ASIACONTAINER",
        "SecretAccessKey": "hush",
        "Token": "t",
        "Expiration": "2099-01-01T00:00:00Z",
    }

    with serve(lambda _: as_json(keys)) as address:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{address}/keys")
        store_of(server, credentials="container").head("a")
    assert signed_by(server) == "ASIACONTAINER"


def test_an_anonymous_connection_signs_nothing(server: Scripted) -> None:
    store_of(server, credentials="anonymous").head("a")
    assert "authorization" not in server.headers[-1]


def test_a_tables_catalog_gets_the_keys_of_the_role(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: dict[str, str] = {}
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda _, **properties: handed.update(properties))
    role = {"arn": ROLE, "external_id": "ours-alone", "endpoint_url": server.url}
    connection = store_of(server, credentials=KEYS, role=role).connection
    server.script = assuming()
    keys = iceberg_catalog.find_catalog_keys(connection)
    iceberg_catalog.open_catalog({"type": "glue"}, "lake", connection, keys)
    for service in ("s3", "glue"):
        names = ("access-key-id", "secret-access-key", "session-token")
        assert [handed[f"{service}.{name}"] for name in names] == ["ASIA", "role", "of-the-role"]
    assert {"role", "of-the-role"} <= iceberg_catalog.find_secrets({}, connection, keys)
    handed.clear()
    iceberg_catalog.open_catalog({"type": "glue", "glue.profile-name": "own"}, "lake", connection, keys)
    assert ("glue.access-key-id" in handed, handed["s3.access-key-id"]) == (False, "ASIA")


def test_a_tables_catalog_gets_the_keys_of_the_profile(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[lake]\naws_access_key_id = AKIALAKE\naws_secret_access_key = hush\n")
    connection = S3Connection.from_settings(S3(credentials="profile", profile="lake"))
    assert iceberg_catalog.find_catalog_keys(connection) == {"access-key-id": "AKIALAKE", "secret-access-key": "hush"}


def test_a_tables_catalog_looks_for_the_environments_keys_itself() -> None:
    assert iceberg_catalog.find_catalog_keys(S3Connection()) == {}
