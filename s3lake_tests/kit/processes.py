"""Processes that a test started, found by a mark in their environment: parents may have ended, groups have changed."""

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from s3lake.demo.process import GuardedProcess
from s3lake_tests.kit.cost import PATIENCE_S

MARK = "S3LAKE_TEST"


def marked(mark: str) -> list[psutil.Process]:
    """Every process with this mark, however it was started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def kill_all(mark: str) -> None:
    """SIGKILL for all of them, until none is left."""
    while processes := marked(mark):
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=PATIENCE_S)


def catches(process: "subprocess.Popen[str]", number: signal.Signals) -> bool:
    """Whether a process has a handler of the signal; True if it has ended, or the system does not show it."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    except FileNotFoundError:
        return True
    handlers = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)  # a zombie has none
    return process.poll() is not None or (handlers is not None and int(handlers[1], 16) >> (number - 1) & 1 == 1)


def until(reached: Callable[[], bool]) -> None:
    """Wait for something that a process is to do."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"a timeout: not reached within {PATIENCE_S} s"
        time.sleep(0.1)


def served(process: GuardedProcess, answers: Callable[[], bool]) -> None:
    """Wait for a server to answer; if it does not, its log has the reason."""
    deadline = time.monotonic() + PATIENCE_S
    while not answers():
        assert process.running, f"it ended:\n{process.log()}"
        assert time.monotonic() < deadline, f"a timeout: it does not answer within {PATIENCE_S} s:\n{process.log()}"
        time.sleep(0.1)
