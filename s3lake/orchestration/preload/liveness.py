"""A process as a tag of a run names it: of which machine, its number, and when it began."""

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

_ENDED = "Z"
_STATE, _BEGAN = 0, 19
"""Fields of /proc/PID/stat, counted from behind the name of the program."""


@dataclass(frozen=True)
class RunProcess:
    """The process of a run.

    Attributes:
        host: the name of its machine or container.
        pid: its number there.
        began: when it began, in clock ticks since the machine was started: numbers are used again.
    """

    host: str
    pid: int
    began: int

    @classmethod
    def find(cls, pid: int) -> "Self":
        """Return the process of this machine that has a number now."""
        _, began = _read(pid) or ("", 0)
        return cls(socket.gethostname(), pid, began)

    @classmethod
    def read(cls, text: str) -> "Self":
        """Return the process that `write` wrote."""
        return cls(**json.loads(text))

    def write(self) -> str:
        """Return the process as text."""
        return json.dumps(asdict(self))

    def is_here(self) -> bool:
        """Return whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Return whether it runs. False for a process of another machine."""
        state, began = (_read(self.pid) if self.is_here() else None) or (_ENDED, 0)
        return state != _ENDED and began == self.began

    def send_signal(self, number: int) -> bool:
        """Send a signal. Return False if the process does not run here."""
        if not self.is_alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def _read(pid: int) -> tuple[str, int] | None:
    """Return the state of a process, and when it began; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[_STATE], int(fields[_BEGAN])
