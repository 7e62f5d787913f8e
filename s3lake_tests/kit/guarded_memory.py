"""Values that end where the memory ends that may be read: a byte more crashes the test."""

import ctypes
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

PAGE = mmap.PAGESIZE
"""The most bytes that a value may have."""


@contextmanager
def guarded_page() -> Iterator[Callable[[bytes], pa.BinaryArray]]:
    """Yield a function that puts a value at the end of a page, as an array. The array is good until the next call."""
    with mmap.mmap(-1, 2 * PAGE) as memory:
        place = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(place)
        libc = ctypes.CDLL(None, use_errno=True)
        behind = ctypes.c_void_p(address + PAGE)
        assert libc.mprotect(behind, PAGE, 0) == 0
        data = pa.foreign_buffer(address, PAGE)

        def put_at_end(value: bytes) -> pa.BinaryArray:
            start = PAGE - len(value)
            memory[start:PAGE] = value
            offsets = pa.py_buffer(np.array([start, PAGE], np.int32))
            return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])

        yield put_at_end
        assert libc.mprotect(behind, PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        del place  # so that the memory can be unmapped
