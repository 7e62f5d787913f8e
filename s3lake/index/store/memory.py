"""A bucket in memory under the same contract: for tests, and for running the commit protocol request by request."""

import hashlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from s3lake import hours
from s3lake.errors import StoreUnavailableError
from s3lake.index.store import Completion, Document, Head, PendingUpload


@dataclass
class _Upload:
    key: str
    metadata: Mapping[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)
    begun_ms: int = field(default_factory=hours.now_ms)


class MemoryStore:
    """A bucket that forgets everything with the process.

    Attributes:
        overwrites: complete uploads over existing objects, as stores do that ignore If-None-Match on Complete.
        tagged: the first and the last offset of each object, by its key, and how many records it holds.
    """

    overwrites = False
    endpoint: str | None = None
    requirements = ""
    retries = 0

    def __init__(self, bucket: str = "memory") -> None:
        self.bucket = bucket
        self.requests: Counter[str] = Counter()
        self.objects: dict[str, tuple[bytes, Head]] = {}
        self.uploads: dict[str, _Upload] = {}
        self.tagged: dict[str, tuple[int, int, int]] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        stored = self.objects.get(key)
        if not stored or (span and span[0] >= len(stored[0])):
            return None
        return Document(stored[0][slice(*span or (None,))], stored[1].etag, stored[1].metadata)

    def head(self, key: str) -> Head | None:
        stored = self.objects.get(key)
        return stored[1] if stored else None

    def put(
        self,
        key: str,
        body: bytes,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        metadata: Mapping[str, str] = {},
    ) -> str | None:
        with self._lock:
            present = self.objects.get(key)
            if (if_absent and present) or (if_match is not None and (not present or present[1].etag != if_match)):
                return None
            return self._write(key, body, dict(metadata))

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def list(self, prefix: str) -> Iterator[str]:
        return iter(sorted(key for key in list(self.objects) if key.startswith(prefix)))

    def list_steps(self, prefix: str) -> Iterator[str]:
        rests = (key.removeprefix(prefix) for key in self.list(prefix))
        return iter(dict.fromkeys(rest.partition("/")[0] for rest in rests if "/" in rest))

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        upload = f"upload-{next(self._ids)}"
        self.uploads[upload] = _Upload(key, dict(metadata))
        return upload

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        started = self._find_upload(key, upload)
        if started is None:
            raise StoreUnavailableError(f"{key}: the store no longer knows the upload")
        started.parts[number] = bytes(body)
        return _make_etag(body)

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        with self._lock:
            started = self._find_upload(key, upload)
            if started is None:
                return "missing"
            if key in self.objects and not (replace or self.overwrites):
                return "taken"
            if {number: _make_etag(part) for number, part in started.parts.items()} != dict(enumerate(parts, 1)):
                return "refused"
            del self.uploads[upload]
            self._write(key, b"".join(started.parts[number] for number in sorted(started.parts)), started.metadata)
            return "completed"

    def tag_offsets(self, key: str, first: int, last: int, records: int) -> None:
        self.tagged[key] = first, last, records

    def abort_upload(self, key: str, upload: str) -> None:
        if self._find_upload(key, upload):
            self.uploads.pop(upload, None)

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        begun = [PendingUpload(one.key, upload, one.begun_ms) for upload, one in list(self.uploads.items())]
        return iter(sorted((one for one in begun if one.key.startswith(prefix)), key=attrgetter("key")))

    def find_ignored(self, key: str) -> Sequence[str]:  # noqa: ARG002
        return []

    def console_url(self, prefix: str) -> str | None:  # noqa: ARG002
        return None

    def _find_upload(self, key: str, upload: str) -> _Upload | None:
        """Return the upload with this key and id, None if there is none."""
        started = self.uploads.get(upload)
        return started if started and started.key == key else None

    def _write(self, key: str, body: bytes, metadata: Mapping[str, str]) -> str:
        etag = _make_etag(body)
        self.objects[key] = (bytes(body), Head(etag, len(body), metadata))
        return etag


def _make_etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
