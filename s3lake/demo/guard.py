"""Run a command that must not outlive its starter: `python -m s3lake.demo.guard -- CMD...`.

The starter holds the other end of this process's stdin. When the starter ends, even by SIGKILL, the system closes that
end; the guard reads end-of-file and ends the command.
"""

import argparse
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

_STDIN = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command until it ends, stdin ends, or SIGTERM or SIGINT arrives. Return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m s3lake.demo.guard", description=__doc__)
    parser.add_argument("--grace", type=float, default=5.0, help="seconds between SIGTERM and SIGKILL")
    parser.add_argument("--remove", metavar="DIR", help="directory to delete once the command has ended")
    parser.add_argument("command", nargs="+", metavar="CMD")
    options = parser.parse_args(argv)
    wakeup = _wake_on(signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
    try:
        # Its own process group: the terminal's Ctrl-C goes to the starter, which ends its parts in order.
        child = subprocess.Popen(options.command, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            _wait_for_reason(child, wakeup)
        finally:
            _end(child, options.grace)
    finally:
        if options.remove:
            shutil.rmtree(options.remove, ignore_errors=True)
    return _exit_code(child.returncode)


def _wake_on(*signals: signal.Signals) -> int:
    """Make the signals readable as bytes, so that one select() waits for them and for stdin."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in signals:
        # A handler of Python's own is needed, or no byte is written.
        signal.signal(number, lambda _number, _frame: None)
    return reader


def _wait_for_reason(child: "subprocess.Popen[bytes]", wakeup: int) -> None:
    """Return when the child has ended or has to end."""
    while child.poll() is None:
        ready, _, _ = select.select([_STDIN, wakeup], [], [])
        if _STDIN in ready and not os.read(_STDIN, 4096):
            return
        if wakeup in ready and set(os.read(wakeup, 4096)) & {signal.SIGTERM, signal.SIGINT}:
            return


def _end(child: "subprocess.Popen[bytes]", grace: float) -> None:
    _signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + grace
    # Not wait(timeout): it sleeps in steps of up to 50 ms, for every test that stops a server.
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    _signal_group(child, signal.SIGKILL)
    child.wait()


def _signal_group(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    # The group has ended, or (macOS) is a zombie.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _exit_code(returncode: int) -> int:
    """Return the exit code as a shell reports it: 128 plus the number of the signal."""
    return 128 - returncode if returncode < 0 else returncode


if __name__ == "__main__":
    sys.exit(main())
