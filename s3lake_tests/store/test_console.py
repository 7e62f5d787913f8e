"""Where a link to objects leads."""

import pytest
from pydantic import ValidationError

from s3lake.sink import S3
from s3lake.store.connection import S3Connection
from s3lake.store.s3 import S3Store

KEYS = {"credentials": {"access_key_id": "k", "secret_access_key": "s"}}


def page(prefix: str = "raw/orders/", **settings: object) -> str | None:
    connection = S3Connection.of(S3.model_validate({**KEYS, **settings}))
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
def test_of_aws_it_leads_to_the_console_of_the_region(settings: dict[str, str], host: str) -> None:
    assert page(**settings) == f"https://{host}/s3/buckets/lake?region={settings['region']}&prefix=raw/orders/"


def test_an_endpoint_of_the_environment_is_not_taken_for_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio:9000")
    assert page(region="eu-north-1") is None


def test_of_another_store_it_leads_where_the_configuration_says() -> None:
    store = {"endpoint_url": "http://minio:9000"}
    assert page(**store) is None
    shown = page("raw/a b/", **store, console="https://minio:9001/browser/{bucket}/{prefix}")
    assert shown == "https://minio:9001/browser/lake/raw/a%20b/"


@pytest.mark.parametrize("wrong", ["minio/{bucket}", "https://me:secret@minio/{bucket}", "https://minio/{topic}"])
def test_what_is_no_page_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError, match=r"write http\(s\)://HOST/PATH, .*with {bucket} and {prefix} in it"):
        S3(console=wrong)
