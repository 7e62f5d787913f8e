"""CPU time and memory of processes and all that they started."""

import contextlib
import threading
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from typing_extensions import Self


class Watch:
    """Looks at something from a thread, every `every_s` seconds, until its block ends."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._over = every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def look(self) -> None:
        """Look once."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            self.look()


class Meter(Watch):
    """Watches trees.

    CPU time is each process's own as it was last seen, of ended ones too. What parents know of ended children is no
    help: pyspark's daemon ignores SIGCHLD, and the kernel then forgets what a worker used that ended (idle for a
    minute, which it is while thousands of files are committed).

    `peak_rss` is the largest sum of resident sizes. Python workers are forked, so the pages that they share with each
    other are in it several times: it is never too low. `peak_pss` is the largest sum of proportional sizes, where a
    page that n processes share counts 1/n in each: what the tree takes from the machine. Linux only, else 0.
    """

    def __init__(self, *pids: int, every_s: float = 0.1) -> None:
        """Of each tree the top; what a process uses in the last `every_s` seconds of its life may be missed."""
        super().__init__(every_s)
        self.peak_rss = self.peak_pss = 0
        self._cpu: dict[int, dict[psutil.Process, float]] = {pid: {} for pid in pids}
        self._lock = threading.Lock()

    @property
    def cpu_seconds(self) -> float:
        """User and system time of the trees so far."""
        return sum(map(self.cpu_seconds_of, self._cpu))

    def cpu_seconds_of(self, pid: int) -> float:
        """The same, of one of them."""
        for process in _tree(pid):
            self._see(pid, process)
        with self._lock:
            return sum(self._cpu[pid].values())

    def _see(self, pid: int, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.Error), self._lock:  # it ended just now
            times = process.cpu_times()
            self._cpu[pid][process] = times.user + times.system

    def look(self) -> None:
        rss = pss = 0
        for pid in self._cpu:
            for process in _tree(pid):
                self._see(pid, process)
                try:
                    memory = process.memory_full_info()
                except psutil.Error:
                    continue
                rss += memory.rss
                pss += getattr(memory, "pss", 0)
        self.peak_rss, self.peak_pss = max(self.peak_rss, rss), max(self.peak_pss, pss)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []
