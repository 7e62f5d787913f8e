"""Stores in memory that do what stores have been seen to do, and one that is asked for more than keeping bytes."""

import threading
from collections.abc import Mapping, Sequence

from s3lake.errors import StoreConflictError, StoreDeniedError, StoreUnavailableError
from s3lake.store import COMMIT, Completion, Document
from s3lake.store.memory import MemoryStore
from s3lake.store.s3 import S3Store


class Counting(MemoryStore):
    """A store with an address, so that a trial of it is remembered."""

    def __init__(self, endpoint: str | None) -> None:
        super().__init__()
        if endpoint is not None:
            self.endpoint = endpoint
        self.keys: list[str] = []

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        self._note(key)
        return super().put(key, body, if_match=if_match, if_absent=if_absent)

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        self._note(key)
        return super().create_upload(key, metadata)

    def _note(self, key: str) -> None:
        if key not in self.keys:
            self.keys.append(key)


class IgnoresIfNoneMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:  # noqa: ARG002
        return super().put(key, body, if_match=if_match)


class IgnoresIfMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:  # noqa: ARG002
        return super().put(key, body, if_absent=if_absent)


class RefusesIfNoneMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        return None if if_absent else super().put(key, body, if_match=if_match)


class RefusesIfMatch(MemoryStore):
    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        return None if if_match is not None else super().put(key, body, if_absent=if_absent)


class LooksAndThenWrites(MemoryStore):
    """As servers that keep objects as files and take no lock."""

    def __init__(self, bucket: str) -> None:
        super().__init__(bucket)
        self.looked = threading.Barrier(4)

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        if if_match is None:
            return super().put(key, body, if_absent=if_absent)
        document = self.get(key)
        if threading.current_thread() is not threading.main_thread():  # who writes alone waits for nobody
            self.looked.wait(30)
        return super().put(key, body) if document and document.etag == if_match else None


class LetsTwoWin(MemoryStore):
    """Of those that write at once the first two."""

    def __init__(self, bucket: str) -> None:
        super().__init__(bucket)
        self.winners = threading.Semaphore(2)

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        if threading.current_thread() is threading.main_thread():
            return super().put(key, body, if_match=if_match, if_absent=if_absent)
        return super().put(key, body) if self.winners.acquire(blocking=False) else None


class AnswersConflict(MemoryStore):
    """As AWS does to all but one of those that write at once."""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        etag = super().put(key, body, if_match=if_match, if_absent=if_absent)
        if etag is None and threading.current_thread() is not threading.main_thread():
            raise StoreConflictError(key)
        return etag


class LosesMetadata(MemoryStore):
    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:  # noqa: ARG002
        return super().create_upload(key, {})


class KeepsData(MemoryStore):
    """Credentials without the right to delete below the data prefix."""

    def delete(self, key: str) -> None:
        if key.startswith("raw/"):
            raise StoreDeniedError(f"DeleteObject {key} was refused: allow these credentials s3:DeleteObject here")
        super().delete(key)


class KeepsAll(MemoryStore):
    """A store that says that it deletes."""

    def delete(self, key: str) -> None: ...


class ForgetsUploads(MemoryStore):
    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        self.abort_upload(key, upload)
        return super().complete_upload(key, upload, parts, replace=replace)


class Asked(MemoryStore, S3Store):
    """A store that has to do more than keep bytes, as only S3's is asked to."""

    endpoint = "http://s3"
    terms = "encrypted"

    def __init__(self, *ignored: str) -> None:
        super().__init__("lake")
        self._ignored = list(ignored)
        self.looked: list[str] = []
        self.commits: list[str] = []

    def ignored(self, key: str) -> list[str]:
        assert key in self.objects
        self.looked.append(key)
        return self._ignored

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        self.commits.append(metadata[COMMIT])
        return super().create_upload(key, metadata)


class LosesAnswers(MemoryStore):
    """Every PUT happens, and its repetition after the lost answer finds its condition failed."""

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str | None:
        super().put(key, body, if_match=if_match, if_absent=if_absent)
        return None


class Down(Counting):
    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:  # noqa: ARG002
        raise StoreUnavailableError(key)

    def delete(self, key: str) -> None:
        raise AssertionError(f"a store that does not answer is asked to delete {key}")
