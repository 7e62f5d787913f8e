"""Child processes that end with this one, however it ends."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from s3lake.demo import guard

if TYPE_CHECKING:
    from typing_extensions import Self

_ATTEMPTS = 5
_START_TIMEOUT_S = 180.0
BUSY = "This machine may be too busy or too short of memory: end other programs, and try again."
_TAKEN = re.compile("(?:address|port) (?:is )?already in use", re.IGNORECASE)


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

    def end_of_log(self) -> str:
        """Return the end of the command's output as the end of an error's message."""
        log = self.log()
        return f"The end of its log:\n{log}" if log else "Its log is empty."

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


@dataclass(frozen=True)
class Launch:
    """How a server is started, and how it shows that it serves.

    What shows it is the log or an answer of this very process: another may have taken the port first.
    """

    command: Sequence[str | Path]
    is_serving: Callable[[GuardedProcess], bool]
    env: Mapping[str, str] | None = None


def start_server(
    name: str,
    prepare: Callable[[list[int], Path], Launch],
    error: type[Exception],
    *,
    ports: int = 1,
    home: Path | None = None,
    grace_s: float = 5.0,
) -> tuple[GuardedProcess, list[int], Path]:
    """Start a server on free ports and wait until it serves. Return its process, its ports and its directory.

    Args:
        name: the name of its log and of its temporary directory.
        prepare: gets the ports and the directory.
        error: is raised if the server does not start; the message ends with its log.
        ports: how many it needs.
        home: its directory; None for a temporary one, which is deleted when the server has ended.
        grace_s: see `spawn`.
    """
    # Not a retry of tenacity: only a taken port is tried again, and what was started is taken down first.
    for _ in range(_ATTEMPTS):
        numbers = free_ports(ports)
        directory = Path(tempfile.mkdtemp(prefix=f"s3lake-{name}-")) if home is None else home
        remove = directory if home is None else None
        try:
            server = prepare(numbers, directory)
            process = spawn(server.command, directory / f"{name}.log", server.env, remove=remove, grace_s=grace_s)
        except BaseException:
            if remove is not None:
                shutil.rmtree(remove, ignore_errors=True)
            raise
        try:
            deadline = time.monotonic() + _START_TIMEOUT_S
            while process.running and time.monotonic() < deadline:
                if server.is_serving(process):
                    return process, numbers, directory
                time.sleep(0.02)
        except BaseException:
            process.stop()
            raise
        outcome = f"ended with exit code {process.returncode}."
        if process.running:
            outcome = f"did not answer within {_START_TIMEOUT_S:.0f} s. {BUSY}"
        log, is_taken = process.end_of_log(), _TAKEN.search(process.log(last_bytes=1_000_000))
        process.stop()
        if not is_taken:
            raise error(f"{name} on 127.0.0.1:{numbers[0]} {outcome} {log}")
    raise error(
        f"{name} found its ports on 127.0.0.1 taken {_ATTEMPTS} times in a row. Stop what opens ports that fast."
    )
