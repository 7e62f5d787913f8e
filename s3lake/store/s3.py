"""S3 over HTTP, through boto3: conditional writes, multipart uploads, and retries that are counted and have an end."""

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from s3lake.errors import ConfigurationError, StoreConflictError, StoreUnavailableError
from s3lake.store import Begun, Completion, Document, Head
from s3lake.store.answers import Answer, NoAnswer, NotReached, Silent, meaning_of
from s3lake.store.client import client

if TYPE_CHECKING:
    from s3lake import sink

A = TypeVar("A")
_log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 20.0
_NO_SUCH_UPLOAD = "NoSuchUpload"
# What a Complete can be refused with for good; asked again it would be refused again.
_NEVER_COMPLETE = {"InvalidPart", "InvalidPartOrder", "EntityTooSmall", "InvalidRequest"}


@dataclass(frozen=True)
class S3Connection:
    """How to reach an S3 API: plain values only, because Spark pickles them into its Python workers.

    Attributes:
        endpoint_url: None for AWS.
        region: None for boto3's own choice.
        path_style: bucket in the path instead of in the host name.
        max_pool_connections: connections one process keeps open.
        access_key_id: None, with the secret, for boto3's own chain: environment, profile, instance role.
        secret_access_key: never printed.
        session_token: never printed.
        profile: of the AWS configuration files.
        unsigned: send no credentials at all.
        use_ssl: https where `endpoint_url` does not say.
        verify: check the server's certificate; None leaves it to boto3, which does.
        max_attempts: of one request, the first included; 1 for never again.
        patience_s: how long a store that refuses connections is asked again, however often that is, and after which one
            that takes requests and says nothing is asked no more.
        backoff_ms: the longest first pause between attempts; it doubles, and each pause is a random part of it.
        connect_timeout_s: of one attempt.
        read_timeout_s: of one attempt, between two bytes.
        role_arn: a role that these credentials assume, again before it ends; the `role_*` beside it are AssumeRole's.
        proxy_url: None for the environment's, `HTTPS_PROXY`.
        created_with: what each object is created with beside its bytes: encryption, ACL, storage class.
    """

    endpoint_url: str | None = None
    region: str | None = None
    path_style: bool = True
    max_pool_connections: int = 50
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    profile: str | None = None
    unsigned: bool = False
    use_ssl: bool = True
    verify: bool | None = None
    max_attempts: int = 5
    backoff_ms: int = 50
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 45.0
    patience_s: float = 90.0
    role_arn: str | None = None
    role_external_id: str | None = None
    role_session_name: str = "s3lake"
    role_duration_s: int | None = None
    role_endpoint_url: str | None = None
    proxy_url: str | None = None
    proxy_user: str | None = None
    proxy_password: str | None = field(default=None, repr=False)
    created_with: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # The endpoint is named in every error.
        if "@" in (self.endpoint_url or ""):
            raise ConfigurationError(
                "s3.endpoint_url may hold neither user name nor password: write it as https://host:port, and give the "
                "keys as s3.credentials."
            )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What is never printed."""
        secrets = (self.secret_access_key, self.session_token, self.proxy_password)
        return tuple(secret for secret in secrets if secret)

    @classmethod
    def of(cls, s3: "sink.S3") -> "S3Connection":
        """The connection that the configuration's `s3` part describes."""
        keys = None if s3.credentials == "default" else s3.credentials
        token = keys.session_token if keys else None
        role, proxy = s3.role, s3.proxy
        return cls(
            endpoint_url=s3.endpoint_url,
            region=s3.region,
            path_style=s3.path_style,
            max_pool_connections=s3.max_pool_connections,
            access_key_id=keys.access_key_id if keys else None,
            secret_access_key=keys.secret_access_key.get_secret_value() if keys else None,
            session_token=token.get_secret_value() if token else None,
            max_attempts=s3.retries.max_attempts,
            backoff_ms=s3.retries.backoff_ms,
            patience_s=s3.retries.patience,
            role_arn=role.arn if role else None,
            role_external_id=role.external_id if role else None,
            role_session_name=role.session_name if role else "s3lake",
            role_duration_s=round(role.duration) if role else None,
            role_endpoint_url=role.endpoint_url if role else None,
            proxy_url=proxy.url if proxy else None,
            proxy_user=proxy.user if proxy else None,
            proxy_password=proxy.password.get_secret_value() if proxy and proxy.password else None,
            created_with=s3.objects.created_with,
        )

    @classmethod
    def from_resource(
        cls,
        resource: Any,
        *,
        path_style: bool = True,
        max_pool_connections: int = 50,
        max_attempts: int | None = None,
        backoff_ms: int = 50,
    ) -> "S3Connection":
        """The connection of a `dagster_aws.s3.S3Resource`.

        Args:
            resource: anything with the documented fields of that class.
            path_style: the resource has no such field.
            max_pool_connections: the resource has no such field.
            max_attempts: None for the resource's own.
            backoff_ms: the resource has no such field.
        """

        def plain(name: str) -> Any:
            value = getattr(resource, name)
            # Dagster replaces its EnvVar by what it stands for only when a run begins.
            return value.get_value() if hasattr(value, "get_value") else value

        return cls(
            endpoint_url=plain("endpoint_url"),
            region=plain("region_name"),
            path_style=path_style,
            max_pool_connections=max_pool_connections,
            access_key_id=plain("aws_access_key_id"),
            secret_access_key=plain("aws_secret_access_key"),
            session_token=plain("aws_session_token"),
            profile=plain("profile_name"),
            unsigned=plain("use_unsigned_session"),
            use_ssl=plain("use_ssl"),
            verify=plain("verify"),
            max_attempts=plain("max_attempts") if max_attempts is None else max_attempts,
            backoff_ms=backoff_ms,
        )


class S3Store:
    """One bucket behind an S3 API, under the contract of `s3lake.store.Store`.

    It may be used from many threads, pickled into other processes and carried across a fork.

    A request that was repeated because its answer got lost may find its own success in the way: a conditional `put`
    answers None, a Complete "taken" or "gone". Whoever asks reads back what is there (rule R4).

    Attributes:
        connection: how to reach it.
        bucket: its name.
        requests: attempts made so far by operation name; it starts empty in every process.
    """

    def __init__(self, connection: S3Connection, bucket: str) -> None:
        self.connection = connection
        self.bucket = bucket
        self.requests: Counter[str] = Counter()
        self._counting = threading.Lock()

    def __reduce__(self) -> tuple[type["S3Store"], tuple[S3Connection, str]]:
        return S3Store, (self.connection, self.bucket)

    def __repr__(self) -> str:
        return f"S3Store({self.endpoint!r}, bucket={self.bucket!r})"

    @property
    def endpoint(self) -> str:
        """Where the bucket is, for people and for telling stores apart."""
        return self.connection.endpoint_url or f"AWS region {self.connection.region or '(default)'}"

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        """See `Store.get`."""
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
        """See `Store.head`."""
        try:
            answer = self._ask(
                "HeadObject", key, lambda client: client.head_object(Bucket=self.bucket, Key=key), answers={404}
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
        """See `Store.put`."""
        created: dict[str, Any] = {**dict(self.connection.created_with), "Metadata": dict(metadata)}
        condition = {"IfMatch": if_match} if if_match is not None else {"IfNoneMatch": "*"} if if_absent else {}
        # 404: AWS's answer to If-Match on a key without an object.
        answers = {404, 409, 412} if if_match is not None else {409, 412} if if_absent else set()

        def write(client: Any) -> str:
            # boto3 refuses memoryview; bytes of bytes is no copy.
            return str(client.put_object(Bucket=self.bucket, Key=key, Body=bytes(body), **created, **condition)["ETag"])

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
        """See `Store.delete`."""
        with contextlib.suppress(Answer):
            self._ask(
                "DeleteObject", key, lambda client: client.delete_object(Bucket=self.bucket, Key=key), answers={404}
            )

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`."""
        for page in self._pages("ListObjectsV2", "list_objects_v2", prefix, "ContinuationToken"):
            yield from (entry["Key"] for entry in page.get("Contents", ()))

    def list_uploads(self, prefix: str) -> Iterator[Begun]:
        """See `Store.list_uploads`."""
        # Without the marker of an upload's id: versitygw 1.8 refuses the one that it gave.
        for page in self._pages("ListMultipartUploads", "list_multipart_uploads", prefix, "KeyMarker"):
            for entry in page.get("Uploads", ()):
                yield Begun(entry["Key"], entry["UploadId"], int(entry["Initiated"].timestamp() * 1000))

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """See `Store.create_upload`."""

        def create(client: Any) -> str:
            created = dict(self.connection.created_with)
            upload = client.create_multipart_upload(Bucket=self.bucket, Key=key, Metadata=dict(metadata), **created)
            return str(upload["UploadId"])

        return self._ask("CreateMultipartUpload", key, create)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """See `Store.upload_part`.

        Raises:
            StoreUnavailableError: also when the upload is gone, because a new attempt begins a new upload.
        """

        def write(client: Any) -> str:
            part = client.upload_part(Bucket=self.bucket, Key=key, UploadId=upload, PartNumber=number, Body=bytes(body))
            return str(part["ETag"])

        try:
            return self._ask("UploadPart", key, write, answers={_NO_SUCH_UPLOAD})
        except Answer:
            raise StoreUnavailableError(
                f"UploadPart s3://{self.bucket}/{key} at {self.endpoint}, part {number}: the store no longer knows the "
                "upload. Set the bucket's lifecycle rule AbortIncompleteMultipartUpload to a day or more and run again."
            ) from None

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        """See `Store.complete_upload`."""
        listed = {"Parts": [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(parts, 1)]}
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
            return "taken" if answer.status == 412 else "conflict" if answer.status == 409 else "gone"
        return "completed"

    def abort_upload(self, key: str, upload: str) -> None:
        """See `Store.abort_upload`."""

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

    def _pages(self, operation: str, method: str, prefix: str, marker: str) -> Iterator[Mapping[str, Any]]:
        """A listing, page by page; `marker` tells where a page begins."""
        query = {"Bucket": self.bucket, "Prefix": prefix}
        while True:
            page = self._ask(operation, prefix, lambda client: getattr(client, method)(**query))
            yield page
            if not page.get("IsTruncated"):
                return
            query[marker] = page[f"Next{marker}"]

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
                return request(_client(connection))
            except Exception as error:
                meaning = meaning_of(error, connection.secrets, what, operation, answers)
                if meaning is None:
                    raise
                raise meaning from None  # its text is in the meaning, without secrets

        def tell(state: tenacity.RetryCallState) -> None:
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


_away: dict[S3Connection, float] = {}
"""When a request was last given up, until one is answered."""
_clients: dict[S3Connection, Any] = {}
_making = threading.Lock()


def _client(connection: S3Connection) -> Any:
    """This process's client for `connection`; clients may be shared by threads, making them may not."""
    shared = _clients.get(connection)
    if shared is None:
        with _making:
            shared = _clients.get(connection)
            if shared is None:
                shared = _clients[connection] = client(connection)
    return shared


def _after_fork() -> None:
    """Neither connections nor a lock that another thread held may be shared with the parent."""
    global _clients, _making
    _clients, _making = {}, threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)
