"""A committed object as a file that is open for reading, in blocks."""

import io
from typing import BinaryIO

from s3lake.errors import DataLossError
from s3lake.index.store import COMMIT, Store
from s3lake.index.store.upload import PART_BYTES
from s3lake.text.quantities import format_count

BUFFER_BYTES = 2**18
"""How many bytes of a block a reader takes at once."""


def open_object(store: Store, key: str, size: int, commit: str, block_bytes: int | None = None) -> BinaryIO:
    """Open the object that `commit` wrote at `key`; two blocks of an upload's part are in memory at most.

    Reading raises:
        DataLossError: the object is missing, is shorter, or is of another commit.
    """
    return io.BufferedReader(_Object(store, key, size, commit, block_bytes or PART_BYTES), BUFFER_BYTES)


class _Object(io.RawIOBase):
    def __init__(self, store: Store, key: str, size: int, commit: str, block_bytes: int) -> None:
        self._store, self._key, self._size, self._commit = store, key, size, commit
        self._block_bytes = block_bytes
        self._at = 0
        self._blocks: dict[int, memoryview] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._at >= self._size:
            return 0
        number, within = divmod(self._at, self._block_bytes)
        some = self._get_block(number)[within : within + len(buffer)]
        buffer[: len(some)] = some
        self._at += len(some)
        return len(some)

    def _get_block(self, number: int) -> memoryview:
        if number not in self._blocks:
            if len(self._blocks) > 1:  # readers of tables look at a file's end first
                self._blocks.pop(min(self._blocks))
            self._blocks[number] = memoryview(self._read(number * self._block_bytes))
        return self._blocks[number]

    def _read(self, start: int) -> bytes:
        end = min(start + self._block_bytes, self._size)
        block = self._store.get(self._key, (start, end))
        if block is None or block.metadata.get(COMMIT) != self._commit or len(block.body) != end - start:
            state = "is missing or shorter"
            if block is not None:
                state = f"has {len(block.body):,} of {format_count(end - start, 'bytes')} or is another's"
            raise DataLossError(f"s3://{self._store.bucket}/{self._key} of commit {self._commit} {state}")
        return block.body
