"""A clock that processes share through a file, and that may run faster than the world's."""

import mmap
import struct
import time
from pathlib import Path
from typing import NamedTuple

_PACE = struct.Struct("<ddd")
_SIZE = 8 + 2 * _PACE.size


class Pace(NamedTuple):
    """From a moment on (`monotonic`), when the clock showed `shown`, it runs at `speed`."""

    monotonic: float
    shown: float
    speed: float

    def at(self, monotonic: float) -> float:
        """What the clock shows then."""
        return self.shown + (monotonic - self.monotonic) * self.speed


class SharedClock:
    """The clock of a file, which every process reads and one sets.

    Two places for a pace and the number of the one that counts: nobody reads half of a new one.
    """

    def __init__(self, path: Path | str) -> None:
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._monotonic = time.monotonic

    @classmethod
    def create(cls, path: Path, shown: float) -> "SharedClock":
        """A clock that begins at `shown`, at the world's speed."""
        path.write_bytes(bytes(_SIZE))
        made = cls(path)
        made._write(Pace(time.monotonic(), shown, 1.0))
        return made

    @property
    def pace(self) -> Pace:
        """How it runs now."""
        return Pace(*_PACE.unpack_from(self._map, 8 + self._map[0] * _PACE.size))

    def time(self) -> float:
        """What it shows, as seconds since 1970."""
        return self.pace.at(self._monotonic())

    def run(self, speed: float) -> None:
        """Go on at another speed."""
        if self.pace.speed != speed:
            now = self._monotonic()
            self._write(Pace(now, self.pace.at(now), speed))

    def set_forward(self, shown: float) -> None:
        """Show a later moment from now on."""
        self._write(Pace(self._monotonic(), max(shown, self.time()), self.pace.speed))

    def _write(self, pace: Pace) -> None:
        other = 1 - self._map[0]
        _PACE.pack_into(self._map, 8 + other * _PACE.size, *pace)
        self._map[0] = other
