"""Child processes that end with this one, however it ends."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from s3lake.demo import guard

S = TypeVar("S", bound="Stoppable")


class Stoppable:
    """What ends with the `with` that it begins."""

    def stop(self) -> None:
        """Ends it and waits until it is gone. Doing it twice is fine."""
        raise NotImplementedError

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class GuardedProcess(Stoppable):
    """A command under a guard (`s3lake.demo.guard`), its output in a log file."""

    def __init__(self, guard_process: "subprocess.Popen[bytes]", log_fd: int, grace_s: float) -> None:
        self._guard = guard_process
        self._log_fd = log_fd
        self._grace_s = grace_s

    @property
    def pid(self) -> int:
        """The process id of the guard."""
        return self._guard.pid

    @property
    def running(self) -> bool:
        """Whether the command still runs."""
        return self._guard.poll() is None

    @property
    def returncode(self) -> int | None:
        """The exit code of the command, None while it runs."""
        return self._guard.poll()

    def log(self, last_bytes: int = 4000) -> str:
        """The end of what the command has written so far."""
        size = os.fstat(self._log_fd).st_size
        return os.pread(self._log_fd, last_bytes, max(0, size - last_bytes)).decode(errors="replace").strip()

    def stop(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        try:
            # The guard needs its grace to end the command, then time for its directory: 80,000 files take a minute.
            self._guard.wait(timeout=self._grace_s + 300)
        finally:
            if self._log_fd >= 0:
                os.close(self._log_fd)
                self._log_fd = -1


class Service(Stoppable):
    """A server of the demo, which ends with this process, SIGKILL included."""

    _process: GuardedProcess

    @property
    def pid(self) -> int:
        """The process id of the server's guard."""
        return self._process.pid

    def stop(self) -> None:
        self._process.stop()


def spawn(
    cmd: Sequence[str | Path],
    log_path: Path,
    env: Mapping[str, str] | None = None,
    *,
    remove: Path | None = None,
    grace_s: float = 5.0,
) -> GuardedProcess:
    """Starts a command that ends with this process.

    Args:
        cmd: the command and its arguments.
        log_path: the file that gets its stdout and stderr, appended.
        env: its whole environment; None inherits this process's.
        remove: a directory to delete once the command has ended; the log may lie in it.
        grace_s: how long the command may take to end on SIGTERM before SIGKILL.
    """
    # By path and isolated: no site-packages to scan and no package to import, so it is up in 40 ms.
    command = [sys.executable, "-I", "-S", guard.__file__, "--grace", str(grace_s)]
    if remove is not None:
        command += ["--remove", str(remove)]
    # Held open here, so that the log can be read even after the guard has removed its directory.
    log_fd = os.open(log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [*command, "--", *map(str, cmd)],
            stdin=subprocess.PIPE,
            stdout=log_fd,
            stderr=log_fd,
            env=env,
            start_new_session=True,
        )
    except BaseException:
        os.close(log_fd)
        raise
    return GuardedProcess(process, log_fd, grace_s)


def free_port(port: int) -> bool:
    """Whether nothing listens on a port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listens on now; somebody may take one before it is used."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
