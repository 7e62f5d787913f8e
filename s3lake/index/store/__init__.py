"""The contract of a bucket: `s3.py` fulfils it over HTTP, `memory.py` for tests and previews.

A conditional request returns that its condition failed; every other failure is an exception of `errors.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

COMMIT = "s3lake-commit"
"""Metadata name (`x-amz-meta-s3lake-commit`) that names the commit of an object: its only identity."""


@dataclass(frozen=True)
class Document:
    """An object's bytes, or some of them, its ETag and its metadata, whose names are in lower case."""

    body: bytes
    etag: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Head:
    """The metadata of an object. `size` is in bytes, names of metadata are in lower case."""

    etag: str
    size: int
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class PendingUpload:
    """An upload that is neither completed nor aborted; `begun_ms` is the store's time, since the epoch."""

    key: str
    upload: str
    begun_ms: int


Completion = Literal["completed", "taken", "conflict", "missing", "refused"]
"""Answer of a conditional CompleteMultipartUpload.

completed: the object is visible. taken: the key has an object already (412). conflict: a concurrent request, the
upload may be lost (409). missing: the store has no such upload (404). refused: it knows the upload and will never
complete it like this (a part differs from the named one, or is too small).
"""


class Store(Protocol):
    """One bucket. Keys are whole keys, without the bucket's name.

    Every method raises StoreUnavailableError when the store does not answer and StoreDeniedError when it refuses.
    """

    bucket: str

    @property
    def endpoint(self) -> str | None:
        """The place of the store, for messages; None in memory: such a store is tried every time."""
        ...

    @property
    def requirements(self) -> str:
        """The settings of `s3.objects` that it has to apply, empty if there are none."""
        ...

    @property
    def requests(self) -> Counter[str]:
        """The requests so far by operation name, repetitions included."""
        ...

    @property
    def retries(self) -> int:
        """How many of the requests were repetitions."""
        ...

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        """Return the object, with `span` only these bytes of it. Return None if it is missing, or has none of them."""
        ...

    def head(self, key: str) -> Head | None:
        """Return the object's metadata, or None if it is missing."""
        ...

    def put(
        self,
        key: str,
        body: bytes,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        metadata: Mapping[str, str] = {},
    ) -> str | None:
        """Write an object if the condition is true. Return its new ETag, or None if the condition is false (412).

        Raises:
            StoreConflictError: another request of this key is running (409) and may fail: the object is not known.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete the object; a missing one is not an error."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in order."""
        ...

    def list_steps(self, prefix: str) -> Iterator[str]:
        """Yield the next step of the keys below `prefix`, up to a slash, each once: `b` for `a/b/c` below `a/`."""
        ...

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """Start a multipart upload, which is invisible until completed. Return its id."""
        ...

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """Upload one part (numbers from 1; all but the last at least 5 MiB). Return its ETag."""
        ...

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        """Make the upload visible, unless the key has an object (If-None-Match: *) that it may not `replace`."""
        ...

    def tag_offsets(self, key: str, first: int, last: int, records: int) -> None:
        """Tag a completed object with the records it has, if it is configured. It may be repeated."""
        ...

    def abort_upload(self, key: str, upload: str) -> None:
        """Abort the upload; a missing one is not an error."""
        ...

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        """Yield the pending uploads whose keys begin with `prefix`; some may be left out, because clean is repeated.

        MinIO names only uploads of one whole key, and of a key that a page of 1,000 ends with the rest is skipped.
        """
        ...

    def find_ignored(self, key: str) -> Sequence[str]:
        """Return the settings of `requirements` that the store ignored when it created the object."""
        ...

    def console_url(self, prefix: str) -> str | None:
        """Return the web page of the objects below `prefix`, None if it is not known."""
        ...


Stores = Callable[[str], Store]
"""Opens a bucket; picklable, and the same in the driver and in the workers."""
