"""Compare staged files with the records that they are made of: before the switch, for the old objects go after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any, BinaryIO, cast

from s3lake.errors import UnreadableError
from s3lake.index.commit.documents import File
from s3lake.index.store import Store
from s3lake.index.store.upload import PART_BYTES
from s3lake.lake.objects.digest import Digest
from s3lake.lake.objects.shape import ObjectShape
from s3lake.scratch import open_temporary, write_all


class StagedCopies:
    """Copies of what is uploaded, on local disk: an upload cannot be read from the store until it is completed.

    Attributes:
        store: the store; what is uploaded through it is copied.
    """

    def __init__(self, store: Store) -> None:
        self.store = cast("Store", _CopyingStore(store, self))
        self._copies: dict[str, IO[bytes]] = {}

    def __enter__(self) -> StagedCopies:
        return self

    def __exit__(self, *_: object) -> None:
        for copy in self._copies.values():
            copy.close()

    def add(self, upload: str, part: bytes) -> None:
        """Copy a part of an upload."""
        if upload not in self._copies:
            self._copies[upload] = open_temporary(len(part))
        write_all(self._copies[upload], part)

    def hold(self, files: Sequence[File], shape: ObjectShape, records: Digest) -> bool:
        """Return whether staged files are of this shape, and hold exactly these records, one file after the other."""
        digest = Digest()
        try:
            for file in files:
                copy = self._copies[file.upload]
                copy.seek(0)
                digest.add(shape, copy, file.key)
        except UnreadableError:
            return False
        return str(digest) == str(records)


class _CopyingStore:
    """A store that copies each part that it uploads; all else is done by the store itself."""

    def __init__(self, store: Store, copies: StagedCopies) -> None:
        self._store, self._copies = store, copies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        etag = self._store.upload_part(key, upload, number, body)
        self._copies.add(upload, body)
        return etag


def copy_object(body: BinaryIO, size: int) -> BinaryIO:
    """Copy an open object to local disk: it is read twice, and once from the store."""
    copy = open_temporary(size)
    try:
        while block := body.read(PART_BYTES):
            write_all(copy, block)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return cast("BinaryIO", copy)
