"""Local disk for what does not fit into memory, and the error if there is none."""

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from s3lake.errors import LocalDiskError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}


@contextmanager
def scratch(size: int, remedy: str = "") -> Iterator[None]:
    """Write or make temporary files in here; what the directory refuses is one error that names it.

    Args:
        size: how many bytes are wanted.
        remedy: what helps besides another directory.

    Raises:
        LocalDiskError: it is full, or cannot be written to.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL | _CLOSED:
            raise
        raise LocalDiskError(_describe_failure(error, size, remedy)) from None


def open_temporary(size: int, remedy: str = "") -> IO[bytes]:
    """Open a temporary file without a buffer, which would keep what the disk refused and refuse to be closed.

    Raises:
        LocalDiskError: the local disk is full or not writable, see `scratch`.
    """
    with scratch(size, remedy):
        return tempfile.TemporaryFile(prefix="s3lake-", buffering=0)


def write_all(file: IO[bytes], data: bytes, remedy: str = "") -> None:
    """Write all of `data` to the end of such a file: one write may take a part of it.

    Raises:
        LocalDiskError: the local disk is full or not writable, see `scratch`.
    """
    with scratch(len(data), remedy):
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]


def _describe_failure(error: OSError, size: int, remedy: str) -> str:
    ways = f"point TMPDIR elsewhere{f', or {remedy}' if remedy else ''}. Nothing half written is visible"
    try:
        directory = tempfile.gettempdir()
        free = shutil.disk_usage(directory).free
    except OSError as none:
        return f"{none.strerror}: let one be written to, or {ways}"
    if error.errno in _FULL:
        shortage = f"{size:,} bytes more have to wait in {directory}, which has {free:,} left ({error.strerror})"
        return f"{shortage}: give it space, {ways}"
    return f"nothing can be written to {directory} ({error.strerror}): let it be written to, or {ways}"
