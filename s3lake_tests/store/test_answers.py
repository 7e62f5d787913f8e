"""What an exception of boto3 means, by itself: an answer, none, or a refusal."""

import pytest
from botocore import exceptions

from s3lake.errors import StoreDeniedError
from s3lake.store.answers import Answer, NoAnswer, NotReached, Silent, meaning_of

URL = "https://s3.example"


def meaning(error: Exception, answers: frozenset[int | str] = frozenset()) -> Exception | None:
    return meaning_of(error, ["hunter2"], "GetObject s3://lake/a", "GetObject", answers)


def refusal(status: int, code: str = "", message: str | None = "") -> exceptions.ClientError:
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return exceptions.ClientError(response, "GetObject")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (exceptions.EndpointConnectionError(endpoint_url=URL), NotReached),
        (exceptions.ConnectTimeoutError(endpoint_url=URL), NotReached),
        (exceptions.ReadTimeoutError(endpoint_url=URL), Silent),
        (exceptions.ConnectionClosedError(endpoint_url=URL), NoAnswer),
        (exceptions.SSLError(endpoint_url=URL, error="EOF occurred in violation of protocol"), NoAnswer),
        (exceptions.SSLError(endpoint_url=URL, error="[SSL: CERTIFICATE_VERIFY_FAILED]"), StoreDeniedError),
        (exceptions.SSLError(endpoint_url=URL, error="[SSL: WRONG_VERSION_NUMBER]"), StoreDeniedError),
        (exceptions.ProxyConnectionError(proxy_url="http://CERTIFICATE_VERIFY_FAILED"), NoAnswer),
        (exceptions.MissingDependencyException(msg="install awscrt"), StoreDeniedError),
        (exceptions.NoCredentialsError(), StoreDeniedError),
        (ValueError("Invalid endpoint"), StoreDeniedError),
    ],
)
def test_no_answer_is_told_from_what_cannot_be_asked(error: Exception, means: type[Exception]):
    assert type(meaning(error)) is means


def test_what_is_none_of_boto3s_means_nothing():
    assert meaning(KeyError("a")) is None


def test_what_did_not_answer_is_quoted_without_secrets_and_its_last_full_stop():
    error = exceptions.HTTPClientError(error="hunter2 has no route to PHX.")

    assert str(meaning(error)) == (
        "HTTPClientError: An HTTP Client raised an unhandled exception: ******** has no route to PHX"
    )
    assert str(meaning(exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2))) == (
        "IncompleteReadError: 1 read, but total bytes expected is 2"
    )


@pytest.mark.parametrize(
    ("error", "answers"),
    [
        (refusal(404, "NoSuchKey"), {404}),
        (refusal(404, "NoSuchUpload"), {"NoSuchUpload"}),
        (refusal(200, "PreconditionFailed"), {412}),
        (refusal(503, "SlowDown"), {503}),
    ],
)
def test_what_was_asked_for_is_an_answer(error: exceptions.ClientError, answers: set[int | str]):
    assert type(meaning(error, frozenset(answers))) is Answer


def test_an_answer_has_its_status_its_code_and_what_the_store_says():
    answer = meaning(refusal(200, "ConditionalRequestConflict", "hunter2 is under way at PHX."), frozenset({409}))

    assert isinstance(answer, Answer)
    assert (answer.status, answer.code) == (409, "ConditionalRequestConflict")
    assert str(answer) == "409 ConditionalRequestConflict (******** is under way at PHX)"


@pytest.mark.parametrize(
    "error",
    [
        refusal(429),
        refusal(500),
        refusal(400, "RequestTimeout"),
        refusal(409, "409"),
        refusal(200, "InternalError"),
        refusal(200, "ConditionalRequestConflict"),
    ],
)
def test_what_may_pass_is_no_answer(error: exceptions.ClientError):
    assert type(meaning(error)) is NoAnswer


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (refusal(404, "NoSuchBucket"), "create the bucket"),
        (refusal(501, "NotImplemented"), "use a store that has this operation"),
        (refusal(403, "AccessDenied"), "allow these credentials s3:GetObject and s3:ListBucket here"),
        (
            refusal(401, ""),
            "allow these credentials s3:GetObject and s3:ListBucket here, and the use of the bucket's encryption key "
            "if it has one.",
        ),
        (refusal(400, "400", None), "where objects are written with a key of your own"),
        (refusal(400, "InvalidRequest", "Wrong ENCRYPTION KEY"), "where objects are written with a key of your own"),
        (refusal(400, "InvalidRequest", "The server side encryption"), "where objects are written with a key of"),
        (refusal(400, "InvalidRequest", "no"), "see the store's documentation for this code"),
        (refusal(405, "MethodNotAllowed", "encryption key"), "see the store's documentation for this code"),
    ],
)
def test_a_refusal_has_its_remedy(error: exceptions.ClientError, remedy: str):
    denied = meaning(error, frozenset({404}) if "NoSuchBucket" in str(error) else frozenset())

    assert type(denied) is StoreDeniedError
    assert f". To go on: {remedy}" in str(denied)


def test_an_error_that_says_nothing_is_a_refusal():
    denied = meaning(exceptions.ClientError({}, "GetObject"))

    assert type(denied) is StoreDeniedError
    assert "GetObject s3://lake/a was refused: 0 . To go on: see the store's" in str(denied)
