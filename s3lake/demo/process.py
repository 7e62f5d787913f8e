"""Child processes that end with this one, however it ends."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from s3lake.demo import guard

if TYPE_CHECKING:
    from typing_extensions import Self


class Stoppable:
    """Something that is stopped at the end of its `with` block."""

    def stop(self) -> None:
        """Stop it and wait until it has ended. A second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
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
        """True if the command still runs."""
        return self._guard.poll() is None

    @property
    def returncode(self) -> int | None:
        """The exit code of the command; None while it runs."""
        return self._guard.poll()

    def log(self, last_bytes: int = 4000) -> str:
        """Return the end of the command's output so far."""
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
    """A server of the demo, which ends with this process, even after SIGKILL."""

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
    """Start a command that ends with this process.

    Args:
        cmd: the command and its arguments.
        log_path: its stdout and stderr are appended to this file.
        env: its whole environment; None for this process's.
        remove: a directory to delete when the command has ended; the log may be in it.
        grace_s: seconds between SIGTERM and SIGKILL.
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
    """Return whether nothing listens on a port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nothing listens on now; another process may take one before it is used."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
