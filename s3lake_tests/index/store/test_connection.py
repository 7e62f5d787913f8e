"""How to reach an S3 API, as plain values: of a configuration, of Dagster's resource."""

import base64
from dataclasses import replace
from typing import Any

import pytest
from dagster import EnvVar
from dagster_aws.s3 import S3Resource
from pydantic import ValidationError

from s3lake.config import model
from s3lake.config.model import S3
from s3lake.errors import ConfigurationError
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.index.store.scripted import SECRET, TOKEN

KEYS = {"access_key_id": "a", "secret_access_key": SECRET, "session_token": TOKEN}
OWN_KEY = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    ("s3", "plain"),
    [
        (
            {"endpoint_url": "http://x", "region": "eu-north-1", "max_pool_connections": 7, "console": "http://x/"},
            {"endpoint_url": "http://x", "region": "eu-north-1", "max_pool_connections": 7, "console": "http://x/"},
        ),
        ({"credentials": KEYS}, KEYS),
        (
            {"retries": {"max_attempts": 9, "backoff_ms": 8, "patience": "7s"}},
            {"max_attempts": 9, "backoff_ms": 8, "patience_s": 7.0},
        ),
        (
            {"proxy": {"url": "http://proxy:3128", "user": "me", "password": "hush"}, "ca_file": "/ca.pem"},
            {"proxy": "http://me:hush@proxy:3128", "ca_file": "/ca.pem"},
        ),
        (
            {"objects": {"storage_class": "STANDARD_IA", "checksum": "SHA256", "customer_key": OWN_KEY}},
            {"created_with": (("StorageClass", "STANDARD_IA"),), "checksum": "SHA256", "customer_key": OWN_KEY},
        ),
        (
            {"objects": {"tags": {"team": "data"}, "offset_tags": "tried"}},
            {"created_with": (("Tagging", "team=data"),), "tags": (("team", "data"),), "offset_tags": "tried"},
        ),
        (
            {"accelerate": True, "path_style": False},
            {"accelerate": True, "path_style": False},
        ),
    ],
    ids=lambda value: ", ".join(value) if "region" not in value else "place",
)
def test_a_connection_has_every_setting_of_the_configuration(s3: dict[str, Any], plain: dict[str, Any]) -> None:
    """Roles, web identities and places of credentials are in `test_identity.py`, by the requests."""
    assert S3Connection.from_settings(model.S3.model_validate(s3)) == replace(S3Connection(region="us-east-1"), **plain)


def test_a_connection_has_every_field_of_dagsters_resource() -> None:
    resource = S3Resource(
        endpoint_url="http://x",
        region_name="eu-north-1",
        aws_access_key_id="a",
        aws_secret_access_key=SECRET,
        aws_session_token=TOKEN,
        profile_name="p",
        use_unsigned_session=True,
        use_ssl=False,
        verify=False,
        max_attempts=9,
    )
    assert S3Connection.from_resource(resource) == S3Connection(
        endpoint_url="http://x",
        region="eu-north-1",
        access_key_id="a",
        secret_access_key=SECRET,
        session_token=TOKEN,
        profile="p",
        unsigned=True,
        use_ssl=False,
        verify=False,
        max_attempts=9,
    )
    assert S3Connection.from_resource(S3Resource()) == S3Connection()


def test_variables_of_dagsters_resource_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    resource = S3Resource(aws_secret_access_key=EnvVar("LAKE_SECRET"))
    assert S3Connection.from_resource(resource).secret_access_key == SECRET


def test_every_field_of_dagsters_resource_is_known() -> None:
    """A field that Dagster adds would be ignored in silence."""
    known = {"endpoint_url", "region_name", "max_attempts", "profile_name", "use_ssl", "verify"}
    known |= {"use_unsigned_session", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"}
    assert set(S3Resource.model_fields) == known


def test_a_proxy_s_address_has_its_user_and_password_for_whoever_connects() -> None:
    settings = model.S3.model_validate({"proxy": {"url": "http://proxy:3128", "user": "m/e@x", "password": "hu/sh"}})
    connection = S3Connection.from_settings(settings)
    assert connection.proxy == "http://m%2Fe%40x:hu%2Fsh@proxy:3128"
    assert {"hu/sh", "hu%2Fsh", base64.b64encode(b"m/e@x:hu/sh").decode()} <= set(connection.secrets)
    assert "hu" not in repr(connection)


@pytest.mark.parametrize(("user", "address"), [(None, "http://proxy:3128"), ("me", "http://me:@proxy:3128")])
def test_a_proxy_may_have_no_user_or_no_password(user: str | None, address: str) -> None:
    settings = model.S3.model_validate({"proxy": {"url": "http://proxy:3128", "user": user}})
    assert S3Connection.from_settings(settings).proxy == address


def test_a_password_in_the_endpoint_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"s3\.endpoint_url may hold neither.*s3\.credentials") as caught:
        S3Connection(endpoint_url=f"http://me:{SECRET}@127.0.0.1:1")
    assert SECRET not in str(caught.value)


# Links to objects


def page(prefix: str = "raw/orders/", **settings: object) -> str | None:
    connection = S3Connection.from_settings(S3.model_validate({"credentials": KEYS, **settings}))
    return S3Store(connection, "lake").console_url(prefix)


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"region": "eu-west-1"}, "eu-west-1.console.aws.amazon.com"),
        ({"region": "us-east-1"}, "us-east-1.console.aws.amazon.com"),
        (
            {"region": "eu-west-1", "endpoint_url": "https://s3.eu-west-1.amazonaws.com"},
            "eu-west-1.console.aws.amazon.com",
        ),
        ({"region": "cn-north-1"}, "cn-north-1.console.amazonaws.cn"),
        ({"region": "us-gov-west-1"}, "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_a_link_to_objects_of_aws_leads_to_the_console_of_the_region(settings: dict[str, str], host: str) -> None:
    assert page(**settings) == f"https://{host}/s3/buckets/lake?region={settings['region']}&prefix=raw/orders/"


def test_an_endpoint_of_the_environment_is_not_taken_for_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio:9000")
    assert page(region="eu-north-1") is None


def test_a_link_to_objects_of_another_store_leads_to_the_configured_console() -> None:
    store = {"endpoint_url": "http://minio:9000"}
    assert page(**store) is None
    shown = page("raw/a b/", **store, console="https://minio:9001/browser/{bucket}/{prefix}")
    assert shown == "https://minio:9001/browser/lake/raw/a%20b/"


@pytest.mark.parametrize("wrong", ["minio/{bucket}", "https://me:secret@minio/{bucket}", "https://minio/{topic}"])
def test_a_console_that_is_not_a_page_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError, match=r"write http\(s\)://HOST/PATH, .*with {bucket} and {prefix} in it"):
        S3(console=wrong)
