"""S3 over HTTP, through boto3: conditional writes, multipart uploads, and retries that are counted and have an end."""

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from operator import methodcaller
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from s3lake.errors import S3LakeError, StoreConflictError, StoreUnavailableError
from s3lake.index.store import Completion, Document, Head, PendingUpload
from s3lake.index.store.client import get_s3_client, get_upload_client
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_errors import (
    ExpectedStatus,
    NoResponseError,
    NotReachedError,
    RetryableError,
    to_store_error,
)

A = TypeVar("A")
_log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 20.0
_NO_SUCH_UPLOAD = "NoSuchUpload"
# What a Complete can be refused with for good; asked again it would be refused again.
_NEVER_COMPLETE = {"InvalidPart", "InvalidPartOrder", "EntityTooSmall", "InvalidRequest"}
_NOT_MODIFIED = 304
"""Adobe S3Mock's answer to a false If-None-Match, which HTTP has for reading only: it means what 412 does."""
_COMPLETIONS: Mapping[int, Completion] = {409: "conflict", 412: "taken", _NOT_MODIFIED: "taken"}


class S3Store:
    """One bucket behind an S3 API, under the contract of `s3lake.index.store.Store`.

    It may be used from many threads, pickled into other processes and carried across a fork.

    A request that was repeated because its answer got lost may find its own success in the way: a conditional `put`
    answers None, a Complete "taken" or "missing". Whoever asks reads back what is there (rule R4).

    Attributes:
        connection: how to reach it.
        requests: attempts made so far by operation name; it starts empty in every process.
        retries: how many of them were repetitions.
    """

    def __init__(self, connection: S3Connection, bucket: str) -> None:
        self.connection = connection
        self.bucket = bucket
        self.requests: Counter[str] = Counter()
        self.retries = 0
        self._counting = threading.Lock()

    def __reduce__(self) -> tuple[type["S3Store"], tuple[S3Connection, str]]:
        return S3Store, (self.connection, self.bucket)

    def __repr__(self) -> str:
        return f"S3Store({self.endpoint!r}, bucket={self.bucket!r})"

    @property
    def endpoint(self) -> str:
        return self.connection.endpoint_url or f"AWS region {self.connection.region or '(default)'}"

    @property
    def requirements(self) -> str:
        """The settings of `s3.objects`, empty if there are none: a trial of the store holds for the same ones."""
        settings = (self.connection.created_with, self.connection.checksum, bool(self.connection.customer_key))
        return repr(settings) if any(settings) else ""

    def find_ignored(self, key: str) -> list[str]:
        """Return the settings of `s3.objects` that the store ignored when it created the object."""
        head = self._request("HeadObject", key, methodcaller("head_object", Bucket=self.bucket, Key=key))
        return find_ignored_settings(self.connection, head)

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        ranged = {"Range": f"bytes={span[0]}-{span[1] - 1}"} if span else {}

        def read(client: Any) -> Document:
            answer = client.get_object(Bucket=self.bucket, Key=key, **ranged)
            with answer["Body"] as body:  # read here, so that a connection lost half way is tried again too
                return Document(body.read(), answer["ETag"], _lower_names(answer["Metadata"]))

        try:
            return self._request("GetObject", key, read, expected={404, 416})  # 416: the object ends before the span
        except ExpectedStatus:
            return None

    def head(self, key: str) -> Head | None:
        try:
            answer = self._request(
                "HeadObject", key, methodcaller("head_object", Bucket=self.bucket, Key=key), expected={404}
            )
        except ExpectedStatus:
            return None
        return Head(answer["ETag"], answer["ContentLength"], _lower_names(answer["Metadata"]))

    def put(
        self,
        key: str,
        body: bytes,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        metadata: Mapping[str, str] = {},
    ) -> str | None:
        condition: dict[str, str] = {}
        expected: set[int] = set()
        if if_match is not None:
            # 404: AWS's answer to If-Match on a key without an object.
            condition, expected = {"IfMatch": if_match}, {404, 409, 412}
        elif if_absent:
            condition, expected = {"IfNoneMatch": "*"}, {_NOT_MODIFIED, 409, 412}

        def write(client: Any) -> str:
            # boto3 refuses memoryview; bytes of bytes do not copy.
            written = client.put_object(
                Bucket=self.bucket, Key=key, Body=bytes(body), Metadata=dict(metadata), **condition
            )
            return str(written["ETag"])

        try:
            return self._request("PutObject", key, write, expected=expected)
        except ExpectedStatus as answer:
            if answer.status == 409:
                raise StoreConflictError(
                    f"PutObject s3://{self.bucket}/{key} at {self.endpoint}: another request of this key was under way "
                    "(409 ConditionalRequestConflict). Run again."
                ) from None
            return None

    def delete(self, key: str) -> None:
        with contextlib.suppress(ExpectedStatus):
            self._request(
                "DeleteObject", key, methodcaller("delete_object", Bucket=self.bucket, Key=key), expected={404}
            )

    def list(self, prefix: str) -> Iterator[str]:
        for page in self._list_pages("ListObjectsV2", "list_objects_v2", prefix, "ContinuationToken"):
            yield from (entry["Key"] for entry in page.get("Contents", ()))

    def list_steps(self, prefix: str) -> Iterator[str]:
        for page in self._list_pages("ListObjectsV2", "list_objects_v2", prefix, "ContinuationToken", Delimiter="/"):
            yield from (entry["Prefix"][len(prefix) : -1] for entry in page.get("CommonPrefixes", ()))

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        # Without the marker of an upload's id: versitygw 1.8 refuses the one that it gave.
        for page in self._list_pages("ListMultipartUploads", "list_multipart_uploads", prefix, "KeyMarker"):
            for entry in page.get("Uploads", ()):
                yield PendingUpload(entry["Key"], entry["UploadId"], int(entry["Initiated"].timestamp() * 1000))

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:

        def create(client: Any) -> str:
            upload = client.create_multipart_upload(Bucket=self.bucket, Key=key, Metadata=dict(metadata))
            return str(upload["UploadId"])

        return self._request("CreateMultipartUpload", key, create, get_client=get_upload_client)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """See `Store.upload_part`.

        Raises:
            StoreUnavailableError: also when the upload is missing, because a new attempt begins a new upload.
        """

        def write(client: Any) -> str:
            part = client.upload_part(Bucket=self.bucket, Key=key, UploadId=upload, PartNumber=number, Body=bytes(body))
            name = f"Checksum{self.connection.checksum}"  # if it was requested, Complete has to name it too
            return f"{part['ETag']} {name}={part[name]}" if name in part else str(part["ETag"])

        try:
            return self._request("UploadPart", key, write, expected={_NO_SUCH_UPLOAD}, get_client=get_upload_client)
        except ExpectedStatus:
            raise StoreUnavailableError(
                f"UploadPart s3://{self.bucket}/{key} at {self.endpoint}, part {number}: the store no longer knows the "
                "upload. Set the bucket's lifecycle rule AbortIncompleteMultipartUpload to a day or more and run again."
            ) from None

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        listed = {"Parts": [_parse_part(number, part) for number, part in enumerate(parts, 1)]}
        unless_taken = {} if replace else {"IfNoneMatch": "*"}

        def complete(client: Any) -> None:
            client.complete_multipart_upload(
                Bucket=self.bucket, Key=key, UploadId=upload, MultipartUpload=listed, **unless_taken
            )

        try:
            self._request(
                "CompleteMultipartUpload",
                key,
                complete,
                expected={_NOT_MODIFIED, 404, 409, 412, _NO_SUCH_UPLOAD, *_NEVER_COMPLETE},
                get_client=get_upload_client,
            )
        except ExpectedStatus as answer:
            if answer.code in _NEVER_COMPLETE:
                _log.warning("CompleteMultipartUpload s3://%s/%s was refused for good: %s", self.bucket, key, answer)
                return "refused"
            return _COMPLETIONS.get(answer.status, "missing")
        return "completed"

    def tag_offsets(self, key: str, first: int, last: int, records: int) -> None:
        if self.connection.offset_tags is None:
            return
        counts = {"startOffset": first, "endOffset": last, "recordCount": records}
        tags = [{"Key": name, "Value": str(value)} for name, value in (*self.connection.tags, *counts.items())]

        def tag(client: Any) -> None:
            client.put_object_tagging(Bucket=self.bucket, Key=key, Tagging={"TagSet": tags})

        try:
            self._request("PutObjectTagging", key, tag)
        except S3LakeError as error:
            if self.connection.offset_tags == "required":
                raise
            if self.bucket not in _untagged:  # once a bucket, not once an object
                _untagged.add(self.bucket)
                _log.warning("objects have no tags that name the records they hold: %s", error)

    def abort_upload(self, key: str, upload: str) -> None:

        def abort(client: Any) -> None:
            client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload)

        since = _unavailable_since.get(self.connection)
        if since is not None and time.monotonic() - since < self.connection.patience_s:
            # Each upload would wait as long as the failed request did.
            raise StoreUnavailableError(
                f"AbortMultipartUpload s3://{self.bucket}/{key} at {self.endpoint} was not tried: the store did not "
                "answer a moment ago. The upload stays, invisible."
            )
        with contextlib.suppress(ExpectedStatus):
            self._request("AbortMultipartUpload", key, abort, expected={404})

    def _list_pages(
        self, operation: str, method: str, prefix: str, marker: str, **options: str
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the pages of a listing; `marker` is the parameter of a page's beginning."""
        query = {"Bucket": self.bucket, "Prefix": prefix, **options}
        while True:
            page = self._request(operation, prefix, methodcaller(method, **query))
            yield page
            if not page.get("IsTruncated"):
                return
            query[marker] = page[f"Next{marker}"]

    def console_url(self, prefix: str) -> str | None:
        reached = get_s3_client(self.connection).meta  # the environment may name another endpoint and region
        return find_console_page(
            self.connection.console, reached.endpoint_url, reached.region_name, self.bucket, prefix
        )

    def _request(
        self,
        operation: str,
        key: str,
        request: Callable[[Any], A],
        *,
        expected: Set[int | str] = frozenset(),
        get_client: Callable[[S3Connection], Any] = get_s3_client,
    ) -> A:
        """Make a request, again if it may succeed then.

        Args:
            operation: its name in the S3 API.
            key: what it is about, or the prefix of a listing.
            request: called with a client.
            expected: statuses and codes that are not errors.
            get_client: returns the client, of boto3 or of uploads.

        Raises:
            ExpectedStatus: one of `expected`.
            StoreDeniedError: the store refused, or the request cannot be made.
            StoreUnavailableError: no answer after all attempts.
        """
        import tenacity

        connection, what = self.connection, f"{operation} s3://{self.bucket}/{key} at {self.endpoint}"

        def attempt() -> A:
            with self._counting:
                self.requests[operation] += 1
            try:
                return request(get_client(connection))
            except Exception as error:
                meaning = to_store_error(error, connection.secrets, what, operation, expected)
                if meaning is None:
                    raise
                raise meaning from None  # boto3's text may have secrets

        def log_retry(state: tenacity.RetryCallState) -> None:
            with self._counting:
                self.retries += 1
            error = state.outcome.exception() if state.outcome else None
            _log.info("%s: attempt %d of %d: %s", what, state.attempt_number, connection.max_attempts, error)

        def is_enough(state: tenacity.RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            often = state.attempt_number >= connection.max_attempts
            long = (state.seconds_since_start or 0) + state.upcoming_sleep >= connection.patience_s
            if isinstance(error, NotReachedError) and connection.max_attempts > 1:
                return often and long
            return often or (long and isinstance(error, NoResponseError))

        retrying = tenacity.Retrying(
            stop=is_enough,
            wait=tenacity.wait_random_exponential(multiplier=connection.backoff_ms / 1000, max=_LONGEST_PAUSE_S),
            retry=tenacity.retry_if_exception_type(RetryableError),
            before_sleep=log_retry,
            reraise=True,
        )
        begun = time.monotonic()
        try:
            answer = retrying(attempt)
        except RetryableError as error:
            _unavailable_since[connection] = time.monotonic()
            times, seconds = retrying.statistics["attempt_number"], time.monotonic() - begun
            raise StoreUnavailableError(
                f"{what} failed {times} times in {seconds:.0f} s, at last with {error}. Check that the store is up and "
                "can be reached from here; s3.retries sets how often and how long to try."
            ) from None
        _unavailable_since.pop(connection, None)
        return answer


def _lower_names(metadata: Mapping[str, str]) -> dict[str, str]:
    # HTTP names have no case: servers and proxies written in Go send them on in one of their own.
    return {name.lower(): value for name, value in metadata.items()}


def find_ignored_settings(connection: S3Connection, head: Mapping[str, Any]) -> list[str]:
    """Return the settings that the store ignored, by the head of an object that was created with them."""
    created = dict(connection.created_with)
    expected = {
        "encryption": ("ServerSideEncryption", created.get("ServerSideEncryption")),
        "customer_key": ("SSECustomerAlgorithm", "AES256" if connection.customer_key else None),
        "storage_class": ("StorageClass", created.get("StorageClass")),
    }
    usual = {"StorageClass": "STANDARD", **head}  # which S3 leaves out
    lost = [setting for setting, (name, value) in expected.items() if value is not None and usual.get(name) != value]
    if connection.checksum is not None and f"Checksum{connection.checksum}" not in head:
        lost.append("checksum")
    return [f"s3.objects.{setting}" for setting in lost]


def _parse_part(number: int, text: str) -> dict[str, Any]:
    """Return a part as CompleteMultipartUpload names it: of its ETag and, if it has one, its checksum."""
    etag, _, checksum = text.partition(" ")
    name, _, value = checksum.partition("=")
    return {"PartNumber": number, "ETag": etag} | ({name: value} if name else {})


_untagged: set[str] = set()
"""Buckets with a logged warning that their objects get no tags."""
_unavailable_since: dict[S3Connection, float] = {}
"""When a request last failed for good, until one succeeds."""


_CONSOLE = "https://{region}.console.DOMAIN/s3/buckets/{bucket}?region={region}&prefix={prefix}"
_CONSOLES = {".amazonaws.com": "aws.amazon.com", ".amazonaws.com.cn": "amazonaws.cn"}


def find_console_page(template: str | None, endpoint_url: str, region: str, bucket: str, prefix: str) -> str | None:
    """Return the page that lists the objects below `prefix`. Return None without a template, if the store is not AWS.

    >>> find_console_page("https://minio:9001/browser/{bucket}/{prefix}", "http://minio:9000", "", "lake", "raw/a b/")
    'https://minio:9001/browser/lake/raw/a%20b/'
    """
    template = template or _find_aws_template(urlsplit(endpoint_url).hostname or "", region)
    if template is None:
        return None
    for name, value in {"region": region, "bucket": bucket, "prefix": prefix}.items():
        template = template.replace(f"{{{name}}}", quote(value))
    return template


def _find_aws_template(host: str, region: str) -> str | None:
    domain = next((domain for ending, domain in _CONSOLES.items() if host.endswith(ending)), None)
    if domain == "aws.amazon.com" and region.startswith("us-gov-"):
        domain = "amazonaws-us-gov.com"
    return domain and _CONSOLE.replace("DOMAIN", domain)
