"""Work in a forked process, which has all that this one has imported, and leaves nothing behind in it."""

import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from typing import Generic, TypeVar

A = TypeVar("A")


class Apart(Generic[A]):
    """Work that has begun."""

    def __init__(self, work: Callable[[], A], quiet: bool = True) -> None:
        reading, writing = os.pipe()
        self._reading = reading
        self._pid = os.fork()
        if self._pid == 0:
            os.close(reading)
            if quiet:
                nowhere = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nowhere, stream)
            try:
                answer = pickle.dumps(work())
                with os.fdopen(writing, "wb") as pipe:
                    pipe.write(answer)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(writing)

    def answer(self, seconds: float | None = None) -> A | None:
        """None where the process ended without an answer, or was ended because that took too long."""
        with os.fdopen(self._reading, "rb") as pipe:
            ready, _, _ = select.select([pipe], [], [], seconds)
            if not ready:
                os.kill(self._pid, signal.SIGKILL)
            text = pipe.read() if ready else b""
        os.waitpid(self._pid, 0)
        answer: A | None = pickle.loads(text) if text else None
        return answer
