"""CPU time and memory of a process and all that it started."""

import threading
from types import TracebackType

import psutil

_EVERY_S = 0.1


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree, of processes that have ended too: who waited for them has their time."""
    total = 0.0
    for process in _tree(pid):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it ended just now
            continue
        total += times.user + times.system + getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    return total


class Meter:
    """Watches the memory of a tree, ten times a second, from a thread.

    `peak_rss` is the largest sum of resident sizes. Python workers are forked, so the pages that they share with each
    other are in it several times: it is never too low. `peak_pss` is the largest sum of proportional sizes, where a
    page that n processes share counts 1/n in each: what the tree takes from the machine. Linux only, else 0.
    """

    def __init__(self, pid: int) -> None:
        self.peak_rss = self.peak_pss = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Meter":
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY_S):
            rss = pss = 0
            for process in _tree(self._pid):
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
