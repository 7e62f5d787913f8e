"""The one door to S3: a contract, and what its answers mean. `s3.py` speaks HTTP, `memory.py` serves tests and models.

Every conditional request says honestly that its condition failed, every other failure is an exception of `errors.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

COMMIT = "s3lake-commit"
"""Metadata name (`x-amz-meta-s3lake-commit`) that says which commit an object belongs to: its only identity."""


@dataclass(frozen=True)
class Document:
    """An object's bytes, or some of them, its ETag and its metadata, whose names are in lower case."""

    body: bytes
    etag: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Head:
    """What is known of an object without reading it. `size` is in bytes, names of metadata are in lower case."""

    etag: str
    size: int
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class Begun:
    """An upload that is neither completed nor aborted; `begun_ms` is the store's time, since the epoch."""

    key: str
    upload: str
    begun_ms: int


Completion = Literal["completed", "taken", "conflict", "gone", "refused"]
"""Answer of a conditional CompleteMultipartUpload.

completed: the object is visible. taken: the key has an object already (412). conflict: a concurrent request, the
upload may be lost (409). gone: the store knows no such upload (404). refused: it knows the upload and will never
complete it so (a part is another one than was named, or too small).
"""


class Store(Protocol):
    """One bucket. Keys are whole keys, without the bucket's name.

    Every method raises StoreUnavailableError when the store does not answer and StoreDeniedError when it refuses.
    """

    bucket: str

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        """The object, or None; only its bytes from the first to before the second of `span`, as far as it has them."""
        ...

    def head(self, key: str) -> Head | None:
        """The object's metadata, or None."""
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
        """Write an object if the condition holds: its new ETag, or None when the store says that it does not (412).

        Raises:
            StoreConflictError: another request of this key was under way (409), which may come to nothing: neither
                says anything about what stands there.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete the object; no error when there is none."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Keys that begin with `prefix`, in order."""
        ...

    def list_steps(self, prefix: str) -> Iterator[str]:
        """Yield the next step of the keys below `prefix`, up to a slash, each once: `b` for `a/b/c` below `a/`."""
        ...

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """Begin a multipart upload, invisible until completed: its id."""
        ...

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """Upload one part (numbers from 1; all but the last at least 5 MiB): its ETag."""
        ...

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        """Make the upload visible, unless the key has an object (If-None-Match: *) that it may not `replace`."""
        ...

    def tag_offsets(self, key: str, first: int, last: int, records: int) -> None:
        """Say at a completed object which records it holds, where that is asked for; again does no harm."""
        ...

    def abort_upload(self, key: str, upload: str) -> None:
        """Drop the upload; no error when there is none."""
        ...

    def list_uploads(self, prefix: str) -> Iterator[Begun]:
        """Uploads under way whose keys begin with `prefix`, for clean, which comes again: some may be left out.

        MinIO names only those of one whole key, and of a key that a page of 1,000 ends with the rest is passed over.
        """
        ...

    def console_url(self, prefix: str) -> str | None:
        """The page where people look at what is below `prefix`; None where there is none, or nobody named it."""
        ...
