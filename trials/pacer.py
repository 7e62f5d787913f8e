"""Lets the shared clock run fast while Dagster has nothing to do, and as the world's while it has."""

import sqlite3
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

from trials.clock.shared_clock import Pace, SharedClock

_POLL_S = 0.02
_RUN = (
    "select 1 from runs where status in ('NOT_STARTED', 'QUEUED', 'STARTING', 'STARTED', 'CANCELING') limit 1",
    "history/runs.db",
)
_TICK = (
    "select 1 from (select status from job_ticks order by id desc limit 40) where status = 'STARTED' limit 1",
    "schedules/schedules.db",
)
_MOST_BEHIND_S = 2.0


class Pacer:
    """Fast while no run is asked for and under way, no tick either, and records are written in time.

    So what a run or a tick takes is what it takes, in the clock's seconds as in the world's, and only the waiting
    between them is skipped.

    Attributes:
        running_s: of the world, while there was a run.
        changed: called when a run begins and when none is left any more, with whether there is one.
    """

    def __init__(self, clock: SharedClock, home: Path, speed: float, behind_s: Callable[[], float]) -> None:
        self.clock, self.speed = clock, speed
        self.paces: list[Pace] = [clock.pace]
        self.changed: Callable[[bool], None] = lambda _: None
        self.running = False
        self._behind_s = behind_s
        self._asked = {query: f"file:{home / path}?mode=ro" for query, path in (_RUN, _TICK)}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._run(1.0)

    def shown(self, epoch_s: float) -> float:
        """What the clock showed at a moment of the world."""
        monotonic = epoch_s - (time.time() - time.monotonic())
        at = bisect_right(self.paces, monotonic, key=attrgetter("monotonic"))
        return self.paces[max(0, at - 1)].at(monotonic)

    def _watch(self) -> None:
        databases = {query: sqlite3.connect(path, uri=True) for query, path in self._asked.items()}
        try:
            while not self._over.wait(_POLL_S):
                running, ticking = (bool(databases[query].execute(query).fetchone()) for query, _ in (_RUN, _TICK))
                held = running or ticking or self._behind_s() > _MOST_BEHIND_S
                self._run(1.0 if held else self.speed)
                if running != self.running:
                    self.running = running
                    self.changed(running)
        finally:
            for database in databases.values():
                database.close()

    def _run(self, speed: float) -> None:
        self.clock.run(speed)
        if self.paces[-1] != self.clock.pace:
            self.paces.append(self.clock.pace)
