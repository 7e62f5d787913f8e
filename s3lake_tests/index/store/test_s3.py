"""What S3 over HTTP adds to the contract: retries with an end, errors with a remedy, secrets that stay secret."""

import logging
import pickle
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from s3lake.errors import StoreConflictError, StoreDeniedError, StoreUnavailableError
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.index.store.scripted import SECRET, TOKEN, Scripted, ok, status
from s3lake_tests.kit.http import DROPPED, Response


class TestRetries:
    @pytest.mark.parametrize(
        "failure",
        [
            status(503, "SlowDown", "Please reduce your request rate."),
            status(503),
            status(500, "InternalError"),
            status(502),
            status(429, "TooManyRequests"),
            DROPPED,
        ],
        ids=["SlowDown", "503", "500", "502", "429", "dropped"],
    )
    @pytest.mark.parametrize(
        ("operation", "ask"),
        [
            ("GetObject", lambda store: store.get("k")),
            ("HeadObject", lambda store: store.head("k")),
            ("PutObject", lambda store: store.put("k", b"body", if_absent=True)),
            ("DeleteObject", lambda store: store.delete("k")),
            ("UploadPart", lambda store: store.upload_part("k", "u", 1, b"body")),
            ("AbortMultipartUpload", lambda store: store.abort_upload("k", "u")),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_transient_failures_are_retried(
        self, server: Scripted, failure: Response, operation: str, ask: Callable[[S3Store], object]
    ) -> None:
        store = server.store()
        server.script = [failure, failure, ok()]
        ask(store)
        assert (store.requests, store.retries) == (Counter({operation: 3}), 2)
        assert len(server.asked) == 3

    @pytest.mark.parametrize(
        ("answers", "ask", "expected"),
        [
            ([status(409), ok()], lambda store: store.head("k").etag, '"e"'),
            ([status(400, "RequestTimeout"), ok()], lambda store: store.put("k", b""), '"e"'),
            ([Response(body=b"only this", cut=True), ok(b"whole")], lambda store: store.get("k").body, b"whole"),
            (
                [ok(b"<html>later"), ok(b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>")],
                lambda store: list(store.list("")),
                ["a"],
            ),
        ],
        ids=["a 409 of a head", "a 400 that is a timeout", "an answer that breaks off", "an answer that is not XML"],
    )
    def test_broken_answers_are_retried(
        self, server: Scripted, answers: list[Response], ask: Callable[[S3Store], object], expected: object
    ) -> None:
        server.script = answers
        assert ask(server.store()) == expected
        assert len(server.asked) == 2

    def test_a_server_that_takes_too_long_is_asked_again(self, server: Scripted) -> None:
        store = server.store(read_timeout_s=0.3, patience_s=30)
        server.script = [Response(wait_s=0.6), ok()]
        assert store.put("k", b"body") == '"e"'
        server.script = [Response(wait_s=0.6)]
        with pytest.raises(StoreUnavailableError, match=r"failed 3 times in . s, at last with ReadTimeoutError"):
            server.store(read_timeout_s=0.05, patience_s=30).get("k")

    def test_the_error_after_the_last_attempt_names_request_and_reason(self, server: Scripted) -> None:
        store = server.store()
        server.script = [status(503, "SlowDown", "Please reduce your request rate.")]
        with pytest.raises(StoreUnavailableError) as caught:
            store.put("raw/k", b"body")
        assert re.sub(r"in \d+ s", "in 0 s", str(caught.value)) == (
            f"PutObject s3://lake/raw/k at {server.url} failed 3 times in 0 s, at last with 503 SlowDown (Please "
            "reduce your request rate). Check that the store is up and can be reached from here; s3.retries sets how "
            "often and how long to try."
        )
        assert len(server.asked) == 3

    def test_a_pause_is_a_random_part_of_the_doubled_backoff_and_at_most_twenty_seconds(
        self, server: Scripted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        monkeypatch.setattr("random.uniform", lambda _, longest: longest)
        monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
        server.script = [status(503)]
        with pytest.raises(StoreUnavailableError):
            server.store(max_attempts=4, backoff_ms=8_000).get("k")
        assert pauses == [8, 16, 20]

    def test_every_attempt_is_logged_without_secrets(self, server: Scripted, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "s3lake.index.store.s3_store")
        server.script = [status(500, "InternalError", f"what is {SECRET}?"), ok()]
        server.store().put("k", b"")
        assert (
            f"PutObject s3://lake/k at {server.url}: attempt 1 of 3: 500 InternalError (what is ********?)"
            in caplog.text
        )


class TestMissing:
    @pytest.mark.parametrize(
        ("answer", "ask"),
        [
            (status(404, "NoSuchKey"), lambda store: store.get("k")),
            (status(416, "InvalidRange"), lambda store: store.get("k", (8, 9))),
            (status(404), lambda store: store.head("k")),
            (status(404, "NoSuchKey"), lambda store: store.put("k", b"", if_match='"x"')),
            (status(404, "NoSuchKey"), lambda store: store.delete("k")),
            (status(404, "NoSuchUpload"), lambda store: store.abort_upload("k", "u")),
        ],
        ids=["get", "the end of it", "head", "change", "delete", "end an upload"],
    )
    def test_a_missing_object_is_not_an_error(
        self, server: Scripted, answer: Response, ask: Callable[[S3Store], object]
    ) -> None:
        server.script = [answer]
        assert ask(server.store()) is None

    def test_a_missing_bucket_is_an_error(self, server: Scripted) -> None:
        server.script = [status(404, "NoSuchBucket")]
        with pytest.raises(StoreDeniedError, match=r"^GetObject .* 404 NoSuchBucket\. .*create the bucket"):
            server.store().get("k")


class TestConditions:
    def test_a_failed_condition_is_an_answer_and_not_tried_again(self, server: Scripted) -> None:
        store = server.store()
        server.script = [status(412, "PreconditionFailed")]
        assert store.put("k", b"", if_absent=True) is None
        assert store.put("k", b"", if_match='"x"') is None
        assert store.requests == Counter({"PutObject": 2})
        assert [headers.get("if-none-match") for headers in server.headers] == ["*", None]
        assert [headers.get("if-match") for headers in server.headers] == [None, '"x"']

    @pytest.mark.parametrize("condition", [{"if_absent": True}, {"if_match": '"x"'}])
    def test_a_conflict_is_no_failed_condition(self, server: Scripted, condition: dict[str, Any]) -> None:
        server.script = [status(409, "ConditionalRequestConflict")]
        with pytest.raises(
            StoreConflictError, match=r"PutObject s3://lake/k at .*another request of this key was under"
        ):
            server.store().put("k", b"", **condition)
        assert len(server.asked) == 1

    def test_a_repetition_may_be_refused_for_its_own_success(self, server: Scripted) -> None:
        """Rule R4: whoever gets None reads back what is there."""
        server.script = [DROPPED, status(412, "PreconditionFailed")]
        assert server.store().put("k", b"", if_absent=True) is None

    @pytest.mark.parametrize(
        ("answer", "means"),
        [
            (ok(b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"), "completed"),
            (status(412, "PreconditionFailed"), "taken"),
            (status(409, "ConditionalRequestConflict"), "conflict"),
            (status(404, "NoSuchUpload"), "missing"),
            (status(404, "NoSuchKey"), "missing"),
            (status(400, "InvalidPart"), "refused"),
            (status(400, "InvalidPartOrder"), "refused"),
            (status(400, "EntityTooSmall"), "refused"),
            (status(400, "InvalidRequest"), "refused"),
            # AWS begins to answer before it is done: the error is in the body.
            (status(200, "PreconditionFailed"), "taken"),
            (status(200, "ConditionalRequestConflict"), "conflict"),
            (status(200, "NoSuchUpload"), "missing"),
        ],
    )
    def test_each_answer_to_a_complete_has_its_result(self, server: Scripted, answer: Response, means: str) -> None:
        store = server.store()
        server.script = [answer]
        assert store.complete_upload("k", "u", ["1", "2"]) == means
        assert store.requests == Counter({"CompleteMultipartUpload": 1})
        assert server.headers[0]["if-none-match"] == "*"

    def test_an_error_inside_a_200_is_an_error(self, server: Scripted) -> None:
        store = server.store()
        server.script = [
            status(200, "InternalError", "We encountered an internal error."),
            ok(b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"),
        ]
        assert store.complete_upload("k", "u", ["1"]) == "completed"
        server.script = [status(200, "InternalError", "We encountered an internal error.")]
        with pytest.raises(StoreUnavailableError, match=r"CompleteMultipartUpload .* InternalError"):
            store.complete_upload("k", "u", ["1"])

    def test_a_part_of_a_vanished_upload_may_pass_with_a_new_upload(self, server: Scripted) -> None:
        server.script = [status(404, "NoSuchUpload")]
        with pytest.raises(StoreUnavailableError, match=r"part 7: the store no longer knows.*AbortIncomplete"):
            server.store().upload_part("k", "u", 7, b"")
        assert len(server.asked) == 1


class TestDenied:
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (
                status(403, "AccessDenied", "Access Denied."),
                r"403 AccessDenied \(Access Denied\)\. .*allow .*s3:PutObject",
            ),
            (status(404, "NoSuchBucket", "The bucket does not exist"), r"404 NoSuchBucket.*create the bucket"),
            (status(403, "InvalidAccessKeyId"), r"403 InvalidAccessKeyId\. .*correct s3\.credentials"),
            (status(403, "SignatureDoesNotMatch"), r"correct s3\.credentials"),
            (status(400, "ExpiredToken"), r"correct s3\.credentials"),
            (status(403, "RequestTimeTooSkewed"), r"set this machine's clock"),
            (status(501, "NotImplemented"), r"501 NotImplemented.*exactly_once: false"),
            (status(400, "EntityTooSmall"), r"400 EntityTooSmall.*documentation"),
            (status(401), r"s3:PutObject here, and the use of the bucket's encryption key if it has one\.$"),
            (status(400), "where objects are written with a key of your own"),
            (status(400, "InvalidRequest", "Wrong ENCRYPTION KEY"), "where objects are written with a key of your own"),
            (status(400, "InvalidRequest", "The server side encryption"), "where objects are written with a key of"),
            (status(405, "MethodNotAllowed", "encryption key"), "see the store's documentation for this code"),
        ],
    )
    def test_a_refusal_comes_at_once_and_with_a_remedy(self, server: Scripted, answer: Response, message: str) -> None:
        server.script = [answer]
        with pytest.raises(
            StoreDeniedError, match=rf"^PutObject s3://lake/raw/k at {server.url} was refused: .*{message}"
        ):
            server.store().put("raw/k", b"", if_absent=True)
        assert len(server.asked) == 1

    @pytest.mark.parametrize(
        ("operation", "ask", "permission"),
        [
            ("GetObject", lambda store: store.get("raw/k"), "s3:GetObject and s3:ListBucket"),
            ("HeadObject", lambda store: store.head("raw/k"), "s3:GetObject and s3:ListBucket"),
            ("HeadObject", lambda store: store.find_ignored("raw/k"), "s3:GetObject and s3:ListBucket"),
            ("PutObject", lambda store: store.put("raw/k", b""), "s3:PutObject"),
            ("DeleteObject", lambda store: store.delete("raw/k"), "s3:DeleteObject"),
            ("ListObjectsV2", lambda store: list(store.list("raw/k")), "s3:ListBucket"),
            ("ListMultipartUploads", lambda store: list(store.list_uploads("raw/k")), "s3:ListBucketMultipartUploads"),
            ("CreateMultipartUpload", lambda store: store.create_upload("raw/k", {}), "s3:PutObject"),
            ("UploadPart", lambda store: store.upload_part("raw/k", "u", 1, b""), "s3:PutObject"),
            ("CompleteMultipartUpload", lambda store: store.complete_upload("raw/k", "u", []), "s3:PutObject"),
            ("AbortMultipartUpload", lambda store: store.abort_upload("raw/k", "u"), "s3:AbortMultipartUpload"),
            ("PutObjectTagging", lambda store: store.tag_offsets("raw/k", 1, 2, 1), "s3:PutObjectTagging"),
        ],
    )
    def test_a_refusal_names_the_request_and_the_permission(
        self, server: Scripted, operation: str, ask: Callable[[S3Store], object], permission: str
    ) -> None:
        server.script = [status(403, "AccessDenied")]
        store = server.store(offset_tags="required")
        with pytest.raises(
            StoreDeniedError, match=f"^{operation} s3://lake/raw/k at .* allow these credentials {permission} here"
        ):
            ask(store)
        assert store.requests == Counter({operation: 1})

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            (
                {"access_key_id": None, "secret_access_key": None, "session_token": None},
                r"cannot be asked: NoCredentialsError.*correct s3\.credentials",
            ),
            ({"profile": "missing-profile"}, "ProfileNotFound.*missing-profile"),
            ({"endpoint_url": "not a url"}, r"correct s3\.credentials, s3\.endpoint_url"),
            ({"endpoint_url": "https"}, "SSLError"),
        ],
        ids=["no credentials", "a missing profile", "an invalid endpoint", "https to a server without"],
    )
    def test_a_request_that_cannot_be_made_is_refused(
        self, server: Scripted, settings: dict[str, str | None], message: str
    ) -> None:
        if settings.get("endpoint_url") == "https":
            settings = {"endpoint_url": server.url.replace("http:", "https:")}
        with pytest.raises(StoreDeniedError, match=message):
            server.store(**settings).get("k")
        assert server.asked == []


class TestSecrets:
    def test_secrets_are_in_no_text(self, server: Scripted) -> None:
        store = server.store()
        copy = pickle.loads(pickle.dumps(store))
        for value in (store, copy, store.connection, copy.connection):
            for text in (repr(value), str(value), f"{value}"):
                assert SECRET not in text
                assert TOKEN not in text
        assert copy.connection.secret_access_key == SECRET

    @pytest.mark.parametrize("answer", [status(500, "InternalError", SECRET), status(403, "AccessDenied", TOKEN)])
    def test_secrets_in_an_answer_are_masked(self, server: Scripted, answer: Response) -> None:
        server.script = [answer]
        with pytest.raises((StoreDeniedError, StoreUnavailableError)) as caught:
            server.store().get("k")
        error = caught.value
        assert "********" in str(error)
        assert not error.__cause__
        assert error.__suppress_context__
        assert SECRET not in str(error) + repr(error)
        assert TOKEN not in str(error) + repr(error)
