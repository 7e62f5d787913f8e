"""A request of boto3 becomes a template only if the template writes that very request."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.credentials import ReadOnlyCredentials

from s3lake.index.store import client
from s3lake.index.store.request_template import UploadRequest, learn_template
from s3lake.index.store.s3_connection import S3Connection
from s3lake_tests.conftest import short_id

PLACE = S3Connection("http://store:9000", "eu-north-1", access_key_id="AKIA", secret_access_key="hush")
KEYS = ReadOnlyCredentials("AKIA", "hush", None)
PART = UploadRequest("UploadPart", "PUT", "raw/k", "uploadId=u&partNumber=1", {}, b"part")


def sent(header: tuple[str, str] | None = None, body: bytes = b"part") -> Any:
    """Return boto3's request of a part, with one more header that something else in the process adds."""

    class Answered(Exception): ...

    def add(request: Any, **_: Any) -> None:
        if header is not None:
            request.headers.add_header(*header)

    def answer(request: Any, **_: Any) -> None:
        raise Answered(request)

    made = client.make_client(PLACE)
    made.meta.events.register_first("before-sign.s3", add)
    made.meta.events.register("before-send.s3", answer)
    with pytest.raises(Answered) as caught:
        made.upload_part(Bucket="lake", Key="raw/k", UploadId="u", PartNumber=1, Body=body)
    return caught.value.args[0]


def test_a_template_has_what_is_the_same_for_each_key() -> None:
    template = learn_template(sent(), PART, KEYS)
    assert template is not None
    assert (template.origin, template.base, template.scope) == ("http://store:9000", "/lake/", "eu-north-1/s3")
    assert (template.signs_body, set(template.headers)) == (True, {"host", "user-agent"})


def test_a_template_has_a_constant_header_and_does_not_print_it() -> None:
    template = learn_template(sent(("x-amz-server-side-encryption-customer-key", "secret")), PART, KEYS)
    assert template is not None
    assert template.headers["x-amz-server-side-encryption-customer-key"] == "secret"
    assert "secret" not in repr(template)


@pytest.mark.parametrize(
    "header", [("x-amz-checksum-crc32", "AAAAAA=="), ("Content-MD5", "x"), ("x-amz-s3session-token", "t")]
)
def test_an_unknown_header_makes_no_template(header: tuple[str, str]) -> None:
    assert learn_template(sent(header), PART, KEYS) is None


@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"key": "raw/other"},
        {"query": "partNumber=1&uploadId=u"},
        {"headers": {"if-none-match": "*"}},
        {"body": b"trap"},
    ],
    ids=short_id,
)
def test_another_request_makes_no_template(change: dict[str, Any]) -> None:
    assert learn_template(sent(), replace(PART, **change), KEYS) is None


@pytest.mark.parametrize(
    "keys", [ReadOnlyCredentials("AKIA", "other", None), ReadOnlyCredentials("AKIA", "hush", "token")]
)
def test_other_keys_make_no_template(keys: ReadOnlyCredentials) -> None:
    assert learn_template(sent(), PART, keys) is None


def test_a_request_without_a_signature_makes_no_template() -> None:
    request = sent()
    del request.headers["Authorization"]
    assert learn_template(request, PART, KEYS) is None
