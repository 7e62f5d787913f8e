"""A streaming multipart upload: bytes in, parts out, never more than one part in memory."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, NamedTuple

from s3lake.errors import S3LakeError
from s3lake.index.store import Store
from s3lake.scratch import open_temporary, write_all

PART_BYTES = 32 * 2**20
"""Size of a part; S3 takes 10,000 of them, so an object can grow to 320 GiB. 50,000 usual records are one part."""


_REMEDY = "raise memory_budget"


class Spill:
    """Local disk for bytes that do not fit the memory budget; one file for all uploads of a task."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def add(self, data: bytes) -> tuple[int, int]:
        """Keep `data`. Return its position and length.

        Raises:
            LocalDiskError: the disk does not take it.
        """
        if self._file is None:
            self._file = open_temporary(len(data), _REMEDY)
        position = self._file.seek(0, 2)
        write_all(self._file, data, _REMEDY)
        return position, len(data)

    def take(self, extent: tuple[int, int]) -> bytes:
        assert self._file is not None  # extents come from `add`
        self._file.seek(extent[0])
        return self._file.read(extent[1])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Upload:
    """One upload of an object; it starts in the store with its first full part, or at the end.

    Without a key nothing is sent before `finish` gets one: the bytes wait on local disk.
    """

    def __init__(self, store: Store, key: str | None, metadata: Mapping[str, str], spill: Spill) -> None:
        self.key = key
        self.size = 0
        self.buffered = 0
        self._store, self._metadata, self._spill = store, metadata, spill
        self._memory: list[bytes | memoryview] = []
        self._spilled: list[tuple[int, int]] = []
        self._waiting = 0
        self._parts: list[str] = []
        self._id = ""

    def write(self, data: bytes | memoryview) -> None:
        """Add bytes; full parts are uploaded at once."""
        self._memory.append(data)
        self.size += len(data)
        self.buffered += len(data)
        self._waiting += len(data)
        if self.key is None and self.buffered >= PART_BYTES:
            self.spill()
        elif self.key is not None and self._waiting >= PART_BYTES:
            self._send(self.key, last=False)

    def spill(self) -> None:
        """Move buffered bytes to local disk."""
        if self._memory:
            self._spilled.append(self._spill.add(b"".join(self._memory)))
            self._memory.clear()
            self.buffered = 0

    def finish(self, key: str) -> tuple[str, tuple[str, ...]]:
        """Upload the rest. Return the upload's id and its parts' ETags. Nothing is visible yet."""
        self.key = key
        self._send(key, last=True)
        return self._id, tuple(self._parts)

    def abort(self) -> None:
        if self._id and self.key is not None:
            self._store.abort_upload(self.key, self._id)

    def _send(self, key: str, *, last: bool) -> None:
        pieces: list[bytes | memoryview | tuple[int, int]] = [*self._spilled, *self._memory]
        self._spilled.clear()
        self._memory.clear()
        part: list[memoryview] = []
        size = 0
        for piece in pieces:
            view = memoryview(self._spill.take(piece) if isinstance(piece, tuple) else piece)
            while size + len(view) >= PART_BYTES:
                end = PART_BYTES - size
                self._upload_part(key, b"".join([*part, view[:end]]))
                view, part, size = view[end:], [], 0
            part.append(view)
            size += len(view)
        if last and (size or not self._parts):
            self._upload_part(key, b"".join(part))
            size = 0
        if size:
            self._memory.append(b"".join(part))
        self.buffered = self._waiting = size

    def _upload_part(self, key: str, body: bytes) -> None:
        if not self._id:
            self._id = self._store.create_upload(key, self._metadata)
        self._parts.append(self._store.upload_part(key, self._id, len(self._parts) + 1, body))


class StagedObject(NamedTuple):
    """An object that is staged as a whole: its upload's id, its parts' ETags and its bytes."""

    upload: str
    parts: tuple[str, ...]
    size: int


def stage_object(
    store: Store,
    key: str,
    metadata: Mapping[str, str],
    fill: Callable[[Callable[[bytes | memoryview], None], Spill], None],
) -> StagedObject:
    """Stage one object with the bytes that `fill` writes. If that fails, nothing remains of it."""
    spill = Spill()
    upload = Upload(store, key, metadata, spill)
    try:
        fill(upload.write, spill)
        return StagedObject(*upload.finish(key), upload.size)
    except BaseException:
        with suppress(S3LakeError):
            upload.abort()
        raise
    finally:
        spill.close()
