"""S3 over HTTP, through boto3: conditional writes, multipart uploads, and retries that are counted and have an end."""

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from operator import methodcaller
from typing import Any, TypeVar

from s3lake.errors import S3LakeError, StoreConflictError, StoreUnavailableError
from s3lake.store import Begun, Completion, Document, Head, console
from s3lake.store.answers import Answer, NoAnswer, NotReached, Silent, meaning_of
from s3lake.store.client import shared
from s3lake.store.connection import S3Connection
from s3lake.store.parameters import ignored, of_receipt, receipt

A = TypeVar("A")
_log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 20.0
_NO_SUCH_UPLOAD = "NoSuchUpload"
# What a Complete can be refused with for good; asked again it would be refused again.
_NEVER_COMPLETE = {"InvalidPart", "InvalidPartOrder", "EntityTooSmall", "InvalidRequest"}
_COMPLETIONS: Mapping[int, Completion] = {409: "conflict", 412: "taken"}


class S3Store:
    """One bucket behind an S3 API, under the contract of `s3lake.store.Store`.

    It may be used from many threads, pickled into other processes and carried across a fork.

    A request that was repeated because its answer got lost may find its own success in the way: a conditional `put`
    answers None, a Complete "taken" or "gone". Whoever asks reads back what is there (rule R4).

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
        """Where the bucket is, for people and for telling stores apart."""
        return self.connection.endpoint_url or f"AWS region {self.connection.region or '(default)'}"

    @property
    def terms(self) -> str:
        """What the store has to do beside keeping bytes, if anything: a trial of it holds for the same terms."""
        terms = (self.connection.created_with, self.connection.checksum, bool(self.connection.customer_key))
        return repr(terms) if any(terms) else ""

    def ignored(self, key: str) -> list[str]:
        """The settings of `s3.objects` that the store did not heed when it took the object."""
        head = self._ask("HeadObject", key, methodcaller("head_object", Bucket=self.bucket, Key=key))
        return ignored(self.connection, head)

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        ranged = {"Range": f"bytes={span[0]}-{span[1] - 1}"} if span else {}

        def read(client: Any) -> Document:
            answer = client.get_object(Bucket=self.bucket, Key=key, **ranged)
            with answer["Body"] as body:  # read here, so that a connection lost half way is tried again too
                return Document(body.read(), answer["ETag"], _named(answer["Metadata"]))

        try:
            return self._ask("GetObject", key, read, answers={404})
        except Answer:
            return None

    def head(self, key: str) -> Head | None:
        try:
            answer = self._ask(
                "HeadObject", key, methodcaller("head_object", Bucket=self.bucket, Key=key), answers={404}
            )
        except Answer:
            return None
        return Head(answer["ETag"], answer["ContentLength"], _named(answer["Metadata"]))

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
        answers: set[int] = set()
        if if_match is not None:
            # 404: AWS's answer to If-Match on a key without an object.
            condition, answers = {"IfMatch": if_match}, {404, 409, 412}
        elif if_absent:
            condition, answers = {"IfNoneMatch": "*"}, {409, 412}

        def write(client: Any) -> str:
            # boto3 refuses memoryview; bytes of bytes is no copy.
            written = client.put_object(
                Bucket=self.bucket, Key=key, Body=bytes(body), Metadata=dict(metadata), **condition
            )
            return str(written["ETag"])

        try:
            return self._ask("PutObject", key, write, answers=answers)
        except Answer as answer:
            if answer.status == 409:
                raise StoreConflictError(
                    f"PutObject s3://{self.bucket}/{key} at {self.endpoint}: another request of this key was under way "
                    "(409 ConditionalRequestConflict). Run again."
                ) from None
            return None

    def delete(self, key: str) -> None:
        with contextlib.suppress(Answer):
            self._ask("DeleteObject", key, methodcaller("delete_object", Bucket=self.bucket, Key=key), answers={404})

    def list(self, prefix: str) -> Iterator[str]:
        for page in self._pages("ListObjectsV2", "list_objects_v2", prefix, "ContinuationToken"):
            yield from (entry["Key"] for entry in page.get("Contents", ()))

    def list_steps(self, prefix: str) -> Iterator[str]:
        for page in self._pages("ListObjectsV2", "list_objects_v2", prefix, "ContinuationToken", Delimiter="/"):
            yield from (entry["Prefix"][len(prefix) : -1] for entry in page.get("CommonPrefixes", ()))

    def list_uploads(self, prefix: str) -> Iterator[Begun]:
        # Without the marker of an upload's id: versitygw 1.8 refuses the one that it gave.
        for page in self._pages("ListMultipartUploads", "list_multipart_uploads", prefix, "KeyMarker"):
            for entry in page.get("Uploads", ()):
                yield Begun(entry["Key"], entry["UploadId"], int(entry["Initiated"].timestamp() * 1000))

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:

        def create(client: Any) -> str:
            upload = client.create_multipart_upload(Bucket=self.bucket, Key=key, Metadata=dict(metadata))
            return str(upload["UploadId"])

        return self._ask("CreateMultipartUpload", key, create)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """See `Store.upload_part`.

        Raises:
            StoreUnavailableError: also when the upload is gone, because a new attempt begins a new upload.
        """

        def write(client: Any) -> str:
            part = client.upload_part(Bucket=self.bucket, Key=key, UploadId=upload, PartNumber=number, Body=bytes(body))
            return receipt(part, self.connection.checksum)

        try:
            return self._ask("UploadPart", key, write, answers={_NO_SUCH_UPLOAD})
        except Answer:
            raise StoreUnavailableError(
                f"UploadPart s3://{self.bucket}/{key} at {self.endpoint}, part {number}: the store no longer knows the "
                "upload. Set the bucket's lifecycle rule AbortIncompleteMultipartUpload to a day or more and run again."
            ) from None

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        listed = {"Parts": [of_receipt(number, part) for number, part in enumerate(parts, 1)]}
        unless_taken = {} if replace else {"IfNoneMatch": "*"}

        def complete(client: Any) -> None:
            client.complete_multipart_upload(
                Bucket=self.bucket, Key=key, UploadId=upload, MultipartUpload=listed, **unless_taken
            )

        try:
            self._ask(
                "CompleteMultipartUpload", key, complete, answers={404, 409, 412, _NO_SUCH_UPLOAD, *_NEVER_COMPLETE}
            )
        except Answer as answer:
            if answer.code in _NEVER_COMPLETE:
                _log.warning("CompleteMultipartUpload s3://%s/%s was refused for good: %s", self.bucket, key, answer)
                return "refused"
            return _COMPLETIONS.get(answer.status, "gone")
        return "completed"

    def tag_offsets(self, key: str, first: int, last: int, records: int) -> None:
        wanted = self.connection.offset_tags
        if wanted is None:
            return
        held = {"startOffset": first, "endOffset": last, "recordCount": records}
        tags = [{"Key": name, "Value": str(value)} for name, value in (*self.connection.tags, *held.items())]

        def tag(client: Any) -> None:
            client.put_object_tagging(Bucket=self.bucket, Key=key, Tagging={"TagSet": tags})

        try:
            self._ask("PutObjectTagging", key, tag)
        except S3LakeError as error:
            if wanted == "required":
                raise
            if self.bucket not in _untagged:  # a bucket of which every object would be told
                _untagged.add(self.bucket)
                _log.warning("objects have no tags that say which records they hold: %s", error)

    def abort_upload(self, key: str, upload: str) -> None:

        def abort(client: Any) -> None:
            client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload)

        away = _away.get(self.connection)
        if away is not None and time.monotonic() - away < self.connection.patience_s:
            # Tidying up after a failure would wait as long as the failure did, for every upload.
            raise StoreUnavailableError(
                f"AbortMultipartUpload s3://{self.bucket}/{key} at {self.endpoint} was not tried: the store was away a "
                "moment ago. The upload stays, invisible."
            )
        with contextlib.suppress(Answer):
            self._ask("AbortMultipartUpload", key, abort, answers={404})

    def _pages(
        self, operation: str, method: str, prefix: str, marker: str, **options: str
    ) -> Iterator[Mapping[str, Any]]:
        """A listing, page by page; `marker` tells where a page begins."""
        query = {"Bucket": self.bucket, "Prefix": prefix, **options}
        while True:
            page = self._ask(operation, prefix, methodcaller(method, **query))
            yield page
            if not page.get("IsTruncated"):
                return
            query[marker] = page[f"Next{marker}"]

    def console_url(self, prefix: str) -> str | None:
        reached = shared(self.connection).meta  # the environment may name another endpoint and region
        return console.address(self.connection.console, reached.endpoint_url, reached.region_name, self.bucket, prefix)

    def _ask(
        self, operation: str, key: str, request: Callable[[Any], A], *, answers: Set[int | str] = frozenset()
    ) -> A:
        """Make a request, again and again if need be.

        Args:
            operation: its name in the S3 API.
            key: what it is about, or the prefix of a listing.
            request: called with a boto3 client.
            answers: statuses and codes that are answers to the question and no errors.

        Raises:
            Answer: one of `answers`.
            StoreDeniedError: the store refused, or the request cannot be made.
            StoreUnavailableError: no answer after all attempts.
        """
        import tenacity

        connection, what = self.connection, f"{operation} s3://{self.bucket}/{key} at {self.endpoint}"

        def attempt() -> A:
            with self._counting:
                self.requests[operation] += 1
            try:
                return request(shared(connection))
            except Exception as error:
                meaning = meaning_of(error, connection.secrets, what, operation, answers)
                if meaning is None:
                    raise
                raise meaning from None  # its text is in the meaning, without secrets

        def tell(state: tenacity.RetryCallState) -> None:
            with self._counting:
                self.retries += 1
            error = state.outcome.exception() if state.outcome else None
            _log.info("%s: attempt %d of %d: %s", what, state.attempt_number, connection.max_attempts, error)

        def enough(state: tenacity.RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            often = state.attempt_number >= connection.max_attempts
            long = (state.seconds_since_start or 0) + state.upcoming_sleep >= connection.patience_s
            if isinstance(error, NotReached) and connection.max_attempts > 1:
                return often and long
            return often or (long and isinstance(error, Silent))

        retrying = tenacity.Retrying(
            stop=enough,
            wait=tenacity.wait_random_exponential(multiplier=connection.backoff_ms / 1000, max=_LONGEST_PAUSE_S),
            retry=tenacity.retry_if_exception_type(NoAnswer),
            before_sleep=tell,
            reraise=True,
        )
        begun = time.monotonic()
        try:
            answer = retrying(attempt)
        except NoAnswer as error:
            _away[connection] = time.monotonic()
            times, seconds = retrying.statistics["attempt_number"], time.monotonic() - begun
            raise StoreUnavailableError(
                f"{what} failed {times} times in {seconds:.0f} s, at last with {error}. Check that the store is up and "
                "can be reached from here; s3.retries says how often and how long to try."
            ) from None
        _away.pop(connection, None)
        return answer


def _named(metadata: Mapping[str, str]) -> dict[str, str]:
    # HTTP names have no case: servers and proxies written in Go send them on in one of their own.
    return {name.lower(): value for name, value in metadata.items()}


_untagged: set[str] = set()
"""Buckets of which it was told that their objects get no tags."""
_away: dict[S3Connection, float] = {}
"""When a request was last given up, until one is answered."""
