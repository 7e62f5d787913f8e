"""What work costs, in figures that hold on any machine, also on a busy one: counts, and ratios of CPU time."""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType

PATIENCE_S = 300
"""How long a test waits for a thread, a process or a server before it fails: a timeout, which no figure depends on."""

_IMPORT = "import dagster, time; print(time.process_time())"


def count_calls(work: Callable[[], object], most: float = math.inf) -> int:
    """Return how many functions `work` calls, Python's and C's.

    Raises:
        AssertionError: `work` calls more than `most`; it is stopped there.
    """
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls > most:
                raise AssertionError(f"more than {most} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    assert calls <= most, "the work went on after it was stopped"
    return calls


def cpu_ratio(
    work: Callable[[], object], unit: Callable[[], object], enough: float, before: Callable[[], object] = lambda: None
) -> float:
    """Return how many times as much CPU `work` takes as `unit`, by the least of some tries of each, in turns.

    Args:
        enough: the first ratio that is at most this ends the tries: other work on the machine only makes tries dearer.
        before: is called before each try, and not measured.
    """

    def measure(measured: Callable[[], object]) -> float:
        before()
        began = time.process_time()
        measured()
        return time.process_time() - began

    return ratio_of_least(lambda: measure(work), lambda: measure(unit), enough)


def ratio_of_least(work_s: Callable[[], float], unit_s: Callable[[], float], enough: float, tries: int = 20) -> float:
    """Return the ratio of the least figures of two measurements in turns, or the first one of at most `enough`."""
    least_work = least_unit = math.inf
    for number in range(tries):
        least_unit, least_work = min(least_unit, unit_s()), min(least_work, work_s())
        # Not after the first: a unit that was disturbed once would allow anything.
        if number and least_work <= enough * least_unit:
            break
    return least_work / least_unit


def dagster_import_s() -> float:
    """Return the CPU seconds in which a new process imports Dagster: a unit of how fast this machine is now."""
    command = [sys.executable, "-W", "ignore", "-c", _IMPORT]
    return float(subprocess.check_output(command, timeout=PATIENCE_S))
