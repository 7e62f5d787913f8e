"""Signatures are botocore's own, and the one of an example in the documentation of S3."""

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import example, given
from hypothesis import strategies as st

from s3lake.index.store.signature import make_authorization

NAMES = st.from_regex("x-amz-[a-z]{1,9}", fullmatch=True)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
STEPS = st.from_regex(r"[A-Za-z0-9~._-]{1,9}", fullmatch=True)


@given(
    keys=st.tuples(
        st.from_regex("[A-Z0-9]{4,20}", fullmatch=True), st.text(min_size=1, max_size=40).filter(str.isascii)
    ),
    path=st.lists(STEPS, max_size=4),
    query=st.dictionaries(STEPS, STEPS | st.just(""), max_size=4),
    headers=st.dictionaries(NAMES, VALUES, max_size=4),
    body=st.binary(max_size=40),
)
@example(("AKIA", "hush"), [], {"0": "", "00": ""}, {}, b"")
def test_a_signature_is_the_one_of_botocore(
    keys: tuple[str, str], path: list[str], query: dict[str, str], headers: dict[str, str], body: bytes
) -> None:
    target = "/" + "/".join(path) + "?" + "&".join(f"{name}={value}" for name, value in query.items())
    request = AWSRequest("PUT", f"http://store:9000{target}", dict(headers), body)
    S3SigV4Auth(Credentials(*keys), "s3", "eu-north-1").add_auth(request)
    signed = {name.lower(): str(value) for name, value in request.headers.items()} | {"host": "store:9000"}
    expected = signed.pop("authorization")

    assert make_authorization(*keys, "eu-north-1/s3", "PUT", target, signed) == expected


def test_a_signature_is_the_one_of_the_documentation() -> None:
    """Example: GET Bucket Lifecycle, in "Signature Calculations for the Authorization Header"."""
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "x-amz-date": "20130524T000000Z",
        "x-amz-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
    keys = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")

    assert make_authorization(*keys, "us-east-1/s3", "GET", "/?lifecycle", headers) == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
        "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )
