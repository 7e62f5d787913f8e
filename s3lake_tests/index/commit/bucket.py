"""A bucket that can be worse than the best of stores, and reports what happened to it."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from s3lake.errors import StoreConflictError, StoreDeniedError
from s3lake.index.commit.topic_index import Pace
from s3lake.index.store import Completion, Head, PendingUpload
from s3lake.index.store.memory import MemoryStore

PREFIX = "index/sink"
DATA = "data/"
PACE = Pace(parallel=1, looks=2, pause_s=0, patience_s=0)
Twist = Literal["none", "conflict", "conflict, in flight", "untrue", "refused", "slow", "late"]
"""What the store makes of a request that is well-founded.

conflict: 409; a PUT is not carried out, a Complete's upload is forgotten. conflict, in flight: the same, but an earlier
sending of the PUT is carried out some time later. untrue: 412 for a PUT whose condition holds. refused: 400 for a
Complete, as whenever it is sent again. slow: a Complete is under way, its upload already unknown and its object not yet
there, until its actor goes on. late: a Complete is answered before its object can be seen.
"""


@dataclass(frozen=True)
class Circumstances:
    """How this store differs from the best of stores.

    Attributes:
        overwrites: a Complete does not honour If-None-Match.
        repeats: completing an upload twice answers 200 instead of 404.
        opaque: the ETag of an object is not the MD5 of its bytes.
        late: an object may become visible some time after its Complete was answered.
        conflicts: a PUT with a condition may answer 409 or an untrue 412; a Complete may answer 409, and the upload is
            lost.
        refuses: a Complete may be refused for good.
        keeps_data: nothing below `data/` may be deleted.
    """

    overwrites: bool = False
    repeats: bool = False
    opaque: bool = False
    late: bool = False
    conflicts: bool = False
    refuses: bool = False
    keeps_data: bool = False


BEST = Circumstances()


@dataclass(frozen=True)
class Written:
    """An object was written."""

    key: str
    before: tuple[bytes, Head] | None
    after: tuple[bytes, Head]


@dataclass(frozen=True)
class Deleted:
    """A DELETE was sent; `before` is the object that it took away, if there was one."""

    key: str
    before: tuple[bytes, Head] | None


@dataclass(frozen=True)
class Aborted:
    """An upload was dropped by an actor; its commit is in `metadata`."""

    key: str
    metadata: Mapping[str, str]


class Bucket(MemoryStore):
    """The product's memory store, under circumstances; it reports what happened to it."""

    def __init__(self, circumstances: Circumstances) -> None:
        super().__init__()
        self.circumstances = circumstances
        self.twist: Twist = "none"
        self.effects: list[Written | Deleted | Aborted] = []
        self.landing: list[tuple[str, bytes, Mapping[str, str]]] = []
        self.finished: set[str] = set()
        self.broken: set[str] = set()
        self.working: dict[str, tuple[str, bytes, Mapping[str, str]]] = {}
        self.staged: dict[str, bytes] = {}
        self._etags = itertools.count(1)
        self.clock: Callable[[], int] = lambda: 0
        self.shown: set[str] = set()  # uploads that a listing has shown: who ends them does what the bucket's rule does

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        upload = super().create_upload(key, metadata)
        self.uploads[upload].begun_ms = self.clock()
        return upload

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        begun = list(super().list_uploads(prefix))
        self.shown |= {one.upload for one in begun}
        return iter(begun)

    def put(self, key: str, body: bytes, **how: Any) -> str | None:
        if self.circumstances.conflicts and (how.get("if_absent") or how.get("if_match") is not None):
            if self.twist.startswith("conflict"):
                raise StoreConflictError(f"another request of {key} is under way")
            if self.twist == "untrue":
                return None
        return super().put(key, body, **how)

    def delete(self, key: str) -> None:
        if self.circumstances.keeps_data and key.startswith("data/"):
            raise StoreDeniedError(f"DeleteObject {key} was refused: allow these credentials s3:DeleteObject here")
        self.effects.append(Deleted(key, self.objects.get(key)))
        super().delete(key)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        self.staged[upload] = body
        return super().upload_part(key, upload, number, body)

    def abort_upload(self, key: str, upload: str) -> None:
        if upload in self.uploads and upload not in self.shown:
            self.effects.append(Aborted(key, self.uploads[upload].metadata))
        super().abort_upload(key, upload)

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        self.overwrites = self.circumstances.overwrites
        if upload in self.finished and self.circumstances.repeats:
            return "taken" if key in self.objects and not self.overwrites else "completed"
        if upload not in self.uploads:
            return "missing"
        if self.circumstances.refuses and self.twist == "refused":
            self.broken.add(upload)
        if upload in self.broken:
            return "refused"
        if self.circumstances.conflicts and self.twist.startswith("conflict"):
            del self.uploads[upload]
            return "conflict"
        if self.circumstances.late and self.twist == "late" and key not in self.objects:
            found = self.uploads.pop(upload)
            self.landing.append((key, b"".join(found.parts.values()), found.metadata))
            self.finished.add(upload)
            return "completed"
        answer = super().complete_upload(key, upload, parts, replace=replace)
        if answer == "completed":
            self.finished.add(upload)
        return answer

    def begin(self, upload: str) -> None:
        """A Complete is under way."""
        found = self.uploads.pop(upload)
        self.working[upload] = found.key, b"".join(found.parts.values()), found.metadata

    def end(self, upload: str) -> Completion:
        """A Complete that was under way is done."""
        key, body, metadata = self.working.pop(upload)
        if key in self.objects and not self.circumstances.overwrites:
            return "taken"
        self._write(key, body, metadata)
        self.finished.add(upload)
        return "completed"

    def leave(self, upload: str) -> None:
        """Nobody waits any more for a Complete that is under way."""
        if upload in self.working:
            self.landing.append(self.working.pop(upload))
            self.finished.add(upload)

    def land(self) -> None:
        """The oldest Complete that was answered before its time becomes visible."""
        if self.landing:
            key, body, metadata = self.landing.pop(0)
            self._write(key, body, metadata)

    def _write(self, key: str, body: bytes, metadata: Mapping[str, str]) -> str:
        before = self.objects.get(key)
        etag = super()._write(key, body, metadata)
        if self.circumstances.opaque:
            etag = f'"opaque-{next(self._etags)}"'
            self.objects[key] = (body, Head(etag, len(body), metadata))
        self.effects.append(Written(key, before, self.objects[key]))
        return etag
