"""Work that one thread does in the background, in order and within a bound of memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class BackgroundWork:
    """One thread, which does what it is given in order. What waits for it is bounded: who gives more waits too."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._bytes = most_bytes, 0
        self._pool = ThreadPoolExecutor(1, "s3lake-behind")
        self._waiting: deque[tuple[Future[object], int]] = deque()

    def __enter__(self) -> BackgroundWork:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what waits; what is under way comes to its end."""
        self._pool.shutdown(cancel_futures=True)

    def do(self, work: Callable[[], object], size: int) -> None:
        """Give it work that holds so many bytes. What went wrong in work before is raised here."""
        self._waiting.append((self._pool.submit(work), size))
        self._bytes += size
        while self._bytes > self._most and len(self._waiting) > 1:
            self._first_done()

    def settle(self) -> None:
        """Wait until all is done. What went wrong is raised."""
        while self._waiting:
            self._first_done()

    def _first_done(self) -> None:
        work, size = self._waiting.popleft()
        self._bytes -= size
        work.result()
